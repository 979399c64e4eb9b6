package engine_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

const wrongNumber = `/n: found "forty-two"; expected type "integer"`

// refused are the answers of a task that were not accepted, in short.
func refused(list []engine.RejectedAnswer) (out [][2]string) {
	for _, a := range list {
		out = append(out, [2]string{a.Text, a.Problem})
	}
	return out
}

// TestRejectedAnswersAreKept checks that the result and the journal have each answer that
// was not accepted, with the message for its agent, whether it was corrected or not, and
// that a replay has them again.
func TestRejectedAnswersAreKept(t *testing.T) {
	t.Parallel()
	finished := func(text, reason string) llm.Model {
		return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			return llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: reason}}, nil
		})
	}
	const noJSON = "not one strict JSON value: there is none in the text"
	tests := []struct {
		name  string
		agent engine.Agent
		code  string
		want  [][2]string
	}{
		{"corrected", agent.New(&corrected{first: unfit, then: right}, agent.Options{}), "", [][2]string{{unfit, wrongNumber}}},
		{"not corrected", agent.New(&corrected{first: unfit, then: `{"n": "x"}`}, agent.Options{}), "OUTPUT_SCHEMA_INVALID", [][2]string{{unfit, wrongNumber}, {`{"n": "x"}`, `/n: found "x"; expected type "integer"`}}},
		{"no JSON", agent.New(&corrected{first: "I will not.", then: "No."}, agent.Options{}), "OUTPUT_SCHEMA_INVALID", [][2]string{{"I will not.", noJSON}, {"No.", noJSON}}},
		{"of an agent in Go", engine.AgentFunc(says(unfit)), "OUTPUT_SCHEMA_INVALID", [][2]string{{unfit, wrongNumber}}},
		{"truncated", agent.New(finished(`{"n": 4`, "length"), agent.Options{}), "ANSWER_TRUNCATED", [][2]string{{`{"n": 4`, ""}}},
		{"filtered", agent.New(finished("half", "content_filter"), agent.Options{}), "ANSWER_FILTERED", [][2]string{{"half", ""}}},
		{"nothing", agent.New(finished("", "content_filter"), agent.Options{}), "ANSWER_FILTERED", nil},
		{"accepted", engine.AgentFunc(says(right)), "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tm := newTeam(t, engine.Member{Name: "count", Agent: tt.agent, Backend: plan.Backend{Version: "1"}}, engine.Member{Name: "read", Agent: engine.AgentFunc(says("fine")), Backend: plan.Backend{Version: "1"}})
			journal := &memory{}
			res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, counting()...)
			got := of(t, res, "count")
			require.Equal(t, tt.want, refused(got.Rejected))
			code := ""
			if got.Error != nil {
				code = got.Error.Code
				require.NotContains(t, got.Error.Message, "forty-two")
			}
			require.Equal(t, tt.code, code)
			require.Equal(t, len(tt.want) > 0, len(journal.refusedTexts()) > 0)
			past := journal.history(journal.len())
			again := run(t, tm, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, counting()...)
			require.Equal(t, got.Rejected, of(t, again, "count").Rejected)
			if len(tt.want) == 0 {
				return
			}
			doc := struct {
				Tasks []struct {
					Rejected []engine.RejectedAnswer `json:"rejected"`
				} `json:"tasks"`
			}{}
			require.NoError(t, json.Unmarshal([]byte(document(t, res)), &doc))
			require.Equal(t, got.Rejected, doc.Tasks[0].Rejected)
		})
	}
}

// refusedTexts returns the answers that were not accepted, of all exchanges.
func (m *memory) refusedTexts() (texts []string) {
	for _, x := range m.exchanges() {
		if x.Refused != nil {
			texts = append(texts, x.Refused.Text)
		}
	}
	return texts
}

// TestGuardFailuresAreFinal checks that an answer which fails a guard is neither
// corrected nor tried again, whoever gave it, and that its reader does not run.
func TestGuardFailuresAreFinal(t *testing.T) {
	t.Parallel()
	const verdict = `{"verdict": "reject"}`
	judge := retrying("judge", 2)
	judge.RetryDelay, judge.OutputSchema = task.NoDelay, json.RawMessage(`{"type":"object","properties":{"verdict":{"type":"string","const":"approve"}},"required":["verdict"]}`)
	calls := 0
	model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		calls++
		return llm.Response{Text: verdict}, nil
	})
	for name, does := range map[string]engine.Agent{
		"a model": agent.New(model, agent.Options{}),
		"an agent in Go": engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			calls++
			return agent.Reply{Text: verdict}, nil
		}),
	} {
		calls = 0
		res := run(t, newTeam(t, engine.Member{Name: "judge", Agent: does}, member("publish", says("out"))), nil, judge, spec("publish", "judge"))
		require.Equal(t, 1, calls, name)
		require.Equal(t, []task.Status{task.Failed, task.Failed}, statuses(res), name)
		got := of(t, res, "judge")
		require.Equal(t, "GUARD_FAILED", got.Error.Code, name)
		require.ErrorIs(t, got.Error, codes.Condition(codes.Guard), name)
		require.Equal(t, `the answer fails a guard of the output schema: the schema at /properties/verdict demands const "approve"`, got.Error.Message, name)
		require.Equal(t, [][2]string{{verdict, `/verdict: found "reject"; expected const "approve"`}}, refused(got.Rejected), name)
		require.Equal(t, "DEPENDENCY_FAILED", of(t, res, "publish").Error.Code, name)
	}
	m := &corrected{first: `{"verdict": 7}`, then: verdict} // another fault is corrected, and the verdict not after that
	res := run(t, newTeam(t, engine.Member{Name: "judge", Agent: agent.New(m, agent.Options{})}), nil, judge)
	require.Equal(t, "GUARD_FAILED", of(t, res, "judge").Error.Code)
	require.Equal(t, 2, m.count())
}

// TestRejectedAnswersAboveTheCaller checks that a caller below the label of a task
// does not learn that an answer was rejected, and that a rule for the caller
// counts as it does for results.
//
// Requirement: G47.
func TestRejectedAnswersAboveTheCaller(t *testing.T) {
	t.Parallel()
	const canary = "canary-4417"
	m := &corrected{first: `{"n": "` + canary + `"}`, then: right}
	secret := counting()
	secret[0].Classification = label.Secret
	journal, a := &memory{}, &audience{}
	o := a.options()
	o.Journal = journal
	tm := newTeam(t, engine.Member{Name: "count", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret}, member("read", says("fine")))
	res := run(t, tm, o, secret[0], spec("read"))
	require.Empty(t, of(t, res, "count").Rejected)
	require.NotContains(t, told(t, res, a), canary)

	for _, mode := range []handoff.Mode{handoff.Scoped, handoff.Minimal} {
		rule := handoff.PairRule{ID: "count-user", From: "count", To: "user", Mode: mode}
		if mode == handoff.Scoped {
			rule.Allow = []task.Path{"/n"}
		}
		scoped, err := engine.New(engine.Config{
			Agents: []engine.Member{{Name: "count", Agent: agent.New(&corrected{first: canary, then: right}, agent.Options{})}, member("read", says("fine"))},
			Policy: &handoff.Policy{Rules: []handoff.PairRule{rule}},
		})
		require.NoError(t, err)
		require.Empty(t, of(t, run(t, scoped, nil, counting()...), "count").Rejected)
	}
}
