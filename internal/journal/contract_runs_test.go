package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

func runIsLeased(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r := beginRun(t, j, "r1")
	_, _, err := j.Resume(t.Context(), "r1")
	var taken *journal.LeaseError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, journal.ThisHolder(), taken.Holder)
	require.NoError(t, appendEntries(r, newFakeRun("r1", 1).beginning(1)))
	endRun(t, r)
	again, _, err := j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	endRun(t, again)
	_, err = j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.EqualError(t, err, `run ID "r1" exists: choose another, or call Resume`)
}

func runIsResumed(t *testing.T, open openFunc) {
	key := []byte("a key of sixteen bytes at least")
	j := openJournal(t, open, journal.Options{AuditKey: key})
	list := newFakeRun("r1", 1).all(4)
	r := beginRun(t, j, "r1")
	for i, e := range list {
		require.NoError(t, appendEntries(r, e))
		if i%7 == 6 {
			head := endRun(t, r)
			require.Equal(t, audit.Verified, requireVerified(t, j, "r1", key, head).Status)
			resumed, s, err := j.Resume(t.Context(), "r")
			require.NoError(t, err)
			requireHistory(t, list[:i+1], &s.History)
			require.Equal(t, head, resumed.Head())
			r = resumed
		}
	}
	require.Equal(t, audit.Verified, requireVerified(t, j, "r1", key, endRun(t, r)).Status)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	requireHistory(t, list, &s.History)
}

func chainNamesRunBefore(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	var before audit.Head
	for i := range 3 {
		r := beginRun(t, j, fmt.Sprint("r", i))
		require.NoError(t, appendEntries(r, newFakeRun(fmt.Sprint("r", i), 1).all(1)...))
		head := endRun(t, r)
		require.Equal(t, before, requireVerified(t, j, fmt.Sprint("r", i), nil, head).Previous)
		before = head
	}
}

func oldRunIsRemoved(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	for i, id := range []string{"old", "live", "new"} {
		r, err := j.Begin(t.Context(), journal.Info{Run: id, Time: noon.Add(time.Duration(i) * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, appendEntries(r, newFakeRun(id, 1).all(30)...))
		if id != "live" {
			endRun(t, r)
		}
	}
	runs, bytes, err := j.Remove(t.Context(), noon.Add(90*time.Minute))
	require.NoError(t, err)
	require.Equal(t, []string{"old"}, runs)
	require.Positive(t, bytes)
	list, err := j.Runs(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	_, err = j.Load(t.Context(), "old")
	require.ErrorIs(t, err, journal.ErrUnknownRun)
	r := beginRun(t, j, "old")
	answers, err := cachedAnswers(t.Context(), r, answerKey(0))
	require.NoError(t, err)
	require.Len(t, answers, 2, "removed answers are not found")
	s, err := j.Load(t.Context(), "new")
	require.NoError(t, err)
	require.Len(t, withoutChanges(s.History.Log), 61)
	runs, bytes, err = j.Remove(t.Context(), noon)
	require.NoError(t, err)
	require.Empty(t, runs)
	require.Zero(t, bytes)
}

func changedSpecIsStored(t *testing.T, open openFunc) {
	j := openJournal(t, open, journal.Options{})
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "claims", Time: noon, Fingerprint: "old", Files: []journal.File{{Path: "team.yaml", Text: "tasks: []"}}})
	require.NoError(t, err)
	require.Equal(t, j.Masked("old"), r.Info().Fingerprint)
	now := r.Info()
	now.Fingerprint, now.Files = "new", []journal.File{{Path: "team.yaml", Text: "tasks: [one]", Label: label.Internal}}
	require.NoError(t, r.Update(t.Context(), now))
	now.Fingerprint = j.Masked("new")
	require.Equal(t, now, r.Info())
	require.NoError(t, r.Update(t.Context(), now), "in its stored form it is taken as it is")
	require.Equal(t, now, r.Info())
	endRun(t, r)
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, now, s.Info)
	start, err := j.LoadStart(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, now, start.Info)
	_, err = j.LoadStart(t.Context(), "x")
	require.ErrorIs(t, err, journal.ErrUnknownRun)
	_, err = journaltest.Text(j.Lines(t.Context(), "x"))
	require.ErrorIs(t, err, journal.ErrUnknownRun)
	text, err := journaltest.Text(j.Lines(t.Context(), "r1"))
	require.NoError(t, err)
	require.Contains(t, text, `"fingerprint":"`+j.Masked("old")+`"`, "nothing that was written is changed")
	for _, plain := range []string{"old", "new"} {
		require.NotContains(t, text, `"`+plain+`"`, "a digest of a short text without a key gives the text away")
		require.NotEqual(t, plain, j.Masked(plain))
	}
	require.NotEqual(t, j.Masked("old"), j.Masked("new"))
	require.Empty(t, j.Masked(""))
}
