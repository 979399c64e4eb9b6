package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// writerTeam is a team whose only agent repeats its prompt.
func writerTeam(t *testing.T, change func(*team.Config)) *team.Team {
	t.Helper()
	cfg := team.Config{Agents: []team.Member{{Name: "writer", Agent: team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "wrote: " + p.Text()}, nil
	})}}}
	if change != nil {
		change(&cfg)
	}
	tm, err := team.New(cfg)
	require.NoError(t, err)
	return tm
}

func TestTasksWithoutAnAgentHaveResults(t *testing.T) {
	t.Parallel()
	res, err := writerTeam(t, nil).RunTasks(t.Context(), []task.Spec{
		{Title: "Limits", Key: "limits", Value: json.RawMessage(`{"max": 5, "share": 0.5, "words": ["a", "b"]}`)},
		{Title: "Greeting", Value: json.RawMessage(`"Dear customer,"`)},
		{Title: "Write", Description: "Write.", DependsOn: task.On("limits")},
		{Title: "Letter", DependsOn: []task.Ref{{Task: "Limits", As: task.Structured}, {Task: "Greeting"}, {Task: "Write"}}, Uses: []task.Use{{Name: "claim"}},
			Template: `{{.results.Greeting}} {{.inputs.claim}} {{if gt .results.limits.max 4}}{{.results.limits.share}}{{end}}{{range .results.Limits.words}}<{{.}}>{{end}} {{len .results.Write}}`},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "claim", Text: "a dent"}}})
	require.NoError(t, err)
	limits, _ := res.Task("limits")
	require.JSONEq(t, `{"max":5,"share":0.5,"words":["a","b"]}`, limits.Structured)
	greeting, _ := res.Task("Greeting")
	require.Equal(t, "Dear customer,", greeting.Result)
	require.Empty(t, greeting.Structured)
	write, _ := res.Task("Write")
	require.Contains(t, write.Result, `{"max":5`)
	letter, _ := res.Task("Letter")
	require.True(t, strings.HasPrefix(letter.Result, "Dear customer, a dent 0.5<a><b> "), letter.Result)
	require.Equal(t, "computed", letter.Assignee)
	require.Zero(t, res.Usage)
	require.Equal(t, letter.Result, res.Output)
}

// Integers that a double does not have are texts in a value, as in every structured result.
func TestAValueMayHaveLargeIntegers(t *testing.T) {
	t.Parallel()
	res, err := writerTeam(t, nil).RunTasks(t.Context(), []task.Spec{
		{Title: "Account", Key: "a", Value: json.RawMessage(`{"n": 12345678901234567890, "list": [-9007199254740993, 7]}`)},
		{Title: "Number", Key: "n", Value: json.RawMessage(`9007199254740993`)},
		{Title: "Typed", Value: json.RawMessage(`9007199254740993`), OutputSchema: []byte(`{"type":"integer"}`)},
		{Title: "Letter", DependsOn: []task.Ref{{Task: "a", As: task.Structured}, {Task: "n", As: task.Structured}, {Task: "Typed", As: task.Structured}}, Template: `{{.results.a.n}} {{index .results.a.list 0}} {{.results.n}} {{.results.Typed}}`},
	}, nil)
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	account, _ := res.Task("Account")
	require.Equal(t, `{"list":["-9007199254740993",7],"n":"12345678901234567890"}`, account.Structured)
	require.Equal(t, "12345678901234567890 -9007199254740993 9007199254740993 9007199254740993", res.Output)
}

