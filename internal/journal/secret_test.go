package journal_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

var (
	oneKey   = []byte("0123456789abcdef0123456789abcdef")
	otherKey = []byte("fedcba9876543210fedcba9876543210")
)

// The files of a journal have nothing above its plaintext limit in them, with a key and
// without one, while it is written and afterwards.
//
// Requirement: G19.
func TestNoFileOfAJournalHasASecret(t *testing.T) {
	t.Parallel()
	eachLimit(t, func(t *testing.T, o journal.Options, level label.Classification, hidden bool) {
		if !hidden {
			return
		}
		folder := t.TempDir()
		path := filepath.Join(folder, "runs.db")
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), secretInfo("r1", level))
		require.NoError(t, err)
		for _, e := range secretEntries("r1", level) {
			require.NoError(t, appendEntries(r, e))
		}
		require.NoError(t, r.Update(t.Context(), secretInfo("r1", level)))
		require.Contains(t, files(t, folder), "runs.db-wal")
		require.Contains(t, files(t, folder), "runs.db-shm")
		requireNoCanary(t, path)
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		requireNoCanary(t, path)
		require.NoError(t, j.Close())
		requireNoCanary(t, path)
	})
}

// requireNoCanary looks for the canary in all files and in all blobs.
func requireNoCanary(t *testing.T, path string) {
	for name, text := range files(t, filepath.Dir(path)) {
		require.False(t, strings.Contains(text, canary), "the canary stands in %s", name)
	}
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select kept, rest from batches")
	require.NoError(t, err)
	n := 0
	for rows.Next() {
		var blobs [2][]byte
		require.NoError(t, rows.Scan(&blobs[0], &blobs[1]))
		for _, blob := range blobs {
			text, err := journal.Decompress(blob)
			require.NoError(t, err)
			require.False(t, strings.Contains(string(text), canary), "the canary stands in a row: %s", text)
			n += len(text)
		}
	}
	require.NoError(t, rows.Err())
	require.Greater(t, n, 1000)
}

func TestWrongKeyIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	list := secretEntries("r1", label.Secret)
	j, err := journal.Open(path, journal.Options{Key: oneKey})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), secretInfo("r1", label.Secret))
	require.NoError(t, err)
	require.NoError(t, appendEntries(r, list...))
	require.NoError(t, j.Close())
	for name, tt := range map[string]struct {
		key  []byte
		want string
	}{"another": {otherKey, "the key given is"}, "none": {nil, "no key was given"}} {
		j, err := journal.Open(path, journal.Options{Key: tt.key, ReadOnly: true})
		require.NoError(t, err)
		s, err := j.Load(t.Context(), "")
		require.NoError(t, err)
		x := withoutChanges(s.History.Log)[1].Exchange
		require.Nil(t, x.Result, name)
		require.Contains(t, x.Missing, tt.want, name)
		require.Contains(t, s.Info.Files[1].Missing, tt.want, name)
		require.True(t, journal.Locked(x.Missing) && journal.Locked(s.Info.Files[1].Missing), name)
		require.NoError(t, j.Close())
	}
	_, err = journal.Open(path, journal.Options{Key: oneKey[1:]})
	require.ErrorContains(t, err, "Key has 31 bytes; use 32")
	_, err = journal.Open(path, journal.Options{AuditKey: oneKey[:15]})
	require.ErrorContains(t, err, "AuditKey has 15 bytes; use at least 16")
	_, err = journal.Open(path, journal.Options{Key: oneKey[1:], AuditKey: oneKey[:1]})
	require.ErrorContains(t, err, "Key has 31 bytes; use 32")
	require.ErrorContains(t, err, "AuditKey has 1 byte; use at least 16")
}

// A secret task that is resumed after its key was lost stays hidden, since it is
// still known to be secret.
func TestSecretTaskStaysHiddenWithoutTheKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	list := secretEntries("r1", label.Secret)
	require.NoError(t, appendEntries(r, list...))
	require.NoError(t, j.Close())
	j, err = journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, _, err = j.Resume(t.Context(), "")
	require.NoError(t, err)
	for _, e := range list {
		if e.Event != nil && e.Event.Type == event.Error {
			again := *e.Event
			again.Task = list[1].Asked.Task // it completed before
			require.NoError(t, appendEntries(r, record.Entry{Event: &again}))
		}
	}
	requireNoCanary(t, path)
	require.NoError(t, j.Close())
}

