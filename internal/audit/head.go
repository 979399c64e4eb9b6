package audit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// A Head is what a chain has come to: the digest of its last line, and how many
// lines it has. The zero value is the head of nothing. As text it reads
// "<digest in hex>:<lines>", and the zero value is empty.
type Head struct {
	Digest [32]byte
	Lines  int
}

// String returns the head as text.
func (h Head) String() string {
	if h == (Head{}) {
		return ""
	}
	return string(h.append(nil))
}

// append adds the text of a head that is not zero.
func (h *Head) append(b []byte) []byte {
	return strconv.AppendInt(append(hex.AppendEncode(b, h.Digest[:]), ':'), int64(h.Lines), 10)
}

// MarshalText writes the head as text.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what String writes, and nothing else. After an error h is zero.
func (h *Head) UnmarshalText(text []byte) error {
	*h = Head{}
	if len(text) == 0 {
		return nil
	}
	digest, lines, _ := strings.Cut(string(text), ":")
	var got Head
	raw, badHex := hex.DecodeString(digest)
	n, badLines := strconv.Atoi(lines)
	copy(got.Digest[:], raw)
	got.Lines = n
	if badHex != nil || badLines != nil || n < 1 || got.String() != string(text) {
		return fmt.Errorf("%q is no head: it has 64 hexadecimal digits, a colon and a number of lines", text)
	}
	*h = got
	return nil
}
