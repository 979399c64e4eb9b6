package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A viewer keeps what a stream shows of each task, by title.
type viewer struct {
	mu     sync.Mutex
	shown  map[string]string
	resets int
	done   map[string]bool
	more   chan struct{} // capacity 1; something was shown
}

func newViewer() *viewer {
	return &viewer{shown: map[string]string{}, done: map[string]bool{}, more: make(chan struct{}, 1)}
}

func (v *viewer) take(d event.Delta) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d.Reset {
		v.shown[d.Title] = ""
		v.resets++
	}
	v.shown[d.Title] += d.Text
	v.done[d.Title] = d.Done
	if d.Text != "" {
		select {
		case v.more <- struct{}{}:
		default:
		}
	}
}

// streams is an agent whose model streams the pieces of its reply. Before the piece "wait", it
// waits until the viewer was shown something; the piece is not part of the reply.
func streams(t *testing.T, v *viewer, o agent.Options, pieces ...string) *agent.LLM {
	return agent.New(writes(t, v, pieces...), o)
}

// writes is the model of such an agent.
func writes(t *testing.T, v *viewer, pieces ...string) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, _ llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		var text strings.Builder
		for _, piece := range pieces {
			if piece == "wait" {
				select {
				case <-v.more:
				case <-ctx.Done():
					return llm.Response{}, context.Cause(ctx)
				}
				continue
			}
			text.WriteString(piece)
			if emit != nil {
				require.NoError(t, emit(llm.Delta{Text: piece, Attempt: 1}))
			}
		}
		return llm.Response{Text: text.String(), CallInfo: llm.CallInfo{FinishReason: "stop"}}, nil
	})
}

// prose is a text in which nothing is redacted.
func prose(sentences int) string {
	return strings.Repeat("The river rises in the hills and runs to the sea. ", sentences) + "\n\n"
}

func streamOne(t *testing.T, v *viewer, a team.Agent, spec task.Spec, o team.RunOptions) (*team.Result, error) {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: a}}})
	require.NoError(t, err)
	spec.Title, spec.Description, spec.Assignee = "Write", "Write about rivers.", "writer"
	o.Stream = v.take
	return tm.RunTasks(t.Context(), []task.Spec{spec}, &o)
}

func TestStreamShowsTextBeforeItIsWhole(t *testing.T) {
	t.Parallel()
	v := newViewer()
	var decided []string
	res, err := streamOne(t, v, streams(t, v, agent.Options{}, prose(40), "wait", "It ends there."), task.Spec{}, team.RunOptions{
		Subscribers: []func(event.Event){func(e event.Event) {
			if h, ok := e.Data.(event.Handoff); ok && h.Kind == "stream" {
				decided = append(decided, string(h.Verdict))
			}
		}},
	})
	require.NoError(t, err)
	require.Equal(t, res.Tasks[0].Result, v.shown["Write"])
	require.Equal(t, prose(40)+"It ends there.", v.shown["Write"])
	require.True(t, v.done["Write"])
	require.Zero(t, v.resets)
	require.Len(t, decided, 1)
}

func TestStreamLeavesReasoningOut(t *testing.T) {
	t.Parallel()
	v := newViewer()
	var all strings.Builder
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: streams(t, v, agent.Options{}, "<thi", "nk>The user wants "+prose(40), "</think>", "\n\n"+prose(40), "wait", "End.")}}})
	require.NoError(t, err)
	_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer"}}, &team.RunOptions{Stream: func(d event.Delta) {
		all.WriteString(d.Text)
		v.take(d)
	}})
	require.NoError(t, err)
	require.Equal(t, prose(40)+"End.", all.String())
}

// A secret that is cut in two is not shown, nor its first half.
func TestStreamRedacts(t *testing.T) {
	t.Parallel()
	v := newViewer()
	key := "ghp_" + strings.Repeat("aB3dE6gH9", 4)
	res, err := streamOne(t, v, streams(t, v, agent.Options{}, prose(40), "wait", "The key is "+key[:9], key[9:]+" of the account.\n"), task.Spec{}, team.RunOptions{})
	require.NoError(t, err)
	require.Contains(t, res.Tasks[0].Result, "[REDACTED:token]")
	require.Equal(t, res.Tasks[0].Result, v.shown["Write"])
	require.Zero(t, v.resets)
}

func TestStreamShowsOnlyWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	low := label.Internal
	for name, tt := range map[string]struct {
		spec  task.Spec
		o     team.RunOptions
		rules []handoff.PairRule
	}{
		"above the caller":        {spec: task.Spec{Classification: label.Confidential}, o: team.RunOptions{UserAccepts: &low}},
		"a structured result":     {spec: task.Spec{OutputSchema: []byte(`{"type":"object"}`)}},
		"redacted for the caller": {rules: []handoff.PairRule{{From: "writer", To: "user", Redact: handoff.Redaction{Kinds: []redact.Kind{redact.Email}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewer()
			pieces := []string{prose(40), "End."}
			if tt.spec.OutputSchema != nil {
				pieces = []string{`{"text":"`, prose(40)[:1900], `"}`}
			}
			m := writes(t, v, pieces...)
			tm, err := team.New(team.Config{Policy: &handoff.Policy{Rules: tt.rules}, Agents: []team.Member{
				{Name: "writer", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret},
				{Name: "other", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "An answer."}, nil })},
			}})
			require.NoError(t, err)
			tt.o.Stream = v.take
			tt.spec.Title, tt.spec.Description, tt.spec.Assignee = "Write", "Write.", "writer"
			_, err = tm.RunTasks(t.Context(), []task.Spec{tt.spec, {Title: "Answer", Description: "Answer.", Assignee: "other"}}, &tt.o)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"Answer": "An answer."}, v.shown)
		})
	}
}

// A text that is an object or a list is redacted by its structure, so it is shown once it is whole.
func TestStreamHoldsValues(t *testing.T) {
	t.Parallel()
	v := newViewer()
	var pieces []string
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: streams(t, v, agent.Options{}, "``", "`json\n", `{"password": "`, strings.Repeat("tide", 500), `"}`, "\n```")}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer"}}, &team.RunOptions{Stream: func(d event.Delta) { pieces = append(pieces, d.Text) }})
	require.NoError(t, err)
	require.Equal(t, []string{res.Tasks[0].Result}, pieces)
	require.Contains(t, pieces[0], "[REDACTED:password]")
}

// What a failed attempt wrote is taken back.
func TestStreamBeginsAgain(t *testing.T) {
	t.Parallel()
	errBreaks := errors.New("the connection broke")
	for name, tt := range map[string]struct {
		agent func(v *viewer, broken llm.Model) *agent.LLM
		spec  task.Spec
	}{
		"with a fallback": {func(v *viewer, broken llm.Model) *agent.LLM {
			return agent.New(broken, agent.Options{Retry: llm.RetryOptions{Extra: -1}, Fallback: []llm.Model{writes(t, v, "Second. ", prose(40), "wait")}})
		}, task.Spec{}},
		"with another attempt": {func(v *viewer, broken llm.Model) *agent.LLM {
			calls := 0
			good := writes(t, v, "Second. ", prose(40), "wait")
			return agent.New(llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
				if calls++; calls == 1 {
					return broken.Call(ctx, r, emit)
				}
				return good.Call(ctx, r, emit)
			}), agent.Options{Retry: llm.RetryOptions{Extra: -1}})
		}, task.Spec{MaxRetries: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewer()
			broken := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
				if _, err := writes(t, v, "First. ", prose(40), "wait").Call(ctx, r, emit); err != nil {
					return llm.Response{}, err
				}
				return llm.Response{}, &llm.Error{Kind: "server error", Status: 503, Err: errBreaks}
			})
			_, err := streamOne(t, v, tt.agent(v, broken), tt.spec, team.RunOptions{})
			require.NoError(t, err)
			require.Equal(t, "Second. "+prose(40), v.shown["Write"])
			require.Equal(t, 1, v.resets)
		})
	}
}

// Only the text that the last attempt leaves counts: a task that fails has none.
func TestStreamOfAFailedTaskEndsEmpty(t *testing.T) {
	t.Parallel()
	v := newViewer()
	m := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		res, err := writes(t, v, prose(40), "wait").Call(ctx, r, emit)
		res.FinishReason = "length"
		return res, err
	})
	_, err := streamOne(t, v, agent.New(m, agent.Options{}), task.Spec{}, team.RunOptions{})
	require.Error(t, err)
	require.Empty(t, v.shown["Write"])
	require.False(t, v.done["Write"])
}

