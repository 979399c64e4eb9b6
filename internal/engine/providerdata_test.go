package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A signer is a model that signs each reply with calls. It notes what signatures came back: those of the
// first conversation that it began are 1.1, 1.2 and so on, and "-" is a message with calls and without one.
type signer struct {
	at    string
	reply func(turn int, r llm.Request) llm.Response
	plain bool // it signs nothing

	mu            sync.Mutex // guards the rest
	conversations int
	came          []string
}

func (s *signer) Endpoint() string { return s.at }

func (s *signer) Name() string { return "signer" }

// signed is what a provider adds to a reply with so many calls.
func (s *signer) signed(signature string, calls int) *llm.ProviderData {
	d := &llm.ProviderData{Endpoint: s.at, Model: "signer", Message: json.RawMessage(`{ "thought": "canary-thought <` + signature + `>" }`)}
	for i := range calls {
		d.Calls = append(d.Calls, llm.ProviderCall{
			ID: fmt.Sprintf("canary-id-%s-%d", signature, i), Members: json.RawMessage(`{"extra_content":{"a":"canary-extra"}}`), Function: json.RawMessage(`{"seal":"canary-seal"}`),
		})
	}
	return d
}

func (s *signer) Call(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var came []string
	conversation, turn := 0, 1
	for _, m := range r.Messages {
		if len(m.ToolCalls) == 0 {
			if m.Provider != nil {
				came = append(came, "beside no calls")
			}
			continue
		}
		turn++
		if m.Provider == nil {
			came = append(came, "-")
			continue
		}
		_, signature, _ := strings.Cut(string(m.Provider.Message), "<")
		signature, _, _ = strings.Cut(signature, ">")
		fmt.Sscanf(signature, "%d", &conversation)
		if want := s.signed(signature, len(m.ToolCalls)); m.Provider.Endpoint == s.at && !reflect.DeepEqual(want, m.Provider) {
			signature = "changed"
		}
		came = append(came, signature)
	}
	s.came = append(s.came, strings.Join(came, " "))
	if conversation == 0 {
		s.conversations++
		conversation = s.conversations
	}
	res := s.reply(turn, r)
	if res.Usage.OutputTokens < 0 {
		return llm.Response{}, &llm.Error{Kind: "unreachable", Endpoint: s.at}
	}
	if len(res.ToolCalls) > 0 && res.Provider == nil && !s.plain {
		res.Provider = s.signed(fmt.Sprintf("%d.%d", conversation, turn), len(res.ToolCalls))
	}
	return res, nil
}

// down is the reply of an endpoint that does not answer.
var down = llm.Response{Usage: llm.Usage{OutputTokens: -1}}

// looksUpSigned is a signer that calls the tool look once in so many turns, and then answers.
func looksUpSigned(turns int) *signer {
	return &signer{at: "https://signer.example/v1", reply: func(turn int, _ llm.Request) llm.Response {
		if turn <= turns {
			return llm.Response{ToolCalls: []llm.ToolCall{call("look", fmt.Sprintf(`{"n":%d}`, turn))}}
		}
		return llm.Response{Text: "done"}
	}}
}

func factTool(t testing.TB, o tool.Options) *tool.Tool {
	return newTool(t, "look", o, func(context.Context, map[string]any) (string, error) { return "a fact", nil })
}

// What a provider attached to its replies goes back to it in each later turn of the conversation, as it
// came. Nothing else has any of it: no result, event, record, trace or log; the receipts name the members.
//
// Requirement: G64.
func TestProviderDataGoesBackToItsConversationOnly(t *testing.T) {
	t.Parallel()
	s := looksUpSigned(3)
	var logs bytes.Buffer
	tm, err := engine.New(engine.Config{Agents: []engine.Member{clerk(s, factTool(t, noEffect))}, Logger: slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	var mu sync.Mutex
	var written, events bytes.Buffer
	var returned []prompt.Returned
	w := trace.NewWriter(&written, trace.Options{Name: "signed", Time: time.Now()})
	res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: &memory{}, Recorder: w.Record, Subscribers: []func(event.Event){w.Event, func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&events, "%+v\n", e)
		if e.Type == event.AgentStart && e.Receipt != nil {
			returned = append(returned, e.Receipt.Returned...)
		}
	}}}, errand())
	require.NoError(t, res.Err())
	_, err = w.Close(res, time.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"", "1.1", "1.1 1.2", "1.1 1.2 1.3"}, s.came)
	for i := range 3 {
		call := fmt.Sprintf("call_%d_1", i+1)
		require.Equal(t, []prompt.Returned{
			{Turn: i + 1, Members: []string{"thought"}}, {Turn: i + 1, Call: call, Members: []string{"extra_content"}}, {Turn: i + 1, Call: call, Members: []string{"seal"}},
		}, returned[3*i:3*i+3])
	}
	document, err := json.Marshal(res)
	require.NoError(t, err)
	for name, text := range map[string]string{"result": string(document) + fmt.Sprintf("%+v", res), "trace": written.String(), "log": logs.String(), "events": events.String()} {
		require.NotEmpty(t, text)
		require.NotContains(t, text, "canary", name)
	}
	require.Contains(t, written.String(), `"members":["thought"]`)
}

