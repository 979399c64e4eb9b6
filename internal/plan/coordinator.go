package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// checkCoordinator checks what does not depend on a goal.
func (t *Roster) checkCoordinator(found *task.Problems) {
	c := t.Config.Coordinator
	if c == nil {
		return
	}
	about := subject{found, "/coordinator", handoff.Coordinator}
	about.checkAgent(&c.Agent)
	if c.Accepts != nil {
		about.at("accepts").checkLabel(*c.Accepts)
	}
	about.checkLimits(c.Limits)
}

// Coordinator returns the coordinator as the gate sees it in a run.
func (t *Roster) Coordinator(o *Options) gate.Capabilities {
	c := t.Config.Coordinator
	accepts := *o.UserAccepts
	if c.Accepts != nil {
		accepts = min(accepts, *c.Accepts)
	}
	return gate.Capabilities{Agent: handoff.Coordinator, Accepts: accepts, Produces: accepts, Endpoints: t.endpoints(c.member())}
}

// member returns the settings that a coordinator shares with members.
func (c *Coordinator) member() *Member {
	return &Member{Name: handoff.Coordinator, Agent: c.Agent, Budget: c.Budget, Backend: c.Backend}
}

// Find returns the member with a name, and for any other name the settings of the
// coordinator as those of a member, or a member without settings.
func (t *Roster) Find(name string) *Member {
	if i, ok := t.Index(name); ok {
		return &t.Config.Agents[i]
	}
	if c := t.Config.Coordinator; c != nil {
		return c.member()
	}
	return new(Member)
}

// Members lists the members as the coordinator reads them. Their tools are listed only if
// plans may grant them. The roster has no fences, so it leaves out what servers write about
// their tools.
func (t *Roster) Members() []planning.Agent {
	list := make([]planning.Agent, agentsOf(t))
	for i := range list {
		m := &t.Config.Agents[i]
		list[i] = planning.Agent{Name: m.Name, Model: m.Model, Description: m.Description, SystemPrompt: m.SystemPrompt, Capabilities: m.Capabilities}
		if !t.Config.Coordinator.MayGrant.Tools {
			continue
		}
		for _, f := range m.Tools {
			known := planning.Tool{Name: f.Name, Description: f.Description}
			if f.Foreign {
				known.Description = ""
			}
			list[i].Tools = append(list[i].Tools, known)
		}
		list[i].Runtime = plannable(t, i)
	}
	return list
}

// Duties are what the coordinator's system prompt depends on.
func (t *Roster) Duties(o *Options) planning.Duties {
	c := t.Config.Coordinator
	d := planning.Duties{SystemPrompt: c.SystemPrompt, Instructions: c.Instructions, MayGrant: c.MayGrant, MayPlan: c.MayPlan, Runtime: runtimeKinds(t)}
	if c.MayGrant.Inputs {
		for _, in := range o.Inputs {
			d.Inputs = append(d.Inputs, planning.Input{Name: in.Name, Classification: in.Classification, Form: formOf(&in)})
		}
	}
	return d
}

// formOf says what an input is, if the caller has said it; it says nothing of the text.
func formOf(in *Input) string {
	switch {
	case in.Folder != nil:
		return "a folder"
	case in.ListFormat != "":
		return "a list"
	}
	return ""
}

// CheckGoal checks a goal and that the team has a coordinator for it.
func (t *Roster) CheckGoal(goal *Goal) (found task.Problems) {
	about := subject{found: &found, pointer: "/goal"}
	if t.Config.Coordinator == nil {
		subject{found: &found, pointer: "/coordinator"}.report("a goal needs a coordinator, and this team has none", "set Coordinator with an Agent, for instance agent.New(model, agent.Options{})", ErrNoCoordinator)
	}
	switch text := goal.Text; {
	case strings.TrimSpace(text) == "":
		about.report("the goal is empty", "describe what the team should find out or produce", task.ErrInvalid)
	case !utf8.ValidString(text):
		about.report("the goal is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
	case len(text) > gate.DefaultContextBytes:
		about.report(fmt.Sprintf("the goal has %d bytes, at most %d reach the coordinator", len(text), gate.DefaultContextBytes), "shorten it, and move long texts to inputs", brief.ErrTooLarge)
	}
	if line, opener := brief.GoalOpener(goal.Text); line > 0 {
		found = append(found, task.Problem{
			Pointer: "/goal", Line: line, Message: fmt.Sprintf("a line of the goal begins with %q, which is reserved for the prompt's own lines", opener),
			Hint: "reword it", Err: task.ErrInvalid,
		})
	}
	about.at("classification").checkLabel(goal.Classification)
	return found
}
