package journal_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/trace"
)

// earlier is what earlier versions of the program wrote: a journal whose last
// process was killed, so that some of it is in the write-ahead log, and a trace.
const earlier = "testdata/earlier"

// storedFile returns a file of an earlier version.
func storedFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(earlier, name))
	if err != nil {
		text, err = os.ReadFile(filepath.Join(earlier, name+".gz"))
		require.NoError(t, err)
		unzipped, err := gzip.NewReader(bytes.NewReader(text))
		require.NoError(t, err)
		text, err = io.ReadAll(unzipped)
		require.NoError(t, err)
	}
	return text
}

// earlierJournal opens a copy of the journal.
func earlierJournal(t *testing.T) *journal.Journal {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"runs.db", "runs.db-wal", "runs.db.key"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), storedFile(t, name), 0o600))
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(storedFile(t, "journal.key"))))
	require.NoError(t, err)
	j, err := journal.Open(filepath.Join(dir, "runs.db"), journal.Options{Key: key, AuditKey: earlierAuditKey(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	return j
}

func earlierAuditKey(t *testing.T) []byte {
	return bytes.TrimSuffix(storedFile(t, "audit.key"), []byte("\n"))
}

// TestJournalOfAnEarlierVersion reads every kind of line that an earlier version
// wrote: a run with a message, memory and a corrected answer; one that failed at a
// guard; one with a goal; and one that was killed, with words under a key.
func TestJournalOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	j := earlierJournal(t)
	runs, err := j.Runs(t.Context())
	require.NoError(t, err)
	var statuses []string
	for i := range runs {
		statuses = append(statuses, runs[i].Status)
		report, err := j.Verify(t.Context(), runs[i].Run, audit.VerifyOptions{Key: earlierAuditKey(t)})
		require.NoError(t, err)
		if runs[i].Status == journal.Interrupted {
			require.Equal(t, audit.Open, report.Status, report.Why)
		} else {
			require.Equal(t, audit.Consistent, report.Status, report.Why)
		}
	}
	require.Equal(t, []string{journal.Interrupted, "ok", "error", "ok"}, statuses)
	require.Equal(t, 2, runs[0].Outcomes.Completed)

	killed, search, err := j.Search(t.Context(), runs[0].Run, "4,711")
	require.NoError(t, err)
	require.Len(t, killed.Prompts, 4)
	require.Equal(t, "claim", search.Origins[0].Name)
	secret, err := j.Result(t.Context(), runs[0].Run, "Score the claim")
	require.NoError(t, err, "the key opens what is secret")
	require.Equal(t, `{"score": 7}`, secret.Open().Text())
	_, err = j.Result(t.Context(), runs[3].Run, "Score the claim")
	require.ErrorContains(t, err, "no journal key")
	result, err := j.Result(t.Context(), runs[3].Run, "Report")
	require.NoError(t, err)
	require.Equal(t, "Report: The repair costs 4,711 EUR.", result.Open().Text())
	goal, err := j.Trace(t.Context(), runs[1].Run)
	require.NoError(t, err)
	require.Equal(t, "Because The pipe is old.", goal.State.End.Answer)
}

// TestTraceOfAnEarlierVersion reads and verifies a trace file.
func TestTraceOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	text := storedFile(t, "run.trace")
	tr, err := trace.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, "stored", tr.Name)
	require.Len(t, tr.Prompts, 5)
	require.Equal(t, "ok", tr.State.End.Status)
	require.Len(t, tr.Contains("4,711").Occurrences, 5)
	var head audit.Head
	require.NoError(t, head.UnmarshalText(bytes.TrimSpace(storedFile(t, "run.anchor"))))
	report, err := audit.Verify(bytes.NewReader(text), audit.VerifyOptions{Key: earlierAuditKey(t), Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
}