// Each attempt, round, task, holder, turn of a chat and policy begins a conversation, and gets nothing of
// another one. An answer that is corrected loses its own, and the turns before keep theirs.
//
// Requirement: G64.
func TestProviderDataIsOfOneConversation(t *testing.T) {
	t.Parallel()
	look := factTool(t, noEffect)
	t.Run("retry", func(t *testing.T) {
		t.Parallel()
		s, failed := looksUpSigned(2), false
		answer := s.reply
		s.reply = func(turn int, r llm.Request) llm.Response {
			if turn == 3 && !failed {
				failed = true
				return down
			}
			return answer(turn, r)
		}
		again := errand()
		again.MaxRetries, again.RetryDelay = 1, task.NoDelay
		require.NoError(t, run(t, toolTeam(t, s, look), nil, again).Err())
		require.Equal(t, []string{"", "1.1", "1.1 1.2", "", "2.1", "2.1 2.2"}, s.came)
	})
	t.Run("two tasks", func(t *testing.T) {
		t.Parallel()
		s := looksUpSigned(1)
		second := by("clerk", spec("second", "errand"))
		require.NoError(t, run(t, toolTeam(t, s, look), nil, errand(), second).Err())
		require.Equal(t, []string{"", "1.1", "", "2.1"}, s.came)
	})
	t.Run("rounds", func(t *testing.T) {
		t.Parallel()
		s := looksUpSigned(1)
		answer := s.reply
		s.reply = func(turn int, r llm.Request) llm.Response {
			res := answer(turn, r)
			if res.Text != "" {
				res.Text = `{"n":1}`
			}
			return res
		}
		round := errand()
		round.OutputSchema = []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		loop := task.Spec{Title: "rounds", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("errand", "/n", 3), Output: "errand", Tasks: []task.Spec{round}}}
		require.NoError(t, run(t, toolTeam(t, s, look), nil, loop).Err())
		require.Equal(t, []string{"", "1.1", "", "2.1"}, s.came)
	})
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		s := looksUpSigned(1)
		session, err := toolTeam(t, s, look).NewSession(engine.SessionOptions{Agent: "clerk"})
		require.NoError(t, err)
		for range 2 {
			_, err := session.Send(t.Context(), "Go.", label.Internal, nil)
			require.NoError(t, err)
		}
		require.Equal(t, []string{"", "1.1", "", "2.1"}, s.came)
	})
	t.Run("correction", func(t *testing.T) {
		t.Parallel()
		s := looksUpSigned(1)
		s.reply = func(turn int, r llm.Request) llm.Response {
			switch {
			case turn == 1:
				return llm.Response{ToolCalls: []llm.ToolCall{call("look", "{}")}}
			case r.Messages[len(r.Messages)-1].Role == llm.ToolResult:
				return llm.Response{Text: "not JSON", Provider: s.signed("9.9", 0)}
			}
			return llm.Response{Text: `{"n":1}`, Provider: s.signed("9.8", 0)}
		}
		shaped := errand()
		shaped.OutputSchema = []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
		require.NoError(t, run(t, toolTeam(t, s, look), nil, shaped).Err())
		require.Equal(t, []string{"", "1.1", "1.1"}, s.came)
	})
	t.Run("transfer", func(t *testing.T) {
		t.Parallel()
		one := &signer{at: "https://one.example/v1"}
		one.reply = func(turn int, r llm.Request) llm.Response {
			switch {
			case strings.Contains(r.Messages[0].Text, "back to you"):
				return llm.Response{Text: "done"}
			case turn == 1:
				return llm.Response{ToolCalls: []llm.ToolCall{call("look", "{}")}}
			}
			return llm.Response{ToolCalls: []llm.ToolCall{call("transfer_to_two", `{"reason":"it is yours"}`)}}
		}
		two := &signer{at: one.at, reply: func(turn int, _ llm.Request) llm.Response {
			if turn == 1 {
				return llm.Response{ToolCalls: []llm.ToolCall{call("look", "{}")}}
			}
			return llm.Response{ToolCalls: []llm.ToolCall{call("transfer_to_clerk", `{"reason":"back to you"}`)}}
		}}
		second := clerk(two, look)
		second.Name = "two"
		tm, err := engine.New(engine.Config{Agents: []engine.Member{clerk(one, look), second}, Edges: []handoff.Edge{{From: "clerk", To: "two", Transfer: true}, {From: "two", To: "clerk", Transfer: true}}})
		require.NoError(t, err)
		res := run(t, tm, nil, errand())
		require.NoError(t, res.Err())
		require.Equal(t, "done", res.Tasks[0].Result)
		require.Equal(t, []string{"", "1.1", ""}, one.came)
		require.Equal(t, []string{"", "1.1"}, two.came)
	})
	t.Run("fallback", func(t *testing.T) {
		t.Parallel()
		first, second := looksUpSigned(3), looksUpSigned(3)
		second.at = "https://second.example/v1"
		answer := first.reply
		first.reply = func(turn int, r llm.Request) llm.Response {
			if turn == 2 {
				return down
			}
			return answer(turn, r)
		}
		m := clerk(nil, look)
		m.Agent = agent.New(first, agent.Options{Retry: llm.RetryOptions{Extra: -1}, Fallback: []llm.Model{second}})
		require.NoError(t, run(t, newTeam(t, m), nil, errand()).Err())
		require.Equal(t, []string{"", "1.1", "1.1 1.2", "1.1 1.2 1.3"}, first.came, "each message keeps its own, and a model sends those of its endpoint")
		require.Equal(t, []string{"1.1"}, second.came)
	})
	t.Run("another policy", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s, steered := looksUpSigned(2), newSteered(t)
			slow := newTool(t, "look", noEffect, func(context.Context, map[string]any) (string, error) {
				time.Sleep(time.Minute)
				return "a fact", nil
			})
			after := errand()
			after.DependsOn = task.On("a")
			done := steered.replace(2.5, blocking("a", "clerk", "ssn"))
			res := run(t, governed(t, nil, steered.says("a"), clerk(s, slow)), steered.options(), spec("a"), after)
			require.NoError(t, <-done)
			require.NoError(t, res.Err())
			require.Equal(t, []string{"", "1.1", "", "2.1", "2.1 2.2"}, s.came)
		})
	})
}

