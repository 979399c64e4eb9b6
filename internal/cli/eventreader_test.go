package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/event"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// eventsTo begins the events of a run on a standard output.
func eventsTo(t *testing.T, stdout io.Writer) (e *records.EventWriter, stderr *bytes.Buffer) {
	t.Helper()
	con, _, stderr := clitest.Console(t)
	con.Stdout = stdout
	var f records.EventFlags
	cmd := &cobra.Command{}
	f.AddTo(cmd)
	require.NoError(t, cmd.Flags().Parse([]string{"--events", "-"}))
	e, err := f.Begin(cmd, con, false)
	require.NoError(t, err)
	return e, stderr
}

// TestEventsOfASlowReader checks that a reader that reads nothing delays the end
// of a run by a limited time, and that what is missing is counted.
func TestEventsOfASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		e, stderr := eventsTo(t, w)
		for i := range 1000 {
			e.Subscribers()[0](event.Event{Seq: i + 1, Type: event.TaskReady})
		}
		require.NoError(t, e.Close())
		require.Equal(t, "runteam: warning: --events -: the reader is too slow; the last 1,000 events are missing\n", stderr.String())
		require.NoError(t, r.Close())
		synctest.Wait() // until nothing is written any more
		require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "no second warning")
	})
}

// TestEventsEscapeHiddenCharacters checks that a terminal can show the events.
func TestEventsEscapeHiddenCharacters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e, _ := eventsTo(t, &out)
	e.Subscribers()[0](event.Event{Seq: 1, Type: event.Warning, Problem: event.Problem{Message: "\x1b[2J\u202e\u0085é"}})
	require.NoError(t, e.Close())
	require.Contains(t, out.String(), `"\u001b[2J\u202e\u0085é"`)
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}
