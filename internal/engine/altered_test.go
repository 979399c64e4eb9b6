package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A result of an earlier run whose text or label was changed since is no input.
func TestAlteredResultsAreNoInputs(t *testing.T) {
	t.Parallel()
	m := member("reader", never(t))
	m.Accepts = label.Confidential
	for name, change := range map[string]func(*envelope.Record){
		"text":  func(r *envelope.Record) { r.Text = "another text" },
		"label": func(r *envelope.Record) { r.Classification = label.Public },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := gate.RecordOf(earlierResult(t, 0))
			change(record)
			altered, err := record.Envelope()
			require.NoError(t, err)
			_, err = newTeam(t, m).Plan([]task.Spec{readerOf(task.Use{Name: "draft"})}, &engine.RunOptions{Inputs: []engine.Input{{Name: "draft", Envelope: altered}}})
			requireFaults(t, err, fault{"/inputs/draft", "the result of an earlier run cannot be used", envelope.ErrTampered})
		})
	}
}