// A process that resumes a run continues its conversation with what the provider needs, or does not
// continue it: no request has a part of the signatures, those of another attempt, or those of a policy
// that was replaced.
//
// Requirement: G64.
func TestProviderDataOfAResumedConversation(t *testing.T) {
	t.Parallel()
	lose := func(turn int) func(*record.History) {
		return func(h *record.History) {
			for i := range h.Log {
				for _, e := range []*record.AgentCall{h.Log[i].Turn, h.Log[i].Exchange} {
					if e != nil && e.Provider != nil && (turn == 0 || strings.HasSuffix(e.Part, fmt.Sprint("/turn/", turn))) {
						e.Provider = &record.ProviderData{Before: e.Provider.Before}
					}
				}
			}
		}
	}
	moved := func(h *record.History) {
		for i := range h.Log {
			if e := h.Log[i].Exchange; e != nil && e.Provider != nil {
				e.Provider.Before += "7"
			}
		}
	}
	governed := func(h *record.History) {
		for i := range h.Log {
			for _, e := range []*record.AgentCall{h.Log[i].Turn, h.Log[i].Exchange} {
				if e != nil && strings.HasSuffix(e.Part, "/turn/2") {
					e.Policy = "another"
				}
			}
		}
	}
	for name, tt := range map[string]struct {
		change func(*record.History)
		asked  int  // turns that are asked again, if all were answered
		fails  bool // with an external tool
	}{
		"kept": {func(*record.History) {}, 1, false}, "lost": {lose(0), 5, true}, "partly lost": {lose(3), 3, true}, "of another attempt": {moved, 4, true}, "by another policy": {governed, 4, true},
	} {
		for effect, o := range map[string]tool.Options{"no effect": noEffect, "external": {}} {
			t.Run(name+", "+effect, func(t *testing.T) {
				t.Parallel()
				first := looksUpSigned(4)
				whole, want := journaled(t, toolTeam(t, first, factTool(t, o)), errand())
				require.NoError(t, want.Err())
				calls, uncertain := 0, 0
				for n := range whole.len() {
					h := whole.history(n)
					if h.End = nil; len(h.Begins) == 0 || slices.ContainsFunc(h.Log, func(e record.Entry) bool { return e.Exchange != nil && e.Exchange.Part == "" }) {
						continue
					}
					h = clonedLog(h)
					tt.change(h)
					again := looksUpSigned(4)
					again.conversations = 1
					res := resumed(t, toolTeam(t, again, factTool(t, o)), h, errand())
					calls = max(len(again.came), 0)
					for _, came := range again.came {
						require.NotContains(t, came, "-", "after %d commits: %v", n, again.came)
						if parts := strings.Fields(came); len(parts) > 0 {
							conversation, _, _ := strings.Cut(parts[0], ".")
							for i, part := range parts {
								require.Equal(t, fmt.Sprintf("%s.%d", conversation, i+1), part, "after %d commits: %v", n, again.came)
							}
						}
					}
					if err := res.Err(); err != nil {
						require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "after %d commits", n)
						uncertain++
						continue
					}
					require.Equal(t, answers(want), answers(res))
				}
				if effect == "external" {
					require.Positive(t, uncertain)
				} else {
					require.Zero(t, uncertain)
					require.Equal(t, tt.asked, calls, "after the last turn was lost")
				}
			})
		}
	}
}

