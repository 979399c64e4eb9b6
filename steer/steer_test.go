package steer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/steer"
)

// TestTextsThatNoJournalReturns are refused before they are stored: JSON would change what is not UTF-8, and the
// command would look altered.
func TestTextsThatNoJournalReturns(t *testing.T) {
	t.Parallel()
	const latin1 = "caf\xe9"
	long := strings.Repeat("x", steer.MaxText+1)
	pause := steer.Command{Kind: steer.Pause, By: "ann"}
	for _, tt := range []struct {
		change func(*steer.Command)
		want   string // empty for none
	}{
		{func(c *steer.Command) { c.Reason = "café" }, ""},
		{func(c *steer.Command) { c.Reason = long[1:] }, ""},
		{func(c *steer.Command) { c.Reason = latin1 }, "Reason is not UTF-8"},
		{func(c *steer.Command) { c.Reason = long }, "Reason has 65537 bytes, at most 65536"},
		{func(c *steer.Command) { c.By = latin1 }, "By is not UTF-8"},
		{func(c *steer.Command) { c.By = long }, "By has 65537 bytes"},
		{func(c *steer.Command) { c.Kind, c.Task = steer.Cancel, latin1 }, "Task is not UTF-8"},
		{func(c *steer.Command) { c.Kind, c.Agent, c.Text = steer.Message, latin1, "hi" }, "Agent is not UTF-8"},
		{func(c *steer.Command) { c.Kind, c.Agent, c.Text = steer.Message, "a", latin1 }, "Text is not UTF-8"},
	} {
		c := pause
		tt.change(&c)
		err := c.Check()
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, steer.ErrInvalid)
		require.ErrorContains(t, err, tt.want)
	}
}
