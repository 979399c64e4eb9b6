package flowtest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// openAI is the endpoint of agents for which neither the spec nor the environment names one.
const openAI = "https://api.openai.com/v1"

// A testTeam makes the agents of one run, and records their prompts and answers.
type testTeam struct {
	f       *Flow
	baseURL string            // endpoint of agents without one of their own
	planner *scripted.Handler // answers the coordinator's planning: with the script of the spec, if it has one

	flow      *planFlow // nil while the run is planned
	decisions map[task.ID][]decision

	mu         sync.Mutex // guards the fields below
	prompts    []sentPrompt
	toolInputs []toolInput
	written    map[*canary]bool // canaries that an agent answered with
	problems   []string
}

// A sentPrompt is a prompt as an agent got it.
type sentPrompt struct {
	agent  string
	task   task.ID // empty for the coordinator
	layout string
	text   string // system prompt and messages, without what the agent said itself
	said   string // in earlier turns, with what goes back to the provider

	approves func(task string) string // the title of the approval that it asks for; nil for any other prompt
}

func newTestTeam(f *Flow, baseURL string) (*testTeam, error) {
	t := &testTeam{f: f, baseURL: baseURL, written: map[*canary]bool{}}
	plans := new(scripted.Script)
	if f.file.Offline != "" {
		script, err := scripted.ReadFile("", f.file.Offline)
		if err != nil {
			return nil, err
		}
		for _, r := range script.Replies {
			if r.Coordinator == scripted.Plan || r.Coordinator == scripted.Repair {
				plans.Replies = append(plans.Replies, r)
			}
		}
	}
	var err error
	t.planner, err = scripted.New(plans, false)
	return t, err
}

// A testAgent records what an agent gets and writes. It answers as a stand-in, or calls the
// agent of the test.
type testAgent struct {
	team      *testTeam
	name      string
	endpoints []string    // its own, then those of its fallback
	own       agent.Agent // of the test, or nil
	command   bool        // in the place of a command, which works in its workspace without tools
}

func (t *testTeam) connect(a specfile.Agent) (agent.Agent, error) {
	out := &testAgent{team: t, name: a.Member.Name, own: t.f.agents[a.Member.Name], command: a.Process != nil}
	if a.Person { // only a person can approve calls
		return person.New(out.Run).For(a.Users...), nil
	}
	if !a.HasModel() { // it has no endpoint
		return out, nil
	}
	for _, one := range append([]specfile.Connection{a.Connection}, a.Fallback...) {
		out.endpoints = append(out.endpoints, cmp.Or(one.BaseURL, t.baseURL, openAI))
	}
	return out, nil
}

// Endpoints returns where the agent's prompts may go.
func (a *testAgent) Endpoints() []string { return a.endpoints }

// UsesWorkspace reports whether the engine gives the agent its workspace.
func (a *testAgent) UsesWorkspace() bool { return a.command }

// Run records the prompt and answers it.
func (a *testAgent) Run(ctx context.Context, p prompt.Prompt) (reply agent.Reply, err error) {
	id := p.Receipt().Task
	sent := sentPrompt{agent: a.name, task: id, layout: p.Layout(), text: p.System()}
	for _, m := range p.Messages() {
		if m.Role == "assistant" {
			sent.said += fmt.Sprintf("%s\n%v\n", m.Text, m.Calls)
		} else {
			sent.text += "\n" + m.Text
		}
	}
	for _, d := range supervise.ProviderData(ctx) {
		if d == nil {
			continue
		}
		sent.said += string(d.Message) + "\n"
		for _, c := range d.Calls {
			sent.said += c.ID + "\n" + string(c.Members) + "\n" + string(c.Function) + "\n"
		}
	}
	sent.approves = approvalIn(p)
	root, files, err := workspaceOf(ctx)
	if err != nil {
		return reply, err
	}
	sent.text += files
	a.team.recordPrompt(sent)
	if a.own != nil {
		reply, err = a.own.Run(ctx, p)
	} else {
		reply, err = a.team.standIn(p, a.team.canariesIn(sent.text), root)
	}
	a.team.recordAnswer(id, reply)
	if err != nil && a.own == nil {
		a.team.report("%s could not answer: %v", a.name, err)
	}
	return reply, err
}

func (t *testTeam) recordPrompt(s sentPrompt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts = append(t.prompts, s)
}

// recordAnswer records which canaries of a task its answer has.
func (t *testTeam) recordAnswer(id task.ID, reply agent.Reply) {
	lower := strings.ToLower(reply.Text + "\n" + reply.JSON.Canonical())
	var handoffs strings.Builder
	for _, c := range reply.ToolCalls {
		if c.Name == plan.SendHandoff {
			handoffs.WriteString(strings.ToLower(c.Arguments) + "\n")
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.canariesOf(id) {
		if _, ok := x.in(lower); ok {
			t.written[x] = true
		}
	}
	for _, x := range t.handoffsOf(id) {
		if _, ok := x.in(handoffs.String()); ok {
			t.written[x] = true
		}
	}
}

func (t *testTeam) report(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// canariesOf returns the canaries for the result of a task.
func (t *testTeam) canariesOf(id task.ID) []*canary { return t.plantedIn(id, false) }

// handoffsOf returns the canaries for the handoffs of a task.
func (t *testTeam) handoffsOf(id task.ID) []*canary { return t.plantedIn(id, true) }

func (t *testTeam) plantedIn(id task.ID, handoffs bool) (out []*canary) {
	if t.flow == nil {
		return nil
	}
	row := t.flow.row(id)
	for _, x := range t.f.canaries {
		if x.isOfTask() && x.handoff == handoffs && x.row == row {
			out = append(out, x)
		}
	}
	return out
}

// approvalIn returns which approval a prompt asks for, by the title of the task that needs it; nil if
// it asks for none.
func approvalIn(p prompt.Prompt) func(task string) string {
	heading, _, _ := strings.Cut(p.Text(), "\n")
	what := strings.TrimPrefix(heading, "# Task: Approve ")
	switch {
	case engine.IsApproval(p):
		return func(task string) string { return flow.ApprovalTitle(what, task) }
	case engine.IsLoweringApproval(p):
		return func(task string) string { return flow.LoweringApprovalTitle(what, task) }
	case engine.IsPlanApproval(p):
		return func(string) string { return flow.PlanApprovalTitle }
	}
	return nil
}
