package rungraph

import (
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// addInputs adds the inputs of the run.
func (g *graph) addInputs() {
	for i := range g.run.Trace.Inputs {
		in := &g.run.Trace.Inputs[i]
		g.addInput(in.Name, in.Classification)
	}
	if g.plan == nil {
		return
	}
	for i := range g.plan.Inputs {
		g.addInput(g.plan.Inputs[i].Name, g.plan.Inputs[i].Classification)
	}
}

func (g *graph) addInput(name string, level label.Classification) {
	g.add(&Node{ID: inputID(name), Title: name, Agent: handoff.User, Kind: kindInput, Label: &level})
}

// linkPlanned adds what each task reads by the plan.
func (g *graph) linkPlanned() {
	tasks, step := g.plan.Graph, g.planStep()
	for i := range tasks.Len() {
		t := tasks.Task(i)
		if from := t.Source.Record; from != nil && from.From != handoff.User {
			g.connect(step, string(t.ID), edgeResult) // its description
		}
		for n, up := range tasks.Upstream(i) {
			kind, d := edgeResult, &t.DependsOn[n]
			switch {
			case n >= len(t.DependsOn)-t.Reads:
				kind = edgeCondition
			case d.Need != nil && len(d.Need) == 0:
				kind = edgeOrder
			}
			g.connect(string(tasks.Task(int(up)).ID), string(t.ID), kind)
		}
		for _, use := range t.Uses {
			g.connect(inputID(use.Name), string(t.ID), edgeInput)
		}
	}
}

// linkCoordinated adds what tasks that a coordinator has planned depend on.
func (g *graph) linkCoordinated() {
	step := g.planStep()
	for _, t := range g.run.Tasks {
		upstream := g.run.State.Upstream(t)
		for _, id := range upstream {
			g.connect(string(id), string(t.ID), edgeResult)
		}
		if !t.Step && len(upstream) == 0 {
			g.connect(step, string(t.ID), edgeOrder)
		}
	}
}

// planStep returns the ID of the last step in which the coordinator planned.
func (g *graph) planStep() (last string) {
	for _, t := range g.run.Tasks {
		if t.Step && (t.Title == string(engine.StepPlan) || t.Title == string(engine.StepRepair)) {
			last = string(t.ID)
		}
	}
	return last
}

// linkRecorded adds what the run has recorded: of the coordinator, and of all tasks if there is no plan.
func (g *graph) linkRecorded() {
	planned, before := g.planStep(), ""
	last := map[task.ID]string{} // of a step, the one before it
	for _, t := range g.run.Tasks {
		if t.Step {
			last[t.ID], before = before, string(t.ID)
		}
	}
	for i := range g.run.Trace.Handoffs {
		h := &g.run.Trace.Handoffs[i]
		at, known := g.index[string(h.Task)]
		if !known || h.To == handoff.User {
			continue
		}
		step := g.document.Nodes[at].Kind == kindStep
		if g.plan != nil && !step {
			continue
		}
		to := string(h.Task)
		of, _, _ := strings.Cut(h.Source.Name, record.TurnPrefix)
		switch h.Source.Kind {
		case handoff.Dependency, handoff.Files, handoff.Digest:
			g.connect(of, to, edgeResult)
		case handoff.Fault:
			if _, known := g.index[of]; known {
				g.connect(of, to, edgeResult)
			} else if step {
				g.connect(last[h.Task], to, edgeResult)
			}
		case handoff.Condition:
			g.connect(of, to, edgeCondition)
		case handoff.Input:
			g.addInput(h.Source.Name, h.Label)
			g.connect(inputID(h.Source.Name), to, edgeInput)
		case handoff.Plan:
			switch {
			case record.ChildOf(h.Source.Name) != "": // the goal of a child, which its parent wrote
			case step:
				g.connect(last[h.Task], to, edgeResult)
			default:
				g.connect(planned, to, edgeResult)
			}
		}
	}
}
