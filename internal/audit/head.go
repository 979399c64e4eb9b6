package audit

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// A Head identifies a chain up to a line: the digest of that line, and how many lines the
// chain has. Its text is "<digest in hex>:<lines>". The zero value is no chain, and its text
// is empty.
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

// MarshalText implements [encoding.TextMarshaler].
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses only what String returns. After an error h is zero.
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
		return fmt.Errorf("%q is no head: a head has 64 hexadecimal digits, a colon and a number of lines", text)
	}
	*h = got
	return nil
}
