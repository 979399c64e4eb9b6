package mask_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mask"
)

func TestTextReplacesValues(t *testing.T) {
	t.Parallel()
	v := mask.New(map[string]string{
		"KEY": "canary-one", "LONG": "canary-one-and-two", "QUOTED": "say \"hi\"\n", "PADDED": "  padded  ",
		"SHORT": "abc", "FLAG": "true",
	})
	for give, want := range map[string]string{
		"":                          "",
		"nothing here":              "nothing here",
		"a canary-one b canary-one": "a ${KEY} b ${KEY}",
		"canary-one-and-two":        "${LONG}",
		"canary-one-and-t":          "${KEY}-and-t",
		"abc and true":              "abc and true",
		`he: say "hi"`:              `he: ${QUOTED}`,
		`{"a": "say \"hi\""}`:       `{"a": "${QUOTED}"}`,
		"[padded]":                  "[${PADDED}]",
		"canary-onecanary-one":      "${KEY}${KEY}",
		"canary-canary-one":         "canary-${KEY}",
	} {
		require.Equal(t, want, v.Text(give), give)
	}
	require.JSONEq(t, `{"${KEY}": ["${LONG}"]}`, string(v.JSON(json.RawMessage(`{"canary-one": ["canary-one-and-two"]}`))))
}

func TestNoValuesReplaceNothing(t *testing.T) {
	t.Parallel()
	v := mask.New(map[string]string{"A": "x", "B": ""}, nil)
	require.Nil(t, v)
	require.Equal(t, "xyz", v.Text("xyz"))
	var b strings.Builder
	w := v.Writer(&b)
	_, err := w.Write([]byte("xyz"))
	require.NoError(t, err)
	require.NoError(t, w.Flush())
	require.Equal(t, "xyz", b.String())
}

func TestErrorKeepsItsCause(t *testing.T) {
	t.Parallel()
	v := mask.New(map[string]string{"KEY": "canary"})
	cause := errors.New("no canary")
	require.EqualError(t, v.Error(cause), "no ${KEY}")
	require.ErrorIs(t, v.Error(cause), cause)
	require.NoError(t, v.Error(nil))
	other := errors.New("other")
	require.Equal(t, other, v.Error(other))
}

// However a text is split into writes, the result is that of the whole text.
func FuzzWriterEqualsText(f *testing.F) {
	f.Add("a canary-one b canary-one-and-two canary-on", uint8(3))
	f.Add("aaaabaaaaab", uint8(1))
	v := mask.New(map[string]string{"KEY": "canary-one", "LONG": "canary-one-and-two", "TWO": "one-and", "AS": "aaaa", "AB": "aaaab"})
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		var b strings.Builder
		w := v.Writer(&b)
		for rest := text; rest != ""; {
			n := min(len(rest), int(size)+1)
			_, err := w.Write([]byte(rest[:n]))
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.NoError(t, w.Flush())
		require.Equal(t, v.Text(text), b.String())
	})
}

func TestValueWithAnglesAndQuotesIsReplacedInEveryJSON(t *testing.T) {
	t.Parallel()
	v := mask.New(map[string]string{"KEY": `pass<word>"x&y"`})
	require.Equal(t, `{"a":"${KEY}"}`, v.Text(`{"a":"pass<word>\"x&y\""}`))
	require.Equal(t, `{"a":"${KEY}"}`, v.Text(`{"a":"pass\u003cword\u003e\"x\u0026y\""}`))
}
