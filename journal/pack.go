package journal

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
)

// packers holds what compresses lines, since each is large.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // of a level that there is
	return w
}}

// A bundle is the lines of a row: those of the history apart from the others,
// so that it is read without them.
type bundle struct {
	kept  []byte // the lines of which a History is made
	rest  []byte
	order []byte // how many of the rest come next, how many kept, and so on
}

// keptKinds are how lines begin of which a History is made.
var keptKinds = [][]byte{opener(kindExchange), opener(kindAsked), opener(kindBegin), opener(kindEnd), opener(kindInfo)}

func opener(kind string) []byte { return []byte(`{"` + kind + `":`) }

func isKept(line []byte) bool {
	return slices.ContainsFunc(keptKinds, func(kind []byte) bool { return bytes.HasPrefix(line, kind) })
}

// pack returns lines as a row has them.
func pack(text []byte) (b bundle) {
	var sides [2][]byte // the rest, and what is kept
	side, count := 0, uint64(0)
	for line := range bytes.Lines(text) {
		of := 0
		if isKept(line) {
			of = 1
		}
		if of != side {
			b.order = binary.AppendUvarint(b.order, count)
			side, count = of, 0
		}
		sides[of] = append(sides[of], line...)
		count++
	}
	b.order = binary.AppendUvarint(b.order, count)
	if b.rest = deflate(sides[0]); len(sides[1]) > plainFrom {
		b.kept = append([]byte{plain}, sides[1]...)
	} else {
		b.kept = deflate(sides[1])
	}
	return b
}

// unpack returns all lines, in their order.
func (b *bundle) unpack() ([]byte, error) {
	rest, err := inflate(b.rest)
	if err != nil {
		return nil, err
	}
	kept, err := inflate(b.kept)
	if err != nil {
		return nil, err
	}
	sides, side, order := [2][]byte{rest, kept}, 0, b.order
	out := make([]byte, 0, len(rest)+len(kept))
	for len(order) > 0 {
		count, n := binary.Uvarint(order)
		if n <= 0 {
			return nil, errRow
		}
		for ; count > 0; count-- {
			end := bytes.IndexByte(sides[side], '\n') + 1
			if end == 0 {
				return nil, errRow
			}
			out, sides[side] = append(out, sides[side][:end]...), sides[side][end:]
		}
		side, order = 1-side, order[n:]
	}
	if len(sides[0])+len(sides[1]) > 0 {
		return nil, errRow
	}
	return out, nil
}

// errRow is the error of a row that no journal has written.
var errRow = fmt.Errorf("%w: a row of it is not as it was written", ErrCorrupt)

// plainFrom is from how many bytes on what is kept of a history stands as it is:
// then reading it matters more than the space, which is that of the texts.
const plainFrom = 8 << 10

// The first byte of lines in a row says in which form they are.
const (
	plain    byte = iota // as they are
	deflated             // compressed
)

// deflate compresses lines; none are nothing.
func deflate(lines []byte) []byte {
	if len(lines) == 0 {
		return []byte{}
	}
	var out bytes.Buffer
	out.WriteByte(deflated)
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

// inflate returns lines as they were: whole ones, or none.
func inflate(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	form, text := text[0], text[1:]
	if form == plain && bytes.HasSuffix(text, []byte("\n")) {
		return text, nil
	}
	if form != deflated {
		return nil, errRow
	}
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(text), nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(6 * len(text))
	n, err := out.ReadFrom(io.LimitReader(r, maxRow+1))
	if b := out.Bytes(); err != nil || n > maxRow || len(b) == 0 || b[len(b)-1] != '\n' {
		return nil, errRow
	}
	return out.Bytes(), nil
}