// TestTemplatesObeyLabelsAndPolicies checks that no label is lowered on the way through a
// template, that rules for computed apply, and that personal data is redacted.
func TestTemplatesObeyLabelsAndPolicies(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "Letter", Template: "{{.inputs.claim}}", Uses: []task.Use{{Name: "claim"}}}, {Title: "Send", Description: "Send.", DependsOn: task.On("Letter")}}
	inputs := func(level label.Classification, text string) *team.RunOptions {
		return &team.RunOptions{Inputs: []team.Input{{Name: "claim", Text: text, Classification: level}}}
	}
	t.Run("a label is kept", func(t *testing.T) {
		t.Parallel()
		_, err := writerTeam(t, nil).RunTasks(t.Context(), specs, inputs(label.Confidential, "x"))
		require.ErrorContains(t, err, `task "Send": no agent is cleared for confidential`)
		res, err := writerTeam(t, nil).RunTasks(t.Context(), specs[:1], inputs(label.Confidential, "x"))
		require.NoError(t, err)
		require.Equal(t, label.Confidential, res.Tasks[0].Label)
	})
	t.Run("a secret needs a rule for the pair", func(t *testing.T) {
		t.Parallel()
		_, err := writerTeam(t, nil).Plan(specs[:1], inputs(label.Secret, "x"))
		require.ErrorContains(t, err, "a rule for the exact pair")
		allowed := func(c *team.Config) {
			c.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: handoff.Computed, Mode: handoff.Full}}}
		}
		_, err = writerTeam(t, allowed).Plan(specs[:1], inputs(label.Secret, "x"))
		require.ErrorContains(t, err, "the only answer of the run")
		require.NotContains(t, err.Error(), "computed accepts")
	})
	t.Run("rules name it as producer", func(t *testing.T) {
		t.Parallel()
		tm := writerTeam(t, func(c *team.Config) {
			c.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Computed, To: "writer", Mode: handoff.Minimal}}}
		})
		res, err := tm.RunTasks(t.Context(), specs, inputs(label.Internal, "a dent"))
		require.NoError(t, err)
		require.NotContains(t, res.Output, "a dent")
	})
	t.Run("personal data is redacted", func(t *testing.T) {
		t.Parallel()
		res, err := writerTeam(t, nil).RunTasks(t.Context(), specs[:1], inputs(label.Internal, "write to ann@example.org"))
		require.NoError(t, err)
		require.Equal(t, "write to [REDACTED:email]", res.Output)
	})
}

func TestTemplatesFailWithTheirTask(t *testing.T) {
	t.Parallel()
	score := task.Spec{Title: "Score", Value: json.RawMessage(`{"points":7}`)}
	for give, want := range map[string]string{
		"{{.results.Score.max}}":               `template: line 1: at <.results.Score.max>: map has no entry for key "max"`,
		`{{slice "abc" 9}}`:                    "index out of range: 9",
		"{{range 100}}{{$.inputs.big}}{{end}}": "the text has more than",
		`{"points": "many"}`:                   "",
	} {
		specs := []task.Spec{score, {Title: "Letter", Template: give, DependsOn: []task.Ref{{Task: "Score", As: task.Structured}}, Uses: []task.Use{{Name: "big"}}}}
		if want == "" {
			specs[1].OutputSchema = json.RawMessage(`{"type":"object","properties":{"points":{"type":"integer"}}}`)
		}
		res, err := writerTeam(t, nil).RunTasks(t.Context(), specs, &team.RunOptions{Inputs: []team.Input{{Name: "big", Text: strings.Repeat("x", 100<<10)}}})
		require.Error(t, err)
		letter, _ := res.Task("Letter")
		require.Equal(t, task.Failed, letter.Status, give)
		require.Contains(t, letter.Error.Message, want)
		require.Equal(t, 1, letter.Attempts)
		if want == "" {
			require.Equal(t, "OUTPUT_SCHEMA_INVALID", letter.Error.Code)
		}
	}
}

func TestATemplateWithoutEndStopsWithItsTask(t *testing.T) {
	t.Parallel()
	res, err := writerTeam(t, nil).RunTasks(t.Context(), []task.Spec{{Title: "Loop", Template: "{{range 1000000000000}}{{end}}", Timeout: 20 * time.Millisecond}}, nil)
	require.Error(t, err)
	require.Contains(t, res.Tasks[0].Error.Message, "20ms")
}

