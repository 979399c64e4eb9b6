package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zip compresses lines. It is safe for concurrent use, and made when it is
// first needed.
var zip = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are right or wrong for ever
	}
	return w
})

// unzip gives them back, at most maxRow: a damaged row must not fill the memory.
var unzip = sync.OnceValue(func() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxRow), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // the same
	}
	return r
})

// maxRow is how many bytes the lines of a row may have.
const maxRow = 1 << 30

// A bundle is the lines of a row: those of the history apart from the others,
// so that it is read without them.
type bundle struct {
	kept  []byte // the lines of which a History is made
	rest  []byte
	order []byte // how many of the rest come next, how many kept, and so on
}

// keptKinds are how lines begin of which a History is made.
var keptKinds = [][]byte{opener(kindExchange), opener(kindAsked), opener(kindBegun), opener(kindBegin), opener(kindEnd), opener(kindInfo)}

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
	b.rest, b.kept = deflate(sides[0]), deflate(sides[1])
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

// deflate compresses lines; none are nothing.
func deflate(lines []byte) []byte {
	if len(lines) == 0 {
		return []byte{}
	}
	return zip().EncodeAll(lines, nil)
}

// inflate returns lines as they were: whole ones, or none.
func inflate(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	lines, err := unzip().DecodeAll(text, nil)
	if err != nil || len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return nil, errRow
	}
	return lines, nil
}