// A replay calls no model, so it needs nothing back. A run that repeats another one and asks for what is
// missing takes no turn of that one that has a signature.
func TestReplayNeedsNoProviderData(t *testing.T) {
	t.Parallel()
	whole, want := journaled(t, toolTeam(t, looksUpSigned(4), factTool(t, noEffect)), errand())
	require.NoError(t, want.Err())
	h := clonedLog(whole.history(whole.len()))
	for i := range h.Log {
		for _, e := range []*record.AgentCall{h.Log[i].Turn, h.Log[i].Exchange} {
			if e != nil && e.Provider != nil {
				e.Provider.Data = nil
			}
		}
	}
	s := looksUpSigned(4)
	res := run(t, toolTeam(t, s, factTool(t, noEffect)), &engine.RunOptions{RunID: "r", Journal: after(h), Replay: &engine.Replay{}}, errand())
	require.NoError(t, res.Err())
	require.Equal(t, answers(want), answers(res))
	require.Empty(t, s.came)

	h = interrupted(whole, func(e *record.Entry) bool { return e.Exchange != nil && e.Exchange.Part == "" })
	s.conversations = 1
	res = run(t, toolTeam(t, s, factTool(t, noEffect)), &engine.RunOptions{RunID: "r", Journal: after(h), Replay: &engine.Replay{Ask: true}}, errand())
	require.NoError(t, res.Err())
	require.Equal(t, []string{"", "2.1", "2.1 2.2", "2.1 2.2 2.3"}, s.came, "the answer has no signature")
}

// clonedLog returns a history whose entries of model calls can be changed.
func clonedLog(h *record.History) *record.History {
	out := *h
	out.Log = slices.Clone(h.Log)
	for i := range out.Log {
		for _, e := range []**record.AgentCall{&out.Log[i].Turn, &out.Log[i].Exchange} {
			if *e == nil {
				continue
			}
			if *e = new(**e); (*e).Provider != nil {
				(*e).Provider = new(*(*e).Provider)
			}
		}
	}
	return &out
}

// What a provider attaches has a limit for each turn and each conversation, whatever the model is.
func TestProviderDataIsBounded(t *testing.T) {
	t.Parallel()
	sized := func(n int) *llm.ProviderData {
		return &llm.ProviderData{Message: json.RawMessage(`{"thought":"` + strings.Repeat("x", n-len(`{"thought":""}`)) + `"}`)}
	}
	for name, tt := range map[string]struct {
		size, turns, asked int
		data               *llm.ProviderData
		want               string
	}{
		"the most of a turn":         {llm.MaxProviderData, 3, 4, nil, ""},
		"more than that":             {llm.MaxProviderData + 1, 3, 1, nil, "needs back with the calls of one turn has 262145 bytes, at most 262144"},
		"ten megabytes":              {10 << 20, 3, 1, nil, "at most 262144"},
		"the most of a conversation": {llm.MaxProviderData, 16, 17, nil, ""},
		"more than that, in turns":   {llm.MaxProviderData, 20, 17, nil, "has 4456448 bytes, at most 4194304"},
		"no object":                  {0, 1, 1, &llm.ProviderData{Message: json.RawMessage(`["x"]`)}, "is no JSON object"},
		"no JSON":                    {0, 1, 1, &llm.ProviderData{Calls: []llm.ProviderCall{{Members: json.RawMessage(`{"x"`)}}}, "is no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := looksUpSigned(tt.turns)
			answer := s.reply
			s.reply = func(turn int, r llm.Request) llm.Response {
				res := answer(turn, r)
				if res.Provider = tt.data; res.Provider == nil {
					res.Provider = sized(tt.size)
				}
				return res
			}
			m := clerk(s, factTool(t, noEffect))
			m.Agent = agent.New(s, agent.Options{MaxTurns: 30})
			again := errand()
			again.MaxRetries = 2
			res := run(t, newTeam(t, m), nil, again)
			require.Len(t, s.came, tt.asked, "an attempt that cannot succeed is not repeated")
			if tt.want == "" {
				require.NoError(t, res.Err())
				return
			}
			require.ErrorContains(t, res.Err(), tt.want)
		})
	}
}

