package specfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/redact"
)

// seed adds every file of testdata to a corpus.
func seed(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/bad/*.json", "testdata/ok/*.yaml", "testdata/ok/*.json"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			f.Add(data)
		}
	}
	for _, text := range []string{"# apiKey: abc\napiKey: abc #\nheaders: {A: |-\n  b}\nagents: [{name: a, apiKey: >-\n  c }]", fullPolicy, servers + "agents: [{name: a, tools: [search, open/x, http_get], toolPreset: full, disallowedTools: [bash], allowUntrusted: [open]}]", fmt.Sprintf(governed, "dependsOn: [A]") + "policy: {rules: [{from: a, to: \"*\", reveal: {iban: []}}]}", "", "a", "- - -", "{a: [b, {c: d}]}", "? a\n: b", "a: |2\n   b\n", "\"a\\x00\": b", "a: 'b\n\n  c'", "{\"a\":\"\\u0000\"}", "a:\rb:\r\n"} {
		f.Add([]byte(text))
	}
}

// FuzzLoad checks that any file is either read or refused with problems that
// all have a place in it, the same ones each time, and that nothing panics.
// What is read can be saved, and is read as the same then; so is what is kept of it.
func FuzzLoad(f *testing.F) {
	seed(f)
	lines := regexp.MustCompile("\r\n|\r|\n")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		load := func() (*specfile.File, error) {
			return check(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data)), Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted})
		}
		file, err := load()
		_, again := load()
		if err == nil {
			require.NoError(t, again)
			require.NotNil(t, file)
			requireReloads(t, file, specfile.Options{Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted})
			requireCopies(t, file, specfile.Options{Path: "-", Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted})
			return
		}
		require.EqualError(t, again, err.Error())
		bad, ok := errors.AsType[*specfile.Error](err)
		require.True(t, ok, "%v", err)
		require.NotEmpty(t, bad.Problems)
		text := strings.TrimPrefix(string(data), "\xef\xbb\xbf")
		parts := lines.Split(text, -1)
		for _, p := range bad.Problems {
			require.True(t, utf8.ValidString(p.Error()))
			require.NotEmpty(t, p.Message)
			if p.File != "-" || errors.Is(p, specfile.ErrRead) {
				continue // a file that the spec names, or nothing that could be read
			}
			require.Positive(t, p.Line)
			require.LessOrEqual(t, p.Line, len(parts))
			require.Positive(t, p.Column)
			require.LessOrEqual(t, p.Column, utf8.RuneCountInString(parts[p.Line-1])+1)
			require.NotContains(t, p.Excerpt, "\x1b")
			for line := range strings.Lines(p.Excerpt) {
				_, shown, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
				clean, _, err := redact.Secrets().Text(shown)
				require.NoError(t, err)
				require.Equal(t, clean, shown)
			}
		}
	})
}

// requireCopies holds that a file is read from its copies as the same, but for
// what was taken out, and that they hold no secrets.
func requireCopies(t *testing.T, file *specfile.File, o specfile.Options) {
	o.Stored = copies(t, file)
	var without []string
	for _, s := range o.Stored {
		redact.Secrets().Find(s.Text, func(start, end int, kind redact.Kind) { t.Errorf("%s stays in the copy", kind) })
		without = append(without, s.Without...)
	}
	if len(o.Stored) == 0 || strings.Contains(strings.Join(without, ""), "[REDACTED:") {
		return // names that are secrets become equal
	}
	got, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, file.Fingerprint(), got.Fingerprint())
	require.Equal(t, o.Stored, got.Stored())
	if len(without) == 0 {
		requireEqualFiles(t, file, got)
	}
}

// FuzzJSON compares the scanner with encoding/json: it refuses every text that
// encoding/json refuses, and reads the others equally. It is stricter about
// duplicate keys, surrogates, UTF-8 and depth.
func FuzzJSON(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"s": "\ud83d\ude00 \/ \b é", "n": [0, -0.5e+10, 1E3, 123456789012345678901234567890]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || !utf8.Valid(data) {
			return
		}
		// As a schema the value comes back as it was understood.
		dir := t.TempDir()
		write(t, dir, "spec.json", `{"agents": [{"name": "a"}], "schemas": {"s": `+string(data)+`}, "tasks": [{"title": "T", "description": "d", "outputSchema": "s"}]}`)
		file, err := specfile.Load(specfile.Options{Path: filepath.Join(dir, "spec.json")})
		if err != nil {
			return
		}
		require.True(t, json.Valid(data))
		if got := file.Tasks[0].OutputSchema; got != nil && !strings.Contains(string(data), `"file"`) {
			require.Equal(t, decode(t, data), decode(t, got))
		}
	})
}

// decode reads JSON and keeps numbers as they are written.
func decode(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}