// An agent in Go may call models for anything, so that only its result is shown.
func TestStreamOfAnAgentInGo(t *testing.T) {
	t.Parallel()
	v := newViewer()
	inner := streams(t, v, agent.Options{}, prose(40))
	_, err := streamOne(t, v, team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		_, err := inner.Run(ctx, p)
		return agent.Reply{Text: "Rivers run."}, err
	}), task.Spec{}, team.RunOptions{})
	require.NoError(t, err)
	require.Equal(t, "Rivers run.", v.shown["Write"])
	require.Zero(t, v.resets)
}

// Whoever takes nothing, or panics, does not hold up the run.
func TestStreamThatIsNotTaken(t *testing.T) {
	t.Parallel()
	v := newViewer()
	block := make(chan struct{})
	v.more <- struct{}{}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: streams(t, v, agent.Options{}, prose(40), "End.")}}})
	require.NoError(t, err)
	var specs []task.Spec
	for i := range 20 {
		specs = append(specs, task.Spec{Title: fmt.Sprint("Write ", i), Description: "Write.", Assignee: "writer"})
	}
	taken := 0
	ended := make(chan struct{})
	_, err = tm.RunTasks(t.Context(), specs, &team.RunOptions{
		Subscribers: []func(event.Event){func(e event.Event) {
			if e.Type == "all_complete" {
				close(block)
			}
		}},
		Stream: func(d event.Delta) {
			<-block
			if taken++; d.Done && taken > 1 {
				select {
				case <-ended:
				default:
					close(ended)
				}
				panic("a bug of the caller")
			}
		},
	})
	require.NoError(t, err)
	<-ended
	require.LessOrEqual(t, taken, 21, "what waits of one text is one piece")
}

// What a model says before it calls a tool is taken back when it goes on with the results.
func TestStreamOfAConversation(t *testing.T) {
	t.Parallel()
	v := newViewer()
	look, err := tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "The river is wide.", nil }, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	first, last := writes(t, v, prose(40), "wait"), writes(t, v, "It is wide. ", prose(40), "wait")
	m := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		if len(r.Messages) > 1 {
			return last.Call(ctx, r, emit)
		}
		res, err := first.Call(ctx, r, emit)
		res.FinishReason, res.ToolCalls = "tool_calls", []llm.ToolCall{{ID: "1", Name: "look", Arguments: "{}"}}
		return res, err
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{look}}}})
	require.NoError(t, err)
	_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Write", Description: "Write.", Assignee: "writer", Tools: []string{"look"}}}, &team.RunOptions{Stream: v.take})
	require.NoError(t, err)
	require.Equal(t, "It is wide. "+prose(40), v.shown["Write"])
	require.True(t, v.done["Write"])
	require.Equal(t, 1, v.resets)
}

// The caller sees nothing before the decision about it is durable, and the stream leaves no trace of
// its own in the journal but that.
func TestStreamIsRecorded(t *testing.T) {
	t.Parallel()
	j, err := journal.Open(t.TempDir()+"/runs.db", journal.Options{})
	require.NoError(t, err)
	v := newViewer()
	res, err := streamOne(t, v, streams(t, v, agent.Options{}, prose(40), "wait", "End."), task.Spec{}, team.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	require.Equal(t, res.Tasks[0].Result, v.shown["Write"])
	again := newViewer()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: streams(t, again, agent.Options{})}}})
	require.NoError(t, err)
	replayed, err := tm.Replay(t.Context(), "r", &team.RunOptions{Journal: j, Stream: again.take, Tasks: []task.Spec{{Title: "Write", Description: "Write about rivers.", Assignee: "writer"}}})
	require.NoError(t, err)
	require.Equal(t, res.Tasks[0].Result, replayed.Tasks[0].Result)
	require.Equal(t, v.shown, again.shown, "a stored answer is shown as one piece")
	require.NoError(t, j.Close())
}

