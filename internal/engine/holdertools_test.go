package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A payDesk is a help desk whose second agent pays money back with a tool.
type payDesk struct {
	*frontDesk
	*engine.Config
	boss *approver
	pay  *countedTool
	task task.Spec
	opts engine.RunOptions
}

// billing returns the agent with the tool, as a member of the team.
func (d *payDesk) billing() *engine.Member { return &d.Agents[1] }

// newPayDesk returns a desk on which the tool can be called, changed.
func newPayDesk(t testing.TB, change func(d *payDesk)) (*payDesk, *engine.Team) {
	t.Helper()
	d := &payDesk{frontDesk: newFrontDesk(t), boss: &approver{decide: always(saysYes)}, task: supportTask}
	d.lookup.Accepts, d.lookup.Produces = label.Confidential, new(label.Internal)
	d.pay = newCountedTool(t, "refund", tool.Options{Accepts: label.Confidential, Produces: new(label.Internal)})
	tm := helpDesk(t, d.frontDesk, &handoff.Policy{}, func(c *engine.Config) {
		d.Config = c
		c.Agents[1] = d.member("billing", step{calls: []llm.ToolCall{call("refund", `{"amount":5}`)}}, step{text: "Refunded."})
		c.Agents[1].Tools, c.Agents[1].AllowUntrusted = []*tool.Tool{d.pay.Tool}, []string{"refund"}
		c.Agents = append(c.Agents, d.boss.member())
		for i := range c.Agents {
			c.Agents[i].Accepts = label.Confidential
		}
		if change != nil {
			change(d)
		}
	})
	return d, tm
}

// warned returns the warnings of a plan, each with its place, subject and hint.
func warned(p *engine.Plan) (list []string) {
	for _, w := range p.Warnings {
		list = append(list, w.Pointer+": "+w.Subject+": "+w.Message+"; "+w.Hint)
	}
	return list
}

// What is refused whenever a later holder calls a tool is a warning before the run, with the way to the holder.
//
// Requirement: G63.
func TestToolsThatLaterHoldersCannotCall(t *testing.T) {
	t.Parallel()
	confidential := func(d *payDesk) { d.task.Classification = label.Confidential }
	const are, can = `calls of tool "refund" are refused in task "Support", which can be transferred to it (triage > billing): `, `calls of tool "refund" can be refused in task "Support", which can be transferred to it (triage > billing): `
	for _, tt := range []struct {
		name   string
		change func(d *payDesk)
		want   string // the warning
		hint   string
		told   string // to billing
	}{
		{"all is well", nil, "", "", "ok"},
		{"an approver who sees all", func(d *payDesk) { d.pay.Approve = "ann" }, "", "", "ok"},
		{
			"its label", func(d *payDesk) { confidential(d); d.pay.Accepts = label.Internal },
			are + `its context is at least confidential, and the tool accepts at most internal`,
			`raise Accepts of the tool to confidential, or remove it from the tools of "billing"`, "Call refused: it is confidential",
		},
		{
			"a declassifier", func(d *payDesk) {
				confidential(d)
				d.pay.Accepts, d.pay.Parameters = label.Internal, json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer","minimum":0,"maximum":9}}}`)
				d.Policy.Declassify = []handoff.Declassifier{{Entry: handoff.Entry{Name: "amount", From: "billing", To: "tool:refund", Reason: "a number"}, Paths: []task.Path{"/amount"}, LowerTo: label.Internal}}
			},
			are + `its context is at least confidential, the tool accepts at most internal, and only the arguments of a task's own agent are lowered`,
			`raise Accepts of the tool to confidential, or give "billing" a task of its own for these calls`, "only the arguments of the task's own agent are lowered",
		},
		{
			"a ceiling", func(d *payDesk) {
				confidential(d)
				d.Policy.Rules = []handoff.PairRule{{From: "billing", To: "tool:refund", Ceiling: new(label.Internal)}}
			},
			are + `it is confidential`, `change the rule, or remove the tool from the tools of "billing"`, "Call refused: it is confidential",
		},
		{
			"an approver who may not see it", func(d *payDesk) { confidential(d); d.pay.Approve, d.Agents[3].Accepts = "ann", label.Internal },
			are + `its context is at least confidential, and "ann", who has to approve them, accepts at most internal`,
			`raise accepts of "ann" to confidential, or name another approver`, `Call refused: the context is confidential, and "ann" accepts internal`,
		},
		{
			"a user who may not see it", func(d *payDesk) { confidential(d); d.pay.Approve, d.opts.UserAccepts = "ann", new(label.Internal) },
			`calls of tool "refund" can only be refused in task "Support", which can be transferred to it (triage > billing): the question to "ann" shows what the user of the run may see, and it is at least confidential, and the user may see internal`,
			`remove approve, or keep from it what the user may not see`, "ok", // by a person in Go
		},
		{
			"an untrusted input", func(d *payDesk) {
				d.billing().AllowUntrusted = nil
				d.task.Uses, d.opts.Inputs = []task.Use{{Name: "mail"}}, []engine.Input{{Name: "mail", Text: "hello", Classification: label.Internal}}
			},
			are + `the tool has external effects, and input "mail" is untrusted`,
			`if the tool changes nothing, set its Effect to none; else add "refund" to AllowUntrusted of agent "billing", or endorse what "user" delivers to it`, "Call refused: refund has external effects",
		},
		{
			"an untrusted conversation", func(d *payDesk) { d.billing().AllowUntrusted = nil },
			can + `the tool has external effects, and what "triage" says before is untrusted`,
			`if the tool changes nothing, set its Effect to none; else add "refund" to AllowUntrusted of agent "billing", or endorse what "triage" delivers to it`, "Call refused: refund has external effects",
		},
		{
			"an untrusted result of a tool", func(d *payDesk) {
				d.billing().AllowUntrusted = nil
				d.Policy.Endorse = []handoff.Endorser{{Entry: handoff.Entry{Name: "colleagues", From: "triage", To: "billing", Reason: "a test"}}}
			},
			can + `the tool has external effects, and what tool "lookup" returns to "triage" before is untrusted`,
			`if the tool changes nothing, set its Effect to none; else add "refund" to AllowUntrusted of agent "billing", or endorse what "tool:lookup" delivers to it`, "Call refused: refund has external effects",
		},
		{
			"an endorsed conversation", func(d *payDesk) {
				d.billing().AllowUntrusted = nil
				for name, from := range map[string]string{"colleagues": "triage", "orders": "tool:lookup"} {
					d.Policy.Endorse = append(d.Policy.Endorse, handoff.Endorser{Entry: handoff.Entry{Name: name, From: from, To: "billing", Reason: "a test"}})
				}
			}, "", "", "ok",
		},
		{
			"a conversation that the edge withholds", func(d *payDesk) {
				confidential(d)
				d.billing().AllowUntrusted, d.Edges[0].MaxClassification = nil, new(label.Internal)
			}, "", "", "ok",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, tm := newPayDesk(t, tt.change)
			out := task.Spec{Title: "Out", Description: "Read.", Assignee: "reader"}
			p, err := tm.Plan([]task.Spec{d.task, out}, &d.opts)
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, warned(p))
			} else {
				require.Len(t, p.Warnings, 1, warned(p))
				require.Contains(t, warned(p)[0], `/agents/1/tools/0: agent "billing": `+tt.want)
				require.Equal(t, tt.hint, p.Warnings[0].Hint)
			}
			res := run(t, tm, &d.opts, d.task, out)
			require.Contains(t, d.last("billing"), tt.told)
			require.Equal(t, tt.told == "ok", d.pay.calls.Load() == 1)
			require.NoError(t, res.Err())
		})
	}
}

