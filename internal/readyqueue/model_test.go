package readyqueue_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// drawTasks returns tasks in any order whose dependencies, some of them
// optional, form no cycle.
func drawTasks(t *rapid.T) []task.Task {
	n := rapid.IntRange(0, 14).Draw(t, "n")
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	place := rapid.Permutation(numbers).Draw(t, "place")
	tasks := make([]task.Task, n)
	for i := range tasks {
		var deps []string
		for j := range n {
			if place[j] < place[i] && rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				deps = append(deps, fmt.Sprint(j)+rapid.SampledFrom([]string{"", "", "?"}).Draw(t, "optional"))
			}
		}
		tasks[i] = one(task.ID(fmt.Sprint(i)), deps...)
		if n := rapid.IntRange(0, len(deps)).Draw(t, "alternatives"); n > 1 && rapid.Bool().Draw(t, "oneOf") {
			setOneOf(tasks[i].DependsOn[:n])
		}
		tasks[i].Assignee = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "assignee")
		tasks[i].Priority = rapid.SampledFrom([]task.Priority{task.Normal, task.Low, task.High, task.Critical}).Draw(t, "priority")
	}
	return tasks
}

// setOneOf makes dependencies alternatives.
func setOneOf(all []task.Ref) {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.Task)
	}
	for k := range all {
		all[k].OneOf = ids
	}
}

// loose reports whether a task may run without a dependency, or must be ended by the caller.
func loose(d task.Ref) bool { return d.Optional || len(d.OneOf) > 0 }

// A model is the queue written as plainly as possible.
type model struct {
	tasks          []task.Task
	status         []task.Status
	taken, waiting []bool
	root           []int
	followed       map[int]bool // ended by Follow, which need not name a dependency
	limit          map[string]int
	group          map[int]int // of tasks in a group with a limit, the group
	most           []int       // of each group
}

func newModel(tasks []task.Task) *model {
	n := len(tasks)
	m := &model{tasks, make([]task.Status, n), make([]bool, n), make([]bool, n), make([]int, n), map[int]bool{}, map[string]int{}, map[int]int{}, nil}
	for i := range tasks {
		m.status[i], m.root[i] = task.Blocked, -1
	}
	m.promote()
	return m
}

func (m *model) index(id task.ID) int {
	return slices.IndexFunc(m.tasks, func(t task.Task) bool { return t.ID == id })
}

// promote ends or makes ready the blocked tasks whose dependencies have all ended.
func (m *model) promote() {
	for again := true; again; {
		again = false
		for i, t := range m.tasks {
			if m.status[i] != task.Blocked || slices.ContainsFunc(t.DependsOn, func(d task.Ref) bool {
				s := m.status[m.index(task.ID(d.Task))]
				return !s.Terminal() || !loose(d) && s != task.Completed && s != task.NotNeeded
			}) {
				continue
			}
			m.status[i] = task.Pending
			for _, d := range t.DependsOn {
				if up := m.index(task.ID(d.Task)); !loose(d) && m.status[up] == task.NotNeeded {
					m.status[i], m.root[i], again = task.NotNeeded, m.root[up], true
					break
				}
			}
		}
	}
}

// end ends a task, and unless it is completed whatever depends on it.
func (m *model) end(i int, how task.Status) { m.endWith(i, i, how) }

// endWith ends a task because of a root.
func (m *model) endWith(task0, i int, how task.Status) {
	m.status[task0], m.taken[task0], m.waiting[task0] = how, false, false
	if how != task.Completed {
		m.root[task0] = i
	}
	for again := how == task.Failed || how == task.Skipped; again; {
		again = false
		for k, t := range m.tasks {
			if !m.status[k].Terminal() && slices.ContainsFunc(t.DependsOn, func(d task.Ref) bool {
				return !loose(d) && m.root[m.index(task.ID(d.Task))] == i
			}) {
				m.status[k], m.root[k], m.taken[k], again = how, i, false, true
			}
		}
	}
	m.promote()
}

func (m *model) height(i int) (h int) {
	for k, t := range m.tasks {
		for _, d := range t.DependsOn {
			if task.ID(d.Task) == m.tasks[i].ID {
				h = max(h, m.height(k)+1)
			}
		}
	}
	return h
}

