package readyqueue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// one returns a task that depends on others; "b?" is an optional dependency on b.
func one(id task.ID, dependsOn ...string) task.Task {
	t := task.Task{ID: id, Status: task.Pending, CreatedAt: at, UpdatedAt: at, Spec: task.Spec{Title: "T " + string(id)}}
	for _, d := range dependsOn {
		dep := task.Ref{Task: d, As: task.Output}
		if d[len(d)-1] == '?' {
			dep.Task, dep.Optional = d[:len(d)-1], true
		}
		t.DependsOn = append(t.DependsOn, dep)
	}
	return t
}

func newQueue(t require.TestingT, tasks ...task.Task) *idQueue {
	g, err := graph.New(tasks)
	require.NoError(t, err)
	return &idQueue{readyqueue.New(g)}
}

// result returns an envelope that holds a text.
func result(t require.TestingT, id task.ID, text string) *envelope.Envelope {
	e, err := envelope.New(envelope.Header{ID: "e-" + envelope.ID(id), Producer: "worker", Task: id, CreatedAt: at}, envelope.Text(text))
	require.NoError(t, err)
	return e
}

// run starts and completes tasks.
func run(t require.TestingT, q *idQueue, ids ...task.ID) {
	for _, id := range ids {
		require.NoError(t, q.Start(id, at))
		require.NoError(t, q.Complete(id, nil, at))
	}
}

// statuses returns the status of every task, in order.
func statuses(q *idQueue) (list []task.Status) {
	for i := range q.Len() {
		list = append(list, q.Status(i))
	}
	return list
}

func TestNewBlocksWhatHasDependencies(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c"))
	require.Equal(t, []task.Status{task.Pending, task.Blocked, task.Pending}, statuses(q))
	require.Equal(t, counts{Total: 3, Pending: 2, Blocked: 1}, progress(q))
}

func TestCompletePromotesDependentsWithoutOpenDependencies(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"), one("c", "a", "b"), one("d", "a"))
	want := result(t, "a", "text")
	require.NoError(t, q.Start("a", at))
	require.NoError(t, q.Complete("a", want, at.Add(time.Second)))
	require.Equal(t, []task.Status{task.Completed, task.Pending, task.Blocked, task.Pending}, statuses(q))
	got, ok := q.Result("a")
	require.True(t, ok)
	require.Same(t, want, got)
	_, ok = q.Result("b")
	require.False(t, ok)
	a, _ := q.Get("a")
	require.Equal(t, task.Completed, a.Status)
	require.Equal(t, at.Add(time.Second), a.UpdatedAt)
}

func TestCompleteRefusesTheResultOfAnotherTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"))
	require.NoError(t, q.Start("a", at))
	require.ErrorIs(t, q.Complete("a", result(t, "b", "x"), at), readyqueue.ErrResult)
	require.Equal(t, task.InProgress, q.Status(0))
}

func TestFailCancelsTransitiveDependents(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c", "b"), one("d", "a", "c"), one("e"), one("f", "c?", "e"))
	require.NoError(t, q.Fail("a", "no answer", at))
	require.Equal(t, []task.Status{task.Failed, task.Failed, task.Failed, task.Failed, task.Pending, task.Blocked}, statuses(q))
	require.Equal(t, "no answer", q.Reason("a"))
	require.Equal(t, `Cancelled: dependency "a" failed.`, q.Reason("b"))
	require.Equal(t, `Cancelled: dependency "b" failed.`, q.Reason("c"))
	require.Equal(t, `Cancelled: dependency "c" failed.`, q.Reason("d")) // depth first reaches d through c
	require.Empty(t, q.Reason("e"))
	for _, id := range []task.ID{"a", "b", "c", "d"} {
		root, ok := q.Root(id)
		require.True(t, ok)
		require.EqualValues(t, "a", root)
	}
	_, ok := q.Root("e")
	require.False(t, ok)
	run(t, q, "e", "f")
	require.True(t, q.IsComplete())
}

func TestSkipSkipsTransitiveDependents(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b", "a"), one("c", "b?"))
	require.NoError(t, q.Skip("a", "not needed", at))
	require.Equal(t, []task.Status{task.Skipped, task.Skipped, task.Pending}, statuses(q))
	require.Equal(t, "not needed", q.Reason("a"))
	require.Equal(t, `Skipped: dependency "a" was skipped.`, q.Reason("b"))
}

// unexplained is a reason to skip tasks that has no words.
func unexplained(int) string { return "" }

