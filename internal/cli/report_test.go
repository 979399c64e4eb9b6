package cli

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func TestStatusOfARun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give engine.Result
		want int
	}{
		{"all done", engine.Result{Status: engine.StatusOK, Answered: true}, exit.StatusOK},
		{"a task failed", engine.Result{Status: engine.StatusError, Answered: true}, exit.StatusFailed},
		{"no model answered", engine.Result{Status: engine.StatusError}, exit.StatusNoRun},
		{"interrupted", engine.Result{Status: engine.StatusCanceled, Cause: &exit.Interrupted{Signal: os.Interrupt}}, exit.StatusSIGINT},
		{"out of time", engine.Result{Status: engine.StatusTimeout, Cause: engine.ErrTimeout, Answered: true}, exit.StatusFailed},
		{"canceled by the program", engine.Result{Status: engine.StatusCanceled, Cause: errors.New("x"), Answered: true}, exit.StatusFailed},
		{"canceled before a model answered", engine.Result{Status: engine.StatusCanceled, Cause: errors.New("x")}, exit.StatusFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, report.ExitStatus(&tt.give))
		})
	}
}

func TestAnswerOfARunThatEndedEarly(t *testing.T) {
	t.Parallel()
	done := func(id, result string, on ...task.ID) engine.TaskResult {
		return engine.TaskResult{ID: task.ID(id), Title: "T" + id, Status: task.Completed, Result: result, DependsOn: on}
	}
	failed := func(id string, on ...task.ID) engine.TaskResult {
		return engine.TaskResult{ID: task.ID(id), Title: "T" + id, Status: task.Failed, DependsOn: on}
	}
	tests := []struct {
		name   string
		output []task.ID
		give   engine.Result
		want   string
	}{
		{"success is the answer alone", []task.ID{"2"}, engine.Result{Status: engine.StatusOK, Output: "two", Tasks: []engine.TaskResult{done("1", "one"), done("2", "two", "1")}}, "two"},
		{"the answer is there, another branch is not", []task.ID{"2"}, engine.Result{Status: engine.StatusError, Output: "two", Tasks: []engine.TaskResult{done("2", "two"), failed("3")}}, "two"},
		{"finished work that nothing finished used", []task.ID{"3"}, engine.Result{Status: engine.StatusError, Tasks: []engine.TaskResult{done("1", "one"), done("2", "two", "1"), failed("3", "2")}}, "# T2\n\ntwo"},
		{"the answer and such work", []task.ID{"1", "3"}, engine.Result{Status: engine.StatusError, Output: "one", Tasks: []engine.TaskResult{done("1", "one"), done("2", "two"), failed("3", "2")}}, "# T1\n\none\n\n# T2\n\ntwo"},
		{"an answer that finished work has used", []task.ID{"1"}, engine.Result{Status: engine.StatusError, Output: "one", Tasks: []engine.TaskResult{done("1", "one"), done("2", "two", "1"), failed("3", "2")}}, "# T1\n\none\n\n# T2\n\ntwo"},
		{"an empty answer", nil, engine.Result{Status: engine.StatusError, Steps: []engine.Step{{Kind: engine.StepSynthesis}}, Tasks: []engine.TaskResult{done("1", "one"), done("2", "two", "1")}}, "# T2\n\ntwo"},
		{"nothing", []task.ID{"1"}, engine.Result{Status: engine.StatusError, Tasks: []engine.TaskResult{failed("1")}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, report.Answer(tt.output, &tt.give))
		})
	}
}

func TestTotalsOfAResumedRun(t *testing.T) {
	t.Parallel()
	totals := func(used, before int) string {
		e := report.Ending{Result: &engine.Result{Usage: llm.Usage{InputTokens: used, OutputTokens: 2}, Prior: llm.Usage{InputTokens: before, OutputTokens: min(before, 2)}}}
		counts, _, _ := strings.Cut(e.Text(), "\n")
		return counts
	}
	require.Equal(t, "no task was run in 0.0s; 301 tokens in, 2 out", totals(301, 0))
	require.Equal(t, "no task was run in 0.0s; 105 tokens in, 0 out (301 tokens in, 2 out in total)", totals(301, 196))
	require.Equal(t, "no task was run in 0.0s; no tokens (301 tokens in, 2 out in total)", totals(301, 301))
	interrupted := engine.TaskResult{Status: task.Completed, Metrics: engine.Metrics{Attempts: 2, Interrupted: 1}}
	e := report.Ending{Result: &engine.Result{Usage: llm.Usage{InputTokens: 301}, Prior: llm.Usage{InputTokens: 301}, Tasks: []engine.TaskResult{interrupted}}}
	require.Equal(t, "1 of 1 task completed in 0.0s; no tokens (~301 tokens in, 0 out in total)\n", e.Text(), "as show says it")
}

