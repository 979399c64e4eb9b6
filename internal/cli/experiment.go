package cli

import (
	"context"
	"encoding/json"
	"math"

	"github.com/runteam/runteam/internal/journal"
)

// experimenting is the command of a run that was made to see what some context
// of another one was good for.
const experimenting = "replay"

// An experiment is what such a run is of, in JSON.
type experiment struct {
	Of            string   `json:"runId"` // of the run that was made again
	Without       []string `json:"without,omitempty"`
	WithoutInputs []string `json:"withoutInputs,omitempty"`
}

// experimentOf reads what a run is an experiment of; nil if it is none. What
// cannot be read is left out.
func experimentOf(ctx context.Context, j *journal.Journal, s *journal.Summary) *experiment {
	if s.Command != experimenting {
		return nil
	}
	e := &experiment{}
	if info, err := j.LoadInfo(ctx, s.Run); err == nil {
		var v invocation
		_ = json.Unmarshal(info.Invocation, &v) // another program made the run
		e.Of, e.Without, e.WithoutInputs = v.Of, v.Without, v.WithoutInputs
	}
	return e
}

// text names an experiment, of a run that is called so.
func (e *experiment) text(of string) string {
	text := "experiment"
	if of != "" {
		text += " of " + cleanLine(of)
	}
	if left := leftOutText(e.Without, e.WithoutInputs); left != "" {
		text += " without " + left
	}
	return text
}

// meant returns the run that a command means: the named one, or without a name
// the newest that is no experiment. Empty means the newest of all.
func meant(ctx context.Context, j *journal.Journal, run string) (string, error) {
	if run != "" {
		return run, nil
	}
	list, err := j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return "", unloaded(whyEnded(ctx, err))
	}
	for i := range list {
		if list[i].Command != experimenting {
			return list[i].Run, nil
		}
	}
	return "", nil
}