func TestSkipRemaining(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"), one("c", "a"), one("d"), one("e", "d"))
	run(t, q, "a")
	require.NoError(t, q.Fail("d", "x", at))
	require.NoError(t, q.Start("b", at))
	q.SkipRemaining(unexplained, at)
	require.Equal(t, []task.Status{task.Completed, task.Skipped, task.Skipped, task.Failed, task.Failed}, statuses(q))
	require.Equal(t, "Skipped: approval rejected.", q.Reason("c"))
	root, _ := q.Root("c")
	require.EqualValues(t, "c", root)
	q.SkipRemaining(func(int) string { return "Skipped: run aborted." }, at) // nothing is left
	require.Equal(t, "Skipped: approval rejected.", q.Reason("c"))
}

func TestIllegalTransitionsNameBothStates(t *testing.T) {
	t.Parallel()
	steps := map[string]func(*idQueue, task.ID) error{
		"start":    func(q *idQueue, id task.ID) error { return q.Start(id, at) },
		"complete": func(q *idQueue, id task.ID) error { return q.Complete(id, nil, at) },
		"fail":     func(q *idQueue, id task.ID) error { return q.Fail(id, "x", at) },
		"skip":     func(q *idQueue, id task.ID) error { return q.Skip(id, "x", at) },
		"retry":    func(q *idQueue, id task.ID) error { return q.Retry(id, at) },
		"requeue":  func(q *idQueue, id task.ID) error { return q.Requeue(id, at) },
	}
	legal := map[string][]task.ID{ // each task is named after its state
		"start": {"pending"}, "complete": {"in_progress"}, "retry": {"in_progress"}, "requeue": {"in_progress"},
		"fail": {"pending", "blocked", "in_progress"}, "skip": {"pending", "blocked", "in_progress"},
	}
	for step, do := range steps {
		for _, id := range []task.ID{"pending", "blocked", "in_progress", "completed", "failed", "skipped"} {
			t.Run(fmt.Sprintf("%s a %s task", step, id), func(t *testing.T) {
				t.Parallel()
				q := newQueue(t, one("pending"), one("blocked", "pending"), one("in_progress"), one("completed"), one("failed"), one("skipped"))
				run(t, q, "completed")
				require.NoError(t, q.Start("in_progress", at))
				require.NoError(t, q.Fail("failed", "x", at))
				require.NoError(t, q.Skip("skipped", "x", at))
				before := q.List()
				err := do(q, id)
				if slices.Contains(legal[step], id) {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, readyqueue.ErrTransition)
				require.ErrorContains(t, err, fmt.Sprintf(`task "T %s": illegal transition from %s to `, id, id))
				require.Equal(t, before, q.List())
			})
		}
		require.ErrorIs(t, do(newQueue(t), "x"), task.ErrUnknown)
	}
}

func TestRetryHoldsNoSlot(t *testing.T) {
	t.Parallel()
	a, b := one("a"), one("b")
	a.Assignee, b.Assignee = "w", "w"
	q := newQueue(t, a, b)
	q.Limit("w", 1)
	i, ok := q.Queue.Next()
	require.True(t, ok)
	require.NoError(t, q.Queue.Start(i, at))
	_, ok = q.Queue.Next()
	require.False(t, ok)

	require.NoError(t, q.Retry("a", at))
	require.True(t, q.Waiting("a"))
	require.Equal(t, task.InProgress, q.Status(0))
	require.ErrorIs(t, q.Complete("a", nil, at), readyqueue.ErrWaiting)
	require.ErrorIs(t, q.Retry("a", at), readyqueue.ErrWaiting)
	i, ok = q.Queue.Next()
	require.True(t, ok)
	require.Equal(t, 1, i)
	require.NoError(t, q.Queue.Start(i, at))

	require.NoError(t, q.Requeue("a", at))
	require.False(t, q.Waiting("a"))
	require.Equal(t, task.Pending, q.Status(0))
	_, ok = q.Queue.Next()
	require.False(t, ok) // b has the only slot
	require.NoError(t, q.Complete("b", nil, at))
	i, ok = q.Queue.Next()
	require.True(t, ok)
	require.Zero(t, i)
}

func TestSaturatedAgentDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	var tasks []task.Task
	for i := range 6 {
		tasks = append(tasks, one(task.ID(fmt.Sprint(i))))
		tasks[i].Assignee = []string{"busy", "busy", "busy", "free", "busy", "free"}[i]
	}
	q := newQueue(t, tasks...)
	q.Limit("busy", 2)
	require.Equal(t, []int{0, 1, 3, 5}, drain(q))
	require.NoError(t, q.Skip("2", "x", at)) // parked, and gone
	require.NoError(t, q.Start("0", at))
	require.NoError(t, q.Complete("0", nil, at))
	require.Equal(t, []int{4}, drain(q))
	require.NoError(t, q.Requeue("1", at)) // handed out, given back
	require.Equal(t, []int{1}, drain(q))
	require.Empty(t, drain(q))
	q.Limit("busy", 0)
	require.Empty(t, drain(q))
}