func TestSummaryGroupsFailuresOfOneCause(t *testing.T) {
	t.Parallel()
	con, _, stderr := clitest.Console(t)
	res := &engine.Result{Status: engine.StatusError, Answered: true}
	for _, id := range []string{"1", "2", "3", "4"} {
		res.Tasks = append(res.Tasks, engine.TaskResult{ID: task.ID(id), Title: "T" + id, Assignee: "solo", Status: task.Failed, Error: &engine.TaskError{Code: "TIMEOUT", Message: "too slow\nreally\x1b[2J", Task: task.ID(id)}})
	}
	res.Tasks = append(res.Tasks, engine.TaskResult{ID: "5", Title: "T5", Status: task.Failed, Error: &engine.TaskError{Code: codes.Dependency, Task: "5", Root: "2"}})
	(&report.Ending{Result: res, Mode: "plain"}).Print(con)
	require.Equal(t, `0 of 5 tasks completed, 4 failed, 1 skipped in 0.0s
failed:  T1 (solo), T2 (solo), T3 (solo) and 1 more: too slow
         really\x1b[2J
         raise timeoutMs of the task or the agent, or use a faster model
         skipped because of it: T5
`, stderr.String())
}

// A task that calls no model is not told to use another one.
func TestAdviceFitsWhoPerformsTheTask(t *testing.T) {
	t.Parallel()
	con, _, stderr := clitest.Console(t)
	res := &engine.Result{Status: engine.StatusError, Answered: true, Tasks: []engine.TaskResult{
		{ID: "1", Title: "T", Assignee: "computed", Status: task.Failed, Error: &engine.TaskError{Code: codes.Schema, Message: "no JSON", Task: "1"}},
	}}
	(&report.Ending{Result: res, Mode: "plain"}).Print(con)
	require.Contains(t, stderr.String(), "no JSON\n         correct the template, or loosen outputSchema\n")
}

// One write, so that stdout on the same terminal cannot interrupt it.
func TestSummaryIsOneWrite(t *testing.T) {
	t.Parallel()
	var pieces []string
	con, _, _ := clitest.Console(t)
	con.Screen.W = writerFunc(func(p []byte) (int, error) {
		pieces = append(pieces, string(p))
		return len(p), nil
	})
	res := &engine.Result{Status: engine.StatusError, Tasks: []engine.TaskResult{{ID: "1", Title: "T", Assignee: "solo", Status: task.Failed, Error: &engine.TaskError{Code: "MODEL_UNREACHABLE", Message: "gone", Task: "1"}}}}
	(&report.Ending{Result: res, Mode: "plain"}).Print(con)
	(&report.Ending{Result: res, Mode: "live"}).Print(con)
	const rest = "failed:  T (solo): gone\nrunteam: could not run: every model call failed before a model answered\n"
	require.Equal(t, []string{"0 of 1 task completed, 1 failed in 0.0s\n" + rest, rest}, pieces, "the table of live progress ends in the counts")
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The heading names the file of the rules, unless they are in several: then each row does.
func TestRowsNameTheFileOfTheirRule(t *testing.T) {
	t.Parallel()
	row := func(agent, line string) event.Handoff {
		return event.Handoff{Session: "r/1/1", To: agent, Task: "1", Source: gate.Source{Kind: handoff.Input, Name: "case"}, Ruling: event.Ruling{Verdict: gate.Withheld, Line: line}}
	}
	for want, rows := range map[string][]event.Handoff{
		"(rules: team.yaml)\n  AGENT  WITHHELD   FROM        LINE\n  a      all of it  input case     3\n":                                                       {row("a", "team.yaml:3")},
		"(rules: policy.yaml)\n  AGENT  WITHHELD   FROM        LINE\n  a      all of it  input case     3\n":                                                     {row("a", "policy.yaml:3")},
		"not see\n  AGENT  WITHHELD   FROM                 LINE\n  a      all of it  input case    team.yaml:3\n  b      all of it  input case  policy.yaml:4\n": {row("a", "team.yaml:3"), row("b", "policy.yaml:4")},
	} {
		w := &report.Withheld{}
		w.AddStored(rows)
		text := (&report.Ending{Result: &engine.Result{Answered: true, Context: event.Context{Prompts: 1, Sent: 9, Shared: 9, TokensSaved: 6}}, Spec: "team.yaml", Withheld: w}).Text()
		require.Contains(t, text, want)
		require.Contains(t, text, "The gate left out ~6 tokens of context.\nSent 9 bytes of context, which includes what the prompts say in its place.\n")
		require.NotContains(t, text, "would have sent")
	}
}
