package team_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A lowered team has a scorer of a confidential claim, and an author who gets the score once an
// editor has approved that.
type lowered struct {
	score int

	mu    sync.Mutex // guards the rest
	asked []string   // what the editor was shown
	wrote []string   // what the author was asked
}

func (d *lowered) team(t testing.TB, editor agent.Func) *team.Team {
	t.Helper()
	tm, err := team.New(d.config(editor))
	require.NoError(t, err)
	return tm
}

func (d *lowered) config(editor agent.Func) team.Config {
	return team.Config{
		Agents: []team.Member{
			{Name: "scorer", Accepts: label.Confidential, Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
				return agent.Reply{Text: fmt.Sprintf(`{"score":%d,"why":"canary"}`, d.score)}, nil
			})},
			{Name: "author", Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.wrote = append(d.wrote, p.Text())
				return agent.Reply{Text: "Dear customer"}, nil
			})},
			{Name: "editor", Accepts: label.Confidential, Agent: person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				d.mu.Lock()
				d.asked = append(d.asked, p.Text())
				d.mu.Unlock()
				return editor(ctx, p)
			})},
		},
		Policy: &handoff.Policy{Default: handoff.Full, Declassify: []handoff.Declassifier{{
			Entry: handoff.Entry{Name: "score-to-author", From: "scorer", To: "author", Reason: "a number"}, Paths: []task.Path{"/score"}, LowerTo: label.Internal, Approve: "editor",
		}}},
	}
}

// graph returns the tasks; the author can do without the score if that is optional.
func (d *lowered) graph(optional bool) []task.Spec {
	score := assigned("score", "scorer")
	score.Uses = []task.Use{{Name: "claim"}}
	score.OutputSchema = []byte(`{"type":"object","properties":{"score":{"type":"integer","minimum":0,"maximum":9},"why":{"type":"string"}},"required":["score","why"]}`)
	write := assigned("write", "author", "score")
	write.DependsOn[0].Optional = optional
	return []task.Spec{score, write, assigned("other", "author")}
}

func (d *lowered) options() *team.RunOptions {
	return &team.RunOptions{RunID: "r1", Inputs: []team.Input{{Name: "claim", Text: "claim", Classification: label.Confidential}}, UserAccepts: new(label.Secret)}
}

func says1(text string) agent.Func {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil }
}

// Requirement: G56.
func TestAPersonDecidesAboutADeclassifier(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		answer   string
		optional bool
		gets     string // part of what the author gets; empty if the task is refused
	}{
		{"yes", yes, false, `{"score":7}`},
		{"no", `{"decision":"no","reason":"too early"}`, true, "withheld"},
		{"no for what is required", `{"decision":"no","reason":"too early"}`, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := lowered{score: 7}
			res, err := d.team(t, says1(tt.answer)).RunTasks(t.Context(), d.graph(tt.optional), d.options())
			require.Len(t, d.asked, 1)
			require.Contains(t, d.asked[0], `{"score":7}`)
			require.Contains(t, d.asked[0], `May exactly this be delivered to agent author for the task "write"? It is confidential, and the entry score-to-author of the policy would deliver it as internal.`)
			require.NotContains(t, d.asked[0], "canary", "only what would be delivered")
			other, _ := res.Task("other")
			require.Equal(t, task.Completed, other.Status)
			wrote := strings.Join(d.wrote, "\n")
			require.NotContains(t, wrote, "canary")
			if tt.gets == "" {
				require.ErrorContains(t, err, `editor did not approve "score-to-author": the context is confidential`)
				require.Len(t, d.wrote, 1)
				return
			}
			require.NoError(t, err)
			require.Contains(t, wrote, tt.gets)
			require.Equal(t, tt.answer == yes, strings.Contains(wrote, `"score":7`))
		})
	}
}

