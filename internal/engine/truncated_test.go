package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// saysTruncated reports whether the line before what from wrote says that it is truncated.
func saysTruncated(text, from string) bool {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[envelope ") && strings.Contains(line, `from "`+from+`"`) {
			return strings.Contains(line, ", truncated")
		}
	}
	return false
}

// TestTruncatedMarkSurvivesATranslation has a truncated answer translated into an
// excerpt, and into a summary by the reader's own agent, in a run, and from the cached
// answer in a resumed run and in one that reuses it.
func TestTruncatedMarkSurvivesATranslation(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("half an answer ", 90)
	for name, translation := range map[string]*handoff.Translation{"excerpt": {MaxTokens: 40}, "summary": {MaxTokens: 40, ByModel: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "maker", To: "reader", Mode: handoff.Full, Translate: translation}}}
			read := func(o *engine.RunOptions, second task.Spec) (*engine.Result, []prompt.Prompt) {
				d := newDesk()
				reader := member("reader", d.keeps(retells(says("in short"), says("done"))))
				reader.Version = "1"
				tm := governed(t, policy, engine.Member{Name: "maker", Agent: agent.New(cut(long), agent.Options{}), Backend: plan.Backend{Version: "1"}}, reader)
				res := run(t, tm, o, accepting("maker"), second)
				require.NoError(t, res.Err())
				return res, d.prompts["reader"]
			}
			journal := &memory{}
			second := spec("reader", "maker")
			res, prompts := read(&engine.RunOptions{RunID: "r", Journal: journal}, second)
			past, cached := journal.history(journal.len()), journal.exchanges()
			replay, asked := read(&engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, second)
			same(t, document(t, res), document(t, replay))
			require.Empty(t, asked)
			all := [][]prompt.Prompt{prompts}
			second.Description = "Do it otherwise." // so that its prompt is built and sent again
			for _, o := range []*engine.RunOptions{{RunID: "r", Journal: after(past)}, {Journal: &memory{others: cached}, Reuse: true}} {
				again, prompts := read(o, second)
				require.True(t, of(t, again, "maker").Truncated)
				all = append(all, prompts)
			}
			for _, prompts := range all {
				require.NotEmpty(t, prompts)
				for _, p := range prompts {
					require.True(t, saysTruncated(p.Text(), "maker"), p.Text())
				}
				require.NotContains(t, prompts[len(prompts)-1].Text(), long, "it was translated")
			}
		})
	}
}

// TestTruncatedResultIsATruncatedInput has a run take the truncated result of an earlier
// run as an input, and resume, replay and reuse that run.
func TestTruncatedResultIsATruncatedInput(t *testing.T) {
	t.Parallel()
	first := run(t, newTeam(t, engine.Member{Name: "maker", Agent: agent.New(cut("half a draft"), agent.Options{})}), nil, accepting("maker"))
	kept := gate.RecordOf(of(t, first, "maker").Envelope) // as a journal stores it
	e, err := kept.Envelope()
	require.NoError(t, err)
	require.NoError(t, e.Genuine())
	read := func(o *engine.RunOptions, description string) (*engine.Result, string) {
		d := newDesk()
		reader := member("reader", d.keeps(says("done")))
		reader.Version = "1"
		o.Inputs = []engine.Input{{Name: "draft", Envelope: e}}
		s := readerOf(task.Use{Name: "draft"})
		s.Description = description
		res := run(t, newTeam(t, reader), o, s)
		require.NoError(t, res.Err())
		return res, d.of("reader")
	}
	journal := &memory{}
	res, text := read(&engine.RunOptions{RunID: "r", Journal: journal}, "Read.")
	require.True(t, saysTruncated(text, "user"), text)
	require.False(t, of(t, res, "reader").Truncated, "its own answer is whole")
	past := journal.history(journal.len())
	replay, text := read(&engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, "Read.")
	require.Empty(t, text)
	same(t, document(t, res), document(t, replay))
	for _, o := range []*engine.RunOptions{{RunID: "r", Journal: after(past)}, {Journal: &memory{others: journal.exchanges()}, Reuse: true}} {
		_, text := read(o, "Read.")
		require.Empty(t, text, "the answer is cached")
	}
	for _, o := range []*engine.RunOptions{{RunID: "r", Journal: after(past)}, {Journal: &memory{others: journal.exchanges()}, Reuse: true}} {
		_, text := read(o, "Read otherwise.")
		require.True(t, saysTruncated(text, "user"), text)
	}
	whole, err := envelope.New(func() envelope.Header { h := e.Header(); h.Truncated = false; return h }(), envelope.Text("half a draft"))
	require.NoError(t, err)
	e = whole
	asked := &audience{}
	_, text = read(asked.with(engine.RunOptions{RunID: "r", Journal: after(past)}), "Read.")
	require.NotEmpty(t, text, "a result without the mark makes another prompt")
	require.False(t, saysTruncated(text, "user"), text)
	require.Len(t, asked.only(event.AgentStart), 1)
}
