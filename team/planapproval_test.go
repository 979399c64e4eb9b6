package team_test

import (
	"context"
	"fmt"
	"path/filepath"
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
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

const (
	planGoal   = "Research the market, compare the offers and then write a report."
	onePlan    = `[{"title": "Find", "description": "Find the offers."}]`
	otherPlan  = `[{"title": "Look", "description": "Look for the offers.", "assignee": "writer"}]`
	editedPlan = `{"decision":"edit","plan":[{"title":"Find less","description":"Find one offer.","assignee":"writer"}]}`
	yes, no    = `{"decision":"yes"}`, `{"decision":"no"}`
	askedFirst = `{"decision":"no","reason":"Look instead."}`
)

// A planned team has a coordinator whose plans an editor approves, and a writer.
type planned struct {
	coordinator []llm.Request // to plan
	asked       []string      // what the editor was shown
	worked      []string      // what the writer was asked
	mu          sync.Mutex    // guards worked
}

// team returns the team: the coordinator makes these plans in turn, and the editor gives these answers.
// No more answers mean later.
func (d *planned) team(t testing.TB, plans []string, answers []string, change ...func(*team.Config)) *team.Team {
	t.Helper()
	model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if len(r.Schema) == 0 {
			return says("answered"), nil
		}
		d.coordinator = append(d.coordinator, r)
		require.LessOrEqual(t, len(d.coordinator), len(plans), "plans")
		return says(plans[len(d.coordinator)-1]), nil
	})
	cfg := team.Config{
		Agents: []team.Member{
			{Name: "writer", Agent: agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.worked = append(d.worked, p.Text())
				return agent.Reply{Text: "done"}, nil
			})},
			{Name: "editor", Agent: person.New(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				d.asked = append(d.asked, p.Text())
				if len(d.asked) > len(answers) {
					return agent.Reply{}, person.ErrLater
				}
				return agent.Reply{Text: answers[len(d.asked)-1]}, nil
			})},
		},
		Coordinator: &team.Coordinator{Agent: agent.New(named{model}, agent.Options{}), Approve: "editor"},
	}
	for _, f := range change {
		f(&cfg)
	}
	tm, err := team.New(cfg)
	require.NoError(t, err)
	return tm
}

// Requirement: G56.
func TestAPersonDecidesAboutThePlan(t *testing.T) {
	t.Parallel()
	unfit := `{"decision":"yes","plan":[]}`
	faulty := `{"decision":"edit","plan":[{"title":"Find","description":"Find it.","assignee":"nobody here"}]}`
	for _, tt := range []struct {
		name    string
		plans   []string
		answers []string
		work    []string // parts of what the writer is asked, in order
		asked   []string // parts of what the editor is shown, in order
		fails   string   // part of the error
	}{
		{"yes", []string{onePlan}, []string{yes}, []string{"Find the offers."}, []string{`"assignee": "writer"`}, ""},
		{"no", []string{onePlan}, []string{no}, nil, []string{"Find the offers."}, "the plan was refused by editor, without a reason"},
		{"no with a reason", []string{onePlan, otherPlan}, []string{askedFirst, yes}, []string{"Look for the offers."}, []string{"Find the offers.", "Look for the offers."}, ""},
		{"never yes", []string{onePlan, otherPlan, onePlan, otherPlan}, []string{askedFirst, askedFirst, askedFirst, askedFirst}, nil, []string{"", "", "", ""}, "the plan was refused 4 times by editor (last reason: Look instead.)"},
		{"an edited plan", []string{onePlan}, []string{editedPlan}, []string{"Find one offer."}, []string{"Find the offers."}, ""},
		{"an edited plan that cannot be run", []string{onePlan}, []string{faulty, editedPlan}, []string{"Find one offer."}, []string{"Find the offers.", `The plan that you wrote cannot be run`}, ""},
		{"yes after that", []string{onePlan}, []string{faulty, yes}, []string{"Find the offers."}, []string{"Find the offers.", `unknown agent`}, ""},
		{"an edited plan without an agent", []string{onePlan}, []string{strings.Replace(editedPlan, `,"assignee":"writer"`, "", 1), yes}, []string{"Find the offers."}, []string{"", "it names no agent"}, ""},
		{"no edited plan can be run", []string{onePlan}, []string{faulty, faulty, faulty, faulty}, nil, []string{"", "", "", ""}, "the edited plan cannot be run"},
		{"answers that never fit", []string{onePlan}, []string{unfit, unfit, unfit, unfit, unfit}, nil, []string{"", "", "", "", ""}, "the answer of editor does not fit the question"},
		{"yes with another plan", []string{onePlan}, []string{strings.Replace(editedPlan, "edit", "yes", 1), no}, nil, []string{"", ""}, "without a reason"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var d planned
			res, err := d.team(t, tt.plans, tt.answers).RunTeam(t.Context(), team.Goal{Text: planGoal}, nil)
			require.Len(t, d.asked, len(tt.asked))
			for i, part := range tt.asked {
				require.Contains(t, d.asked[i], part)
			}
			require.Len(t, d.worked, len(tt.work))
			for i, part := range tt.work {
				require.Contains(t, d.worked[i], part)
			}
			if tt.fails != "" {
				require.ErrorContains(t, err, tt.fails)
				require.Equal(t, "COORDINATOR_PLAN_REFUSED", res.Errors[0].Code)
				require.Empty(t, res.Tasks)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "answered", res.Output)
			if strings.Contains(tt.answers[0], "nobody here") {
				require.Contains(t, fmt.Sprint(res.Warnings), "the edited plan cannot be run: ")
				require.Contains(t, fmt.Sprint(res.Warnings), "; asking editor again")
			}
			if len(tt.plans) > 1 {
				require.Contains(t, d.coordinator[1].Messages[0].Text, "Look instead.")
				require.Contains(t, d.coordinator[1].Messages[0].Text, "Your plan was refused")
			}
		})
	}
}

