package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/pgtest"
)

// TestProcessesShareTheLimitsOfAnEndpoint lets three processes work on runs at once. With one journal, they make together no
// more calls at a time than the spec allows; without, each of them does.
func TestProcessesShareTheLimitsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	const processes, tasks, most = 3, 4, 2
	for name, env := range map[string]func(t *testing.T) map[string]string{
		"file": func(*testing.T) map[string]string { return map[string]string{} },
		"postgres": func(t *testing.T) map[string]string {
			return map[string]string{"RUNTEAM_JOURNAL": pgtest.Address(t), "RUNTEAM_JOURNAL_KEY": strings.Repeat("ab", 32)}
		},
		"no journal": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			running, atOnce, calls := 0, 0, 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				calls++
				running++
				atOnce = max(atOnce, running)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond) // as a model that thinks
				mu.Lock()
				running--
				mu.Unlock()
				fmt.Fprint(w, `{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}]}`)
			}))
			t.Cleanup(srv.Close)
			spec := fmt.Sprintf("name: work\nmodel: m\nbaseURL: %s/v1\nendpoints: {%q: {maxConcurrency: %d}}\nagents: [{name: solo}]\ntasks:\n", srv.URL, srv.URL+"/v1", most) +
				strings.Repeat("  - {title: T, assignee: solo, description: d}\n", tasks)
			for i := range tasks {
				spec = strings.Replace(spec, "title: T,", fmt.Sprintf("title: T%d,", i), 1)
			}
			c := call{dir: clitest.Folder(t, map[string]string{"team.yaml": spec}), args: []string{"run"}}
			if env == nil {
				c.args = append(c.args, "--no-journal")
			} else {
				c.env = env(t)
				first := c
				first.args = []string{"run", "--offline"} // makes the journal
				out, err := first.command(t).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			var all []*exec.Cmd
			for range processes {
				cmd := c.command(t)
				require.NoError(t, cmd.Start())
				all = append(all, cmd)
			}
			for _, cmd := range all {
				require.NoError(t, cmd.Wait())
			}
			require.Equal(t, processes*tasks, calls)
			if env != nil {
				require.LessOrEqual(t, atOnce, most)
			} else {
				require.Greater(t, atOnce, most)
			}
		})
	}
}
