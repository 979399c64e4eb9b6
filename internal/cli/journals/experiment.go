package journals

import (
	"context"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
)

// ExperimentCommand is the command of a run that repeats another one without some of its context.
const ExperimentCommand = journal.ExperimentCommand

// An Experiment says which run an experiment repeats and what it omits, in JSON.
type Experiment struct {
	Of            string   `json:"runId"` // of the repeated run
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// ReadExperiment describes a run that is an experiment; for any other run it returns nil. What
// cannot be read stays empty.
func ReadExperiment(ctx context.Context, j *journal.Journal, s *journal.Summary) *Experiment {
	if s.Command != ExperimentCommand {
		return nil
	}
	e := &Experiment{}
	if stored, err := j.LoadStart(ctx, s.Run); err == nil {
		*e = Experiment(InvocationOf(&stored.Info).ReplayArguments)
	}
	return e
}

// Text describes an experiment; of names the repeated run.
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

// OmittedText names the tasks and inputs that a run omits.
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
