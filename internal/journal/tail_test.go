package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// looking is a team in which maker, who accepts so much, calls a tool and sends reader a message.
func looking(t *testing.T, accepts label.Classification, lowered ...handoff.Declassifier) *engine.Team {
	look := &tool.Tool{
		Name: "look", Parameters: json.RawMessage(`{"type":"object"}`), Options: tool.Options{Effect: tool.None, Accepts: label.Secret, Produces: new(label.Public)},
		Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen"}, nil },
	}
	maker := ver{func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if len(p.Messages()) == 1 {
			return agent.Reply{ToolCalls: []llm.ToolCall{{Name: "look", Arguments: `{}`}}, Usage: llm.Usage{InputTokens: 17, OutputTokens: 3}, Turns: 1}, nil
		}
		return agent.Reply{Text: strings.Repeat("m", 77), Usage: llm.Usage{InputTokens: 23, OutputTokens: 5}, Turns: 1}, engine.OutboxFrom(ctx).Send("reader", "hello")
	}}
	reader := ver{func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "read", Usage: llm.Usage{InputTokens: 31, OutputTokens: 7}, Turns: 1}, nil
	}}
	tm, err := engine.New(engine.Config{
		Agents: []engine.Member{{Name: "maker", Agent: maker, Accepts: accepts, Tools: []*tool.Tool{look}}, {Name: "reader", Agent: reader, Accepts: label.Secret}},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{
			exact("user", "maker"), exact("maker", "reader"), exact("reader", "maker"), exact("maker", "user"), exact("reader", "user"), exact("maker", "tool:look"), exact("tool:look", "maker"),
		}, Declassify: lowered},
		Edges: []handoff.Edge{{From: "maker", To: "reader"}},
	})
	require.NoError(t, err)
	return tm
}

// tailOf returns all events of a run that a journal has.
func tailOf(t *testing.T, j *journal.Journal, run string) (list []event.Event) {
	t.Helper()
	tail, err := j.Tail(t.Context(), run)
	require.NoError(t, err)
	for state := journal.TailReads; state == journal.TailReads; {
		var events []event.Event
		events, state, err = tail.Next(t.Context())
		require.NoError(t, err)
		list = append(list, events...)
	}
	return list
}

// withoutSizes returns events as JSON, without what depends on the sizes of what agents read and wrote.
func withoutSizes(t *testing.T, list []event.Event) []string {
	t.Helper()
	out := make([]string, len(list))
	for i, e := range list {
		e.Receipt, e.Call, e.Bytes, e.Work = nil, nil, 0, event.Work{}
		if h := e.Handoff; h != nil {
			low := record.LowerHandoff(h, label.Public)
			low.CallerSees = false
			e.Handoff = &low
		}
		text, err := json.Marshal(e)
		require.NoError(t, err)
		out[i] = string(text)
	}
	return out
}