func (m *model) dependents(i int) (n int) {
	for _, t := range m.tasks {
		for _, d := range t.DependsOn {
			if task.ID(d.Task) == m.tasks[i].ID {
				n++
			}
		}
	}
	return n
}

// next returns the best ready task by sorting all of them, or -1.
func (m *model) next() int {
	busy, grouped := map[string]int{}, map[int]int{}
	for i, t := range m.tasks {
		if m.taken[i] || m.status[i] == task.InProgress && !m.waiting[i] {
			busy[t.Assignee]++
			if g, is := m.group[i]; is {
				grouped[g]++
			}
		}
	}
	var ready []int
	for i, t := range m.tasks {
		if g, is := m.group[i]; is && grouped[g] >= m.most[g] {
			continue
		}
		if limit := m.limit[t.Assignee]; m.status[i] == task.Pending && !m.taken[i] && (limit == 0 || busy[t.Assignee] < limit) {
			ready = append(ready, i)
		}
	}
	slices.SortStableFunc(ready, func(a, b int) int {
		for _, d := range []int{
			m.height(b) - m.height(a), m.dependents(b) - m.dependents(a), rankOf(m.tasks[b].Priority) - rankOf(m.tasks[a].Priority),
		} {
			if d != 0 {
				return d
			}
		}
		return a - b
	})
	if len(ready) == 0 {
		return -1
	}
	return ready[0]
}

func TestQueueAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		q, m := newQueue(t, slices.Clone(tasks)...), newModel(tasks)
		for g := range rapid.IntRange(0, 2).Draw(t, "groups") {
			var group []int32
			for i := range tasks {
				if _, is := m.group[i]; !is && rapid.Bool().Draw(t, "grouped") {
					m.group[i], group = g, append(group, int32(i))
				}
			}
			m.most = append(m.most, rapid.IntRange(1, 3).Draw(t, "most"))
			q.LimitGroup(group, m.most[g])
		}
		pick := func(t *rapid.T) int {
			if len(tasks) == 0 {
				t.Skip("no tasks")
			}
			return rapid.IntRange(0, len(tasks)-1).Draw(t, "task")
		}
		// try does a step if the model allows it, and requires an error if not.
		try := func(t *rapid.T, allowed bool, err error, then func()) {
			if !allowed {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			then()
		}
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				coming := q.Upcoming(rapid.IntRange(1, len(tasks)+1).Draw(t, "coming"))
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(coming))), len(coming), "each once")
				for _, i := range coming {
					require.True(t, m.status[i] == task.Pending && !m.taken[i])
				}
				i, ok := q.Queue.Next()
				want := m.next()
				require.Equal(t, want >= 0, ok)
				if ok && len(m.limit)+len(m.group) == 0 {
					require.Equal(t, i, coming[0])
				}
				if ok {
					require.Equal(t, want, i)
					m.taken[i] = true
				}
			},
			"start": func(t *rapid.T) {
				i := pick(t)
				try(t, m.status[i] == task.Pending, q.Queue.Start(i, at), func() { m.status[i], m.taken[i] = task.InProgress, false })
			},
			"complete": func(t *rapid.T) {
				i := pick(t)
				allowed := m.status[i] == task.InProgress && !m.waiting[i]
				try(t, allowed, q.Queue.Complete(i, nil, at), func() { m.end(i, task.Completed) })
			},
			"fail": func(t *rapid.T) {
				i := pick(t)
				try(t, !m.status[i].Terminal(), q.Queue.Fail(i, "x", at), func() { m.end(i, task.Failed) })
			},
			"skip": func(t *rapid.T) {
				i := pick(t)
				try(t, !m.status[i].Terminal(), q.Queue.Skip(i, "x", at), func() { m.end(i, task.Skipped) })
			},
			"omit": func(t *rapid.T) {
				i := pick(t)
				try(t, m.status[i] == task.Pending || m.status[i] == task.Blocked, q.Queue.Omit(i, "x", at), func() { m.end(i, task.NotNeeded) })
			},
			"follow": func(t *rapid.T) {
				i, j := pick(t), pick(t)
				allowed := m.root[j] >= 0 && !m.status[i].Terminal() && (m.status[i] != task.InProgress || m.status[j] != task.NotNeeded)
				try(t, allowed, q.Queue.Follow(i, j, at), func() { m.followed[i] = true; m.endWith(i, m.root[j], m.status[j]) })
			},
			"retry": func(t *rapid.T) {
				i := pick(t)
				allowed := m.status[i] == task.InProgress && !m.waiting[i]
				try(t, allowed, q.Queue.Retry(i, at), func() { m.waiting[i] = true })
			},
			"requeue": func(t *rapid.T) {
				i := pick(t)
				try(t, m.status[i] == task.InProgress || m.taken[i], q.Queue.Requeue(i, at), func() {
					m.status[i], m.taken[i], m.waiting[i] = task.Pending, false, false
				})
			},
			"limit": func(t *rapid.T) {
				agent := rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "agent")
				m.limit[agent] = rapid.IntRange(0, 3).Draw(t, "limit")
				q.Limit(agent, m.limit[agent])
			},
			"": func(t *rapid.T) { requireModel(t, m, q) },
		})
	})
}