// Requirement: G56.
func TestASuspendedPlanIsResumed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer string
		plans  []string // of the resumed run
		work   string
		fails  string
	}{
		{yes, nil, "Find the offers.", ""},
		{no, nil, "", "without a reason"},
		{editedPlan, nil, "Find one offer.", ""},
		{askedFirst, []string{otherPlan}, "", ""}, // and asks again
	} {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		var before, after planned
		goal := team.Goal{Text: planGoal}
		res, err := before.team(t, []string{onePlan}, nil).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, "editor", 0, 2}, []any{res.Status, res.WaitingFor("coordinator"), len(res.Tasks), len(res.Steps)})
		again, err := (&planned{}).team(t, nil, nil).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
		require.NoError(t, err)
		require.Equal(t, team.StatusSuspended, again.Status)

		list, err := j.Questions(t.Context(), "r1")
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []any{"coordinator", "editor", true}, []any{list[0].Title, list[0].Agent, list[0].Open()})
		require.ErrorIs(t, leave(t.Context(), j, list[0].Task, answerAs("bob", `{"decision":"maybe"}`)), nil) // the run checks it
		require.ErrorIs(t, leave(t.Context(), j, list[0].Task, answerAs("ann", tt.answer)), journal.ErrAnswered)
		_, err = (&planned{}).team(t, nil, nil).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
		require.NoError(t, err)
		require.NoError(t, leave(t.Context(), j, list[0].Task, answerAs("ann", tt.answer)))

		for n := range 2 {
			res, err = after.team(t, tt.plans, nil).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
			switch {
			case tt.fails != "":
				require.ErrorContains(t, err, tt.fails)
			case tt.plans != nil:
				require.NoError(t, err)
				require.Equal(t, team.StatusSuspended, res.Status)
				require.Len(t, after.coordinator, 1, "round %d", n)
			default:
				require.NoError(t, err)
				require.Empty(t, after.asked)
				require.Empty(t, after.coordinator, "the plan was made before")
				require.Len(t, after.worked, 1, "round %d", n)
				require.Contains(t, after.worked[0], tt.work)
			}
		}
	}
}

// An answer about one plan is not taken for another, and no other run takes it.
// Requirement: G56.
func TestAnAnswerForAnotherPlanIsNotTaken(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	goal := team.Goal{Text: planGoal}
	var before, after, other planned
	_, err := before.team(t, []string{onePlan}, nil).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r1", Journal: j})
	require.NoError(t, err)
	require.NoError(t, leave(t.Context(), j, "coordinator/approval", answerAs("ann", yes)))
	stricter := func(c *team.Config) { c.Coordinator.Instructions = "Be brief." } // so that it plans again
	res, err := after.team(t, []string{otherPlan}, nil, stricter).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusSuspended, 0, 1}, []any{res.Status, len(after.worked), len(after.asked)})
	require.Contains(t, after.asked[0], "Look for the offers.")
	require.Contains(t, fmt.Sprint(res.Warnings), "has changed since ann answered, so editor is asked again")

	res, err = other.team(t, []string{onePlan}, nil).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r2", Journal: j, Reuse: true})
	require.NoError(t, err)
	require.Equal(t, team.StatusSuspended, res.Status)
}

