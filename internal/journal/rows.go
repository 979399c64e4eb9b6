package journal

import (
	"errors"
	"time"
)

// errRunExists reports that there is a run with this id.
var errRunExists = errors.New("there is a run with this id")

// A runRow is a run.
type runRow struct {
	n       int64  // in its file, from 1
	id      string // unique
	name    string
	command string
	started time.Time
}

// A row is what is known of a run without reading its lines.
type row struct {
	runRow
	held *lease // nil if no process has it
	turn turn   // the last
}

// A turn records that a process began or resumed a run, or that the run ended.
type turn struct {
	at     time.Time
	status string // empty: a process began or resumed it
	tasks  string // how many have which status, as JSON
}

// A batch is what one commit adds to one run.
type batch struct {
	run     int64
	lease   lease // must be unchanged
	at      time.Time
	lines   bundle
	empty   bool   // there are no lines
	state   []byte // of the chain after them
	answers [][32]byte
	turns   []turn
	marks   []byte // which tasks the lines are about
	release bool   // end the lease

	lost bool // set by the database: another process has the lease, and nothing was added
}

// A batchRow is a batch as it is read.
type batchRow struct {
	n     int64 // higher than those of all batches before it
	run   int64
	id    string // of the run; only of an answer
	lines bundle
	text  []byte // the unpacked lines
}

// pageSize is how many rows are read at a time.
const pageSize = 64