// requireModel requires every answer of the queue to be that of the model.
func requireModel(t *rapid.T, m *model, q *idQueue) {
	count := map[task.Status]int{}
	for i, one := range m.tasks {
		count[m.status[i]]++
		require.Equal(t, m.status[i], q.Status(i), "task %d", i)
		require.Equal(t, m.waiting[i], q.Waiting(one.ID))
		root, ok := q.Queue.Root(i)
		require.Equal(t, m.root[i] >= 0, ok)
		if !ok {
			require.Empty(t, q.Queue.Reason(i))
			continue
		}
		require.Equal(t, m.root[i], root)
		if root == i {
			require.Equal(t, "x", q.Queue.Reason(i))
			continue
		}
		if m.followed[i] {
			require.NotEmpty(t, q.Queue.Reason(i))
			continue
		}
		require.True(t, slices.ContainsFunc(one.DependsOn, func(d task.Ref) bool {
			text := fmt.Sprintf("Cancelled: dependency %q failed.", task.ID(d.Task))
			switch m.status[i] {
			case task.Skipped:
				text = fmt.Sprintf("Skipped: dependency %q was skipped.", task.ID(d.Task))
			case task.NotNeeded:
				text = fmt.Sprintf("Not needed: %q was not needed.", "T "+d.Task)
			}
			return !loose(d) && m.root[m.index(task.ID(d.Task))] == root && text == q.Queue.Reason(i)
		}), "the reason of task %d names a direct dependency that ended so: %s", i, q.Queue.Reason(i))
	}
	require.Equal(t, counts{
		Total: len(m.tasks), Completed: count[task.Completed], Failed: count[task.Failed], Skipped: count[task.Skipped], NotNeeded: count[task.NotNeeded],
		InProgress: count[task.InProgress], Pending: count[task.Pending], Blocked: count[task.Blocked],
	}, progress(q))
	require.Equal(t, q.IsComplete(), count[task.Pending]+count[task.Blocked]+count[task.InProgress] == 0)
	var pending []int
	for i := range m.tasks {
		if m.status[i] == task.Pending {
			pending = append(pending, i)
		}
	}
	require.Equal(t, pending, slices.Collect(q.Pending()))
}

// outcome decides what becomes of a task, always alike.
func outcome(id task.ID) task.Status {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return []task.Status{task.Completed, task.Completed, task.Completed, task.Failed, task.Skipped, task.NotNeeded}[h.Sum32()%6]
}

// step runs the next ready task to its outcome.
func step(t require.TestingT, q *idQueue) bool {
	i, ok := q.Queue.Next()
	if !ok {
		return false
	}
	id := q.Task(i).ID
	if outcome(id) == task.NotNeeded {
		require.NoError(t, q.Queue.Omit(i, "x", at))
		return true
	}
	require.NoError(t, q.Queue.Start(i, at))
	switch outcome(id) {
	case task.Failed:
		require.NoError(t, q.Queue.Fail(i, "x", at))
	case task.Skipped:
		require.NoError(t, q.Queue.Skip(i, "x", at))
	default:
		require.NoError(t, q.Queue.Complete(i, result(t, id, "result of "+string(id)), at))
	}
	return true
}

