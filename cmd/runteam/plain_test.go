package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/task"
)

func TestPlainIsALineForEachEvent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPlain(planOf(3), &out, noon)
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	for _, e := range []event.Event{
		{Type: event.RunStart, Time: noon, Tasks: 3},
		{Type: event.Warning, Time: noon, Message: "was said before the run, at its place"},
		{Type: event.Reveal, Time: noon, Message: "the caller reads up to secret"},
		{Type: event.TaskStart, Task: "0", Title: "Task 0", Agent: "a", Time: at(100), Attempt: 1},
		{Type: event.AgentStart, Task: "0", Title: "Task 0", Agent: "a", Time: at(100), Attempt: 1},
		{Type: event.TaskRetry, Task: "0", Title: "Task 0", Agent: "a", Time: at(1300), Attempt: 1, Message: "server error (500)\nand more", Wait: 1500 * time.Millisecond},
		{Type: event.TaskComplete, Task: "0", Title: "Task 0", Agent: "a", Time: at(62_000), Status: task.Completed, Duration: 61_900 * time.Millisecond, Input: 1000, Output: 2},
		{Type: event.Error, Task: "1", Title: "Task 1", Agent: "b", Time: at(62_000), Status: task.Failed, Message: "\u202eno"},
		{Type: event.Error, Task: "3", Title: "Task 3", Agent: "b", Time: at(62_000), Status: task.Failed, Root: "1", Because: "Task 1", Message: "x"},
		{Type: event.Warning, Task: "4", Title: "Market", Agent: "librarian", Time: at(62_000), Attempt: 1, Message: "server error (500)", Wait: 1200 * time.Millisecond},
		{Type: event.TaskSkipped, Task: "2", Title: "Task 2", Agent: "b", Time: at(62_100), Status: task.Skipped, Message: "interrupted"},
	} {
		p.take(e)
	}
	require.Equal(t, strings.TrimPrefix(`
   0.0s  reveal    the caller reads up to secret
   0.1s  start     Task 0 (a)
   1.3s  retry     Task 0 (a): attempt 1: server error (500)\nand more; again in 1.5s
  1m02s  done      Task 0 (a) in 1m01s, 1,000 tokens in, 2 out
  1m02s  failed    Task 1 (b): \u202eno
  1m02s  not run   Task 3 (b): because "Task 1" failed
  1m02s  again     Market (librarian): server error (500); again in 1.2s
  1m02s  skipped   Task 2 (b): interrupted
`, "\n"), out.String())
}

func TestPlainShowsThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newPlain(planOf(2), &out, time.Now())
		stop := every(time.Second, func() { p.beat(time.Now()) })
		p.take(event.Event{Type: event.TaskStart, Title: "Slow", Agent: "a", Time: time.Now(), Attempt: 1})
		time.Sleep(95 * time.Second)
		stop()
		require.Equal(t, strings.TrimPrefix(`
   0.0s  start     Slow (a)
  30.0s  working   0 of 2 tasks done; running: Slow
  1m00s  working   0 of 2 tasks done; running: Slow
  1m30s  working   0 of 2 tasks done; running: Slow
`, "\n"), out.String())
	})
}
