package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// What a rule or the task reveals to the first holder, the second one gets redacted: from the input itself, from
// what the first holder said and called with, from the reason and from the result of a tool.
//
// Requirement: G63.
func TestNothingIsRevealedToLaterHolders(t *testing.T) {
	t.Parallel()
	const mail = "mia@example.com"
	whole := map[redact.Kind][]task.Path{redact.Email: {task.Whole}}
	toTriage := []handoff.PairRule{{From: handoff.User, To: "triage", Mode: handoff.Full, Reveal: whole}, {From: "tool:lookup", To: "triage", Mode: handoff.Full, Reveal: whole}}
	for _, tt := range []struct {
		name     string
		rules    []handoff.PairRule
		ofTask   bool // whether the task reveals it
		revealed bool // to billing, in what the user gave
	}{
		{"by a rule", toTriage, false, false},
		{"by the task", nil, true, false},
		{"by a rule for the later holder", append(toTriage[:2:2], handoff.PairRule{From: handoff.User, To: "billing", Mode: handoff.Full, Reveal: whole}), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newFrontDesk(t)
			d.lookup = newTool(t, "lookup", noEffect, func(context.Context, map[string]any) (string, error) { return "ORDER-7 of " + mail, nil })
			tm := helpDesk(t, d, &handoff.Policy{Rules: tt.rules}, func(c *engine.Config) {
				c.Agents[0] = d.member("triage", step{calls: []llm.ToolCall{call("lookup", `{"who":"`+mail+`"}`)}, text: "I write to " + mail + "."}, transfers("billing", "pay "+mail))
			})
			s := supportTask
			s.Uses = []task.Use{{Name: "contact"}}
			if tt.ofTask {
				s.Uses[0].Reveal = map[string][]task.Path{string(redact.Email): {task.Whole}}
			}
			res := run(t, tm, &engine.RunOptions{Inputs: []engine.Input{{Name: "contact", Text: "reach me at " + mail}}}, s)
			require.NoError(t, res.Err())
			require.Contains(t, d.first("triage"), "reach me at "+mail)
			if !tt.ofTask {
				require.Contains(t, d.last("triage"), "ORDER-7 of "+mail)
			}
			got := d.first("billing")
			for _, text := range []string{"I write to [REDACTED:email]", `"who":"[REDACTED:email]"`, "ORDER-7 of [REDACTED:email]", "pay [REDACTED:email]"} {
				require.Contains(t, got, text)
			}
			if tt.revealed {
				require.Equal(t, 1, strings.Count(got, mail), got)
				require.Contains(t, got, "reach me at "+mail)
			} else {
				require.NotContains(t, got, mail)
				require.Contains(t, got, "reach me at [REDACTED:email]")
			}
		})
	}
}

// readersOfATransfer are rules about what the holders of a conversation pass to a reader, and what of the result
// {"amount":..., "note":..., "rest":...} the reader gets.
func readersOfATransfer(reader string) map[string]struct {
	rules []handoff.PairRule
	gets  []string
} {
	from := func(holder string, r handoff.PairRule) handoff.PairRule {
		r.From, r.To = holder, reader
		return r
	}
	minimal, noNote, noAmount := handoff.PairRule{Mode: handoff.Minimal}, handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"/note"}}, handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"/amount"}}
	return map[string]struct {
		rules []handoff.PairRule
		gets  []string
	}{
		"no rule":                  {nil, []string{"AMOUNT-5", "NOTE-6", "REST-7"}},
		"minimal from the first":   {[]handoff.PairRule{from("triage", minimal)}, nil},
		"minimal from the last":    {[]handoff.PairRule{from("billing", minimal)}, nil},
		"a path from the first":    {[]handoff.PairRule{from("triage", noNote)}, []string{"AMOUNT-5", "REST-7"}},
		"a path from the last":     {[]handoff.PairRule{from("billing", noAmount)}, []string{"NOTE-6", "REST-7"}},
		"a path from each of them": {[]handoff.PairRule{from("triage", noNote), from("billing", noAmount)}, []string{"REST-7"}},
		"a path and minimal":       {[]handoff.PairRule{from("triage", minimal), from("billing", noAmount)}, nil},
	}
}

// paidBack is the task of the help desk with an object as its result.
func paidBack() task.Spec {
	s := supportTask
	s.OutputSchema = []byte(`{"type":"object","properties":{"amount":{"type":"string"},"note":{"type":"string"},"rest":{"type":"string"}},"additionalProperties":false}`)
	return s
}

func paysBack(d *frontDesk) engine.Member {
	return d.member("billing", step{text: `{"amount":"AMOUNT-5","note":"NOTE-6","rest":"REST-7"}`})
}

// requireOnly checks that a prompt has these values of the result of [paysBack] and no others.
func requireOnly(t testing.TB, got string, values []string) {
	t.Helper()
	var has []string
	for _, value := range []string{"AMOUNT-5", "NOTE-6", "REST-7"} {
		if strings.Contains(got, value) {
			has = append(has, value)
		}
	}
	require.Equal(t, values, has, got)
}

