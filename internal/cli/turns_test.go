package cli

import (
	"bytes"
	"net/http"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// A turn that was answered before the run was interrupted is not shown as interrupted, and its
// tokens are those that the endpoint counted.
func TestAnsweredTurnsOfAnInterruptedAttempt(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 1)
	server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
		switch n {
		case 1:
			reply(w, "many")
		case 2:
			reached <- struct{}{}
			<-r.Context().Done()
		default:
			reply(w, "4")
		}
	})
	dir := clitest.Folder(t, map[string]string{"team.yaml": "model: m\nagents: [{name: a}]\ntasks: [{title: Count, assignee: a, description: d, outputSchema: {type: integer}}]\n"})
	cmd := call{dir: dir, args: []string{"run"}, env: server.env()}.command(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	<-reached
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.Equal(t, exit.StatusSIGINT, statusAfter(t, cmd.Wait()), "%s", stderr.String())
	got := call{dir: dir, args: []string{"show", "Count"}}.run(t)
	require.Contains(t, got.stdout, "\ncancelled: Interrupted: run aborted.\n")

	got = call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"show", "Count"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Regexp(t, `~\d+ tokens in, 6 out  2 attempts\n`, got.stdout, "the first attempt ended, and its second call has no tokens")
	require.Regexp(t, `attempt 1 turn 2 · a · m · interrupted`, got.stdout)
	require.NotRegexp(t, `attempt 1 · a · m · interrupted`, got.stdout)
	require.Contains(t, got.stdout, "\n4\n")
}
