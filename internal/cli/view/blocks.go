package view

import (
	"slices"

	"github.com/runteam/runteam/internal/markdown"
	"github.com/runteam/runteam/label"
)

// Blocks are the answer of a run, or the result of a task, as the page shows it, in JSON.
type Blocks struct {
	By     []string              `json:"by,omitempty"` // the agents that wrote it
	Label  *label.Classification `json:"label,omitempty"`
	Blocks []markdown.Node       `json:"blocks"` // empty if it is shown as it is written
}

// BlocksOf returns the blocks of the answer of a run, or of the text that stands for it in an export.
func BlocksOf(r *Run, shown string) *Blocks {
	b := &Blocks{Blocks: blocksOf(shown)}
	for _, t := range r.All() {
		isAnswer := slices.Contains(r.Answers, t.ID) || len(r.Answers) == 0 && t.IsStep() && t.Result == r.Output
		if !isAnswer || t.Result == "" {
			continue
		}
		if !slices.Contains(b.By, t.Agent) {
			b.By = append(b.By, t.Agent)
		}
		if t.Label != nil && (b.Label == nil || *t.Label > *b.Label) {
			b.Label = t.Label
		}
	}
	return b
}

// BlocksOfTask returns the blocks of the result of a task, or of the text that stands for it in an export.
func BlocksOfTask(t *Task, shown string) *Blocks {
	return &Blocks{By: []string{t.Agent}, Label: t.Label, Blocks: blocksOf(shown)}
}

func blocksOf(text string) []markdown.Node {
	if blocks := markdown.Blocks(text); blocks != nil {
		return blocks
	}
	return []markdown.Node{} // not null
}
