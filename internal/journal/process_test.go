package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
)

// asChild says to the test binary that it is to write a run, and where.
const asChild = "RUNTEAM_JOURNAL_TEST_CHILD"

func TestMain(m *testing.M) {
	slowtest.Checks(25)
	slowtest.FilesInMemory()
	if place := os.Getenv(asChild); place != "" {
		if err := child(place); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if place := os.Getenv(asWorker); place != "" {
		if err := work(place); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if _, err := journal.Decompress(journal.Compress([]byte("\n"))); err != nil { // both are made here, and not in the bubble of a test
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// child writes so many tasks of a run, and says how many are durable.
func child(place string) error {
	path, rest, _ := strings.Cut(place, "|")
	run, number, _ := strings.Cut(rest, "|")
	tasks, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	j, err := openAt(path, journal.Options{})
	if err != nil {
		return err
	}
	r, err := j.Begin(context.Background(), journal.Info{Run: run})
	if err != nil {
		return err
	}
	story := newFakeRun(run, 1)
	for n := range tasks {
		before, after := story.Complete(n, 500)
		if err := appendEntries(r, append(before, after...)...); err != nil {
			return err
		}
		fmt.Println("durable", n+1)
	}
	_, err = r.Close(context.Background())
	return errors.Join(err, j.Close())
}

// started starts a child, which is killed with the test.
func started(t *testing.T, path, run string, tasks int) (*exec.Cmd, *bufio.Scanner) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", asChild, path, run, tasks))
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	return c, bufio.NewScanner(out)
}

func TestProcessesWriteOneJournal(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		tasks := 40
		if slowtest.Enabled() {
			tasks = 200
		}
		var children []*exec.Cmd
		var said []*bufio.Scanner
		for i := range 3 {
			c, out := started(t, path, fmt.Sprint("r", i), tasks)
			children, said = append(children, c), append(said, out)
		}
		for i, c := range children {
			last := ""
			for said[i].Scan() {
				last = said[i].Text()
			}
			require.Equal(t, fmt.Sprint("durable ", tasks), last)
			require.NoError(t, c.Wait())
		}
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		for i := range 3 {
			s, err := j.Load(t.Context(), fmt.Sprint("r", i))
			require.NoError(t, err)
			require.Len(t, withoutChanges(s.History.Log), 2*tasks)
		}
	})
}

// A killed process has lost nothing that was reported as durable, and its lease at
// once.
func TestProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 7, 40} {
		inStores(t, func(t *testing.T, path string) {
			c, out := started(t, path, "r1", 1_000_000)
			durable := 0
			for durable < after && out.Scan() {
				_, err := fmt.Sscanf(out.Text(), "durable %d", &durable)
				require.NoError(t, err, out.Text())
			}
			j, err := openAt(path, journal.Options{})
			require.NoError(t, err)
			_, _, err = j.Resume(t.Context(), "r1")
			var taken *journal.LeaseError
			require.ErrorAs(t, err, &taken)
			require.Equal(t, c.Process.Pid, taken.Holder.PID)
			list, err := j.Runs(t.Context())
			require.NoError(t, err)
			require.Equal(t, journal.Running, list[0].Status)

			require.NoError(t, c.Process.Kill())
			require.Error(t, c.Wait())
			list, err = j.Runs(t.Context())
			require.NoError(t, err)
			require.Equal(t, journal.Interrupted, list[0].Status)
			r, s, err := j.Resume(t.Context(), "r1")
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(s.History.Log), 2*durable)
			story := newFakeRun("r1", 1)
			require.NoError(t, appendEntries(r, story.Events(story.Task(0), event.TaskReady)...))
			head, err := r.End(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, "verified", requireVerified(t, j, "r1", nil, head).Status)
			require.NoError(t, j.Close())
		})
	}
}
