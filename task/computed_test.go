package task_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

func TestTasksWithoutAnAgentNeedNoDescription(t *testing.T) {
	t.Parallel()
	tasks, err := task.Resolve([]task.Spec{
		{Title: "Limits", Value: json.RawMessage(`{"max":5}`)},
		{Title: "Letter", Template: "{{.results.Limits}}", DependsOn: task.On("Limits"), Timeout: time.Second},
	}, time.Time{})
	require.NoError(t, err)
	require.True(t, tasks[0].IsComputed())
	require.True(t, tasks[1].IsComputed())
	require.False(t, (&task.Spec{Title: "Read"}).IsComputed())
	for _, want := range tasks {
		raw, err := json.Marshal(want)
		require.NoError(t, err)
		var got task.Task
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, want.Value, got.Value)
		require.Equal(t, want.Template, got.Template)
	}
}

func TestSettingsWithoutEffectOnAValueOrATemplateAreRefused(t *testing.T) {
	t.Parallel()
	value, text := task.Spec{Value: json.RawMessage("1")}, task.Spec{Template: "x"}
	tests := map[string]struct {
		give task.Spec
		set  func(s *task.Spec)
	}{
		"template: value is set too: keep one of them":                                                      {value, func(s *task.Spec) { s.Template = "x" }},
		"value: it is not JSON: write one JSON value":                                                       {value, func(s *task.Spec) { s.Value = json.RawMessage("{") }},
		"value: it is null: write another value":                                                            {value, func(s *task.Spec) { s.Value = json.RawMessage(" null") }},
		"template: it is not valid UTF-8":                                                                   {text, func(s *task.Spec) { s.Template = "\xff" }},
		"assignee: no effect on a task that has a value and no agent: remove it, or the value":              {value, func(s *task.Spec) { s.Assignee = "ann" }},
		"assignee: no effect on a task that has a template and no agent: remove it, or the template":        {text, func(s *task.Spec) { s.Assignee = "ann" }},
		"requires: no effect on a task that has a template and no agent: remove it, or the template":        {text, func(s *task.Spec) { s.Requires = &task.Requires{Backend: "x"} }},
		"tools: no effect on a task that has a template and no agent: remove it, or the template":           {text, func(s *task.Spec) { s.Tools = []string{} }},
		"memoryScope: no effect on a task that has a template and no agent: remove it, or the template":     {text, func(s *task.Spec) { s.MemoryScope = task.ScopeAll }},
		"requiredTags: no effect on a task that has a template and no agent: remove it, or the template":    {text, func(s *task.Spec) { s.RequiredTags = []string{"a"} }},
		"outputFiles: no effect on a task that has a template and no agent: remove it, or the template":     {text, func(s *task.Spec) { s.OutputFiles = []string{"a"} }},
		"workspace: no effect on a task that has a template and no agent: remove it, or the template":       {text, func(s *task.Spec) { s.Workspace = &task.WorkspaceLimits{} }},
		"acceptTruncated: no effect on a task that has a template and no agent: remove it, or the template": {text, func(s *task.Spec) { s.AcceptTruncated = true }},
		"maxRetries: no effect on a task that has a template and no agent: remove it, or the template":      {text, func(s *task.Spec) { s.MaxRetries = 1 }},
		"retryDelayMs: no effect on a task that has a template and no agent: remove it, or the template":    {text, func(s *task.Spec) { s.RetryDelay = 5 }},
		"retryBackoff: no effect on a task that has a template and no agent: remove it, or the template":    {text, func(s *task.Spec) { s.RetryBackoff = 3 }},
		"provenance: no effect on a task that has a template and no agent: remove it, or the template": {text, func(s *task.Spec) {
			s.Source.Record = &provenance.Record{From: "coordinator"}
		}},
		"uses: no effect on a task that has a value and no agent: remove it, or the value":      {value, func(s *task.Spec) { s.Uses = []task.Use{{Name: "in"}} }},
		"timeoutMs: no effect on a task that has a value and no agent: remove it, or the value": {value, func(s *task.Spec) { s.Timeout = 1 }},
		"dependsOn[0]: files: a task that has a template has no workspace: remove files": {text, func(s *task.Spec) {
			s.DependsOn = []task.Ref{{Task: "Other", Files: []task.Path{"/**"}}}
		}},
	}
	for want, tt := range tests {
		tt.give.Title = "Letter"
		tt.set(&tt.give)
		_, err := task.Resolve([]task.Spec{tt.give, {Title: "Other", Description: "Do it."}}, time.Time{})
		require.EqualError(t, err, `task "Letter": `+want)
	}
}
