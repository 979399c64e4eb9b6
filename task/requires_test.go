package task_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// requiring returns a spec that is fine but for what it may require.
func requiring(r *task.Requires) []task.Spec {
	s := spec("Score")
	s.Requires = r
	return []task.Spec{s}
}

func TestRequiresIsTrimmedAndCopied(t *testing.T) {
	t.Parallel()
	give := &task.Requires{Tools: []string{" shell"}, Capabilities: []string{"SQL\n", "sql dialects"}, Backend: " process ", Provider: "openai"}
	tasks, err := task.Resolve(requiring(give), at)
	require.NoError(t, err)
	want := &task.Requires{Tools: []string{"shell"}, Capabilities: []string{"SQL", "sql dialects"}, Backend: "process", Provider: "openai"}
	require.Equal(t, want, tasks[0].Requires)
	one, err := task.New(requiring(give)[0], at)
	require.NoError(t, err)
	require.Equal(t, want, one.Requires)

	give.Tools[0], give.Provider = "other", "other"
	require.Equal(t, want, tasks[0].Requires, "what the caller changes later changes nothing")
	require.Equal(t, " process ", give.Backend, "the spec stays as it was written")
}

func TestRequiresOfNothingIsNil(t *testing.T) {
	t.Parallel()
	for _, none := range []*task.Requires{nil, {}, {Tools: []string{}, Capabilities: []string{}}} {
		tasks, err := task.Resolve(requiring(none), at)
		require.NoError(t, err)
		require.Nil(t, tasks[0].Requires)
		written, err := json.Marshal(task.Task{Spec: task.Spec{Requires: none}})
		require.NoError(t, err)
		require.NotContains(t, string(written), "requires")
	}
	for _, some := range []task.Requires{{Tools: []string{"a"}}, {Capabilities: []string{"a"}}, {Backend: "a"}, {Provider: "a"}} {
		tasks, err := task.Resolve(requiring(&some), at)
		require.NoError(t, err)
		require.Equal(t, &some, tasks[0].Requires)
	}
}

func TestRequiresReportsProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		give    task.Requires
		pointer string
		want    string
		is      error
	}{
		{"empty tool", task.Requires{Tools: []string{"shell", " "}}, "/tasks/0/requires/requiredTools/1", `task "Score": requiredTools[1]: not a title: it is empty`, naming.ErrTitle},
		{"empty capability", task.Requires{Capabilities: []string{""}}, "/tasks/0/requires/requiredCapabilities/0", "requiredCapabilities[0]: not a title: it is empty", naming.ErrTitle},
		{"two lines", task.Requires{Capabilities: []string{"a\nb"}}, "/tasks/0/requires/requiredCapabilities/0", "line break (U+000A) at byte 1", naming.ErrTitle},
		{"tool twice", task.Requires{Tools: []string{"a", "A", " a"}}, "/tasks/0/requires/requiredTools/2", `requiredTools[2]: "a" is named before: remove it`, task.ErrDuplicate},
		{"capability twice", task.Requires{Capabilities: []string{"SQL", "sql"}}, "/tasks/0/requires/requiredCapabilities/1", `"sql" is named before`, task.ErrDuplicate},
		{"blank backend", task.Requires{Backend: " "}, "/tasks/0/requires/requiredBackend", "requiredBackend: not a title: it is empty", naming.ErrTitle},
		{"bidi provider", task.Requires{Provider: "a\u202eb"}, "/tasks/0/requires/requiredProvider", "invisible character (U+202E)", naming.ErrTitle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := task.Resolve(requiring(&tt.give), at)
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok)
			require.Len(t, problems, 1, "%v", err)
			require.Equal(t, tt.pointer, problems[0].Pointer)
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestRequiresHasTheOriginalsKeys(t *testing.T) {
	t.Parallel()
	const original = `{"title": "A", "description": "", "requires":
		{"requiredTools": ["shell"], "requiredCapabilities": ["sql"], "requiredBackend": "process", "requiredProvider": "openai"}}`
	var got task.Task
	require.NoError(t, json.Unmarshal([]byte(original), &got))
	require.Equal(t, &task.Requires{Tools: []string{"shell"}, Capabilities: []string{"sql"}, Backend: "process", Provider: "openai"}, got.Requires)
	written, err := json.Marshal(got.Requires)
	require.NoError(t, err)
	require.JSONEq(t, `{"requiredTools": ["shell"], "requiredCapabilities": ["sql"], "requiredBackend": "process", "requiredProvider": "openai"}`, string(written))

	for _, none := range []string{`{}`, `{"requires": null}`, `{"requires": {}}`, `{"requires": {"requiredTools": []}}`} {
		got = task.Task{Spec: task.Spec{Requires: &task.Requires{Backend: "left over"}}}
		require.NoError(t, json.Unmarshal([]byte(none), &got))
		require.Nil(t, got.Requires, none)
	}
	for _, bad := range []string{`{"requires": []}`, `{"requires": {"requiredTools": "shell"}}`, `{"requires": {"requiredBackend": 1}}`} {
		require.Error(t, json.Unmarshal([]byte(bad), new(task.Task)), bad)
	}
}
