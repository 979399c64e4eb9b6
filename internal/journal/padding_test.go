package journal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
)

// The length of a secret cannot be learned from the file without the key: two runs whose
// secrets differ in length within a size class have lines of the same lengths.
//
// Requirement: G42.
func TestCiphertextsOfAClassHaveOneLength(t *testing.T) {
	t.Parallel()
	lengths := func(secret string) (list []int) {
		j := journal.InMemory(journal.Options{Key: oneKey, Now: func() time.Time { return noon.Add(time.Hour) }})
		defer j.Close()
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Time: noon, Files: []journal.File{{Path: "claim.md", Text: secret, Label: label.Secret}}})
		require.NoError(t, err)
		story := newFakeRun("r1", 3)
		story.Label = label.Secret
		of := story.Task(0)
		answer := story.Answer(of, secret, answerKey(0))
		answer.Shown = &record.ShownResult{Text: secret}
		require.NoError(t, appendEntries(r, append(story.Ask(of, label.Secret), record.Entry{Exchange: answer})...))
		hidden := 0
		for line, err := range j.Lines(t.Context(), "r1") {
			require.NoError(t, err)
			list = append(list, len(line)-1) // without the line feed
			hidden += strings.Count(string(line), `"padded":true`)
		}
		require.GreaterOrEqual(t, hidden, 2)
		return list
	}
	short := lengths("4711")
	require.Equal(t, short, lengths(strings.Repeat("a long story ", 20)))
	require.NotEqual(t, short, lengths(strings.Repeat("a longer story ", 200)), "in another class")
}

// A journal of version 3, in which encrypted texts are not padded, is read as it
// is, and can be resumed.
func TestJournalWithoutPaddingOpens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	for _, suffix := range []string{"", ".key"} {
		text, err := os.ReadFile(filepath.Join("testdata", "version3.db"+suffix))
		require.NoError(t, err)
		put(t, path+suffix, string(text))
	}
	want := secretEntries("r1", label.Secret)
	for i := range want {
		if want[i].Event != nil { // which are not in the history of this version
			want[i] = record.Entry{}
		}
		if a := want[i].Asked; a != nil {
			a.Bytes = bytesize.Class(a.Bytes)
		}
		if x := want[i].Exchange; x != nil { // later versions keep these too
			x.Call, x.Warnings, x.Refused, x.Reasoning = llm.CallInfo{}, nil, nil, nil
		}
	}
	check := func(o journal.Options) {
		o.Key, o.Now = oneKey, func() time.Time { return noon.Add(2 * time.Hour) }
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		defer j.Close()
		s, err := j.Load(t.Context(), "r1")
		require.NoError(t, err)
		requireHistory(t, want, &s.History)
		require.Equal(t, "of "+canary, s.Info.Files[1].Text)
		tr, err := j.Trace(t.Context(), "r1")
		require.NoError(t, err)
		require.NotEmpty(t, tr.Contains(canary).Occurrences)
		if o.ReadOnly {
			return
		}
		r, _, err := j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		head, err := r.End(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "verified", requireVerified(t, j, "r1", nil, head).Status)
	}
	check(journal.Options{ReadOnly: true})
	check(journal.Options{})
}
