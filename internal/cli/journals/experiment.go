package journals

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
)

// ExperimentCommand is the command of a run that was made to see what some context
// of another one was good for.
const ExperimentCommand = "replay"

// An Experiment is what such a run is of, in JSON.
type Experiment struct {
	Of            string   `json:"runId"` // of the run that was made again
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// ReadExperiment reads what a run is an experiment of; nil if it is none. What
// cannot be read is left out.
func ReadExperiment(ctx context.Context, j *journal.Journal, s *journal.Summary) *Experiment {
	if s.Command != ExperimentCommand {
		return nil
	}
	e := &Experiment{}
	if info, err := j.LoadInfo(ctx, s.Run); err == nil {
		var v Invocation
		_ = json.Unmarshal(info.Invocation, &v) // another program made the run
		e.Of, e.Without, e.WithoutInputs = v.Of, v.Without, v.WithoutInputs
	}
	return e
}

// Text names an experiment, of a run that is called so.
func (e *Experiment) Text(of string) string {
	text := "experiment"
	if of != "" {
		text += " of " + terminal.CleanLine(of)
	}
	if left := OmittedText(e.Without, e.WithoutInputs); left != "" {
		text += " without " + left
	}
	return text
}

// OmittedText names what was left out of a run.
func OmittedText(tasks, inputs []string) string {
	var all []string
	for _, name := range tasks {
		all = append(all, "task "+terminal.CleanLine(name))
	}
	for _, name := range inputs {
		all = append(all, "input "+terminal.CleanLine(name))
	}
	return strings.Join(all, " and ")
}