// The same plan is asked about again if an agent could do more than before.
func TestAPlanIsApprovedForItsAgents(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	goal := team.Goal{Text: planGoal}
	var before, after planned
	_, err := before.team(t, []string{onePlan}, nil).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r1", Journal: j})
	require.NoError(t, err)
	require.NoError(t, leave(t.Context(), j, "coordinator/approval", answerAs("ann", yes)))
	res, err := after.team(t, []string{onePlan}, nil, func(c *team.Config) { c.Agents[0].Accepts = label.Confidential }).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusSuspended, 1}, []any{res.Status, len(after.asked)})
}

// A live run takes the answer of another process.
func TestALiveRunTakesAnAnswerAboutItsPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := journal.InMemory(journal.Options{})
		defer j.Close()
		var d planned
		tm := d.team(t, []string{onePlan}, nil, func(c *team.Config) { c.Agents[1].Agent = person.New(silent) })
		ended := make(chan *team.Result, 1)
		go func() {
			res, _ := tm.RunTeam(t.Context(), team.Goal{Text: planGoal}, &team.RunOptions{RunID: "r1", Journal: j})
			ended <- res
		}()
		open(t, j, "coordinator")
		require.ErrorIs(t, leave(t.Context(), j, "coordinator/approval", answerAs("bob", editedPlan[:20]+`}`)), journal.ErrRefused)
		taken, err := j.Answer(t.Context(), "r1", "coordinator/approval", answerAs("ann", yes))
		require.NoError(t, err)
		require.True(t, taken)
		res := <-ended
		require.Equal(t, []any{team.StatusOK, 1}, []any{res.Status, len(d.worked)})
	})
}

// A process that dies while the person is asked has left the question.
func TestAnAnswerComesAfterTheProcessHasEnded(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	goal := team.Goal{Text: planGoal}
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	var before, after planned
	tm := before.team(t, []string{onePlan}, nil, func(c *team.Config) {
		c.Agents[1].Agent = person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			kill()
			return silent(ctx, p)
		})
	})
	res, err := tm.RunTeam(ctx, goal, &team.RunOptions{RunID: "r1", Journal: j})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, team.StatusCanceled, res.Status)
	require.NoError(t, leave(t.Context(), j, "coordinator/approval", answerAs("ann", editedPlan)))
	working, die := context.WithCancel(t.Context()) // between the answer and the end of the tasks
	defer die()
	_, err = after.team(t, nil, nil, func(c *team.Config) {
		c.Agents[0].Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			die()
			return silent(ctx, p)
		})
	}).Resume(working, "r1", &team.RunOptions{Answer: &goal, Journal: j})
	require.ErrorIs(t, err, context.Canceled)
	res, err = after.team(t, nil, nil).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusOK, 0, 1}, []any{res.Status, len(after.asked), len(after.worked)})
	require.Contains(t, after.worked[0], "Find one offer.")
	replayed, err := after.team(t, nil, nil).Replay(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
	require.NoError(t, err)
	require.Equal(t, []any{team.StatusOK, 0, 1}, []any{replayed.Status, len(after.asked), len(after.worked)})
}

// What a person may not see in full cannot be approved.
func TestAPlanThatIsWithheldCannotBeApproved(t *testing.T) {
	t.Parallel()
	card := strings.Replace(onePlan, "Find the offers.", "Find the offers of ann@example.org.", 1)
	cleared := func(c *team.Config) { c.Agents[0].Accepts = label.Confidential }
	for _, tt := range []struct {
		name   string
		plan   string
		goal   label.Classification
		change []func(*team.Config)
		starts bool
		want   string
	}{
		{"its label is too high", onePlan, label.Confidential, []func(*team.Config){cleared}, false, `coordinator: the plan is at least confidential, and "editor", who has to approve it, accepts at most internal`},
		{"a ceiling of the policy", onePlan, label.Internal, []func(*team.Config){func(c *team.Config) {
			c.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: "coordinator", To: "editor", Ceiling: new(label.Public)}}}
		}}, false, `"editor" has to approve it, and may not see it`},
		{"redaction", card, label.Internal, nil, true, "editor may not see all of it, and so cannot approve it"},
		{"nobody of that name", onePlan, label.Internal, []func(*team.Config){func(c *team.Config) { c.Coordinator.Approve = "edtor" }}, false, `coordinator: unknown approver "edtor"`},
		{"no person", onePlan, label.Internal, []func(*team.Config){func(c *team.Config) { c.Coordinator.Approve = "writer" }}, false, `agent "writer" cannot approve anything: it is not a person`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(tt.want, "approver \"") || strings.Contains(tt.want, "not a person") {
				cfg := team.Config{Agents: []team.Member{{Name: "writer", Agent: agent.Func(later)}, {Name: "editor", Agent: person.New(later)}}, Coordinator: &team.Coordinator{Agent: agent.Func(later)}}
				tt.change[0](&cfg)
				_, err := team.New(cfg)
				require.ErrorContains(t, err, tt.want)
				return
			}
			var d planned
			res, err := d.team(t, []string{tt.plan}, []string{yes}, tt.change...).RunTeam(t.Context(), team.Goal{Text: planGoal, Classification: tt.goal}, &team.RunOptions{UserAccepts: new(label.Secret)})
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.starts, res != nil)
			require.Empty(t, d.worked)
			require.Empty(t, d.asked)
		})
	}
}

