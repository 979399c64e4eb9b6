package journal

import (
	"errors"
	"time"
)

// errTaken reports that there is a run with this id.
var errTaken = errors.New("there is a run with this id")

// A runRow is a run.
type runRow struct {
	n       int64  // in its file, from 1
	id      string // unique
	name    string
	command string
	started time.Time
}

// A row is what is known of a run without reading what it kept.
type row struct {
	runRow
	held *lease // nil if nobody has it
	turn turn   // the last
}

// A turn is that a process took a run up, or that the run came to its end.
type turn struct {
	at     time.Time
	status string // empty: it was taken up
	tasks  string // how many came to which status, as JSON
}

// A batch is what one commit adds to one run.
type batch struct {
	run     int64
	lease   lease // that must still stand
	at      time.Time
	lines   bundle
	empty   bool   // there are no lines
	state   []byte // of the chain after them
	answers [][32]byte
	turns   []turn
	marks   []byte // of what the lines are about
	release bool   // the lease ends with it

	lost bool // set by the store: the lease is somebody else's, and nothing was added
}

// A batchRow is a batch as it is read.
type batchRow struct {
	n     int64 // higher than those of all batches before it
	run   int64
	id    string // of the run; only of an answer
	lines bundle
	text  []byte // the lines, once they are unpacked
}

// pageSize is how many rows are read at a time.
const pageSize = 64