// final is everything that a queue knows at the end, as JSON.
func final(t require.TestingT, q *idQueue) string {
	require.True(t, q.IsComplete())
	data, err := json.Marshal(q.Snapshot())
	require.NoError(t, err)
	return string(data)
}

func TestEachTaskBecomesReadyOnceAndAfterItsDependencies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		q := newQueue(t, slices.Clone(tasks)...)
		ready, ended := map[task.ID]int{}, 0
		q.On(readyqueue.Ready, func(one task.Task) {
			ready[one.ID]++
			require.True(t, task.Ready(one, q.Get))
		})
		q.On(readyqueue.AllComplete, func(task.Task) { ended++ })
		for step(t, q) {
		}
		require.True(t, q.IsComplete())
		require.Equal(t, min(len(tasks), 1), ended)
		for i, one := range tasks {
			cascaded := false
			if root, ok := q.Queue.Root(i); ok {
				cascaded = root != i
			}
			want := 1
			if len(one.DependsOn) == 0 || cascaded {
				want = 0 // ready from the start, or never
			}
			require.Equal(t, want, ready[one.ID], "task %d", i)
		}
	})
}

func TestSnapshotAtAnyPointEndsInTheSameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		q := newQueue(t, slices.Clone(tasks)...)
		for range rapid.IntRange(0, len(tasks)).Draw(t, "steps") {
			step(t, q)
		}
		var running []int
		for range rapid.IntRange(0, 3).Draw(t, "running") {
			if i, ok := q.Queue.Next(); ok {
				running = append(running, i)
				if rapid.Bool().Draw(t, "started") {
					require.NoError(t, q.Queue.Start(i, at))
				}
			}
		}
		data, err := json.Marshal(q.Snapshot())
		require.NoError(t, err)
		var s readyqueue.Snapshot
		require.NoError(t, json.Unmarshal(data, &s))
		restored, err := restore(s, envelope.Header{})
		require.NoError(t, err)

		for _, i := range running { // as the restored queue has done
			require.NoError(t, q.Queue.Requeue(i, at))
		}
		require.Equal(t, statuses(q), statuses(restored))
		for step(t, q) {
			require.True(t, step(t, restored))
		}
		require.Equal(t, final(t, q), final(t, restored))
	})
}

func TestAddingOneByOneEndsInTheSameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := drawTasks(t)
		whole, grown := newQueue(t, slices.Clone(tasks)...), newQueue(t)
		for step(t, whole) {
		}
		for _, i := range rapid.Permutation(slices.Collect(func(yield func(int) bool) {
			for i := range tasks {
				if !yield(i) {
					return
				}
			}
		})).Draw(t, "order") {
			require.NoError(t, grown.Add(tasks[i]))
			if rapid.Bool().Draw(t, "run") {
				step(t, grown)
			}
		}
		for step(t, grown) {
		}
		require.True(t, grown.IsComplete())
		for _, want := range whole.List() {
			got, ok := grown.Get(want.ID)
			require.True(t, ok)
			// Which of two ended dependencies comes first may differ: failed or skipped.
			require.Equal(t, want.Status == task.Completed, got.Status == task.Completed)
		}
	})
}

func TestRestoredQueueKeepsMissingDependencies(t *testing.T) {
	t.Parallel()
	q := newQueue(t, one("a"))
	require.NoError(t, q.Add(one("b", "late", "a")))
	require.NoError(t, q.Add(one("c", "late?")))
	restored, err := restore(q.Snapshot(), envelope.Header{})
	require.NoError(t, err)
	run(t, restored, "a")
	require.Equal(t, []task.Status{task.Completed, task.Blocked, task.Blocked}, statuses(restored))
	require.ErrorIs(t, restored.Add(one("late", "b")), task.ErrCycle)
	require.NoError(t, restored.Add(one("late")))
	require.NoError(t, restored.Fail("late", "x", at))
	require.Equal(t, []task.Status{task.Completed, task.Failed, task.Pending, task.Failed}, statuses(restored))
}

func rankOf(p task.Priority) int {
	return slices.Index([]task.Priority{task.Low, task.Normal, task.High, task.Critical}, p)
}
