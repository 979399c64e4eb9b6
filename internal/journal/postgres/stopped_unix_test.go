//go:build unix

package postgres_test

import (
	"bufio"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
)

// asChild says to the test binary that it is to write to a journal, and to which.
const asChild = "RUNTEAM_POSTGRES_TEST_CHILD"

func TestMain(m *testing.M) {
	if address := os.Getenv(asChild); address != "" {
		fmt.Println(child(context.Background(), address))
		os.Exit(0)
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // these tests wait for most of their time
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// child writes to a run until it fails, and begins and removes other runs meanwhile.
func child(ctx context.Context, address string) error {
	j, err := postgres.Open(ctx, address, journal.Options{Key: key})
	if err != nil {
		return err
	}
	r, err := j.Begin(ctx, journal.Info{Run: "r1"})
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() {
		for n := 0; err == nil; n++ {
			var other *journal.Run
			if other, err = j.Begin(ctx, journal.Info{Run: fmt.Sprint("other", n), Time: time.Now().Add(-time.Hour)}); err == nil {
				_, err = other.End(ctx)
			}
			if err == nil {
				_, _, err = j.Remove(ctx, time.Now().Add(-time.Minute))
			}
		}
		failed <- err
	}()
	go func() {
		var err error
		for n := 0; err == nil; n++ {
			of := ready(fmt.Sprint("t", n))
			of.Event.Title = strings.Repeat("long ", rand.IntN(20_000))
			if err = add(r, of); err == nil {
				fmt.Println("durable", n+1)
			}
		}
		failed <- err
	}()
	return <-failed
}

// startChild starts a child, which is killed with the test, and waits until it has written something.
func startChild(t *testing.T, address string) (*exec.Cmd, *bufio.Scanner) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), asChild+"="+address)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said := bufio.NewScanner(out)
	require.True(t, said.Scan())
	require.Equal(t, "durable 1", said.Text())
	return c, said
}

// A process that is stopped, wherever it is, locks nothing for longer than 5 s.
func TestStoppedProcessLocksNothing(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	address := pgtest.Address(t)
	c, said := startChild(t, address)
	go func() {
		for said.Scan() { // so that it does not wait
		}
	}()
	db, err := sql.Open("pgx", address)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // it wrote nothing
	var longest time.Duration
	for range 12 {
		time.Sleep(rand.N(50 * time.Millisecond))
		require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
		began := time.Now()
		for locked := false; !locked; {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "lock table runs, batches, turns, leases, commands, answers, sessions in access exclusive mode")
			if locked = err == nil; !locked {
				require.ErrorContains(t, err, "deadlock detected") // the server ended this transaction, and not that of the child
			}
			require.NoError(t, tx.Rollback())
		}
		longest = max(longest, time.Since(began))
		require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	}
	t.Logf("at most %s", longest)
	require.Less(t, longest, 6*time.Second)
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
}

// A process that was stopped for so long that another one has taken its run writes nothing more to it.
func TestStoppedOwnerLosesItsRun(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	address := pgtest.Address(t)
	c, said := startChild(t, address)
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	j := open(t, address, journal.Options{})
	_, _, err := j.Resume(t.Context(), "r1")
	require.ErrorIs(t, err, journal.ErrLeased, "it is there, and its lease is recent")
	time.Sleep(16 * time.Second)
	_, _, err = j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	require.Contains(t, last, "another process has taken it over")
	require.NoError(t, c.Wait())
	requireVerified(t, j, "r1")
}
