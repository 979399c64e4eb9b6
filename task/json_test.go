package task_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestTaskReadsTheOriginalsJSON(t *testing.T) {
	t.Parallel()
	const original = `{
		"id": "7d2f", "title": "Write", "description": "Do it.", "status": "in_progress", "assignee": "letters",
		"dependsOn": ["a1", "b2"], "dependencyPayload": "structured", "memoryScope": "all", "maxRetries": 2,
		"retryDelayMs": 250, "retryBackoff": 1.5, "role": "writer", "priority": "high", "metadata": {"k": "v"},
		"createdAt": "2026-03-04T05:06:07.000Z", "updatedAt": "2026-03-04T05:06:08.500Z", "unheardOf": 1}`
	var got task.Task
	require.NoError(t, json.Unmarshal([]byte(original), &got))
	require.Equal(t, task.Task{
		ID: "7d2f", Status: task.InProgress, CreatedAt: at, UpdatedAt: at.Add(1500 * time.Millisecond), Spec: task.Spec{Title: "Write", Description: "Do it.", Assignee: "letters", DependsOn: []task.Ref{{Task: "a1", As: task.Structured}, {Task: "b2", As: task.Structured}}, MemoryScope: task.ScopeAll, MaxRetries: 2, RetryDelay: 250 * time.Millisecond, RetryBackoff: 1.5, Role: "writer", Priority: task.High, Metadata: map[string]any{"k": "v"}},
	}, got)
	written, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"id": "7d2f", "title": "Write", "description": "Do it.", "status": "in_progress", "assignee": "letters",
		"dependsOn": ["a1", "b2"], "dependencyPayload": "structured", "memoryScope": "all", "maxRetries": 2,
		"retryDelayMs": 250, "retryBackoff": 1.5, "role": "writer", "priority": "high", "metadata": {"k": "v"},
		"createdAt": "2026-03-04T05:06:07Z", "updatedAt": "2026-03-04T05:06:08.5Z"}`, string(written))
}

func TestTaskWritesNoDefaults(t *testing.T) {
	t.Parallel()
	tasks, err := task.Resolve([]task.Spec{spec("A")}, at)
	require.NoError(t, err)
	written, err := json.Marshal(&tasks[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"id": "`+string(task.NewID("a"))+`", "title": "A", "description": "Do it.", "status": "pending",
		"createdAt": "2026-03-04T05:06:07Z", "updatedAt": "2026-03-04T05:06:07Z"}`, string(written))
}

