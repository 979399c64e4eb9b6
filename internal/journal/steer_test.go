package journal_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// An owner takes the commands to a run as the engine does, until it is stopped. It refuses what
// refuse gives a reason for.
type owner struct {
	run    *journal.Run
	refuse func(*record.LeftCommand) string

	mu    sync.Mutex // guards taken
	taken []record.LeftCommand
}

// poll takes the commands that wait.
func (o *owner) poll(ctx context.Context) error {
	list, err := o.run.Commands(ctx)
	for i := range list {
		c := &list[i]
		why := c.Missing
		if why == "" && o.refuse != nil {
			why = o.refuse(c)
		}
		if why != "" {
			err = errors.Join(err, o.run.Refuse(ctx, c.Number, why))
			continue
		}
		o.mu.Lock() // who sent it looks at taken once its entry is durable
		err = errors.Join(err, appendEntries(o.run, record.Entry{Command: &record.Command{Kind: c.Kind, Agent: c.Agent, By: c.By, Reason: c.Reason, Time: c.Time, Number: c.Number}}))
		o.taken = append(o.taken, *c)
		o.mu.Unlock()
	}
	return err
}

// work polls until the test ends.
func (o *owner) work(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := o.poll(context.WithoutCancel(ctx)); err != nil {
				ended <- err
				return
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		ended <- nil
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

func pause(by string) steer.Command { return steer.Command{Kind: steer.Pause, By: by, Reason: "lunch"} }

func commandsReachTheirRun(t *testing.T, open openFunc) {
	key := make([]byte, journal.KeyBytes)
	j := openJournal(t, open, journal.Options{Key: key})
	r, other := beginRun(t, j, "r1"), beginRun(t, j, "r2")
	o := &owner{run: r, refuse: func(c *record.LeftCommand) string {
		if c.Kind == steer.Resume {
			return "it is not paused"
		}
		return ""
	}}
	o.work(t)
	sent := []steer.Command{pause("ann"), {Kind: steer.Message, Agent: "analyst", Text: "the diagnosis is 4711", Reason: "on the phone", By: "bob", Classification: label.Secret}}
	for _, c := range sent {
		require.NoError(t, j.Steer(t.Context(), "r1", c))
	}
	err := j.Steer(t.Context(), "r1", steer.Command{Kind: steer.Resume, By: "ann"})
	require.ErrorIs(t, err, steer.ErrRefused)
	require.ErrorContains(t, err, "run r1: the run refuses the command: it is not paused")
	require.ErrorIs(t, j.Steer(t.Context(), "r1", steer.Command{Kind: steer.Rerun, By: "ann"}), steer.ErrInvalid)
	require.ErrorIs(t, j.Steer(t.Context(), "r9", pause("ann")), journal.ErrUnknownRun)
	list, err := other.Commands(t.Context())
	require.NoError(t, err)
	require.Empty(t, list, "they are for another run")

	o.mu.Lock()
	defer o.mu.Unlock()
	for i, c := range o.taken {
		require.Equal(t, sent[i], c.Command)
		require.Equal(t, noon.Add(time.Hour), c.Time)
	}
	require.Len(t, o.taken, len(sent))
	s, err := j.Load(t.Context(), "r1")
	require.NoError(t, err)
	require.Len(t, s.History.Log, len(sent))
	require.Equal(t, &record.Command{Kind: steer.Pause, By: "ann", Reason: "lunch", Time: noon.Add(time.Hour)}, s.History.Log[0].Command)
	_, err = j.Trace(t.Context(), "r1")
	require.NoError(t, err)
	report, err := j.Verify(t.Context(), "r1", audit.VerifyOptions{})
	require.NoError(t, err)
	require.Equal(t, audit.Open, report.Status, report.Why)
	endRun(t, r)
	err = j.Steer(t.Context(), "r1", pause("ann"))
	require.ErrorIs(t, err, steer.ErrNotRunning)
}

// Commands of several processes at once are all taken, each once, and those of one sender in their
// order.
func TestManySteerOneRun(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		o := &owner{run: r}
		o.work(t)
		var senders sync.WaitGroup
		for _, by := range []string{"ann", "bob"} {
			senders.Go(func() {
				from, err := openAt(path, journal.Options{})
				if err == nil {
					err = errors.Join(from.Steer(t.Context(), "r1", pause(by)), from.Steer(t.Context(), "r1", steer.Command{Kind: steer.Resume, By: by}), from.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		senders.Wait()
		o.mu.Lock()
		defer o.mu.Unlock()
		kinds := map[string][]steer.Kind{}
		for _, c := range o.taken {
			kinds[c.By] = append(kinds[c.By], c.Kind)
		}
		require.Equal(t, map[string][]steer.Kind{"ann": {steer.Pause, steer.Resume}, "bob": {steer.Pause, steer.Resume}}, kinds)
		t.Cleanup(func() { require.NoError(t, j.Close()) }) // after the owner has ended
	})
}

// A command that the process of a run does not take, or does not take before it ends, never takes
// effect.
func TestCommandThatIsNotTakenIsWithdrawn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, err := journal.Open(filepath.Join(folder, "runs.db"), journal.Options{})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		began := time.Now()
		err = j.Steer(t.Context(), "r1", pause("ann"))
		require.ErrorContains(t, err, "run r1: the process that works on it did not take the command within 5s; the command was withdrawn and has no effect")
		require.InDelta(t, 5, time.Since(began).Seconds(), 0.3)
		list, err := r.Commands(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("interrupted")) })
		err = j.Steer(ctx, "r1", pause("ann"))
		require.ErrorContains(t, err, "the command was withdrawn: interrupted")
		list, err = r.Commands(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)

		ending := r
		time.AfterFunc(time.Second, func() { _, _ = ending.End(context.Background()) })
		err = j.Steer(t.Context(), "r1", pause("ann"))
		require.ErrorIs(t, err, steer.ErrNotRunning)
		require.ErrorContains(t, err, "it ended before it took the command")
		r, _, err = j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		list, err = r.Commands(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)

		// Once the process has read the command, the sender waits for its decision.
		var process sync.WaitGroup
		process.Go(func() {
			time.Sleep(time.Second)
			list, err := r.Commands(context.Background())
			assert.NoError(t, err)
			time.Sleep(6 * time.Second)
			assert.NoError(t, r.Refuse(context.Background(), list[0].Number, "no task is called that"))
		})
		require.ErrorIs(t, j.Steer(t.Context(), "r1", pause("ann")), steer.ErrRefused)
		process.Wait()
		process.Go(func() {
			time.Sleep(time.Second)
			list, err = r.Commands(context.Background())
		})
		began = time.Now()
		require.ErrorContains(t, j.Steer(t.Context(), "r1", pause("ann")), "it may still take effect")
		require.InDelta(t, 10, time.Since(began).Seconds(), 0.3)
		process.Wait()
		require.NoError(t, err)
		again, err := r.Commands(t.Context())
		require.NoError(t, err)
		require.Equal(t, list, again, "it still waits for a decision")
		require.NoError(t, j.Close())
	})
}

