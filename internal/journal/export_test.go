package journal

import (
	"context"
	"time"
)

// Busy returns the options with another time for which a file may be locked by others.
func (o Options) Busy(d time.Duration) Options {
	o.busy = d
	return o
}

// Pages returns the options with a file of so many pages at most.
func (o Options) Pages(n int) Options {
	o.pages = n
	return o
}

// Version is the version of the schema.
var Version = version

// WithoutMarks returns the parts of a row as they were before rows had marks.
func WithoutMarks(stored []byte) (parts []byte, err error) {
	_, parts, _, err = splitMarks(stored)
	return parts, err
}

// Decompress returns what was compressed.
func Decompress(text []byte) ([]byte, error) { return decompress(text) }

// Compress compresses lines.
func Compress(lines []byte) []byte { return compressor().EncodeAll(lines, nil) }

// Abandon ends a journal without releasing its runs, as if the process were killed.
func Abandon(j *Journal) {
	for _, r := range j.writer.openRuns() {
		j.writer.removeRun(r)
	}
	_ = j.Close()
}

// TakeLease gives the lease of a run to another process.
func TakeLease(j *Journal, r *Run, to Holder) error {
	_, err := j.store.swapLease(context.Background(), r.row.n, &r.lease, new(r.lease.next(to, time.Now())))
	return err
}
