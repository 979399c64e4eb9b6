package redact_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// prose reads the texts in which nothing is a secret and nobody's data: letters, invoices, check
// sums, code, configuration, logs, tables, and scripts other than Latin.
func prose(t testing.TB) map[string]string {
	t.Helper()
	texts := map[string]string{}
	require.NoError(t, filepath.WalkDir("testdata/prose", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[d.Name()] = string(text)
		return err
	}))
	require.GreaterOrEqual(t, len(texts), 8)
	return texts
}

// somebody takes out of the prose what is somebody's: an address in a Markdown link, a client in a
// log of requests.
var somebody = strings.NewReplacer("jane@example.org", "a reader", "10.0.3.17", "client-7")

// Requirement: G23.
func TestProseStaysAsItIs(t *testing.T) {
	t.Parallel()
	redactors := map[string]*redact.Redactor{"secrets": redact.Secrets(), "default": redact.Default(), "all": redact.All()}
	for name, text := range prose(t) {
		for kinds, r := range redactors {
			if kinds != "secrets" {
				text = somebody.Replace(text)
			}
			t.Run(kinds+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, s := range r.Spans(text, nil) {
					t.Errorf("%s at %d: %q in %q", s.Kind, s.Start, text[s.Start:s.End], text[max(0, s.Start-40):min(len(text), s.End+10)])
				}
				out, counts, err := r.Text(text)
				require.NoError(t, err)
				require.Nil(t, counts)
				require.Equal(t, text, out)
			})
		}
	}
}
