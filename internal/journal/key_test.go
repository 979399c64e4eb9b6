package journal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/journal"
)

func ExampleParseKey() {
	key, err := journal.ParseKey([]byte("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"))
	fmt.Println(len(key), err)
	_, err = journal.ParseKey([]byte("swordfish"))
	fmt.Println(err)
	// Output:
	// 32 <nil>
	// a journal key is 64 hex digits, or the base64 of 32 bytes in 44 characters; this is neither, with 9 bytes: make one with `openssl rand -hex 32`
}

func TestParseKeyReadsWhatOpensslWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), journal.KeyBytes, journal.KeyBytes).Draw(t, "key")
		for _, text := range []string{
			hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)), base64.StdEncoding.EncodeToString(key),
		} {
			for _, end := range []string{"", "\n", "\r\n"} {
				got, err := journal.ParseKey([]byte(text + end))
				require.NoError(t, err)
				require.Equal(t, key, got)
			}
		}
	})
}

func TestParseKeyRefusesOtherForms(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("ab", journal.KeyBytes)
	b64 := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xab}, journal.KeyBytes))
	for name, text := range map[string]string{
		"nothing":                  "",
		"a line feed":              "\n",
		"a password":               "correct horse battery staple",
		"32 raw bytes":             strings.Repeat("k", 32),
		"31 bytes in hex":          digits[2:],
		"33 bytes in hex":          digits + "ab",
		"64 bytes, not all digits": digits[:63] + "g",
		"31 bytes in base64":       base64.StdEncoding.EncodeToString(make([]byte, 31)),
		"33 bytes in base64":       base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"48 bytes in base64":       base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb}, 48)),
		"base64 without its end":   strings.TrimSuffix(b64, "="),
		"base64 with spare bits":   b64[:42] + "t=",
		"a line feed inside":       digits[:32] + "\n" + digits[33:],
		"two line feeds":           digits + "\n\n",
		"a blank before":           " " + digits,
		"a blank behind":           digits + " \n",
		"a prefix":                 "0x" + digits,
		"a byte order mark":        "\ufeff" + digits,
	} {
		key, err := journal.ParseKey([]byte(text))
		require.ErrorContains(t, err, "openssl rand -hex 32", name)
		require.Nil(t, key, name)
		if strings.TrimSpace(text) != "" {
			require.NotContains(t, err.Error(), strings.TrimSpace(text), name)
		}
	}
}

// FuzzParseKey checks that a text is a key only if it is one of the three ways to
// write those bytes.
func FuzzParseKey(f *testing.F) {
	key := bytes.Repeat([]byte{0xab}, journal.KeyBytes)
	f.Add([]byte(hex.EncodeToString(key)))
	f.Add([]byte(base64.StdEncoding.EncodeToString(key) + "\n"))
	f.Add([]byte(base64.StdEncoding.EncodeToString(key)[:43]))
	f.Add([]byte("swordfish\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		given := bytes.Clone(text)
		key, err := journal.ParseKey(text)
		require.Equal(t, given, text, "the text stays as it was")
		if err != nil {
			require.Nil(t, key)
			return
		}
		require.Len(t, key, journal.KeyBytes)
		line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		require.Contains(t, []string{hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key)}, normal(line))
	})
}

// normal writes hex digits small and leaves base64 as it is.
func normal(line string) string {
	if len(line) == hex.EncodedLen(journal.KeyBytes) {
		return strings.ToLower(line)
	}
	return line
}