// A transfer that the gate refuses in every run is a warning at the edge.
func TestTransfersThatAreAlwaysRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(d *payDesk)
		want   string
	}{
		{"clearance", func(d *payDesk) { d.task.Classification, d.billing().Accepts = label.Confidential, label.Internal }, `the task is at least confidential, and "billing" may see internal`},
		{"produces", func(d *payDesk) {
			d.task.Classification, d.billing().Produces = label.Confidential, new(label.Internal)
		}, `the task is at least confidential, and "billing" produces at most internal`},
		{"tags", func(d *payDesk) { d.Agents[0].OutputTags, d.task.RequiredTags = []string{"done"}, []string{"done"} }, `"billing" does not declare the required tags done`},
		{"session", func(d *payDesk) { d.billing().MaxSession, d.task.Timeout = 1e9, 2e9 }, `the task asks for a session of 2s, and "billing" keeps one for 1s`},
		{"a required input", func(d *payDesk) {
			d.task.Uses, d.opts.Inputs = []task.Use{{Name: "mail"}}, []engine.Input{{Name: "mail", Text: "hello", Classification: label.Internal}}
			d.Policy.Rules = []handoff.PairRule{{From: "user", To: "billing", Ceiling: new(label.Public)}}
		}, `it requires input "mail", which is withheld from "billing": it is internal`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, tm := newPayDesk(t, tt.change)
			p, err := tm.Plan([]task.Spec{d.task}, &d.opts)
			require.NoError(t, err)
			require.Len(t, p.Warnings, 1, warned(p))
			require.Contains(t, warned(p)[0], `/edges/0: edge 1: task "Support" cannot be transferred along it: `+tt.want)
			require.NotEmpty(t, p.Warnings[0].Hint)
			_ = run(t, tm, &d.opts, d.task)
			require.Empty(t, d.asked["billing"])
			require.Contains(t, d.last("triage"), "Call refused: ")
		})
	}
}

// What a person says who refuses a call is a piece of the conversation, so the table has a row of it for later holders.
//
// Requirement: G63.
func TestRefusalsReachLaterHolders(t *testing.T) {
	t.Parallel()
	d, tm := newPayDesk(t, func(d *payDesk) {
		d.pay.Approve, d.boss.decide = "ann", always(`{"decision":"no","reason":"CANARY-NO"}`)
		d.Agents[1] = d.member("billing", step{calls: []llm.ToolCall{call("refund", `{"amount":5}`)}}, transfers("sales"), step{text: "Refunded."})
		d.Agents[1].Tools, d.Agents[1].AllowUntrusted, d.Agents[1].Accepts = []*tool.Tool{d.pay.Tool}, []string{"refund"}, label.Confidential
		sales := d.member("sales", step{text: "Sold."})
		sales.Accepts = label.Confidential
		d.Agents, d.Edges = append(d.Agents, sales), transferring("triage>billing", "billing>sales")
	})
	p, err := tm.Plan([]task.Spec{d.task}, nil)
	require.NoError(t, err)
	g := p.Flow().Graph()
	has := slices.ContainsFunc(g.Edges, func(e flow.Edge) bool {
		return g.Sources[e.Source].From == "ann" && g.Tasks[e.Task].Title == "sales in Support" && e.Reach() != flow.Never
	})
	require.NoError(t, run(t, tm, nil, d.task).Err())
	require.Contains(t, d.first("sales"), "CANARY-NO")
	require.True(t, has)
}