// drain takes everything that is ready.
func drain(q *idQueue) (got []int) {
	for {
		i, ok := q.Queue.Next()
		if !ok {
			return got
		}
		got = append(got, i)
	}
}

func TestNextReturnsRequeuedTasks(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"))
	require.NoError(t, q.Start("a", at))
	got, _ := q.firstPending()
	require.EqualValues(t, "b", got.ID)
	require.NoError(t, q.Requeue("a", at))
	got, _ = q.firstPending()
	require.EqualValues(t, "a", got.ID)
}

func TestTaskIsDispatchedOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"), one("b"))
	require.Equal(t, []int{0, 1}, drain(q))
	require.NoError(t, q.Requeue("a", at))
	require.NoError(t, q.Start("a", at)) // not by way of NextReady
	require.NoError(t, q.Requeue("a", at))
	require.Equal(t, []int{0}, drain(q))
}

func TestLongChain(t *testing.T) {
	t.Parallel()
	n := 10_000
	if slowtest.Enabled() {
		n = 100_000
	}
	tasks := make([]task.Task, n)
	for i := range tasks {
		tasks[i] = one(task.ID(fmt.Sprint(i)))
		if i > 0 {
			tasks[i].DependsOn = []task.Ref{{Task: string(tasks[i-1].ID)}}
		}
	}
	q := newQueue(t, tasks...)
	for i := range n / 2 {
		got, ok := q.Queue.Next()
		require.True(t, ok)
		require.Equal(t, i, got)
		require.NoError(t, q.Queue.Start(i, at))
		require.NoError(t, q.Queue.Complete(i, nil, at))
	}
	require.NoError(t, q.Queue.Fail(n/2, "broken", at))
	require.Equal(t, counts{Total: n, Completed: n / 2, Failed: n / 2}, progress(q))
	require.Equal(t, fmt.Sprintf("Cancelled: dependency %q failed.", fmt.Sprint(n-2)), q.Queue.Reason(n-1))
	root, _ := q.Queue.Root(n - 1)
	require.Equal(t, n/2, root)
}

func TestManyQueuesShareOneGraph(t *testing.T) {
	t.Parallel()
	g, err := graph.New([]task.Task{one("a"), one("b", "a")})
	require.NoError(t, err)
	first, second := &idQueue{readyqueue.New(g)}, &idQueue{readyqueue.New(g)}
	run(t, first, "a", "b")
	require.Equal(t, []task.Status{task.Pending, task.Blocked}, statuses(second))
	require.Equal(t, task.Pending, g.Task(0).Status)
}

func TestZeroQueue(t *testing.T) {
	t.Parallel()
	q := &idQueue{new(readyqueue.Queue)}
	require.True(t, q.IsComplete())
	_, ok := q.Queue.Next()
	require.False(t, ok)
	require.NoError(t, q.Add(one("a")))
	i, ok := q.Queue.Next()
	require.True(t, ok)
	require.Zero(t, i)
}

// How a task ends of whose dependencies one failed and others were not needed, and why, does not
// depend on which of them ended first.
func TestEndsDoNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][]task.ID{{"a", "b", "c"}, {"a", "c", "b"}, {"b", "a", "c"}, {"b", "c", "a"}, {"c", "a", "b"}, {"c", "b", "a"}} {
		q := newQueue(t, one("a"), one("b"), one("c"), one("both", "a", "b"), one("all", "a", "b", "c"), one("late", "both"))
		for _, id := range order {
			switch id {
			case "c":
				require.NoError(t, q.Fail(id, "broken", at))
			default:
				require.NoError(t, q.Omit(q.at(id), "no "+string(id), at))
			}
		}
		require.True(t, q.IsComplete())
		require.Equal(t, []task.Status{task.NotNeeded, task.NotNeeded, task.Failed, task.NotNeeded, task.Failed, task.NotNeeded}, statuses(q), order)
		require.Equal(t, `Not needed: "T a" was not needed.`, q.Reason("both"), order)
		root, _ := q.Root("late")
		require.EqualValues(t, "a", root, order)
		root, _ = q.Root("all")
		require.EqualValues(t, "c", root, order)
	}
}
