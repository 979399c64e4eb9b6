package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// A viewer follows a run whose label a process raises above what the viewer may see, when it resumes the run. Nothing that this
// process writes reaches the viewer.
func TestFollowersSeeNothingOnceTheLabelIsRaised(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, nil)
	path := filepath.Join(dir, "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Name: "rising"})
	require.NoError(t, err)
	write := func(level label.Classification, warning string) {
		stored := make(chan error, 1)
		now := time.Now()
		r.Append([]record.Entry{
			{Begin: &record.RunStart{Run: "r1", Name: "rising", Time: now, Label: &level, Accepts: &level}},
			{Event: &event.Event{Type: event.Warning, Time: now, Run: "r1", Problem: event.Problem{Message: warning}}},
		}, func(err error) { stored <- err })
		require.NoError(t, <-stored)
	}
	write(label.Internal, "all may read this")
	s := serveHere(t, call{dir: dir, args: []string{"--journal", path, "--accepts", "internal"}})
	lines := s.follow(t.Context(), "/runs/r1/events")
	await(t, lines, "all may read this")
	_, err = r.End(t.Context())
	require.NoError(t, err)
	r, _, err = j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	write(label.Confidential, "canary")
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	require.NotContains(t, rest.String(), "canary")
}
