package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/runteam/runteam/label"
)

// fenceBytes is how much of the hash makes a fence: 128 bits.
const fenceBytes = 16

// A block is one payload between two fence lines.
type block struct {
	heading  string
	producer string
	level    label.Classification
	payload  string
	marks    string
	source   int32
	fence    string
}

// fences gives each block a fence that no other block has and that stands in
// no payload and no instruction. A fence is the first 128 bits of SHA-256 over
// runteam/fence/1, a counter, the task's title, the block's position, heading,
// producer and label, and the SHA-256 of all payloads, each with its length
// before it. The counter rises from 0 until the check holds, so equal prompts
// get equal fences.
func fences(title, description string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	all := payloadDigest(s.text[:0], blocks)
	for n := uint64(0); ; n++ {
		hexed := make([]byte, 0, 2*fenceBytes*len(blocks))
		for i := range blocks {
			b := s.text[:0]
			b = appendString(b, "runteam/fence/1")
			b = binary.BigEndian.AppendUint64(b, n)
			b = appendString(b, title)
			b = binary.BigEndian.AppendUint64(b, uint64(i))
			b = appendString(b, blocks[i].heading)
			b = appendString(b, blocks[i].producer)
			b = append(b, byte(blocks[i].level))
			b = append(b, all[:]...)
			s.text = b
			sum := sha256.Sum256(b)
			hexed = hex.AppendEncode(hexed, sum[:fenceBytes])
		}
		text := string(hexed)
		for i := range blocks {
			blocks[i].fence = text[2*fenceBytes*i : 2*fenceBytes*(i+1)]
		}
		if distinct(description, blocks) {
			return
		}
	}
}

// payloadDigest hashes all payloads, each with its length before it.
func payloadDigest(b []byte, blocks []block) [sha256.Size]byte {
	if len(blocks) == 1 {
		b = appendString(b, blocks[0].payload)
		return sha256.Sum256(b)
	}
	h := sha256.New()
	for i := range blocks {
		b = appendString(b[:0], blocks[i].payload)
		h.Write(b)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

func distinct(description string, blocks []block) bool {
	for i := range blocks {
		fence := blocks[i].fence
		if strings.Contains(description, fence) {
			return false
		}
		for j := range blocks {
			if strings.Contains(blocks[j].payload, fence) || (j < i && blocks[j].fence == fence) {
				return false
			}
		}
	}
	return true
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}
