package engine_test

import (
	"context"
	"testing"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/stretchr/testify/require"
)

// The label of a run counts everything that its caller may see, also what no agent reads.
func TestTheLabelOfARunCountsAllThatItsCallerMaySee(t *testing.T) {
	t.Parallel()
	secretive := label.Confidential
	search := &tool.Tool{Name: "search", Description: "Search.", Parameters: []byte(`{"type":"object","properties":{}}`), Options: tool.Options{Accepts: label.Internal, Produces: &secretive},
		Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}
	plans := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		if p.Receipt().Session == "r/plan" {
			return agent.Reply{Text: `[{"title":"One","description":"Do it.","assignee":"worker"}]`}, nil
		}
		return agent.Reply{Text: "done"}, nil
	})
	for name, tt := range map[string]struct {
		task   func(*task.Spec)
		other  func(*engine.Member)
		run    func(*engine.RunOptions)
		start  func(context.Context, *engine.Team, *engine.RunOptions) error // nil means to run the tasks
		wanted label.Classification
	}{
		"nothing":       {wanted: label.Internal},
		"a public task": {task: func(s *task.Spec) { s.Classification = label.Public }, wanted: label.Internal},
		"a task":        {task: func(s *task.Spec) { s.Classification = label.Confidential }, wanted: label.Confidential},
		"an unused input": {run: func(o *engine.RunOptions) {
			o.Inputs = []engine.Input{{Name: "in", Text: "x", Classification: label.Confidential}}
		}, wanted: label.Confidential},
		"an unread message": {run: func(o *engine.RunOptions) {
			o.Messages = []plan.Message{{From: "user", To: "other", Text: "x", Classification: label.Confidential}}
		}, wanted: label.Confidential},
		"a tool without a task": {other: func(m *engine.Member) { m.Tools = []*tool.Tool{search} }, wanted: label.Confidential},
		"a memory":              {run: func(o *engine.RunOptions) { o.Memory = teammemory.NewMapStore() }, wanted: label.Confidential},
		"a goal": {start: func(ctx context.Context, tm *engine.Team, o *engine.RunOptions) error {
			_, err := tm.RunTeam(ctx, engine.Goal{Text: "x", Classification: label.Internal}, o)
			return err
		}, wanted: label.Confidential},
		"the text of a chat": {start: func(ctx context.Context, tm *engine.Team, o *engine.RunOptions) error {
			s, err := tm.NewSession(engine.SessionOptions{ID: "r", Agent: "worker"})
			if err == nil {
				_, err = s.Send(ctx, "x", label.Confidential, o)
			}
			return err
		}, wanted: label.Confidential},
		"an earlier turn that cannot be read": {start: func(ctx context.Context, tm *engine.Team, o *engine.RunOptions) error {
			o.Turn = &record.SessionTurn{Session: "r", Turn: 2, Agent: "worker", Label: label.Internal, Text: "x"}
			o.Conversation = []plan.ConversationText{{Turn: 1, From: "user"}, {Turn: 1, From: "worker"}}
			engine.SetTurn(o)
			_, err := tm.RunTasks(ctx, o.Tasks, o)
			return err
		}, wanted: label.Internal},
		"a caller below": {
			task: func(s *task.Spec) { s.Classification = label.Confidential }, run: func(o *engine.RunOptions) { o.UserAccepts = new(label.Public) }, wanted: label.Public,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			does := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "done"}, nil })
			other := engine.Member{Name: "other", Agent: does, Accepts: label.Confidential}
			one := task.Spec{Title: "One", Assignee: "worker", Description: "Do it."}
			j := journal.InMemory(journal.Options{})
			defer j.Close() //nolint:errcheck // in memory
			o := &engine.RunOptions{RunID: "r", Journal: j}
			if tt.task != nil {
				tt.task(&one)
			}
			if tt.other != nil {
				tt.other(&other)
			}
			if tt.run != nil {
				tt.run(o)
			}
			tm, err := engine.New(engine.Config{Coordinator: &engine.Coordinator{Agent: plans}, Agents: []engine.Member{{Name: "worker", Agent: does, Accepts: label.Confidential}, other}})
			require.NoError(t, err)
			tasks := []task.Spec{one, {Title: "Open", Assignee: "worker", Description: "Say it.", Classification: label.Public}}
			if tt.start == nil {
				_, err = tm.RunTasks(t.Context(), tasks, o)
			} else {
				err = tt.start(t.Context(), tm, o)
			}
			require.NoError(t, err)
			level, err := j.Label(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, tt.wanted, level)
		})
	}
}
