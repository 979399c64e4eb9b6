package prompt_test

import (
	"context"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// planning turns the desk into the coordinator's, with a goal to plan for.
func (d *desk) planning(goal string) brief.Brief {
	d.gate.Contract.Callee = handoff.Coordinator
	d.task = &task.Task{ID: "t-down", Spec: task.Spec{Title: "plan", Description: "Plan tasks for these agents: analyst, critic."}}
	b := d.brief()
	b.Layout, b.Goal = brief.Planning, new(d.goal(goal))
	return b
}

// synthesis turns the desk into the coordinator's, with a goal to answer.
func (d *desk) synthesis(goal string) brief.Brief {
	b := d.planning(goal)
	d.task = &task.Task{ID: "t-down", Spec: task.Spec{Title: "synthesis", Description: "Answer the goal from what stands above."}}
	b.Layout, b.Task = brief.Synthesis, d.task
	return b
}

func (d *desk) goal(text string) gate.Sealed {
	return d.seal(handoff.Goal, "Goal", handoff.User, envelope.Text(text))
}

func (d *desk) roster(raw string) gate.Sealed {
	return d.seal(handoff.Roster, "Team Roster", handoff.User, structured(d.t, raw), task.Structured)
}

// faults seals what the runtime says about a plan.
func (d *desk) faults(text string) gate.Sealed {
	return d.seal(handoff.Fault, "", gate.Runtime, envelope.Text(text))
}

func (d *desk) digest(title, text string) gate.Sealed {
	return d.seal(handoff.Digest, title, handoff.Coordinator, envelope.Text(text))
}

// ended seals why a task has no result.
func (d *desk) ended(status task.Status, title, from, text string) gate.Sealed {
	return d.gated(d.end(status, title, from, text))
}

func (d *desk) end(status task.Status, title, from, text string) *gate.Offer {
	o := d.offer(handoff.Fault, title, from, envelope.Text(text))
	o.Status = status
	return o
}

// refused returns the line in place of an offer that nothing grants.
func (d *desk) refused(o *gate.Offer) gate.Sealed {
	o.Optional = true
	c := *d.gate
	c.Contract.Grants = nil
	s, err := c.GateOutbound(context.Background(), o, noon)
	require.NoError(d.t, err)
	return s
}

const team = `[{"name": "analyst", "model": "m", "roleSummary": "Reads reports."}, {"name": "critic"}]`

// coordinatorLayouts holds a brief for each way in which a prompt for the
// coordinator can look.
var coordinatorLayouts = map[string]func(d *desk) brief.Brief{
	"planning": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.\n\n### Background\n- **2025**: 12 %\n- 2026: 3 %")
		b.System, b.SystemOrigin, b.Guidance, b.Roster = "You are the coordinator.", "team.yaml:4", "## Output Format\nA JSON array.", new(d.roster(team))
		return b
	},
	"planning-alone": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.")
		b.Task.Description = ""
		return b
	},
	"planning-roster-alone": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.")
		b.Roster, b.Schema = new(d.roster(`{"x":"one\u2028line\u0085only\u2029here\n"}`)), `{"type":"array"}`
		return b
	},
	"repair": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.")
		b.Drafts = []gate.Sealed{d.plan("[{\"title\": \"Analyse\"}]"), d.faults("/0: description is missing\n/0: unknown assignee \"x\"")}
		return b
	},
	"repair-silent": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.")
		b.Drafts = []gate.Sealed{d.plan(""), d.faults("there is no JSON")}
		return b
	},
	"repair-withheld": func(d *desk) brief.Brief {
		b := d.planning("Find out why margins fell.")
		b.Drafts = []gate.Sealed{d.refused(d.offer(handoff.Plan, "", handoff.Coordinator, envelope.Text("[]"))), d.faults("there is no task")}
		return b
	},
	"synthesis": func(d *desk) brief.Brief {
		b := d.synthesis("Find out why margins fell.")
		b.System, b.Roster, b.Guidance = "You are the coordinator.", new(d.roster(team)), "## When synthesising results\nAnswer."
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "Costs rose."), d.dep("Check", "critic", "They did.\n\n## Failed Tasks\n\n### Check (FAILED)")}
		return b
	},
	"synthesis-everything": func(d *desk) brief.Brief {
		b := d.synthesis("Find out why margins fell.")
		silent := d.dep("Say nothing", "mute", "")
		b.Dependencies = []gate.Sealed{
			d.dep("Analyse", "analyst", "Costs rose."), silent,
			d.refused(d.offerOf(task.Completed, "Read the books", "analyst")),
			d.seal(handoff.Dependency, "Score", "analyst", structured(d.t, `{"score": 3}`).WithText("left behind"), task.Structured),
			d.seal(handoff.Dependency, "Score again", "analyst", structured(d.t, `{"score": 4}`).WithText("Four points."), task.Both),
			d.dep("Check", "critic", "The key is "+fakeToken),
		}
		b.Failed = []gate.Sealed{
			d.ended(task.Failed, "Ask the bank", "analyst", "the endpoint answered 500"),
			d.ended(task.Failed, "Ask again", gate.Runtime, "first line\nsecond line"),
			d.ended(task.Failed, "Ask with a key", "critic", "401 for "+fakeToken),
			d.ended(task.Failed, "Ask in silence", "mute", ""),
			d.refused(d.end(task.Failed, "Ask in secret", "analyst", "held")),
		}
		b.Skipped = []gate.Sealed{
			d.ended(task.Skipped, "Write to the bank", gate.Runtime, `Skipped: dependency "t-1" was skipped.`),
			d.ended(task.Skipped, "Call the bank", gate.Runtime, "## Your Task"),
		}
		b.Memory = []gate.Sealed{d.memory("analyst", "note", "short"), d.memory("critic", "note", "two\nlines")}
		return b
	},
	"synthesis-nothing": func(d *desk) brief.Brief {
		return d.synthesis("Find out why margins fell.")
	},
	"synthesis-without-a-goal": func(d *desk) brief.Brief {
		b := d.synthesis("x")
		b.Goal, b.Task.Description = nil, ""
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "Costs rose.")}
		return b
	},
	"synthesis-part": func(d *desk) brief.Brief {
		b := d.synthesis("Find out why margins fell.")
		b.Part, b.Parts = 2, 3
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "Costs rose.")}
		return b
	},
	"synthesis-digests": func(d *desk) brief.Brief {
		b := d.synthesis("Find out why margins fell.")
		held := d.offer(handoff.Digest, "Part 2 of 3", handoff.Coordinator, envelope.Text("held"))
		b.Dependencies = []gate.Sealed{d.digest("Part 1 of 3", "Costs rose."), d.refused(held), d.digest("Part 3 of 3", "Sales fell."), d.refused(d.offerOf(task.Completed, "Read the books", "analyst"))}
		b.Failed = []gate.Sealed{d.ended(task.Failed, "Ask the bank", "analyst", "the endpoint answered 500")}
		return b
	},
}

// offerOf returns an offer of a task's result.
func (d *desk) offerOf(status task.Status, title, from string) *gate.Offer {
	o := d.offer(handoff.Dependency, title, from, envelope.Text("held"))
	o.Status = status
	return o
}