func TestTaskWritesMixedDependenciesAsObjects(t *testing.T) {
	t.Parallel()
	written, err := json.Marshal(task.Task{Spec: task.Spec{RetryDelay: 1500 * time.Microsecond, RetryBackoff: 2, DependsOn: []task.Ref{
		{Task: "a"}, {Task: "b", As: task.Both}, {Task: "c", As: task.Output, Optional: true},
	}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"title": "", "description": "", "retryDelayMs": 1.5,
		"dependsOn": ["a", {"task": "b", "as": "both"}, {"task": "c", "optional": true}]}`, string(written))
}

func TestTaskJSONIsStrictAboutWords(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`{"status": "done"}`, `{"priority": "urgent"}`, `{"memoryScope": "team"}`, `{"dependsOn": ["a"], "dependencyPayload": "text"}`,
		`{"classification": "top"}`, `{"retryDelayMs": "1s"}`, `{"timeoutMs": -1}`, `{"timeoutMs": -0.5}`, `{"timeoutMs": "5"}`, `{"ttlMs": 1e300}`, `{"dependsOn": [1]}`, `[]`,
	} {
		require.Error(t, json.Unmarshal([]byte(bad), new(task.Task)), bad)
	}
}

func TestTaskReadsMilliseconds(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]time.Duration{
		"0": 0, "-0": 0, "250": 250 * time.Millisecond, "1.5": 1500 * time.Microsecond, "1e3": time.Second,
		"0.000001": 1, "9007199254740.993001": 9007199254740*time.Millisecond + 993001, "1.2345678": 1234567,
	} {
		var got task.Task
		require.NoError(t, json.Unmarshal([]byte(`{"timeoutMs": `+number+`}`), &got), number)
		require.Equal(t, want, got.Timeout, number)
	}
}

func TestTaskJSONRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zä<> "\\]{1,8}`)
		duration := rapid.Map(rapid.Int64Range(0, 1e15), func(n int64) time.Duration { return time.Duration(n) * time.Microsecond })
		moment := rapid.Map(rapid.Int64Range(0, 1e18), func(n int64) time.Time { return time.Unix(0, n).UTC() })
		give := task.Task{
			ID: task.ID(word.Draw(t, "id")), Status: rapid.SampledFrom([]task.Status{task.Pending, task.Blocked, task.InProgress, task.Completed, task.Failed, task.Skipped}).Draw(t, "status"),
			CreatedAt: moment.Draw(t, "created"), UpdatedAt: moment.Draw(t, "updated"),
			Spec: task.Spec{
				Key: word.Draw(t, "key"), Title: word.Draw(t, "title"), Description: word.Draw(t, "description"),
				Assignee:        rapid.SampledFrom([]string{"", "a"}).Draw(t, "assignee"),
				Role:            rapid.SampledFrom([]string{"", "r"}).Draw(t, "role"),
				MemoryScope:     rapid.SampledFrom([]task.MemoryScope{task.ScopeAll, task.ScopeDependencies}).Draw(t, "scope"),
				Classification:  rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Secret}).Draw(t, "label"),
				AcceptTruncated: rapid.Bool().Draw(t, "truncated"),
				TTL:             duration.Draw(t, "ttl"), Timeout: duration.Draw(t, "timeout"), MaxRetries: rapid.IntRange(0, 5).Draw(t, "retries"),
				RetryDelay:   rapid.OneOf(duration, rapid.SampledFrom([]time.Duration{0, time.Second})).Draw(t, "delay"),
				RetryBackoff: rapid.SampledFrom([]float64{1, 2, 1.25}).Draw(t, "backoff"),
				Reuse:        rapid.SampledFrom([]string{"", "never"}).Draw(t, "reuse"),
				Priority:     rapid.SampledFrom([]task.Priority{task.Low, task.Normal, task.Critical}).Draw(t, "priority"),
			},
		}
		for range rapid.IntRange(0, 3).Draw(t, "deps") {
			give.DependsOn = append(give.DependsOn, task.Ref{
				Task: word.Draw(t, "dep"), Optional: rapid.Bool().Draw(t, "optional"),
				As: rapid.SampledFrom([]task.Payload{task.Output, task.Structured, task.Both}).Draw(t, "as"),
			})
		}
		if rapid.Bool().Draw(t, "rest") {
			give.Uses, give.Source.Params = []task.Use{{Name: "claim"}}, []provenance.Param{{Name: "year", Start: 1, End: 2}}
			give.RequiredTags, give.OutputSchema = []string{"t"}, json.RawMessage(`{"type":"object"}`)
			give.Requires = &task.Requires{Tools: []string{"shell"}, Capabilities: []string{"sql", "ä"}, Backend: "b", Provider: "p"}
			give.Metadata, give.Source.Origin = map[string]any{"k": true, "n": 1.5}, provenance.Position{File: "f", Line: 1, Column: 2}
		}
		data, err := json.Marshal(give)
		require.NoError(t, err)
		var got task.Task
		require.NoError(t, json.Unmarshal(data, &got))
		require.Equal(t, give, got)
	})
}

func TestTaskKeepsNeed(t *testing.T) {
	t.Parallel()
	tasks, err := task.Resolve([]task.Spec{
		{Title: "a", Description: "x"},
		{
			Title: "b", Description: "x", NeedToKnow: []task.Path{"/score"},
			DependsOn: []task.Ref{{Task: "a", Need: []task.Path{"/items/*/id"}}},
			Uses:      []task.Use{{Name: "claim", Need: []task.Path{"/iban"}, Reveal: map[string][]task.Path{"iban": {"/iban"}}}, {Name: "rules"}},
		},
		{Title: "c", Description: "x", NeedToKnow: []task.Path{"/score"}, DependsOn: task.On("a")},
	}, time.Time{})
	require.NoError(t, err)
	require.Equal(t, []task.Path{"/items/*/id"}, tasks[1].DependsOn[0].Need, "a dependency's own need takes the place of the task's")
	require.Equal(t, []task.Path{"/score"}, tasks[2].DependsOn[0].Need)
	raw, err := json.Marshal(&tasks[1])
	require.NoError(t, err)
	var again task.Task
	require.NoError(t, json.Unmarshal(raw, &again))
	require.Equal(t, tasks[1].DependsOn, again.DependsOn)
	require.Equal(t, tasks[1].Uses, again.Uses)
}