// Other tasks continue, the run is suspended, and an answer serves this very value.
// Requirement: G56.
func TestASuspendedDeclassifierIsResumed(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	d := lowered{score: 7}
	o := d.options()
	o.Journal = j
	res, err := d.team(t, later).RunTasks(t.Context(), d.graph(false), o)
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusSuspended, "editor", 1}, []any{res.Status, res.WaitingFor("write"), len(d.wrote)})
	list, err := j.Questions(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, []any{1, "write", "editor", "score-to-author", true}, []any{len(list), list[0].Title, list[0].Agent, list[0].Approval, list[0].Open()})
	require.NoError(t, leave(t.Context(), j, idOf("write"), answerAs("ann", yes)))

	stale := lowered{score: 8} // the scorer is asked again, and says something else
	o.Tasks, o.Fresh = d.graph(false), []string{"score"}
	res, err = stale.team(t, later).Resume(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusSuspended, 1, 0}, []any{res.Status, len(stale.asked), len(stale.wrote)})
	require.Contains(t, fmt.Sprint(res.Warnings), "has changed since ann answered, so editor is asked again")
	require.NoError(t, leave(t.Context(), j, idOf("write"), answerAs("ann", yes)))

	after := lowered{score: 9}
	o.Fresh = nil
	for range 2 {
		res, err = after.team(t, later).Resume(t.Context(), "r1", o)
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusOK, 0, 1}, []any{res.Status, len(after.asked), len(after.wrote)})
		require.Contains(t, after.wrote[0], `{"score":8}`)
	}
	got, _ := res.Task("write")
	require.Equal(t, 1, got.Attempts)

	replayed, err := after.team(t, later).Replay(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusOK, 0, 1}, []any{replayed.Status, len(after.asked), len(after.wrote)})

	other := lowered{score: 8}
	o.RunID, o.Reuse, o.Tasks = "r2", true, nil
	res, err = other.team(t, later).RunTasks(t.Context(), d.graph(false), o)
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status, "no other run takes it")
}

// A yes is for the task as it was when the person was asked.
// Requirement: G56.
func TestAnApprovedValueIsForTheTaskAsItWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*team.Config, []task.Spec){
		"the description": func(_ *team.Config, s []task.Spec) { s[1].Description = "Publish it." },
		"the tools": func(c *team.Config, _ []task.Spec) {
			c.Agents[1].Tools = []*tool.Tool{{Name: "mail", Description: "Sends it.", Parameters: []byte(`{"type":"object"}`), Options: tool.Options{Effect: tool.None}, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}}
		},
		"an endpoint": func(c *team.Config, _ []task.Spec) { c.Agents[1].Endpoint = "https://example.org/v1" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journal.InMemory(journal.Options{})
			defer j.Close()
			d, after := lowered{score: 7}, lowered{score: 7}
			o := d.options()
			o.Journal = j
			_, err := d.team(t, later).RunTasks(t.Context(), d.graph(false), o)
			require.NoError(t, err)
			require.NoError(t, leave(t.Context(), j, idOf("write"), answerAs("ann", yes)))
			cfg := after.config(later)
			o.Tasks = after.graph(false)
			change(&cfg, o.Tasks)
			tm, err := team.New(cfg)
			require.NoError(t, err)
			res, err := tm.Resume(t.Context(), "r1", o)
			require.NoError(t, err)
			require.Equal(t, []any{team.StatusSuspended, 1}, []any{res.Status, len(after.asked)})
		})
	}
}

// Who answers in another process is shown what the user may see, and approves nothing else.
// Requirement: G56.
func TestAnAnswerApprovesNothingThatItsSenderWasNotShown(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	d := lowered{score: 7}
	cfg := d.config(later)
	cfg.Policy.Rules = []handoff.PairRule{{From: "scorer", To: "user", Mode: handoff.Minimal}}
	tm, err := team.New(cfg)
	require.NoError(t, err)
	o := d.options()
	o.Journal = j
	_, err = tm.RunTasks(t.Context(), d.graph(true), o)
	require.NoError(t, err)
	o.Tasks = d.graph(true)
	for _, answer := range []string{yes, no} {
		require.NoError(t, leave(t.Context(), j, idOf("write"), answerAs("ann", answer)))
		res, err := tm.Resume(t.Context(), "r1", o)
		require.NoError(t, err)
		require.Equal(t, answer == no, res.Status == team.StatusOK, answer)
		require.NotContains(t, strings.Join(d.wrote, ""), `"score":7`)
	}
}