// The rules of both holders narrow what a task reads, as a dependency and in the shared memory.
//
// Requirement: G63.
func TestReadersOfATransferObeyTheRulesOfAllHolders(t *testing.T) {
	t.Parallel()
	for name, tt := range readersOfATransfer("reader") {
		for _, memory := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", in the memory"}[memory], func(t *testing.T) {
				t.Parallel()
				d := newFrontDesk(t)
				var heard listens
				tm := helpDesk(t, d, &handoff.Policy{Rules: tt.rules}, func(c *engine.Config) {
					c.Agents[1], c.Agents[2] = paysBack(d), engine.Member{Name: "reader", Agent: &heard}
					c.Agents = append(c.Agents, member("between", says("between")))
				})
				specs := []task.Spec{paidBack(), scopeAll(by("reader", spec("Read", "Support")))}
				if memory {
					specs = []task.Spec{paidBack(), by("between", spec("Between", "Support")), scopeAll(by("reader", spec("Read", "Between")))}
				}
				res := run(t, tm, nil, specs...)
				require.NoError(t, res.Err())
				require.Equal(t, "triage > billing", of(t, res, "Support").Envelope.Producer())
				require.Len(t, heard.prompts, 1)
				requireOnly(t, heard.prompts[0], tt.gets)
				require.Equal(t, memory && tt.gets != nil, strings.Contains(heard.prompts[0], "## Shared Team Memory"), heard.prompts[0])
			})
		}
	}
}

// The rules of both holders narrow what the coordinator reads to answer the goal.
//
// Requirement: G63.
func TestCoordinatorObeysTheRulesOfAllHolders(t *testing.T) {
	t.Parallel()
	for name, tt := range readersOfATransfer(handoff.Coordinator) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFrontDesk(t)
			c := &planner{}
			tm := helpDesk(t, d, &handoff.Policy{Rules: tt.rules}, func(config *engine.Config) {
				config.Agents[1], config.Coordinator = paysBack(d), &engine.Coordinator{Agent: c}
			})
			res := run(t, tm, &engine.RunOptions{Answer: &engine.Goal{Text: "Help mia."}}, paidBack())
			require.NoError(t, res.Err())
			require.Equal(t, "triage > billing", of(t, res, "Support").Envelope.Producer())
			require.Len(t, c.prompts, 1)
			requireOnly(t, c.prompts[0], tt.gets)
		})
	}
}

// Records, events and the result have nothing of a later holder that is above the clearance of the user, nothing
// that a rule keeps from the user, and nothing of the calls that follow from it.
//
// Requirement: G63.
func TestUsersSeeOfLaterHoldersWhatTheyMay(t *testing.T) {
	t.Parallel()
	const vaulted, answered, reasoned = "VAULT-1", "ANSWER-2", "CANARY-REASON"
	for _, tt := range []struct {
		name     string
		accepts  label.Classification
		rules    []handoff.PairRule
		has, not []string // in what is stored
	}{
		{"cleared", label.Confidential, nil, []string{vaulted, answered, reasoned, "I look it up.", "ORDER-7"}, nil},
		{"below the later holder", label.Internal, nil, nil, []string{vaulted, answered, reasoned, "I look it up.", "ORDER-7"}},
		{"a rule of the first holder", label.Confidential, []handoff.PairRule{{From: "triage", To: handoff.User, Mode: handoff.Minimal}}, []string{"Help the customer."}, []string{reasoned, "I look it up.", "ORDER-7", vaulted, answered}},
		{"a rule of the later holder", label.Confidential, []handoff.PairRule{{From: "billing", To: handoff.User, Mode: handoff.Minimal}}, []string{reasoned, "I look it up.", "ORDER-7"}, []string{vaulted, answered}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := newFrontDesk(t)
			o := noEffect
			o.Accepts = label.Confidential
			looked := noEffect
			looked.Accepts, looked.Produces = label.Confidential, new(label.Internal)
			d.lookup = newTool(t, "lookup", looked, func(context.Context, map[string]any) (string, error) { return "found order ORDER-7", nil })
			vault := newTool(t, "vault", o, func(context.Context, map[string]any) (string, error) { return "found " + vaulted, nil })
			tm := helpDesk(t, d, &handoff.Policy{Rules: tt.rules}, func(c *engine.Config) {
				billing := d.member("billing", step{calls: []llm.ToolCall{call("vault", `{}`)}}, step{text: answered})
				billing.Tools, billing.AllowUntrusted = []*tool.Tool{vault}, []string{"vault"}
				billing.Accepts, billing.Produces = label.Confidential, new(label.Confidential)
				c.Agents[1] = billing
				c.Agents[0] = d.member("triage", looksUp, transfers("billing", "she wants CANARY-REASON back"))
				c.Agents[0].Accepts, c.Agents[0].Produces = label.Confidential, new(label.Confidential)
				c.Agents[2] = member("reader", func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "read"}, nil })
			})
			s := supportTask
			s.Classification = label.Internal
			var l ledger
			var a audience
			j := &memory{}
			res := run(t, tm, a.with(engine.RunOptions{RunID: "r", Journal: j, Recorder: l.Record, UserAccepts: &tt.accepts, Output: "Read"}), s, by("reader", spec("Read")))
			require.NoError(t, res.Err())
			require.Contains(t, d.last("billing"), vaulted)
			require.Contains(t, d.last("billing"), reasoned)
			// What a journal needs to resume, it keeps apart from what it shows: JSON has only the latter.
			stored, err := json.Marshal([]any{l.records, j.history(j.len()).Log})
			require.NoError(t, err)
			seen := string(stored) + told(t, res, &a)
			for _, text := range tt.has {
				require.Contains(t, seen, text)
			}
			for _, text := range tt.not {
				require.NotContains(t, seen, text)
			}
		})
	}
}
