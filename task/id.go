package task

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/runteam/runteam/internal/naming"
)

// namespace is the UUIDv5 of "https://github.com/runteam/runteam/task" in the
// URL namespace of RFC 9562, dd305df5-2d5d-5ec9-804b-65a9beb2dc3f. Changing it
// would change the id of every task, and with them what a journal can resume.
var namespace = [16]byte{
	0xdd, 0x30, 0x5d, 0xf5, 0x2d, 0x5d, 0x5e, 0xc9,
	0x80, 0x4b, 0x65, 0xa9, 0xbe, 0xb2, 0xdc, 0x3f,
}

const idLen = 36 // xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx

// NewID returns the ID of the task with this title: the UUIDv5 (RFC 9562) of the title in
// lower case, without surrounding spaces, in a namespace of this package. The same title
// has the same ID in every run and on every machine.
func NewID(title string) ID {
	var buf [256]byte
	name := naming.AppendNormal(buf[:0], title)
	return ID(appendID(make([]byte, 0, idLen), name))
}

// appendID appends the id of a normalised title. It hashes on the stack: the
// uuid package allocates four times for the same text.
func appendID(dst, name []byte) []byte {
	var buf [16 + 256]byte
	sum := sha1.Sum(append(append(buf[:0], namespace[:]...), name...))
	sum[6] = sum[6]&0x0f | 0x50 // version 5
	sum[8] = sum[8]&0x3f | 0x80 // variant of RFC 9562
	for i, part := range [...][]byte{sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}
