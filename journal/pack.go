package journal

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// packers holds what compresses lines, since each is large.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // of a level that there is
	return w
}}

// pack returns lines as a row has them.
func pack(lines []byte) []byte {
	var out bytes.Buffer
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&out)
	w.Write(lines) //nolint:errcheck // a buffer takes all
	w.Close()      //nolint:errcheck // the same
	return out.Bytes()
}

// unpackers holds what reads them.
var unpackers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// maxRow is how many bytes the lines of a row may have when they are unpacked:
// a damaged row must not fill the memory.
const maxRow = 1 << 30

// unpack returns the lines of a row.
func unpack(row []byte) ([]byte, error) {
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(row), nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(6 * len(row))
	if n, err := out.ReadFrom(io.LimitReader(r, maxRow+1)); err != nil || n > maxRow {
		return nil, fmt.Errorf("a row of the journal is damaged: it cannot be unpacked (%d bytes): %w", len(row), errOr(err))
	}
	if b := out.Bytes(); len(b) == 0 || b[len(b)-1] != '\n' {
		return nil, fmt.Errorf("a row of the journal is damaged: its lines are cut off")
	}
	return out.Bytes(), nil
}

func errOr(err error) error {
	if err == nil {
		return fmt.Errorf("it has more than %d bytes", maxRow)
	}
	return err
}