// A process that is killed takes no command, and the one that resumes its run gets none of them.
func TestCommandToAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		c, out := started(t, path, "r1", 1_000_000)
		require.True(t, out.Scan())
		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		defer j.Close() //nolint:errcheck // it ends with the test
		steered := make(chan error)
		go func() { steered <- j.Steer(t.Context(), "r1", pause("ann")) }()
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, c.Process.Kill())
		require.Error(t, c.Wait())
		require.ErrorIs(t, <-steered, steer.ErrNotRunning)
		r, _, err := j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		list, err := r.Commands(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

// What cannot be stored is refused, and leaves nothing.
func TestCommandThatCannotBeStored(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	message := steer.Command{Kind: steer.Message, Agent: "analyst", Text: strings.Repeat("x", steer.MaxText), By: "ann"}
	secret := message
	secret.Classification = label.Secret
	err = j.Steer(t.Context(), "r1", secret)
	require.ErrorIs(t, err, journal.ErrNoKey)
	require.ErrorContains(t, err, "without a key the journal cannot hand it on")

	reader, err := journal.Open(path, journal.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reader.Close() //nolint:errcheck // it only read
	require.ErrorIs(t, reader.Steer(t.Context(), "r1", message), journal.ErrReadOnly)

	full, err := journal.Open(path, journal.Options{}.Pages(16))
	require.NoError(t, err)
	defer full.Close() //nolint:errcheck // it wrote nothing
	require.ErrorIs(t, full.Steer(t.Context(), "r1", message), journal.ErrFull)
	list, err := r.Commands(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// The sender of a policy gets everything that the run finds wrong with it, and which kind of refusal
// that is; the journal says which policy holds.
func TestRefusedPolicies(t *testing.T) {
	t.Parallel()
	j := journal.InMemory(journal.Options{})
	t.Cleanup(func() { require.NoError(t, j.Close()) }) // when the owner has stopped
	r := beginRun(t, j, "r1")
	problems := task.Problems{{Pointer: "/policy/rules/0/to", Subject: "rule a→x", Message: `unknown agent "x"`, Hint: "did you mean y?", Err: steer.ErrInvalid}, {Pointer: "/tasks/1", Line: 7, Message: "no", Err: steer.ErrInvalid}}
	o := &owner{run: r, refuse: func(c *record.LeftCommand) string {
		var err error
		switch c.Reason {
		case "wrong":
			err = fmt.Errorf("%w: %w", steer.ErrRefused, problems)
		case "stale":
			err = fmt.Errorf("%w: %w; it is 4f", steer.ErrRefused, steer.ErrStale)
		case "wide":
			err = fmt.Errorf("%w: %w", steer.ErrRefused, task.Problems{{Pointer: "/policy", Message: "a→b: everything", Err: steer.ErrWidens}})
		default:
			return ""
		}
		return record.Refusal(err)
	}}
	o.work(t)
	policy := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Mode: handoff.Minimal}}}
	send := func(reason string) error {
		return j.Steer(t.Context(), "r1", steer.Command{Kind: steer.ReplacePolicy, By: "ann", Reason: reason, Policy: policy, Replaces: "0f"})
	}
	err := send("wrong")
	require.ErrorIs(t, err, steer.ErrRefused)
	found, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.Equal(t, problems, found)
	err = send("stale")
	require.ErrorIs(t, err, steer.ErrStale)
	require.ErrorIs(t, err, steer.ErrRefused)
	require.ErrorContains(t, err, "the run refuses the command: the policy of the run has changed since it was read; it is 4f")
	err = send("wide")
	require.ErrorIs(t, err, steer.ErrWidens)
	require.ErrorContains(t, err, "a→b: everything")
	require.NoError(t, send("right"))
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Equal(t, policy, o.taken[len(o.taken)-1].Policy)
	require.Equal(t, "0f", o.taken[len(o.taken)-1].Replaces)
}
