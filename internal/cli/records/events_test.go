package records

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/event"
	"github.com/stretchr/testify/require"
)

// blocked is a reader that takes nothing until it is closed.
type blocked struct{ *io.PipeWriter }

// TestEventsOfASlowReader checks that a reader that takes nothing delays the end
// of a run by a limited time, and that what is missing is counted.
func TestEventsOfASlowReader(t *testing.T) {
	t.Parallel()
	con, _, stderr := clitest.Console(t)
	r, w := io.Pipe()
	e := &EventWriter{con: con, path: "/dev/fd/3", out: blocked{w}, patience: 10 * time.Millisecond}
	for i := range 1000 {
		e.take(event.Event{Seq: i + 1, Type: event.TaskReady})
	}
	require.NoError(t, e.Close())
	require.Equal(t, "runteam: warning: --events /dev/fd/3: the reader is too slow; the last 1,000 events are missing\n", stderr.String())
	require.NoError(t, r.Close())
	<-e.done
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"), "no second warning")
}

// TestEventsEscapeHiddenCharacters checks that a terminal can show the file.
func TestEventsEscapeHiddenCharacters(t *testing.T) {
	t.Parallel()
	con, _, _ := clitest.Console(t)
	var out bytes.Buffer
	e := &EventWriter{con: con, path: "x", out: &out, patience: time.Minute}
	e.take(event.Event{Seq: 1, Type: event.Warning, Problem: event.Problem{Message: "\x1b[2J\u202e\u0085é"}})
	require.NoError(t, e.Close())
	require.Contains(t, out.String(), `"\u001b[2J\u202e\u0085é"`)
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}
