package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/runteam/runteam/internal/record"
)

// compressor compresses lines. It is safe for concurrent use, and made when it is
// first needed.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are right or wrong for ever
	}
	return w
})

// decompressor gives them back, at most maxRow: a damaged row must not fill the memory.
var decompressor = sync.OnceValue(func() *zstd.Decoder {
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
	parts []byte // how many lines of the rest come next, how many of kept, and so on; marks may come first
}

// keptKinds are how lines begin of which a History is made.
var keptKinds = [][]byte{record.LinePrefix(record.KindAgentCall), record.LinePrefix(record.KindRejected), record.LinePrefix(record.KindCallStart), record.LinePrefix(record.KindPrefetchStart), record.LinePrefix(record.KindRunStart), record.LinePrefix(record.KindRunEnd), record.LinePrefix(record.KindInfo), record.LinePrefix(record.KindMessage)}

func isKept(line []byte) bool {
	return slices.ContainsFunc(keptKinds, func(kind []byte) bool { return bytes.HasPrefix(line, kind) })
}

// packers keeps the memory of packers for later rows.
var packers = sync.Pool{New: func() any { return &packer{bundle: bundle{kept: []byte{}, rest: []byte{}}} }} // a row has no nulls

func newPacker() *packer { return packers.Get().(*packer) }

// maxKept is how many bytes of lines a packer has at most whose memory is kept.
const maxKept = 4 << 20

// release gives the memory of a packer back. Its bundle must not be used any more.
func (p *packer) release() {
	if p.size <= maxKept {
		*p = packer{bundle: bundle{p.kept[:0], p.rest[:0], p.parts[:0]}, sides: [2][]byte{p.sides[0][:0], p.sides[1][:0]}}
		packers.Put(p)
	}
}

// chunkBytes is how many bytes of lines are compressed at a time while a row takes more
// of them. The chunks of a row stand one behind the other.
const chunkBytes = 32 << 10

// A packer makes the bundle of a row of lines that come one after another. The bundle is
// valid until the packer is released.
type packer struct {
	bundle
	size  int       // bytes of all lines
	sides [2][]byte // lines that are not compressed yet: the rest, and those of the history
	side  int       // of the last line
	count uint64    // lines of this side since the other
}

// add adds lines.
func (p *packer) add(text []byte) {
	p.size += len(text)
	for line := range bytes.Lines(text) {
		of := 0
		if isKept(line) {
			of = 1
		}
		if of != p.side {
			p.parts = binary.AppendUvarint(p.parts, p.count)
			p.side, p.count = of, 0
		}
		p.sides[of] = append(p.sides[of], line...)
		p.count++
	}
}

// compressFull compresses the lines of a side if they make a chunk.
func (p *packer) compressFull() {
	for side := range p.sides {
		if len(p.sides[side]) >= chunkBytes {
			p.compress(side)
		}
	}
}

func (p *packer) compress(side int) {
	if len(p.sides[side]) == 0 {
		return
	}
	into := &p.rest
	if side == 1 {
		into = &p.kept
	}
	*into = compressor().EncodeAll(p.sides[side], *into)
	p.sides[side] = p.sides[side][:0]
}

// finish returns the bundle of all lines.
func (p *packer) finish() bundle {
	p.compress(0)
	p.compress(1)
	p.parts = binary.AppendUvarint(p.parts, p.count)
	return p.bundle
}

// unpack returns all lines, in their order.
func (b *bundle) unpack() ([]byte, error) {
	rest, err := decompress(b.rest)
	if err != nil {
		return nil, err
	}
	kept, err := decompress(b.kept)
	if err != nil {
		return nil, err
	}
	_, parts, _, err := splitMarks(b.parts)
	if err != nil {
		return nil, err
	}
	sides, side := [2][]byte{rest, kept}, 0
	out := make([]byte, 0, len(rest)+len(kept))
	for len(parts) > 0 {
		count, n := binary.Uvarint(parts)
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
		side, parts = 1-side, parts[n:]
	}
	if len(sides[0])+len(sides[1]) > 0 {
		return nil, errRow
	}
	return out, nil
}

// errRow is the error of a row that no journal has written.
var errRow = fmt.Errorf("%w: a row of it is not as it was written", ErrCorrupt)

// compress compresses lines; none are nothing.
func compress(lines []byte) []byte {
	if len(lines) == 0 {
		return []byte{}
	}
	return compressor().EncodeAll(lines, nil)
}

// decompress returns lines as they were: whole ones, or none.
func decompress(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	lines, err := decompressor().DecodeAll(text, nil)
	if err != nil || len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return nil, errRow
	}
	return lines, nil
}
