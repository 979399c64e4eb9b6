package flowtest

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// openAI is where prompts go for whom neither the spec nor the environment names an endpoint.
const openAI = "https://api.openai.com/v1"

// A cast is everybody who works in one run, and what they were asked.
type cast struct {
	f    *Flow
	base string // endpoint of agents without one of their own

	script  *scripted.Handler // answers whatever nothing is planted in
	planned *scripted.Handler // answers the coordinator's planning: the spec's own script, if it has one

	mu      sync.Mutex // guards what follows
	prompts []sent
	written map[*planted]bool // canaries that an agent answered with
	faults  []string
}

// sent is a prompt as an agent got it.
type sent struct {
	agent  string
	task   task.ID // empty for the coordinator
	layout prompt.Layout
	text   string // system prompt and message
}

func newCast(f *Flow, base string) (*cast, error) {
	c := &cast{f: f, base: base, written: map[*planted]bool{}}
	var err error
	if c.script, err = scripted.New(nil, false); err != nil {
		return nil, err
	}
	plans := new(scripted.Script)
	if f.file.Offline != "" {
		script, err := scripted.ReadFile(f.file.Offline)
		if err != nil {
			return nil, err
		}
		for _, r := range script.Replies {
			if r.Coordinator == scripted.Plan || r.Coordinator == scripted.Repair {
				r.Delay = 0 // the order of calls is all that counts
				plans.Replies = append(plans.Replies, r)
			}
		}
	}
	c.planned, err = scripted.New(plans, false)
	return c, err
}

// member is one agent of a cast.
type member struct {
	cast      *cast
	name      string
	endpoints []string    // its own, then those of its fallback
	own       agent.Agent // the one that the test brought, or nil
}

func (c *cast) connect(a specfile.Agent) (agent.Agent, error) {
	name := a.Member.Name
	m := &member{cast: c, name: name, own: c.f.agents[name]}
	for _, one := range append([]specfile.Connection{a.Connection}, a.Fallback...) {
		m.endpoints = append(m.endpoints, cmp.Or(one.BaseURL, c.base, openAI))
	}
	return m, nil
}

// Endpoints returns where the agent's prompts may go.
func (m *member) Endpoints() []string { return m.endpoints }

// Run notes the prompt and answers it.
func (m *member) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	m.cast.note(sent{agent: m.name, task: p.Receipt().Task, layout: p.Layout(), text: p.System() + "\n" + p.Text()})
	var reply agent.Reply
	var err error
	if m.own != nil {
		reply, err = m.own.Run(ctx, p)
	} else if reply, err = m.cast.answer(ctx, p); err != nil {
		m.cast.blame("%s could not answer: %v", m.name, err)
	}
	m.cast.wrote(p.Receipt().Task, reply)
	return reply, err
}

func (c *cast) note(s sent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts = append(c.prompts, s)
}

// wrote records which canaries of a task its answer has.
func (c *cast) wrote(id task.ID, reply agent.Reply) {
	lower := strings.ToLower(reply.Text + "\n" + reply.JSON.Canonical())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.planted(id) {
		if _, ok := x.in(lower); ok {
			c.written[x] = true
		}
	}
}

func (c *cast) blame(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// planted returns the canaries for the result of a task.
func (c *cast) planted(id task.ID) (out []*planted) {
	for _, x := range c.f.canaries {
		if x.made() && x.id == id {
			out = append(out, x)
		}
	}
	return out
}
