package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A vessel is a carrier with a canary in it: who holds it, and how it is brought
// into a run of the agents holder, low (which accepts internal) and blocked
// (which rules let nothing through to).
type vessel struct {
	name  string
	set   func(*voyage)
	holds string // who must have read it, so that the test can fail
}

// A voyage is a run before it is run.
type voyage struct {
	holder  agentFunc
	council agentFunc
	holds   task.Spec // of holder
	goal    *engine.Goal
	policy  handoff.Policy
	edges   []handoff.Edge
	o       engine.RunOptions
}

// What is above a reader, or blocked on its way, does not reach it in any form, and
// none of it is in an event, a log, the record or the result of a caller who is not
// cleared for it.
//
// Requirement: G9.
func TestWithheldCanaryReachesNoPromptEventLogOrRecord(t *testing.T) {
	t.Parallel()
	confidential := func(s *voyage) { s.holds.Classification = label.Confidential }
	reply := func(text string) agentFunc {
		return func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil }
	}
	vessels := []vessel{
		{"an input", func(s *voyage) {
			s.o.Inputs = []engine.Input{{Name: "claim", Text: canary, Classification: label.Confidential}}
			s.holds.Uses = []task.Use{{Name: "claim"}}
		}, "holder"},
		{"a description", func(s *voyage) { confidential(s); s.holds.Description = "Mind " + canary + "." }, "holder"},
		{"a result", func(s *voyage) { confidential(s); s.holder = reply(canary) }, "peer"},
		{"a structured key", func(s *voyage) {
			confidential(s)
			s.holds, s.holder = shaped(s.holds), reply(`{"`+canary+`":1}`)
		}, "peer"},
		{"a structured value", func(s *voyage) {
			confidential(s)
			s.holds, s.holder = shaped(s.holds), reply(`{"a":["`+canary+`"]}`)
		}, "peer"},
		{"an echo of an input", func(s *voyage) {
			s.o.Inputs = []engine.Input{{Name: "claim", Text: canary, Classification: label.Confidential}}
			s.holds.Uses, s.holder = []task.Use{{Name: "claim"}}, echo
		}, "peer"},
		{"a tag", func(s *voyage) {
			confidential(s)
			s.holder = func(context.Context, prompt.Prompt) (agent.Reply, error) {
				return agent.Reply{Text: "x", Tags: []string{canary}}, nil
			}
		}, ""},
		{"an error", func(s *voyage) { confidential(s); s.holder = fails(errors.New(canary)) }, ""},
		{"a panic", func(s *voyage) {
			confidential(s)
			s.holder = func(context.Context, prompt.Prompt) (agent.Reply, error) { panic(canary) }
		}, ""},
		{"what is no JSON", func(s *voyage) {
			confidential(s)
			s.holds, s.holder = shaped(s.holds), reply("{"+canary)
		}, ""},
		{"a message", func(s *voyage) {
			confidential(s)
			s.edges = edges("peer>holder")
			s.o.Messages = []engine.Message{{From: "peer", To: "holder", Text: canary, Classification: label.Confidential}}
		}, "holder"},
		{"an entry of the memory", func(s *voyage) { confidential(s); s.holder = reply(canary) }, "peer"},
		{"a goal", func(s *voyage) {
			s.goal = &engine.Goal{Text: "Mind " + canary + ".", Classification: label.Confidential}
		}, handoff.Coordinator},
		{"the answer", func(s *voyage) {
			s.goal = &engine.Goal{Text: "Tell me.", Classification: label.Confidential}
			s.council = reply("It is " + canary)
		}, ""},
		{"an error of the coordinator", func(s *voyage) {
			s.goal = &engine.Goal{Text: "Tell me.", Classification: label.Confidential}
			s.council = fails(errors.New(canary))
		}, ""},
	}
	// Error texts are shown only to cleared readers, also in events.
	told := map[string]bool{"an error": true, "a panic": true, "an error of the coordinator": true, "what is no JSON": true}
	for _, v := range vessels {
		for _, accepts := range []label.Classification{label.Internal, label.Confidential} {
			t.Run(fmt.Sprint(v.name, ", told to who accepts ", accepts), func(t *testing.T) {
				t.Parallel()
				d := newDesk()
				s := voyage{holder: says("x"), council: says("the answer"), holds: spec("holder")}
				s.policy.Rules = []handoff.PairRule{{From: handoff.Anyone, To: "blocked", Mode: handoff.Minimal}}
				v.set(&s)
				s.o.UserAccepts, s.o.Answer, s.o.MaxConcurrency = &accepts, s.goal, 1
				if s.goal == nil {
					s.o.Output = "low"
				}
				var a audience
				var l ledger
				var logged bytes.Buffer
				s.o.Recorder = l.Record
				tm, err := engine.New(engine.Config{
					Policy: &s.policy, Edges: s.edges, Logger: slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
					Agents: []engine.Member{
						cleared("holder", label.Confidential, d.keeps(s.holder)), cleared("peer", label.Confidential, d.keeps(says("p"))),
						member("low", d.keeps(says("l"))), cleared("blocked", label.Confidential, d.keeps(says("b"))),
					},
					Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(d.keeps(s.council)), Accepts: new(label.Confidential)},
				})
				require.NoError(t, err)
				after := func(name string) task.Spec {
					own := spec(name)
					own.DependsOn, own.MemoryScope = []task.Ref{{Task: "holder", Optional: true}}, task.ScopeAll
					return own
				}
				if v.name == "an entry of the memory" {
					after = func(name string) task.Spec {
						own := spec(name, "clock")
						own.MemoryScope = task.ScopeAll
						return own
					}
				}
				clock := by("low", spec("clock"))
				clock.DependsOn = []task.Ref{{Task: "holder", Optional: true}}
				res, err := start(t.Context(), tm, []task.Spec{s.holds, clock, after("peer"), after("low"), after("blocked")}, a.with(s.o))
				if err != nil {
					require.NotContains(t, err.Error(), canary)
					require.Equal(t, label.Internal, accepts, "the goal or its answer is above the caller: refused beforehand: %v", err)
					require.NotNil(t, s.goal)
					return
				}
				if v.holds != "" {
					require.Contains(t, d.of(v.holds), canary, "the test can fail")
				}
				require.NotContains(t, d.of("low"), canary)
				require.NotContains(t, d.of("blocked"), canary)
				require.NotEmpty(t, d.of("low"))
				require.NotContains(t, logged.String(), canary)
				events, err := json.Marshal([]any{a.events, l.handoffs()})
				require.NoError(t, err)
				if !told[v.name] || accepts == label.Internal {
					require.NotContains(t, string(events), canary)
				}
				if accepts == label.Internal {
					require.NotContains(t, everything(t, res, &a), canary)
					records, err := json.Marshal(l.records)
					require.NoError(t, err)
					require.NotContains(t, string(records), canary)
					require.NotContains(t, strings.Join(strings.Fields(fmt.Sprintf("%+v %v", res, res.Err())), " "), canary)
				}
			})
		}
	}
}

// What a plan of the coordinator's says is as sensitive as its goal, and the
// rules of the coordinator's pairs count for it.
//
// Requirement: G9.
func TestPlannedDescriptionsAreGated(t *testing.T) {
	t.Parallel()
	for _, level := range []label.Classification{label.Internal, label.Confidential} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			council := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				if p.Layout() == brief.Planning.String() {
					return agent.Reply{Text: `[{"title":"one","description":"Mind ` + canary + ` and ada@example.com.","assignee":"low"}]`}, nil
				}
				return agent.Reply{Text: "answer"}, nil
			}
			policy := &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Coordinator, To: "low", Ceiling: new(label.Internal)}}}
			tm, err := engine.New(engine.Config{Policy: policy, Agents: []engine.Member{cleared("low", label.Confidential, d.keeps(says("l")))}, Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(council)}})
			require.NoError(t, err)
			var a audience
			res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Do it.", Classification: level}, a.options())
			require.NoError(t, err)
			require.Equal(t, level == label.Internal, strings.Contains(d.of("low"), canary), "%v", res.Err())
			require.NotContains(t, d.of("low"), "ada@example.com")
			if level == label.Confidential {
				require.Error(t, res.Err())
			}
		})
	}
}
