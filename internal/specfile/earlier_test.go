package specfile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/specfile"
)

// A file names the run of an earlier result by its whole ID. The beginning of one
// is a guess of whoever wrote the file; in Inputs, which the user gives, it is enough,
// and a saved plan has the whole ID.
func TestRunsOfEarlierResultsAreNamedWhole(t *testing.T) {
	t.Parallel()
	const whole = "1f3c6b1e-41d7-4f0a-9c52-7be1a04f2d33"
	load := func(input string, o specfile.Options) (*specfile.File, error) {
		o.Path, o.Stdin = "-", strings.NewReader("agents: [{name: editor, model: m}]\ngoal: Edit the draft.\ninputs: {draft: "+input+"}\n")
		o.Result = func(run, name string) (*envelope.Envelope, error) {
			require.True(t, strings.HasPrefix(whole, run))
			return envelope.New(envelope.Header{ID: "e", Producer: "a", Task: "t", Run: whole, CreatedAt: time.Unix(0, 0)}, envelope.Text("A draft."))
		}
		return specfile.Load(o)
	}
	_, err := load("{from: {run: 1f3c, task: Draft}}", specfile.Options{})
	require.ErrorContains(t, err, `"1f3c" is only the beginning of the ID of a run`)
	require.ErrorIs(t, err, specfile.ErrInvalid)
	_, err = load("{from: {run: "+whole+", task: Draft}}", specfile.Options{})
	require.NoError(t, err)

	f, err := load("", specfile.Options{Inputs: map[string]string{"draft": "run:1f3c/Draft"}})
	require.NoError(t, err)
	text, _, err := f.WithPlan(*f.Goal, nil, t.TempDir())
	require.NoError(t, err)
	require.Contains(t, string(text), whole)
}