// The words of a person reach the coordinator only if the policy lets them.
func TestAReasonPassesTheGateToTheCoordinator(t *testing.T) {
	t.Parallel()
	var d planned
	tm := d.team(t, []string{onePlan}, []string{askedFirst}, func(c *team.Config) {
		c.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: "editor", To: "coordinator", Mode: handoff.Minimal}}}
	})
	_, err := tm.RunTeam(t.Context(), team.Goal{Text: planGoal}, nil)
	require.ErrorContains(t, err, "a rule of the policy keeps the reason from the coordinator: Look instead.")
	require.Len(t, d.coordinator, 1)
	require.Empty(t, d.worked)
}

// Planning alone asks nobody.
func TestAPlanThatIsNotRunNeedsNoApproval(t *testing.T) {
	t.Parallel()
	var d planned
	p, err := d.team(t, []string{onePlan}, []string{yes}).PlanTeam(t.Context(), team.Goal{Text: planGoal}, nil)
	require.NoError(t, err)
	require.Empty(t, d.asked)
	res, err := p.Run(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, d.asked, "the caller has read the plan")
	require.Len(t, res.Tasks, 1)
}

// The same plan for agents that may read or call more is another question.
// Requirement: G56.
func TestAPlanIsApprovedForWhatItsAgentsMayDo(t *testing.T) {
	t.Parallel()
	mail, err := tool.New("mail", "Sends mail.", func(context.Context, struct{ To string }) (string, error) { return "sent", nil }, tool.Options{Effect: tool.External})
	require.NoError(t, err)
	const plan = `[{"title": "Find", "description": "Find the offers.", "assignee": "writer", "tools": ["mail"]}, {"title": "Use", "description": "Use it.", "assignee": "reader", "dependsOn": ["Find"]}]`
	base := func(c *team.Config) {
		c.Agents[0].Tools, c.Coordinator.MayGrant = []*tool.Tool{mail}, synth.Grants{Tools: true}
		c.Agents = append(c.Agents, team.Member{Name: "reader", Handoff: handoff.Minimal, Agent: says1("ok")})
		c.Policy = &handoff.Policy{Default: handoff.Full}
	}
	for name, change := range map[string]func(*team.Config){
		"reads the results of others":   func(c *team.Config) { c.Agents[2].Handoff = handoff.Full },
		"calls after untrusted context": func(c *team.Config) { c.Agents[0].AllowUntrusted = []string{"mail"} },
		"sends along an edge":           func(c *team.Config) { c.Edges = []handoff.Edge{{From: "writer", To: "reader"}} },
		"spawns children":               func(c *team.Config) { c.Agents[0].Spawn = &team.Spawning{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journal.InMemory(journal.Options{})
			defer j.Close()
			goal := team.Goal{Text: planGoal}
			var before, after planned
			_, err := before.team(t, []string{plan}, nil, base).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r1", Journal: j})
			require.NoError(t, err)
			require.NoError(t, leave(t.Context(), j, "coordinator/approval", answerAs("ann", yes)))
			res, err := after.team(t, []string{plan}, nil, base, change).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
			require.NoError(t, err)
			require.Equal(t, []any{team.StatusSuspended, 1, 0}, []any{res.Status, len(after.asked), len(after.worked)})
		})
	}
}