func TestOptionalResultsOfATemplateAreEmpty(t *testing.T) {
	t.Parallel()
	tm := writerTeam(t, func(c *team.Config) {
		c.Agents[0].Agent = team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errors.New("no") })
	})
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "Read", Description: "Read."},
		{Title: "Letter", DependsOn: []task.Ref{{Task: "Read", Optional: true}}, Template: "{{with .results.Read}}{{.}}{{else}}nothing{{end}}"},
	}, nil)
	require.Error(t, err)
	letter, _ := res.Task("Letter")
	require.Equal(t, "nothing", letter.Result)
}

// TestComputedResultsAreReplayedResumedAndReused checks that the text of a template counts as
// the version of its results.
func TestComputedResultsAreReplayedResumedAndReused(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	specs := func(text string) []task.Spec {
		return []task.Spec{{Title: "Limits", Value: json.RawMessage(`{"max":5}`)}, {Title: "Letter", Template: text, DependsOn: task.On("Limits")}}
	}
	tm := writerTeam(t, nil)
	first, err := tm.RunTasks(t.Context(), specs("at most {{.results.Limits}}"), &team.RunOptions{Journal: j, RunID: "first"})
	require.NoError(t, err)
	require.Equal(t, `at most {"max":5}`, first.Output)

	again, err := tm.Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: specs("at most {{.results.Limits}}")})
	require.NoError(t, err)
	require.Equal(t, first.Output, again.Output)
	require.True(t, again.Tasks[1].Repeated)
	_, err = tm.Replay(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: specs("up to {{.results.Limits}}")})
	require.ErrorContains(t, err, "no answer to this prompt")

	again, err = tm.Resume(t.Context(), "first", &team.RunOptions{Journal: j, Tasks: specs("up to {{.results.Limits}}")})
	require.NoError(t, err)
	require.Equal(t, `up to {"max":5}`, again.Output)

	again, err = tm.RunTasks(t.Context(), specs("at most {{.results.Limits}}"), &team.RunOptions{Journal: j, RunID: "second", Reuse: true})
	require.NoError(t, err)
	require.Equal(t, first.Output, again.Output)
	require.Equal(t, "first", again.Tasks[1].Reused)
	again, err = tm.RunTasks(t.Context(), specs("not over {{.results.Limits}}"), &team.RunOptions{Journal: j, RunID: "third", Reuse: true})
	require.NoError(t, err)
	require.Empty(t, again.Tasks[1].Reused)
}

func TestComputedTasksNeedNoBudgetAndGetNoMessages(t *testing.T) {
	t.Parallel()
	res, err := writerTeam(t, nil).RunTasks(t.Context(), []task.Spec{
		{Title: "Hello", Value: json.RawMessage(`"hello"`)}, {Title: "Write", Description: "Write.", DependsOn: task.On("Hello")},
	}, &team.RunOptions{Budget: team.Budget{MaxTokenBudget: 1}, Messages: []team.Message{{From: "user", To: "*", Text: "a note"}}})
	require.NoError(t, err)
	require.Contains(t, res.Output, "a note")
	require.Empty(t, res.Warnings)
	require.Len(t, res.Tasks[0].Receipts, 1)
}

// TestPlansHaveNoTasksWithoutAnAgent checks that a coordinator cannot write a value or a template.
func TestPlansHaveNoTasksWithoutAnAgent(t *testing.T) {
	t.Parallel()
	for _, plan := range []string{
		`{"tasks":[{"title":"A","description":"Do it.","template":"{{.inputs.claim}}"}]}`,
		`{"tasks":[{"title":"A","description":"Do it.","value":5}]}`,
		`{"tasks":[{"title":"A","description":"Do it.","assignee":"computed"}]}`,
	} {
		tm := writerTeam(t, func(c *team.Config) {
			c.Coordinator = &team.Coordinator{Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: plan}, nil })}
		})
		res, err := tm.RunTeam(t.Context(), team.Goal{Text: "Write a letter about the claim, and then a summary."}, nil)
		require.Error(t, err, plan)
		require.Empty(t, res.Tasks)
	}
}
