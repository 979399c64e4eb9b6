package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
)

// A lateJournal makes each batch durable after a while, one after another, and
// says what is durable.
type lateJournal struct {
	mu      sync.Mutex // guards the rest
	queue   []late
	working bool
	durable []record.Entry
	delay   func(n int) time.Duration
	n       int
	fail    int
	prior   *record.History
}

type late struct {
	entries []record.Entry
	done    func(error)
}

func (j *lateJournal) Append(entries []record.Entry, done func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, late{entries, done})
	if !j.working {
		j.working = true
		go j.work()
	}
}

func (j *lateJournal) work() {
	for {
		j.mu.Lock()
		if len(j.queue) == 0 {
			j.working = false
			j.mu.Unlock()
			return
		}
		next := j.queue[0]
		j.queue = j.queue[1:]
		j.n++
		n := j.n
		j.mu.Unlock()
		time.Sleep(j.delay(n))
		var err error
		j.mu.Lock()
		if j.fail > 0 && n >= j.fail {
			err = errDisk
		} else {
			j.durable = append(j.durable, next.entries...)
		}
		j.mu.Unlock()
		next.done(err)
	}
}

func (j *lateJournal) CachedAnswers(context.Context, record.Key) iter.Seq2[*record.AgentCall, error] {
	return func(func(*record.AgentCall, error) bool) {}
}

func (j *lateJournal) OpenRun(context.Context, record.Opening) (record.Log, error) { return j, nil }

func (j *lateJournal) LoadRun(context.Context, string) (*record.History, error) { return nil, nil }

func (j *lateJournal) History() *record.History { return j.prior }

func (j *lateJournal) Close(context.Context) (string, error) { return "", nil }

func (j *lateJournal) has(is func(*record.Entry) bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.durable {
		if is(&j.durable[i]) {
			return true
		}
	}
	return false
}

func TestLedgerLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) { ledgerLaws(t, rt) })
	})
}

