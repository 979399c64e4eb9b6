package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A payDesk is a help desk that transfers conversations to an agent which pays money back with a tool.
type payDesk struct {
	plan.Config
	pay  *tool.Tool
	task task.Spec
	opts plan.Options
}

// billing returns the agent with the tool.
func (d *payDesk) billing() *plan.Member { return &d.Agents[1] }

// newPayDesk returns a desk on which the tool can be called, changed.
func newPayDesk(t testing.TB, change func(d *payDesk)) (*payDesk, roster) {
	t.Helper()
	options := tool.Options{Accepts: label.Confidential, Produces: new(label.Internal)}
	d := &payDesk{pay: newTool(t, "refund", options), task: task.Spec{Title: "Support", Description: "Help the customer.", Assignee: "triage"}}
	options.Effect = tool.None
	d.Config = plan.Config{Policy: &handoff.Policy{}, Edges: transferring("triage>billing"), Agents: []plan.Member{
		clerk("triage", newTool(t, "lookup", options)), clerk("billing", d.pay), member("reader"), {Name: "ann", Agent: person.New(unused)},
	}}
	for i := range d.Agents {
		d.Agents[i].Accepts = label.Confidential
	}
	if change != nil {
		change(d)
	}
	return d, newTeamOf(t, d.Config)
}

// warned returns the warnings of a plan, each with its place, subject and hint.
func warned(p *plan.Plan) (list []string) {
	for _, w := range p.Warnings {
		list = append(list, w.Pointer+": "+w.Subject+": "+w.Message+"; "+w.Hint)
	}
	return list
}

// What a holder's tools return raises the label of the task, and the problem says so.
func TestLabelOfATaskNamesToolsOfHolders(t *testing.T) {
	t.Parallel()
	d, r := newPayDesk(t, func(d *payDesk) { d.pay.Produces, d.Agents[0].Accepts = new(label.Confidential), label.Internal })
	_, err := r.plan([]task.Spec{d.task}, &d.opts)
	require.ErrorContains(t, err, `"triage" accepts internal (confidential by what tool "refund" returns to "billing", to which it can be transferred)`)
}

// A problem that an agent has in a task of its own is not reported for what is transferred to it too.
func TestToolsOfHoldersThatHaveTasksOfTheirOwn(t *testing.T) {
	t.Parallel()
	d, r := newPayDesk(t, func(d *payDesk) {
		d.pay.Approve, d.opts.UserAccepts, d.task.Classification = "ann", new(label.Internal), label.Confidential
	})
	p, err := r.plan([]task.Spec{d.task, {Title: "Pay", Description: "Pay.", Assignee: "billing", Classification: label.Confidential}, {Title: "Out", Description: "Say.", Assignee: "reader"}}, &d.opts)
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1, warned(p))
	require.Contains(t, warned(p)[0], `/tasks/1: task "Pay": "ann" can only refuse calls of tool "refund"`)
}

// The way to a holder is the shortest one over holders that can take the task, and one problem of several tasks is one
// warning.
func TestWaysToToolsOfLaterHolders(t *testing.T) {
	t.Parallel()
	warnings := func(change func(d *payDesk)) []string {
		d, r := newPayDesk(t, func(d *payDesk) {
			d.billing().AllowUntrusted = nil
			d.Agents = append(d.Agents, clerk("sales"), clerk("legal"))
			for i := range d.Agents {
				d.Agents[i].Accepts = label.Confidential
			}
			d.Edges = transferring("triage>sales", "triage>legal", "sales>billing", "legal>billing")
			change(d)
		})
		p, err := r.plan([]task.Spec{d.task, {Title: "Second", Description: "Help.", Assignee: "triage"}, {Title: "Third", Description: "Help.", Assignee: "sales"}}, &d.opts)
		require.NoError(t, err)
		return warned(p)
	}
	got := warnings(func(*payDesk) {})
	require.Len(t, got, 2, got)
	require.Contains(t, got[0], `calls of tool "refund" can be refused in task "Support" and 1 more, which can be transferred to it (triage > sales > billing): the tool has external effects, and what "triage" says`)
	require.Contains(t, got[1], `in task "Third", which can be transferred to it (sales > billing): the tool has external effects, and what "sales" says`)

	got = warnings(func(d *payDesk) { d.task.Classification, d.Agents[4].Accepts = label.Confidential, label.Internal })
	require.Contains(t, strings.Join(got, "\n"), `task "Support" cannot be transferred along it: the task is at least confidential, and "sales" may see internal; raise accepts of agent "sales" to confidential, or remove transfer from the edge`)
	require.Contains(t, strings.Join(got, "\n"), `(triage > legal > billing)`)

	got = warnings(func(d *payDesk) { // the same problem in a task of its own is an error, and the only one
		d.Edges = nil
	})
	require.Empty(t, got)
}
