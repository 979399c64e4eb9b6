package view

import (
	"slices"

	"github.com/runteam/runteam/internal/markdown"
	"github.com/runteam/runteam/label"
)

// An Answer is how the page shows the answer of a run, in JSON. Each result in it has a tree of its own, so that no
// agent can change how the result of another one is read.
type Answer struct {
	By    []string              `json:"by,omitempty"` // the agents that wrote it
	Label *label.Classification `json:"label,omitempty"`
	Parts []*Blocks             `json:"parts"`
}

// Blocks are how the page shows the result of a task, in JSON.
type Blocks struct {
	Title  string                `json:"title,omitempty"` // of the task, if its result is one of several
	By     string                `json:"by,omitempty"`    // the agent that wrote it
	Label  *label.Classification `json:"label,omitempty"`
	Blocks []markdown.Node       `json:"blocks"`         // empty if it is shown as it is written
	Text   string                `json:"text,omitempty"` // of a part that is shown as it is written
}

// AnswerOf returns how the answer of a run is shown, with what stands for each text in an export.
func AnswerOf(r *Run, shown func(text string) string) *Answer {
	a := &Answer{Parts: []*Blocks{}}
	isCostly := markdown.IsCostly(shown(r.Output)) // all parts together
	for _, t := range r.writers() {
		text := shown(t.Result)
		part := &Blocks{By: t.Agent, Label: t.Label, Blocks: []markdown.Node{}}
		if r.Titled {
			part.Title = shown(t.ShownName())
		}
		if !isCostly {
			part.Blocks = blocksOf(text)
		}
		if len(part.Blocks) == 0 {
			part.Text = text
		}
		a.Parts = append(a.Parts, part)
		if t.Agent != "" && !slices.Contains(a.By, t.Agent) {
			a.By = append(a.By, t.Agent)
		}
		if t.Label != nil && (a.Label == nil || *t.Label > *a.Label) {
			a.Label = t.Label
		}
	}
	return a
}

// writers returns the tasks whose results form the answer, or the step of the coordinator that wrote it.
func (r *Run) writers() []*Task {
	if len(r.Answers) > 0 || r.Output == "" {
		return r.Answers
	}
	for _, t := range r.Steps {
		if t.Result == r.Output {
			return []*Task{t}
		}
	}
	return []*Task{{Result: r.Output}}
}

// BlocksOf returns how the result of a task is shown, or the text that stands for it in an export.
func BlocksOf(t *Task, shown string) *Blocks {
	return &Blocks{By: t.Agent, Label: t.Label, Blocks: blocksOf(shown)}
}

func blocksOf(text string) []markdown.Node {
	if blocks := markdown.Blocks(text); blocks != nil {
		return blocks
	}
	return []markdown.Node{} // not null
}