// An approval is for the edges and the children that the person had agreed to: less is another question too.
// Requirement: G56.
func TestAPlanIsApprovedForItsEdges(t *testing.T) {
	t.Parallel()
	base := func(c *team.Config) {
		c.Agents[0].Spawn = &team.Spawning{Max: 2}
		c.Agents = append(c.Agents, team.Member{Name: "reader", Agent: says1("ok")}, team.Member{Name: "other", Agent: says1("ok")})
		c.Edges = []handoff.Edge{{From: "writer", To: "reader", MaxClassification: new(label.Internal)}}
		c.Policy = &handoff.Policy{Default: handoff.Full}
	}
	for name, of := range map[string]struct {
		change func(*team.Config)
		asked  int
	}{
		"the same":          {func(*team.Config) {}, 0},
		"the default depth": {func(c *team.Config) { c.Agents[0].Spawn.Depth = 1 }, 0},
		"a higher label":    {func(c *team.Config) { c.Edges[0].MaxClassification = nil }, 1},
		"both ways":         {func(c *team.Config) { c.Edges[0].Bidirectional = true }, 1},
		"delegates":         {func(c *team.Config) { c.Edges[0].Delegate = true }, 1},
		"another reader":    {func(c *team.Config) { c.Edges[0].To = "other" }, 1},
		"one more edge":     {func(c *team.Config) { c.Edges = append(c.Edges, handoff.Edge{From: "reader", To: "other"}) }, 1},
		"no edge":           {func(c *team.Config) { c.Edges = nil }, 1},
		"more children":     {func(c *team.Config) { c.Agents[0].Spawn.Max = 3 }, 1},
		"deeper children":   {func(c *team.Config) { c.Agents[0].Spawn.Depth = 2 }, 1},
		"no children":       {func(c *team.Config) { c.Agents[0].Spawn = nil }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journal.InMemory(journal.Options{})
			defer j.Close()
			goal := team.Goal{Text: planGoal}
			var before, after planned
			const plan = `[{"title": "Find", "description": "Find the offers.", "assignee": "writer"}]`
			_, err := before.team(t, []string{plan}, nil, base).RunTeam(t.Context(), goal, &team.RunOptions{RunID: "r1", Journal: j})
			require.NoError(t, err)
			require.NoError(t, leave(t.Context(), j, "coordinator/approval", answerAs("ann", yes)))
			res, err := after.team(t, []string{plan}, nil, base, of.change).Resume(t.Context(), "r1", &team.RunOptions{Answer: &goal, Journal: j})
			require.NoError(t, err)
			require.Len(t, after.asked, of.asked)
			require.Len(t, after.worked, 1-of.asked)
			require.Equal(t, of.asked == 0, res.Status == team.StatusOK, res.Errors)
		})
	}
}

// Whether the coordinator is given its plan back does not depend on how long the list of an input is.
// Requirement: G54.
func TestARepairTellsNothingOfAnInput(t *testing.T) {
	t.Parallel()
	const list = `[{"title": "A", "description": "x", "assignee": "writer", "forEach": {"input": "leads", "as": "lead", "maxItems": 2}}]`
	for _, text := range []string{`[1]`, `[1, 2, 3]`, `no list`} {
		for name, tt := range map[string]struct {
			assert []string
			plan   string
			calls  int
		}{
			"an assertion":  {[]string{"input leads never derives into coordinator"}, list, 2},
			"another stage": {nil, strings.Replace(list, "}}]", `}}, {"title": "B", "description": "y", "assignee": "writer", "dependsOn": [{"task": "A", "need": ["/x"]}]}]`, 1), 2},
		} {
			var d planned
			_, _ = d.team(t, []string{tt.plan, otherPlan}, []string{yes}, func(c *team.Config) {
				c.Coordinator.MayPlan, c.Coordinator.MayGrant = synth.Constructs{ForEach: true}, synth.Grants{Inputs: true}
			}).RunTeam(t.Context(), team.Goal{Text: planGoal}, &team.RunOptions{Inputs: []team.Input{{Name: "leads", Text: text}}, Assert: tt.assert})
			require.Len(t, d.coordinator, tt.calls, "%s: %s", name, text)
		}
	}
}

// Requirement: G56.
func TestAPlanHidesNoText(t *testing.T) {
	t.Parallel()
	var d planned
	plan := strings.Replace(onePlan, "offers.", "offers.\U000e0173\U000e0165", 1)
	_, err := d.team(t, []string{plan, plan}, []string{yes}).RunTeam(t.Context(), team.Goal{Text: planGoal}, nil)
	require.ErrorContains(t, err, "invisible character (U+E0173)")
	require.Empty(t, d.worked)
}
