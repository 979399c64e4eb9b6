package journal

import (
	"bytes"
	_ "embed" // of the dictionary
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/runteam/runteam/internal/record"
)

// dictionary has a line of each kind without its values, those that are most frequent last. A row is compressed as if it
// followed them, since most rows have a few lines of which the names of members are a large part. It must not change:
// the rows of each file from version 9 on need it.
//
//go:embed dictionary.txt
var dictionary []byte

// dictionaryID is stored with each row that needs the dictionary. A format that is not for public distribution may use any ID:
// https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1.1.3.
const dictionaryID = 9

// compressor compresses lines. It is safe for concurrent use.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderDictRaw(dictionaryID, dictionary))
	if err != nil {
		panic(err) // the options are constant
	}
	return w
})

// decompressor decompresses at most maxRow bytes: a damaged row must not fill the memory.
var decompressor = sync.OnceValue(func() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxRow), zstd.WithDecoderDictRaw(dictionaryID, dictionary), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // the options are constant
	}
	return r
})

// maxRow is how many bytes the lines of a row may have: those of [maxLines], and of one request, whose few lines have
// [record.MaxLine] at most.
const maxRow = 128 << 20

// A bundle is the lines of a row. Those of the history are separate, so that they are read
// without the others.
type bundle struct {
	kept  []byte // the lines of the history
	rest  []byte
	parts []byte // how many lines of rest come first, how many of kept follow, and so on; may begin with marks
}

// keptKinds are the prefixes of the lines of a history.
var keptKinds = [][]byte{record.LinePrefix(record.KindAgentCall), record.LinePrefix(record.KindRejected), record.LinePrefix(record.KindCallStart), record.LinePrefix(record.KindPrefetchStart), record.LinePrefix(record.KindRunStart), record.LinePrefix(record.KindRunEnd), record.LinePrefix(record.KindInfo), record.LinePrefix(record.KindMessage), record.LinePrefix(record.KindTurn), record.LinePrefix(record.KindToolStart), record.LinePrefix(record.KindToolEnd), record.LinePrefix(record.KindFiles), record.LinePrefix(record.KindQuestion), record.LinePrefix(record.KindAnswer), record.LinePrefix(record.KindCommand)}

func isKept(line []byte) bool {
	if value, ok := bytes.CutPrefix(line, eventOpener); ok {
		return record.IsTaskEvent(value)
	}
	return slices.ContainsFunc(keptKinds, func(kind []byte) bool { return bytes.HasPrefix(line, kind) })
}

// eventOpener is the prefix of the line of an event.
var eventOpener = record.LinePrefix(record.KindEvent)

// packers is a pool, since rows need much memory.
var packers = sync.Pool{New: func() any { return &packer{bundle: bundle{kept: []byte{}, rest: []byte{}}} }} // a row has no nulls

func newPacker() *packer { return packers.Get().(*packer) }

// maxPooled is the limit of bytes of lines for a packer that returns to the pool.
const maxPooled = 4 << 20

// release returns a packer to the pool. Its bundle must not be used any more.
func (p *packer) release() {
	if p.size <= maxPooled {
		*p = packer{bundle: bundle{p.kept[:0], p.rest[:0], p.parts[:0]}, sides: [2][]byte{p.sides[0][:0], p.sides[1][:0]}}
		packers.Put(p)
	}
}

// chunkBytes is how many bytes of lines are compressed at a time while a row grows. The
// chunks of a row follow one another. Smaller ones take more time for each byte, and larger
// ones leave more to compress when the commit begins.
const chunkBytes = 64 << 10

// A packer packs lines into the bundle of a row. The bundle is valid until the packer is
// released.
type packer struct {
	bundle
	size  int       // bytes of all lines
	sides [2][]byte // lines that are not compressed yet: of rest, and of kept
	side  int       // of the last line
	count uint64    // lines of this side since the last of the other
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

// compressFull compresses the sides that fill a chunk.
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
		end := 0
		for ; count > 0; count-- {
			length := bytes.IndexByte(sides[side][end:], '\n') + 1
			if length == 0 {
				return nil, errRow
			}
			end += length
		}
		out, sides[side] = append(out, sides[side][:end]...), sides[side][end:]
		side, parts = 1-side, parts[n:]
	}
	if len(sides[0])+len(sides[1]) > 0 {
		return nil, errRow
	}
	return out, nil
}

// errRow is the error of a damaged row.
var errRow = fmt.Errorf("%w: a row of it is not as it was written", ErrCorrupt)

// unpackedSize returns how many bytes all lines have at most, by what the compressed ones say of themselves.
func (b *bundle) unpackedSize() int64 { return decompressedSize(b.rest) + decompressedSize(b.kept) }

// decompressedSize returns how many bytes compressed lines have at most: more than a row may have if that is not clear.
// Zstandard stores the size of a frame in its header, or, if the encoder leaves that out for less than 256 bytes, as
// much as its blocks may have: https://www.rfc-editor.org/rfc/rfc8878#name-frames.
func decompressedSize(text []byte) (size int64) {
	const blockHeader, checksum, mostOfBlock = 3, 4, 128 << 10
	const repeated, compressed = 1, 2
	for len(text) > 0 {
		var h zstd.Header
		if h.Decode(text) != nil || h.Skippable {
			return maxRow + 1
		}
		size += int64(min(h.FrameContentSize, maxRow+1))
		at := h.HeaderSize
		for last := false; !last; {
			if at+blockHeader > len(text) {
				return maxRow + 1
			}
			block := int(text[at]) | int(text[at+1])<<8 | int(text[at+2])<<16
			kind, n := block>>1&3, block>>3
			last = block&1 == 1
			if at += blockHeader; kind == repeated {
				at++
			} else {
				at += n
			}
			switch {
			case h.HasFCS:
			case kind == compressed:
				size += mostOfBlock
			default:
				size += int64(n)
			}
		}
		if h.HasCheckSum {
			at += checksum
		}
		if at > len(text) || size > maxRow {
			return maxRow + 1
		}
		text = text[at:]
	}
	return size
}

// smallRow is the most bytes of compressed lines whose size may be far less than what [decompressedSize] returns.
const smallRow = 1 << 10

// decompress decompresses lines, and requires a line feed at their end.
func decompress(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	size := decompressedSize(text)
	if size > maxRow {
		return nil, errRow
	}
	var lines []byte
	if len(text) > smallRow {
		lines = make([]byte, 0, size) // else each frame would copy those before it
	}
	lines, err := decompressor().DecodeAll(text, lines)
	if err != nil || len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return nil, errRow
	}
	return lines, nil
}