// What an agent in Go changes about the calls of a model is no reason to attach a signature to another call.
func TestProviderDataOfOtherCallsIsDropped(t *testing.T) {
	t.Parallel()
	s := looksUpSigned(1)
	inner := agent.New(s, agent.Options{})
	m := clerk(nil, factTool(t, noEffect))
	m.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		reply, err := inner.Run(ctx, p)
		if n := len(reply.ToolCalls); n > 0 {
			reply.ToolCalls = append(reply.ToolCalls, reply.ToolCalls[0])
		}
		return reply, err
	})
	require.NoError(t, run(t, newTeam(t, m), nil, errand()).Err())
	require.Equal(t, []string{"", "-"}, s.came)
}

// A team inside an agent has conversations of its own.
func TestProviderDataOfAnInnerTeam(t *testing.T) {
	t.Parallel()
	inner, outer, look := looksUpSigned(1), looksUpSigned(1), factTool(t, noEffect)
	inner.plain = true
	tm, does := toolTeam(t, inner, look), agent.New(outer, agent.Options{})
	m := clerk(nil, look)
	m.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		if _, err := tm.RunTasks(ctx, []task.Spec{errand()}, nil); err != nil {
			return agent.Reply{}, err
		}
		return does.Run(ctx, p)
	})
	require.NoError(t, run(t, newTeam(t, m), nil, errand()).Err())
	require.Equal(t, []string{"", "1.1"}, outer.came)
	require.Equal(t, []string{"", "-", "", "-"}, inner.came)
}

// A conversation that begins with a corrected answer continues like any other.
func TestProviderDataBehindACorrection(t *testing.T) {
	t.Parallel()
	shaped := errand()
	shaped.OutputSchema = []byte(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`)
	corrected := func() *signer {
		return &signer{reply: func(turn int, r llm.Request) llm.Response {
			switch {
			case len(r.Messages) == 1:
				return llm.Response{Text: "not JSON"}
			case turn == 1:
				return llm.Response{ToolCalls: []llm.ToolCall{call("look", "{}")}}
			}
			return llm.Response{Text: `{"n":1}`}
		}}
	}
	first := corrected()
	whole, want := journaled(t, toolTeam(t, first, factTool(t, noEffect)), shaped)
	require.NoError(t, want.Err())
	require.Equal(t, []string{"", "", "2.1"}, first.came)
	again := corrected()
	res := resumed(t, toolTeam(t, again, factTool(t, noEffect)), interrupted(whole, func(e *record.Entry) bool {
		return e.Exchange != nil && (e.Exchange.Part == "" || e.Exchange.Part == "/turn/3")
	}), shaped)
	require.NoError(t, res.Err())
	require.Equal(t, []string{"2.1"}, again.came)
}

// A caller who may not see all of a prompt learns nothing of the members.
func TestReceiptsNameMembersForThoseWhoSeeAll(t *testing.T) {
	t.Parallel()
	for level, want := range map[label.Classification]int{label.Internal: 3, label.Confidential: 0} {
		named, s := 0, errand()
		s.Classification = level
		o := noEffect
		o.Accepts = level
		c := clerk(looksUpSigned(1), factTool(t, o))
		c.Accepts = label.Confidential
		res := run(t, newTeam(t, c, member("other", says("x"))), &engine.RunOptions{UserAccepts: new(label.Internal), Subscribers: []func(event.Event){func(e event.Event) {
			if e.Receipt != nil {
				named += len(e.Receipt.Returned)
			}
		}}}, s, spec("other"))
		require.NoError(t, res.Err())
		require.Equal(t, want, named)
	}
}