// What a process adds to a run follows its own limit, also about tasks of which only earlier processes know the labels.
// What is stored already stays as it is.
func TestALaterProcessHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	list := secretEntries("r1", label.Internal)
	begin := record.Entry{Begin: &record.RunStart{Run: "r1", Time: noon, Label: new(label.Internal)}}
	var failed *event.Event // a task without a result
	for _, from := range []*label.Classification{nil, new(label.Internal), nil} {
		now := func() time.Time { return noon.Add(time.Hour) }
		j, err := journal.Open(path, journal.Options{Key: oneKey, EncryptFrom: from, Now: now})
		require.NoError(t, err)
		before := strings.Count(allText(t, path), canary)
		if failed == nil {
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
			require.NoError(t, err)
			require.NoError(t, appendEntries(r, append([]record.Entry{begin}, list[:len(list)-1]...)...))
			for _, e := range list {
				if e.Event != nil && e.Event.Type == event.Error && e.Event.Root == "" {
					failed = e.Event
				}
			}
			require.NoError(t, j.Close())
			require.Positive(t, strings.Count(allText(t, path), canary))
			continue
		}
		r, stored, err := j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.Contains(t, reasonOf(&stored.History, failed.Task), canary)
		require.NoError(t, appendEntries(r, begin, record.Entry{Event: failed}))
		require.NoError(t, j.Close())
		require.Equal(t, from != nil, strings.Count(allText(t, path), canary) == before)
	}
}

// A payload that was altered in the file makes an envelope that the gate takes for
// what it is.
//
// Requirement: G19.
func TestResultThatWasAlteredIsNotGenuine(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	var n int64
	var blob []byte
	require.NoError(t, db.QueryRow("select n, kept from batches order by length(kept) desc limit 1").Scan(&n, &blob))
	text, err := journal.Decompress(blob)
	require.NoError(t, err)
	altered := strings.Replace(string(text), `"producer":"analyst"`, `"producer":"auditor"`, 1)
	require.NotEqual(t, string(text), altered)
	_, err = db.Exec("update batches set kept = ? where n = ?", journal.Compress([]byte(altered)), n)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	j, err := journal.Open(path, journal.Options{Now: func() time.Time { return time.Now().Add(time.Minute) }})
	require.NoError(t, err)
	defer j.Close()
	s, err := j.Load(t.Context(), "")
	require.NoError(t, err)
	e, err := withoutChanges(s.History.Log)[1].Exchange.Result.Envelope()
	require.NoError(t, err)
	require.Equal(t, "auditor", e.Producer())
	require.Error(t, e.Genuine())
	r, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.NoError(t, err)
	found, err := cachedAnswers(t.Context(), r, answerKey(0))
	require.NoError(t, err)
	require.Empty(t, found)
	_, _, err = j.Resume(t.Context(), "r1")
	require.NoError(t, err)
}

// Keys that are none are refused wherever a journal is kept, before it is made.
func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	for name, o := range map[string]journal.Options{
		"none to encrypt from internal": {EncryptFrom: new(label.Internal)}, "none to encrypt from secret": {EncryptFrom: new(label.Secret)},
		"no level": {Key: oneKey, EncryptFrom: new(label.Secret + 1)},
		"short":    {Key: oneKey[1:]}, "long": {Key: append(oneKey[:32:32], 'x')}, "empty": {Key: []byte{}}, "one that can be guessed": {AuditKey: oneKey[:15]},
	} {
		want := o.Check()
		require.Error(t, want, name)
		_, err := journal.Open(path, o)
		require.ErrorContains(t, err, want.Error(), name)
		require.PanicsWithError(t, "journal: "+want.Error(), func() { journal.InMemory(o) }, name)
	}
	require.Empty(t, files(t, filepath.Dir(path)))
	require.NoError(t, new(journal.Options{}).Check())
	require.NoError(t, new(journal.Options{Key: oneKey, AuditKey: oneKey}).Check())
	require.NoError(t, new(journal.Options{EncryptFrom: new(label.Internal), ReadOnly: true}).Check(), "stored forms say how they are read")
}
