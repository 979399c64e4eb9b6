package readyqueue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// original is a snapshot as the TypeScript original writes it.
const original = `{
	"version": VERSION,
	"tasks": [
		{"id": "a", "title": "A", "description": "d", "status": "completed", "assignee": "x", "result": "text of a",
			"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.000Z"},
		{"id": "b", "title": "B", "description": "d", "status": "in_progress", "dependsOn": ["a"],
			"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.000Z"},
		{"id": "c", "title": "C", "description": "d", "status": "blocked", "dependsOn": ["b"],
			"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.000Z"},
		{"id": "f", "title": "F", "description": "d", "status": "failed", "result": "no answer",
			"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.000Z"},
		{"id": "g", "title": "G", "description": "d", "status": "blocked", "dependsOn": ["f"],
			"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.000Z"}
	],
	"pending": [], "inProgress": ["b"], "completed": ["a"], "failed": ["f"], "blocked": ["c", "g"], "skipped": []
}`

func read(t *testing.T, text string) (s readyqueue.Snapshot) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

// Requirement: G48.
func TestRestoredTextTakesTheCallersLabel(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2"} {
		q, err := restore(read(t, strings.Replace(original, "VERSION", version, 1)),
			envelope.Header{Classification: label.Confidential, Run: "run-1"})
		require.NoError(t, err)
		require.Equal(t, []task.Status{task.Completed, task.Pending, task.Blocked, task.Failed, task.Failed}, statuses(q))
		e, ok := q.Result("a")
		require.True(t, ok)
		require.Equal(t, "text of a", e.Open().Text())
		require.NoError(t, e.Genuine())
		h := e.Header()
		require.Equal(t, label.Confidential, h.Classification)
		require.Equal(t, label.Untrusted, h.Trust)
		require.Equal(t, "x", h.Producer)
		require.Equal(t, "run-1", h.Run)
		require.EqualValues(t, "a", h.Task)
		require.Equal(t, "no answer", q.Reason("f"))
		require.Equal(t, `Cancelled: dependency "f" failed.`, q.Reason("g")) // blocked for ever there
		run(t, q, "b", "c")
		require.True(t, q.IsComplete())
	}
}

// Requirement: G48.
func TestRestoredEnvelopesKeepTheirLabel(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"))
	e, err := envelope.New(envelope.Header{ID: "e", Producer: "x", Task: "a", CreatedAt: at, Classification: label.Secret}, envelope.Text("t"))
	require.NoError(t, err)
	require.NoError(t, q.Start("a", at))
	require.NoError(t, q.Complete("a", e, at))
	restored, err := restore(q.Snapshot(), envelope.Header{Classification: label.Public})
	require.NoError(t, err)
	got, ok := restored.Result("a")
	require.True(t, ok)
	require.Equal(t, e.Header(), got.Header())
	require.NoError(t, got.Genuine())
}

func TestSnapshotHasTheFormOfTheOriginal(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c"))
	require.NoError(t, q.Start("c", at))
	require.NoError(t, q.Fail("a", "x", at))
	data, err := json.Marshal(q.Snapshot())
	require.NoError(t, err)
	const times = `"createdAt": "2026-03-04T05:06:07Z", "updatedAt": "2026-03-04T05:06:07Z", "retryDelayMs": 0, "retryBackoff": 1`
	require.JSONEq(t, `{"version": 3, "tasks": [
		{"id": "a", "title": "T a", "description": "", "status": "failed", "result": "x", `+times+`},
		{"id": "b", "title": "T b", "description": "", "status": "failed", "dependsOn": ["a"],
			"result": "Cancelled: dependency \"a\" failed.", "root": "a", "via": "a", `+times+`},
		{"id": "c", "title": "T c", "description": "", "status": "in_progress", `+times+`}],
		"pending": [], "inProgress": ["c"], "completed": [], "failed": ["a", "b"], "blocked": [], "skipped": []}`, string(data))
}

func TestRestoreReadsAStatusFromTheLists(t *testing.T) {
	t.Parallel()
	q, err := restore(read(t, `{"version": 1, "tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}],
		"skipped": ["a"], "pending": ["b"]}`), envelope.Header{})
	require.NoError(t, err)
	require.Equal(t, []task.Status{task.Skipped, task.Pending}, statuses(q))
}

func TestRestoringACompleteQueueFiresNoEvent(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"))
	run(t, q, "a")
	restored, err := restore(q.Snapshot(), envelope.Header{})
	require.NoError(t, err)
	log := record(restored)
	restored.SkipRemaining(unexplained, at)
	require.Empty(t, *log)
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"another version", `{"version": 4}`, "version 4: this program reads 1 to 3"},
		{"no version", `{}`, "version 0"},
		{"no status", `{"version": 1, "tasks": [{"id": "a", "title": "A"}]}`, `task "A" has no status`},
		{"two statuses", `{"version": 1, "tasks": [{"id": "a", "title": "A", "status": "failed"}], "completed": ["a"]}`, `task "A" is failed, but listed as completed`},
		{"no id", `{"version": 1, "tasks": [{"title": "A", "status": "pending"}]}`, `task "A" has no id`},
		{"duplicate id", `{"version": 1, "tasks": [{"id": "a", "title": "A", "status": "pending"}, {"id": "a", "title": "B", "status": "pending"}]}`, `id "a" is that of task "A" too`},
		{"cycle", `{"version": 1, "tasks": [{"id": "a", "title": "A", "status": "blocked", "dependsOn": ["b"]}, {"id": "b", "title": "B", "status": "blocked", "dependsOn": ["a"]}]}`, "dependency cycle"},
		{"result without a time", `{"version": 1, "tasks": [{"id": "a", "title": "A", "status": "completed", "result": "x"}]}`, `task "A": invalid envelope`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, err := restore(read(t, tt.give), envelope.Header{})
			require.Nil(t, q)
			require.ErrorIs(t, err, readyqueue.ErrSnapshot)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(strings.Replace(original, "VERSION", "2", 1)))
	f.Add([]byte(`{"version": 3, "tasks": [{"id": "a", "status": "failed", "root": "a", "via": "b", "dependsOn": ["b"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s readyqueue.Snapshot
		if json.Unmarshal(data, &s) != nil {
			return
		}
		q, err := restore(s, envelope.Header{CreatedAt: at})
		if err != nil {
			return
		}
		for { // whatever was read can be run
			i, ok := q.Queue.Next()
			if !ok {
				break
			}
			require.NoError(t, q.Queue.Start(i, at))
			require.NoError(t, q.Queue.Fail(i, "x", at))
		}
		for i := range q.Len() {
			_ = q.Queue.Reason(i)
		}
		_, err = restore(q.Snapshot(), envelope.Header{CreatedAt: at})
		require.NoError(t, err)
	})
}
