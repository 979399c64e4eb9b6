package engine_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
)

// TestTheFoldIsTheStateOfTheRunAtEachCall checks, for drawn teams with branches, loops, lists, judges, people and tools,
// that whenever an agent is called the entries that were stored so far say of each task what the run itself knows: in a
// run, and in one that continues after any part of the entries, as after a crash.
func TestTheFoldIsTheStateOfTheRunAtEachCall(t *testing.T) {
	t.Parallel()
	for _, seed := range chosenDecisions[:cmp.Or(len(chosenDecisions)/slowtest.Every(5), 1)] {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := rapid.Custom(drawDecisions).Example(seed)
			j := new(memory)
			calls := playComparing(t, s, j)
			require.NotZero(t, calls)
			for _, part := range []int{1, len(j.batches) / 3, 2 * len(j.batches) / 3} {
				playComparing(t, s, after(j.history(max(part, 1))))
			}
		})
	}
}

// playComparing runs a setting on a journal, and compares the run with its entries at each call of an agent. It returns how
// often it did.
func playComparing(t *testing.T, s *decisionSetting, j *memory) int64 {
	var calls atomic.Int64 // agents are called side by side
	st, err := s.build()
	require.NoError(t, err)
	o := s.options(st, 0)
	o.Journal, o.Monitor, o.MaxConcurrency = j, new(record.Monitor), 3
	st.called = nil
	st.moment = func() {
		before, err := o.Monitor.Snapshot(t.Context())
		require.NoError(t, err)
		said := j.statuses()
		after, err := o.Monitor.Snapshot(t.Context())
		require.NoError(t, err)
		if before.Queue == nil || !bytes.Equal(before.Queue, after.Queue) { // a goal without a plan, or other tasks work meanwhile
			return
		}
		calls.Add(1)
		for id, status := range statusesIn(t, before.Queue) {
			recalled := j.prior != nil && said[id] == task.Completed && status == task.Pending // its recorded answer is taken later
			if said[id] != status && !recalled {
				t.Errorf("task %s is %s, and its entries say %s", id, status, said[id])
			}
		}
	}
	_, err = start(t.Context(), st.team, s.specs, o)
	require.NoError(t, err)
	return calls.Load()
}

// statuses returns the statuses of tasks by the entries so far, as for somebody who looks at the run. What has not begun
// is pending.
func (m *memory) statuses() map[task.ID]task.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Live = true
	defer func() { m.state.Live = false }()
	list := map[task.ID]task.Status{}
	for _, t := range m.state.Tasks() {
		if list[t.ID] = m.state.Status(t); list[t.ID] == task.Blocked {
			list[t.ID] = task.Pending
		}
	}
	return list
}

// statusesIn returns the statuses of tasks in the snapshot of a queue. What has not begun is pending.
func statusesIn(t *testing.T, queue json.RawMessage) map[task.ID]task.Status {
	var of struct{ Pending, Blocked, InProgress, Completed, Failed, Skipped, NotNeeded []task.ID }
	require.NoError(t, json.Unmarshal(queue, &of))
	list := map[task.ID]task.Status{}
	for status, ids := range map[task.Status][]task.ID{
		task.Pending: slices.Concat(of.Pending, of.Blocked), task.InProgress: of.InProgress, task.Completed: of.Completed,
		task.Failed: of.Failed, task.Skipped: of.Skipped, task.NotNeeded: of.NotNeeded,
	} {
		for _, id := range ids {
			list[id] = status
		}
	}
	return list
}