// A reader of the journal gets the events of a run that reads secrets, as its subscribers did who may see these. Without
// the key, their sizes are left out: the journal has classes of them, which are no sizes.
//
// Requirement: G42.
func TestEventsOfSecretsHaveExactSizesOrNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{Key: oneKey})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	tm := looking(t, label.Secret)
	var emitted []event.Event
	res, err := tm.RunTasks(t.Context(), []task.Spec{
		{Title: "make", Description: "Make.", Assignee: "maker", Uses: []task.Use{{Name: "pin"}}},
		{Title: "read", Description: "Read.", Assignee: "reader", DependsOn: []task.Ref{{Task: "make"}}},
	}, &engine.RunOptions{
		RunID: "r1", Journal: journaltest.Opened(r), UserAccepts: new(label.Secret), Bus: tm.NewBus(),
		Inputs:      []engine.Input{{Name: "pin", Text: "4711", Classification: label.Secret}},
		Subscribers: []func(event.Event){func(e event.Event) { emitted = append(emitted, e) }},
	})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
	for name, key := range map[string][]byte{"with the key": oneKey, "without it": nil} {
		j, err := journal.Open(path, journal.Options{Key: key, ReadOnly: true})
		require.NoError(t, err)
		stored := tailOf(t, j, "r1")
		require.NoError(t, j.Close())
		require.Equal(t, withoutSizes(t, emitted), withoutSizes(t, stored), name)
		ends := 0
		for i, e := range stored {
			of := &emitted[i]
			require.Contains(t, []int{0, of.Bytes}, e.Bytes, "%s: %+v", name, e)
			switch {
			case e.Type == event.AgentStart && key != nil:
				require.Equal(t, of.Bytes, e.Bytes)
			case e.Type == event.AgentComplete && key != nil:
				ends++
				require.Equal(t, []any{of.Bytes, of.Usage(), of.Partial}, []any{e.Bytes, e.Usage(), e.Partial})
			case of.Input > 0 && (key == nil || e.Type == event.TaskComplete): // its line has no text beside that is encrypted
				ends++
				require.True(t, e.Partial, "%s: %+v", name, e)
				fallthrough
			case of.Input == 0:
				require.Equal(t, llm.Usage{}, e.Usage(), "%s: %+v", name, e)
			}
		}
		require.GreaterOrEqual(t, ends, 5, name)
	}
}

// A cutLog is a log whose process is killed before it records the end of a call.
type cutLog struct {
	record.Log
	agent string // of the call
}

func (l *cutLog) Append(entries []record.Entry, done func(error)) {
	i := slices.IndexFunc(entries, func(e record.Entry) bool { return e.Exchange != nil && e.Exchange.Agent == l.agent || l.agent == "" })
	if i < 0 {
		l.Log.Append(entries, done)
		return
	}
	l.agent = "" // nothing more is recorded
	l.Log.Append(entries[:i], func(error) { done(errors.New("the process was killed")) })
}

// A process can be killed between the decisions about a prompt, which hide its task, and a call. The next process knows no
// decisions of those before it, and its subscribers and readers of the journal get the same events of the task.
func TestEventsAfterAResumeAreTheSameForAll(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		defer j.Close() //nolint:errcheck // it ends with the test
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		tm := looking(t, label.Internal, handoff.Declassifier{
			Entry: handoff.Entry{Name: "lowered", From: "reader", To: "maker", Reason: "a test"}, Paths: []task.Path{task.Whole}, LowerTo: label.Public, UnsafeText: true,
		})
		specs := []task.Spec{
			{Title: "read", Description: "Read.", Assignee: "reader", Classification: label.Confidential},
			{Title: "make", Description: "Make.", Assignee: "maker", Classification: label.Public, DependsOn: []task.Ref{{Task: "read"}}},
			{Title: "check", Description: "Check.", Assignee: "reader", Classification: label.Public, DependsOn: []task.Ref{{Task: "make"}}},
		}
		first, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{
			RunID: "r1", Journal: journaltest.Opened(&cutLog{r, "maker"}), UserAccepts: new(label.Internal),
			Recorder: func(_ context.Context, p record.Prompt) error {
				if p.Prompt != nil && p.Prompt.Receipt.Agent == "maker" {
					return errors.New("the disk is full") // so its decisions are recorded, and no call
				}
				return nil
			},
		})
		require.NoError(t, err)
		require.ErrorIs(t, first.JournalErr, engine.ErrJournal)
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		before := len(tailOf(t, j, "r1"))

		specs[1].DependsOn = nil
		r, _, err = j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		var emitted []event.Event
		res, err := tm.Resume(t.Context(), "r1", &engine.RunOptions{
			Tasks: specs, Journal: journaltest.Opened(r), UserAccepts: new(label.Internal),
			Subscribers: []func(event.Event){func(e event.Event) { emitted = append(emitted, e) }},
		})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		stored := tailOf(t, j, "r1")[before:]
		require.Equal(t, withoutSizes(t, emitted), withoutSizes(t, stored))
		require.True(t, slices.ContainsFunc(stored, func(e event.Event) bool { return e.Type == event.ToolStart }), "its calls read nothing that is hidden")
	})
}