// A desk is a team whose first agent streams a text and transfers its conversation, and whose second one streams the
// answer. Of those that shown names, the viewer must be shown something before their turns end.
func desk(t *testing.T, v *viewer, policy *handoff.Policy, level label.Classification, shown [2]bool) *team.Team {
	t.Helper()
	look, err := tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Options{Effect: tool.None, Produces: &level})
	require.NoError(t, err)
	said := func(text string, shown bool) llm.Model {
		pieces := []string{text, prose(40), "wait"}
		if !shown {
			pieces = pieces[:2]
		}
		return writes(t, v, pieces...)
	}
	first := llm.ModelFunc(func(ctx context.Context, r llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		res, err := said("Billing knows. ", shown[0]).Call(ctx, r, emit)
		res.Reasoning = "CANARY-THOUGHT"
		res.FinishReason, res.ToolCalls = "tool_calls", []llm.ToolCall{{ID: "1", Name: "transfer_to_billing", Arguments: `{"reason":"CANARY-REASON"}`}}
		return res, err
	})
	tm, err := team.New(team.Config{
		Policy: policy,
		Edges:  []handoff.Edge{{From: "triage", To: "billing", Transfer: true}},
		Agents: []team.Member{
			{Name: "triage", Agent: agent.New(first, agent.Options{}), Accepts: label.Confidential},
			{Name: "billing", Agent: agent.New(said("It is paid. ", shown[1]), agent.Options{}), Accepts: label.Confidential, Tools: []*tool.Tool{look}},
			{Name: "other", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "An answer."}, nil })},
		},
	})
	require.NoError(t, err)
	return tm
}

// What the first holder of a conversation wrote is taken back when the next one begins, whose text has a decision of its
// own. A holder whose text, or whose part in the result, is withheld from the caller shows nothing.
func TestStreamOfATransferredConversation(t *testing.T) {
	t.Parallel()
	minimal := func(from string) *handoff.Policy {
		return &handoff.Policy{Rules: []handoff.PairRule{{From: from, To: "user", Mode: handoff.Minimal}}}
	}
	low := label.Internal
	both := []string{"triage", "triage > billing"}
	for name, tt := range map[string]struct {
		policy  *handoff.Policy
		tool    label.Classification // of what a tool of the second returns
		o       team.RunOptions
		shown   [2]bool // of each holder
		decided []string
	}{
		"both":                            {shown: [2]bool{true, true}, decided: both},
		"not the text of the second":      {policy: minimal("billing"), shown: [2]bool{true, false}, decided: both[:1]},
		"not the text of the first":       {policy: minimal("triage")},
		"a tool of the second reads more": {tool: label.Confidential, o: team.RunOptions{UserAccepts: &low}},
		"a tool of the second reads less": {tool: label.Internal, o: team.RunOptions{UserAccepts: &low}, shown: [2]bool{true, true}, decided: both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewer()
			tm := desk(t, v, tt.policy, tt.tool, tt.shown)
			var all strings.Builder
			writers, decided := map[string]string{}, []string(nil)
			tt.o.Stream = func(d event.Delta) {
				if d.Title == "Help" {
					all.WriteString(d.Text)
					writers[d.Agent] += d.Text
					v.take(d)
				}
			}
			tt.o.Subscribers = []func(event.Event){func(e event.Event) {
				if h, ok := e.Data.(event.Handoff); ok && h.Kind == "stream" {
					decided = append(decided, h.From)
				}
			}}
			res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Help", Description: "Help.", Assignee: "triage"}, {Title: "Answer", Description: "Answer.", Assignee: "other"}}, &tt.o)
			require.NoError(t, err)
			require.NotContains(t, all.String(), "CANARY")
			require.Equal(t, tt.shown[0], writers["triage"] != "", writers)
			require.True(t, strings.HasPrefix("Billing knows. "+prose(40), writers["triage"]), "what was not handed over when it is taken back never is: %v", writers)
			require.Equal(t, tt.shown[1], writers["billing"] != "", writers)
			want := ""
			if tt.shown[1] {
				want = "It is paid. " + prose(40)
			}
			require.Equal(t, want, v.shown["Help"])
			require.Equal(t, tt.shown[1], v.done["Help"])
			require.Equal(t, tt.shown[0], v.resets == 1)
			require.Equal(t, tt.decided, decided)
			if tt.shown[1] {
				require.Equal(t, res.Tasks[0].Result, v.shown["Help"])
			}
		})
	}
}
