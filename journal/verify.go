package journal

import (
	"bufio"
	"bytes"
	"context"

	"github.com/runteam/runteam/audit"
)

// Verify reads the lines of a run, which is named as for [Journal.Find], and
// says whether they were altered. Beyond what [audit.Verify] checks, they must
// be the record of this very run, begin at its beginning, and end where the
// chain stood when the last row was written. It sets Run and State of o; the
// error is of reading only.
//
// With a key, only its holder can write a record that passes. Without one,
// anybody who can write the file can. In both cases rows may have been cut off
// the end of an open record, or the whole file put back to an older state: only
// a head that was kept elsewhere shows that. Names, times and counts in lists of
// runs are not part of the record.
func (j *Journal) Verify(ctx context.Context, run string, o audit.VerifyOptions) (audit.Report, error) {
	r, err := j.find(ctx, run)
	if err != nil {
		return audit.Report{}, err
	}
	last, _, state, err := j.store.last(ctx, r.n) // rows that come later are not read
	if err != nil {
		return audit.Report{}, j.fail("read", err)
	}
	if o.State.UnmarshalBinary(state) != nil || o.State.IsZero() {
		return audit.Report{Status: audit.Broken, Why: "the state of its chain cannot be read: it was altered"}, nil
	}
	o.Run = r.id
	in := bufio.NewReaderSize(&lineReader{ctx: ctx, j: j, run: r.n, until: last}, 64<<10)
	begin, _ := in.Peek(len(traceOpener)) // Verify returns the error
	headed := bytes.Equal(begin, traceOpener)
	report, err := audit.Verify(in, o)
	if err != nil {
		return audit.Report{}, err
	}
	if report.Status != audit.Broken && !headed {
		report.Status, report.Line, report.Covered = audit.Broken, 1, 0
		report.Why = "the record does not begin with its head: lines were removed at its beginning"
	}
	if report.Status == audit.Broken {
		_, err = j.find(ctx, r.id) // it may have been removed meanwhile
	}
	return report, err
}

// traceOpener is how the first line of a record begins.
var traceOpener = opener("trace")
