package redact

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// The ranges of unstable are written by hand for the version of Unicode at hand; this holds them to
// all characters.
//
// Requirement: G22.
func TestRangesCoverAllOfUnicode(t *testing.T) {
	t.Parallel()
	set := unstable()
	for c := rune(utf8.RuneSelf); c <= utf8.MaxRune; c++ {
		if utf8.ValidRune(c) && isUnstable(c) != set.has(c) {
			require.Failf(t, "wrong", "%U: NFKC may change it: %t", c, isUnstable(c))
		}
		if _, ok := folding(c); ok && c < 0x10000 {
			var b [utf8.UTFMax]byte
			utf8.EncodeRune(b[:], c)
			require.True(t, folds()[b[0]-0xc0][b[1]&0x3f], "%U", c)
		}
		if _, ok := folding(c); ok && (c >= 0x20000 && c < 0xe0000 || c >= 0xe1000) {
			require.Failf(t, "beyond the table", "%U", c)
		}
	}
}