func ledgerLaws(t *testing.T, rt *rapid.T) {
	agents := []string{"worker", "other", "third"}
	n := rapid.IntRange(1, 12).Draw(rt, "tasks")
	specs := make([]task.Spec, n)
	behave := map[string]int{}
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("task %d", i), Description: "x", Assignee: rapid.SampledFrom(agents).Draw(rt, "agent"), MaxRetries: rapid.IntRange(0, 2).Draw(rt, "retries"), RetryDelay: time.Duration(rapid.IntRange(1, 30).Draw(rt, "rd")) * time.Millisecond}
		if rapid.IntRange(0, 5).Draw(rt, "scope") == 0 {
			specs[i].MemoryScope = task.ScopeAll
		}
		if rapid.IntRange(0, 5).Draw(rt, "timeout") == 0 {
			specs[i].Timeout = 20 * time.Millisecond
		}
		if rapid.IntRange(0, 5).Draw(rt, "ttl") == 0 {
			specs[i].TTL = time.Duration(rapid.IntRange(5, 200).Draw(rt, "ttl ms")) * time.Millisecond
		}
		for k := range i {
			if rapid.IntRange(0, 4).Draw(rt, "edge") == 0 {
				specs[i].DependsOn = append(specs[i].DependsOn, task.Ref{Task: specs[k].Title, Optional: rapid.Bool().Draw(rt, "optional")})
			}
		}
		behave[specs[i].Title] = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3, 4}).Draw(rt, "behaviour")
	}
	delays := rapid.SliceOfN(rapid.IntRange(0, 25), 4, 4).Draw(rt, "delays")
	works := rapid.SliceOfN(rapid.IntRange(0, 60), 4, 4).Draw(rt, "works")
	j := &lateJournal{delay: func(n int) time.Duration { return time.Duration(delays[n%4]) * time.Millisecond }}
	if rapid.IntRange(0, 3).Draw(rt, "breaks") == 0 {
		j.fail = rapid.IntRange(1, 20).Draw(rt, "fails at")
	}
	most, each := rapid.IntRange(1, 4).Draw(rt, "at once"), rapid.IntRange(0, 2).Draw(rt, "max parallel")
	budget := rapid.SampledFrom([]int{0, 0, 0, 40}).Draw(rt, "budget")
	var mu sync.Mutex
	running, by, calls := 0, map[string]int{}, 0
	tries := map[string]int{}
	does := func(name string) agentFunc {
		return func(ctx context.Context, p prompt.Prompt) (r agent.Reply, err error) {
			title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
			if !j.has(func(e *record.Entry) bool { return e.Asked != nil && e.Asked.Session == p.Receipt().Session }) {
				t.Errorf("%s was sent before it was durable", title)
			}
			if !j.has(func(e *record.Entry) bool {
				return e.Record != nil && e.Record.Prompt != nil && e.Record.Prompt.Receipt.Session == p.Receipt().Session
			}) {
				t.Errorf("the record of %s was not durable", title)
			}
			mu.Lock()
			running++
			by[name]++
			calls++
			tries[title]++
			first := tries[title] == 1
			if running > most {
				t.Errorf("%d at once", running)
			}
			if each > 0 && by[name] > each {
				t.Errorf("%d of %s at once", by[name], name)
			}
			w := works[calls%4]
			mu.Unlock()
			defer func() {
				mu.Lock()
				running--
				by[name]--
				mu.Unlock()
			}()
			select {
			case <-time.After(time.Duration(w) * time.Millisecond):
			case <-ctx.Done():
				return r, ctx.Err()
			}
			switch behave[title] {
			case 1:
				return r, errors.New("no")
			case 2:
				panic("oh")
			case 3:
				runtime.Goexit()
			case 4:
				if first {
					return r, errors.New("once")
				}
			}
			return agent.Reply{Text: "did " + title, Usage: llm.Usage{InputTokens: 3, OutputTokens: 2}, Turns: 1}, nil
		}
	}
	cfg := engine.Config{}
	for _, name := range agents {
		cfg.Agents = append(cfg.Agents, engine.Member{Name: name, Agent: engine.AgentFunc(does(name)), Backend: plan.Backend{Version: "1"}, Accepts: label.Confidential, MaxParallel: each})
	}
	tm, err := engine.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if rapid.IntRange(0, 2).Draw(rt, "cancels") == 0 {
		time.AfterFunc(time.Duration(rapid.IntRange(0, 150).Draw(rt, "cancel at"))*time.Millisecond, cancel)
	}
	seq, breaks := 0, j.fail > 0
	monitor := &record.Monitor{}
	o := &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: most, Budget: plan.Budget{MaxTokenBudget: budget}, Monitor: monitor, Subscribers: []func(event.Event){func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Seq != seq+1 && !(breaks && e.Seq > seq) { // what is not durable is left out
			t.Errorf("event %d after %d", e.Seq, seq)
		}
		seq = e.Seq
		if !breaks && e.Type == event.TaskComplete && !j.has(func(x *record.Entry) bool {
			return x.Exchange != nil && x.Exchange.Completed() && x.Exchange.Task == e.Task
		}) {
			t.Errorf("%s was told complete, and is not durable", e.Title)
		}
	}}}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(7 * time.Millisecond):
			}
			s, ok := looked(monitor)
			if !ok || breaks {
				continue
			}
			q, err := queue.FromSnapshot(s.Queue, envelope.Header{})
			if err != nil {
				t.Error(err)
				continue
			}
			for _, tk := range q.List(task.Completed) {
				if !j.has(func(x *record.Entry) bool {
					return x.Exchange != nil && x.Exchange.Completed() && x.Exchange.Task == tk.ID
				}) {
					t.Errorf("the monitor shows %s complete, and it is not durable", tk.Title)
				}
			}
		}
	}()
	res, err := tm.RunTasks(ctx, specs, o)
	close(ended)
	require.NoError(t, err)
	if j.fail == 0 {
		require.NoError(t, res.JournalErr)
		done := 0
		for _, tk := range res.Tasks {
			if tk.Status == task.Completed {
				done++
				require.True(t, j.has(func(x *record.Entry) bool {
					return x.Exchange != nil && x.Exchange.Completed() && x.Exchange.Task == tk.ID
				}))
			}
		}
		require.True(t, j.has(func(e *record.Entry) bool { return e.End != nil }))
		if ctx.Err() == nil && budget == 0 {
			for _, tk := range res.Tasks {
				require.NotEqual(t, task.InProgress, tk.Status)
				require.NotEqual(t, task.Pending, tk.Status)
			}
		}
	}
	// it goes on, and comes to an end
	h := &record.History{}
	for _, e := range j.durable {
		switch {
		case e.Begin != nil:
			h.Begins = append(h.Begins, *e.Begin)
		case e.Asked != nil, e.Begun != nil, e.Exchange != nil:
			h.Log = append(h.Log, e)
		case e.End != nil:
			h.End = e.End
		}
	}
	was := map[task.ID]string{}
	for _, tk := range res.Tasks {
		if tk.Status == task.Completed {
			was[tk.ID] = tk.Result
		}
	}
	fail := j.fail
	behave = map[string]int{}
	mu.Lock()
	tries = map[string]int{}
	seq = 0
	mu.Unlock()
	j.fail = 0
	o2 := *o
	j.prior, o2.Monitor, o2.MaxTokenBudget = h, nil, 0
	again, err := start(context.Background(), tm, specs, &o2)
	require.NoError(t, err)
	if fail == 0 {
		for id, result := range was {
			for _, tk := range again.Tasks {
				if tk.ID == id && tk.Status == task.Completed && tk.Result != result && !strings.Contains(tk.Result+result, "withheld") {
					t.Errorf("%s is another one: %q became %q", tk.Title, result, tk.Result)
				}
			}
		}
	}
	synctest.Wait()
}

func looked(m *record.Monitor) (s record.Snapshot, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	s, err := m.Snapshot(ctx)
	return s, err == nil && s.Queue != nil
}
