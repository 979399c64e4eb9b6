package journal

import (
	"encoding/binary"
	"math/bits"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/record"
)

const (
	// coarsePadding is the length up to which texts are padded to their size class.
	coarsePadding = 64 << 10

	// maxPadded is the longest text that is padded. In base64, it fits into a line with 64 KiB
	// of other members.
	maxPadded = (record.MaxLine - 64<<10) / 4 * 3
)

// pad returns the length of a text, the text, and as many zeros as give a total length that
// reveals little of the text.
func pad(plain []byte) []byte {
	padded := binary.AppendUvarint(make([]byte, 0, paddedLength(len(plain)+binary.MaxVarintLen64)), uint64(len(plain)))
	padded = append(padded, plain...)
	return append(padded, make([]byte, paddedLength(len(padded))-len(padded))...)
}

// unpad returns the text that pad padded.
func unpad(padded []byte) ([]byte, error) {
	length, n := binary.Uvarint(padded)
	if n <= 0 || length > uint64(len(padded)-n) {
		return nil, ErrDamaged
	}
	return padded[n : n+int(length)], nil
}

// paddedLength returns the length to which a text of so many bytes is padded: its
// size class up to 64 KiB, so that the journal tells no more of short values than any
// viewer learns; above, the next length of Padmé, which is at most 12% more and of
// which there are few (Nikitin and others, "Reducing Metadata Leakage from
// Encrypted Files and Communication with PURBs", PoPETs 2019(4), section 4).
func paddedLength(bytes int) int {
	if bytes <= coarsePadding {
		return bytesize.Class(bytes)
	}
	exponent := bits.Len(uint(bytes)) - 1
	zeros := exponent - bits.Len(uint(exponent)) // low bits of the length that are zero
	mask := 1<<zeros - 1
	return max(bytes, min((bytes+mask)&^mask, maxPadded))
}
