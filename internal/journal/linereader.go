package journal

import (
	"context"
	"io"
	"sync"
)

// Lines returns the stored lines of a run, in the form of a trace with more kinds of lines.
// Package audit verifies them.
func (a *archive) Lines(ctx context.Context, run string) (io.ReadCloser, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return &lineReader{ctx: ctx, a: a, run: r.n}, nil //nolint:containedctx // of a reader, for as long as it reads
}

// A lineReader reads the rows of a run one after another.
type lineReader struct {
	ctx       context.Context
	a         *archive
	run       int64
	until     int64 // the last row to read; zero means no limit
	after     int64
	batchRows []batchRow
	text      []byte
	end       bool
	closed    bool
	took      func(l *batchRow, lines []byte) // called with each row; may be nil
}

// Read implements [io.Reader].
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.closed {
			return 0, r.a.fail("read", ErrClosed)
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// next unpacks the next row.
func (r *lineReader) next() (err error) {
	if len(r.batchRows) == 0 {
		if r.end {
			return io.EOF
		}
		if r.batchRows, err = r.a.store.page(r.ctx, r.run, r.after, true); err != nil {
			return r.a.fail("read", err)
		}
		if r.end = len(r.batchRows) < pageSize; len(r.batchRows) == 0 {
			return io.EOF
		}
	}
	if r.until > 0 && r.batchRows[0].n > r.until {
		r.batchRows, r.end = nil, true
		return io.EOF
	}
	r.text, err = r.batchRows[0].read(true)
	if err == nil && r.took != nil {
		r.took(&r.batchRows[0], r.text)
	}
	r.after, r.batchRows = r.batchRows[0].n, r.batchRows[1:]
	return r.a.fail("read", err)
}

// Close implements [io.Closer].
func (r *lineReader) Close() error {
	r.closed, r.text, r.batchRows = true, nil, nil
	return nil
}

// each calls f with the lines of each row of a run, in order: all lines if whole, else those
// of the history.
func (c *catalog) each(ctx context.Context, number int64, whole bool, f func(lines []byte) error) error {
	var after int64
	for {
		batchRows, err := c.store.page(ctx, number, after, whole)
		if err != nil {
			return err
		}
		for i, err := range unpacked(batchRows, whole) {
			if err == nil {
				err = f(batchRows[i].text)
			}
			if err != nil {
				return err
			}
			after = batchRows[i].n
		}
		if len(batchRows) < pageSize {
			return nil
		}
	}
}

// unpacked unpacks the rows of a page in parallel, and returns the error of each.
func unpacked(batchRows []batchRow, whole bool) []error {
	errs := make([]error, len(batchRows))
	var all sync.WaitGroup
	for i := range batchRows {
		all.Go(func() { batchRows[i].text, errs[i] = batchRows[i].read(whole) })
	}
	all.Wait()
	return errs
}

// read returns all lines of a row, or those of the history.
func (l *batchRow) read(whole bool) ([]byte, error) {
	if whole {
		return l.lines.unpack()
	}
	return decompress(l.lines.kept)
}