// A process that is killed while the person is asked has left the question.
func TestADeclassifierIsAnsweredAfterAKill(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	d := lowered{score: 7}
	o := d.options()
	o.Journal = j
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	_, err := d.team(t, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		kill()
		return silent(ctx, p)
	}).RunTasks(ctx, d.graph(false), o)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, leave(t.Context(), j, idOf("write"), answerAs("ann", yes)))
	o.Tasks = d.graph(false)
	res, err := d.team(t, later).Resume(t.Context(), "r1", o)
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusOK, 1}, []any{res.Status, len(d.asked)})
}

// The slot is free while the person is asked.
func TestOtherTasksContinueWhileADeclassifierWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		d := lowered{score: 7}
		o := d.options()
		o.Journal, o.MaxConcurrency = j, 1
		ended := make(chan *team.Result, 1)
		go func() {
			res, _ := d.team(t, silent).RunTasks(t.Context(), d.graph(false), o)
			ended <- res
		}()
		open(t, j, "write")
		taken, err := j.Answer(t.Context(), "r1", idOf("write"), answerAs("ann", yes))
		require.NoError(t, err)
		require.True(t, taken)
		res := <-ended
		require.Equal(t, []any{team.StatusOK, 2}, []any{res.Status, len(d.wrote)})
	})
}

// The title of a planned task is a text of the coordinator, of which an approver is granted nothing.
func TestAPlannedTitleIsNotInAQuestion(t *testing.T) {
	t.Parallel()
	planner := func(plan string) *team.Coordinator {
		var seen []llm.Request
		return &team.Coordinator{Agent: agent.New(plans(&seen, plan), agent.Options{}), MayGrant: synth.Grants{Inputs: true, Tools: true}, MayPlan: synth.Constructs{When: true}}
	}
	t.Run("of a call", func(t *testing.T) {
		t.Parallel()
		asked := ""
		pay, err := tool.New("pay", "Pays.", func(context.Context, struct{ Amount int }) (string, error) { return "paid", nil }, tool.Options{Approve: "editor"})
		require.NoError(t, err)
		tm, err := team.New(team.Config{
			Agents: []team.Member{
				{Name: "clerk", Agent: agent.New(named{&chat{replies: []llm.Response{calls("pay", `{"Amount": 5}`), says("done")}}}, agent.Options{}), Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}},
				{Name: "editor", Agent: person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					asked = p.System() + p.Text()
					return agent.Reply{Text: yes}, nil
				})},
			},
			Coordinator: planner(`[{"title": "Canary", "description": "Pay it.", "assignee": "clerk", "tools": ["pay"]}]`),
		})
		require.NoError(t, err)
		_, err = tm.RunTeam(t.Context(), team.Goal{Text: planGoal}, nil)
		require.NoError(t, err)
		require.Contains(t, asked, "Agent clerk wants to call the tool pay for a task.")
		require.NotContains(t, asked, "Canary")
	})
	t.Run("of a declassifier", func(t *testing.T) {
		t.Parallel()
		d := lowered{score: 7}
		cfg := d.config(says1(yes))
		cfg.Coordinator = planner(`[{"title": "Canary score", "description": "Score it.", "assignee": "scorer", "uses": ["claim"],
			"outputSchema": {"type": "object", "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 9}, "why": {"type": "string"}}, "required": ["score", "why"]}},
			{"title": "Canary letter", "description": "Write it.", "assignee": "author", "dependsOn": ["Canary score"]}]`)
		tm, err := team.New(cfg)
		require.NoError(t, err)
		_, err = tm.RunTeam(t.Context(), team.Goal{Text: planGoal}, d.options())
		require.NoError(t, err)
		require.Contains(t, d.asked[0], "delivered to agent author for a task?")
		require.Contains(t, d.wrote[0], `{"score":7}`)
		require.NotContains(t, d.asked[0], "Canary")
	})
}
