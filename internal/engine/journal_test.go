package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// memory is a journal in memory, which a test may ask what it had at any time.
type memory struct {
	mu      sync.Mutex // guards the rest
	batches [][]record.Entry
	others  []record.AgentCall // of other runs
	prior   *record.History
	queue   []func(error)
	busy    bool
	fail    int // from which batch on it fails; zero means never
	refused int // batches, since then

	state *runstate.State // of what was appended; nil before the run is opened
}

var errDisk = errors.New("no space left on device")

func (m *memory) Append(entries []record.Entry, done func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var err error
	if m.fail > 0 && len(m.batches) >= m.fail {
		err = errDisk
		m.refused++
	} else {
		m.fold(entries)
		m.batches = append(m.batches, withoutTaskEnds(entries))
	}
	m.queue = append(m.queue, func(error) { done(err) })
	if !m.busy {
		m.busy = true
		go m.work()
	}
}

// work calls done in order, apart from whoever appends.
func (m *memory) work() {
	for {
		m.mu.Lock()
		if len(m.queue) == 0 {
			m.busy = false
			m.mu.Unlock()
			return
		}
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.mu.Unlock()
		next(nil)
	}
}

func (m *memory) CachedAnswers(_ context.Context, key record.Key) iter.Seq2[*record.AgentCall, error] {
	return func(yield func(*record.AgentCall, error) bool) {
		for _, x := range slices.Backward(m.others) {
			if x.Reuse == key && x.Reusable && x.Completed() && !yield(&x, nil) {
				return
			}
		}
	}
}

func (m *memory) OpenRun(_ context.Context, o record.Opening) (record.Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state = runstate.New(); o.Resume && m.prior != nil {
		m.state = runstate.Of(m.prior)
	}
	return m, nil
}

// fold adds entries to the state of the run. What the end of a run says of its tasks comes from the run that works; it
// must be what the entries say that a later process reads.
func (m *memory) fold(entries []record.Entry) {
	if m.state == nil { // a test appends without a run
		return
	}
	for i := range entries {
		for _, e := range withoutTaskEnds(entries[i : i+1]) {
			m.state.Apply(&e)
		}
		if end := entries[i].End; end != nil {
			for _, e := range end.Tasks {
				m.compare(&e)
			}
		}
	}
}

// withoutTaskEnds returns entries as a journal stores them: the end of the run does not say how the tasks ended.
func withoutTaskEnds(entries []record.Entry) []record.Entry {
	stored := slices.Clone(entries)
	for i := range stored {
		if end := stored[i].End; end != nil {
			stored[i].End = new(*end)
			stored[i].End.Tasks = nil
		}
	}
	return stored
}

// compare panics unless a task ended as the state says.
func (m *memory) compare(e *record.TaskEnd) {
	t := m.state.Task(e.Task, "", "")
	status, made := m.state.Status(t), m.state.Attempts(t)
	if accepted := m.state.EndOf(t).Accepted; status != e.Status || made.Begun() != e.Attempts || accepted != e.Accepted {
		panic(fmt.Sprintf("task %q ended %s (accepted %t) after %d attempts, and its entries say %s (%t) and %+v", e.Title, e.Status, e.Accepted, e.Attempts, status, accepted, made))
	}
}

func (m *memory) LoadRun(context.Context, string) (*record.History, error) { return m.prior, nil }

func (m *memory) History() *record.History { return m.prior }

func (m *memory) Close(context.Context) (string, error) { return "", nil }

// after makes the journal one that has this history of a run.
func (m *memory) after(h *record.History) *memory {
	m.prior = h
	return m
}

// after is a journal that has this history of a run.
func after(h *record.History) *memory { return new(memory).after(h) }

// start runs tasks; it resumes or replays them if the journal of the options has a
// history of the run.
func start(ctx context.Context, tm *engine.Team, specs []task.Spec, o *engine.RunOptions) (*engine.Result, error) {
	if !hasPrior(o) {
		return tm.RunTasks(ctx, specs, o)
	}
	o.Tasks = specs
	return startPrior(ctx, tm, o)
}

// startGoal does the same with a goal.
func startGoal(ctx context.Context, tm *engine.Team, goal engine.Goal, o *engine.RunOptions) (*engine.Result, error) {
	if !hasPrior(o) {
		return tm.RunTeam(ctx, goal, o)
	}
	o.Answer = &goal
	return startPrior(ctx, tm, o)
}

func hasPrior(o *engine.RunOptions) bool {
	if o == nil {
		return false
	}
	j, ok := o.Journal.(interface{ History() *record.History })
	return ok && j.History() != nil
}

func startPrior(ctx context.Context, tm *engine.Team, o *engine.RunOptions) (*engine.Result, error) {
	if o.Replay != nil {
		return tm.Replay(ctx, cmp.Or(o.RunID, "r"), o)
	}
	return tm.Resume(ctx, cmp.Or(o.RunID, "r"), o)
}

// history is what there was after so many batches.
func (m *memory) history(batches int) *record.History {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &record.History{}
	for _, b := range m.batches[:batches] {
		for _, e := range b {
			switch {
			case e.Begin != nil:
				h.Begins, h.Log = append(h.Begins, *e.Begin), append(h.Log, e)
			case e.Asked != nil, e.Begun != nil, e.Exchange != nil, e.Rejected != nil, e.Sent != nil, e.Turn != nil, e.ToolCall != nil, e.ToolResult != nil, e.Files != nil, e.Question != nil, e.Answer != nil, e.Command != nil:
				h.Log = append(h.Log, e)
			case e.Event != nil:
				if c := record.ChangeOf(e.Event); c != nil {
					h.Log = append(h.Log, record.Entry{Change: c})
				}
			case e.End != nil:
				h.End = e.End
			}
		}
	}
	return h
}

func (m *memory) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.batches)
}

// exchanges returns what completed.
func (m *memory) exchanges() (list []record.AgentCall) {
	for _, e := range m.history(m.len()).Log {
		if e.Exchange != nil {
			list = append(list, *e.Exchange)
		}
	}
	return list
}

// A counter is an agent whose answer is a function of its prompt, and which counts
// its calls for each task.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
	fail  map[string]bool // titles of the tasks at which it fails
}

func (c *counter) Version() string { return "1" }

func (c *counter) Run(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
	title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[title]++
	if c.fail[title] {
		return agent.Reply{}, errors.New("it does not work")
	}
	return agent.Reply{Text: fmt.Sprintf("answer to %08x", crc32.ChecksumIEEE([]byte(p.System()+p.Text()))), Usage: llm.Usage{InputTokens: 10, OutputTokens: 5}, Turns: 1}, nil
}

func (c *counter) count() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

func teamOf(t require.TestingT, a engine.Agent, policy ...func(*engine.Config)) *engine.Team {
	cfg := engine.Config{Agents: []engine.Member{{Name: "worker", Agent: a, Accepts: label.Confidential}}}
	for _, set := range policy {
		set(&cfg)
	}
	tm, err := engine.New(cfg)
	require.NoError(t, err)
	return tm
}

// drawGraph draws tasks, each of which may depend on earlier ones.
func drawGraph(t *rapid.T, most int) []task.Spec {
	specs := make([]task.Spec, rapid.IntRange(1, most).Draw(t, "tasks"))
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("task %d", i), Description: "Do your part.", Assignee: "worker", MaxRetries: 1, RetryDelay: task.NoDelay}
		for k := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				specs[i].DependsOn = append(specs[i].DependsOn, task.Ref{Task: specs[k].Title})
			}
		}
	}
	return specs
}

func answers(res *engine.Result) map[string]string {
	all := map[string]string{}
	for _, t := range res.Tasks {
		all[t.Title] = string(t.Status) + ": " + t.Result
	}
	return all
}

// After a crash the run continues from what was durable: completed tasks are not
// run again, and the result is the same.
func TestRunResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawGraph(t, 8)
		whole := &memory{}
		first := &counter{}
		o := engine.RunOptions{RunID: "r", Journal: whole, MaxConcurrency: rapid.IntRange(1, 4).Draw(t, "at once")}
		want, err := teamOf(t, first).RunTasks(context.Background(), specs, &o)
		require.NoError(t, err)
		require.NoError(t, want.Err())
		for n := range whole.len() + 1 {
			past := whole.history(n)
			completed, asked := map[string]bool{}, map[string]bool{}
			for _, e := range past.Log {
				if e.Exchange != nil && e.Exchange.Completed() {
					completed[e.Exchange.Title] = true
				} else if e.Asked != nil {
					asked[e.Asked.Session] = !e.Asked.Ahead
				} else if e.Begun != nil {
					asked[e.Begun.Session] = true
				}
			}
			again := &counter{}
			o := engine.RunOptions{RunID: "r", Journal: (&memory{}).after(past)}
			res, err := start(context.Background(), teamOf(t, again), specs, &o)
			require.NoError(t, err)
			require.Equal(t, answers(want), answers(res), "after %d commits", n)
			for title, calls := range again.count() {
				require.False(t, completed[title], "%q was asked for again", title)
				require.Equal(t, 1, calls)
			}
			require.Len(t, again.count(), len(specs)-len(completed))
			interrupted := 0
			for _, tk := range res.Tasks {
				interrupted += tk.Metrics.Interrupted
				require.Equal(t, 1+tk.Metrics.Interrupted, tk.Metrics.Attempts)
			}
			maps.DeleteFunc(asked, func(_ string, begun bool) bool { return !begun })
			require.LessOrEqual(t, len(asked)-len(completed), interrupted)
			require.LessOrEqual(t, interrupted, len(asked))
			require.GreaterOrEqual(t, res.Usage.InputTokens, want.Usage.InputTokens)
			require.Equal(t, want.Usage.OutputTokens, res.Usage.OutputTokens, "what was paid for counts once")
		}
	})
}

// The tasks that run again after an edit are those whose agents would be asked
// something else, which follows from the edit and the graph alone.
func TestAffectedTasksRunAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawGraph(t, 10)
		journal := &memory{}
		_, err := teamOf(t, &counter{}).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Journal: journal})
		require.NoError(t, err)

		edited := slices.Clone(specs)
		changed := map[string]bool{}
		for i := range specs {
			switch rapid.SampledFrom([]string{"", "", "", "describe", "retries", "cut", "rename", "add"}).Draw(t, "edit") {
			case "describe":
				edited[i].Description += " Better."
				changed[edited[i].Title] = true
			case "rename":
				old := edited[i].Title
				edited[i].Title += ", anew"
				for k := range edited {
					edited[k].DependsOn = slices.Clone(edited[k].DependsOn)
					for d := range edited[k].DependsOn {
						if edited[k].DependsOn[d].Task == old {
							edited[k].DependsOn[d].Task = edited[i].Title
						}
					}
				}
				delete(changed, old)
				changed[edited[i].Title] = true
			case "add":
				title := fmt.Sprintf("added %d", i)
				edited = append(edited, task.Spec{Title: title, Description: "More.", Assignee: "worker", DependsOn: task.On(edited[i].Title)})
				changed[title] = true
			case "retries":
				edited[i].MaxRetries = 3 // nothing that its agent sees
			case "cut":
				if n := len(edited[i].DependsOn); n > 0 {
					edited[i].DependsOn = edited[i].DependsOn[:n-1]
					changed[edited[i].Title] = true
				}
			}
		}
		affected := maps.Clone(changed)
		for range edited { // in any order, until nothing is added
			for _, s := range edited {
				for _, d := range s.DependsOn {
					if affected[d.Task] {
						affected[s.Title] = true
					}
				}
			}
		}
		edited = rapid.Permutation(edited).Draw(t, "order")
		again := &counter{}
		res, err := start(context.Background(), teamOf(t, again), edited, &engine.RunOptions{RunID: "r", Journal: (&memory{}).after(journal.history(journal.len()))})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		ran := map[string]bool{}
		for title := range again.count() {
			ran[title] = true
		}
		require.Equal(t, affected, ran)
	})
}

func TestFailedTasksAndTheirCascadesRunAgain(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{
		{Title: "a", Description: "A.", Assignee: "worker"},
		{Title: "b", Description: "B.", Assignee: "worker", MaxRetries: 1, RetryDelay: task.NoDelay},
		{Title: "c", Description: "C.", Assignee: "worker", DependsOn: task.On("a", "b")},
	}
	journal := &memory{}
	broken := &counter{fail: map[string]bool{"b": true}}
	res, err := teamOf(t, broken).RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: journal})
	require.NoError(t, err)
	require.False(t, res.Success())
	require.Equal(t, map[string]int{"a": 1, "b": 2}, broken.count())

	again := &counter{}
	res, err = start(t.Context(), teamOf(t, again), specs, &engine.RunOptions{RunID: "r", Journal: journal.after(journal.history(journal.len()))})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]int{"b": 1, "c": 1}, again.count())
	b, _ := res.Task("b")
	require.Equal(t, 3, b.Metrics.Attempts)
	require.Equal(t, llm.Usage{InputTokens: 30, OutputTokens: 15}, res.Usage)
}

// A journal that fails ends the run, and loses nothing that was done.
func TestFailedJournalEndsTheRun(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker", DependsOn: task.On("a")}, {Title: "c", Description: "C.", Assignee: "worker", DependsOn: task.On("b")}}
	whole := &memory{}
	run(t, teamOf(t, &counter{}), &engine.RunOptions{Journal: whole}, specs...)
	for n := 1; n < whole.len(); n++ {
		journal, c := &memory{fail: n}, &counter{}
		watch := func(e event.Event) {
			if e.Type == event.TaskComplete && !slices.ContainsFunc(journal.exchanges(), func(x record.AgentCall) bool { return x.Task == e.Task && x.Completed() }) {
				t.Errorf("%q was told complete, and is not durable", e.Title)
			}
		}
		res, err := teamOf(t, c).RunTasks(t.Context(), specs, &engine.RunOptions{Journal: journal, Subscribers: []func(event.Event){watch}})
		require.NoError(t, err)
		if journal.refused == 0 { // so many commits there are not each time
			require.NoError(t, res.Err())
			continue
		}
		require.ErrorIs(t, res.Err(), errDisk, "%d", n)
		require.ErrorIs(t, res.JournalErr, engine.ErrJournal)
		require.Equal(t, engine.StatusError, res.Status)
		for _, tk := range res.Tasks {
			if c.count()[tk.Title] > 0 && tk.Status == task.Completed {
				require.NotEmpty(t, tk.Result, "the work was done, so it is told")
			}
		}
	}
}

// No prompt is sent, and no event emitted, that is not in the journal.
func TestEventsAreDurableBeforeTheyAreEmitted(t *testing.T) {
	t.Parallel()
	journal := &memory{}
	sent := func(title string) bool {
		for _, e := range journal.history(journal.len()).Log {
			if e.Asked != nil && e.Asked.Task == task.NewID(title) {
				return true
			}
		}
		return false
	}
	worker := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
		if !sent(title) {
			t.Errorf("%q was asked for before that was durable", title)
		}
		return agent.Reply{Text: "done"}, nil
	})
	var mu sync.Mutex
	seq := 0
	watch := func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		if seq++; e.Seq != seq {
			t.Errorf("event %d came as number %d", e.Seq, seq)
		}
		if e.Type != event.TaskComplete {
			return
		}
		if !slices.ContainsFunc(journal.exchanges(), func(x record.AgentCall) bool { return x.Task == e.Task && x.Completed() }) {
			t.Errorf("%q was told before its result was durable", e.Title)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		journal.mu.Lock()
		journal.batches = nil
		journal.mu.Unlock()
		mu.Lock()
		seq = 0
		mu.Unlock()
		_, err := teamOf(rt, worker).RunTasks(context.Background(), drawGraph(rt, 8), &engine.RunOptions{Journal: journal, Subscribers: []func(event.Event){watch}})
		require.NoError(rt, err)
	})
}

// The rulings about what a result makes ready are durable with the result.
func TestDecisionsAreDurableWithTheirResult(t *testing.T) {
	t.Parallel()
	journal := &memory{}
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker", DependsOn: task.On("a")}, {Title: "c", Description: "C.", Assignee: "worker", DependsOn: task.On("a")}}
	_, err := teamOf(t, &counter{}).RunTasks(t.Context(), specs, &engine.RunOptions{Journal: journal})
	require.NoError(t, err)
	for _, batch := range journal.batches {
		done, asked := false, 0
		for _, e := range batch {
			done = done || e.Exchange != nil && e.Exchange.Title == "a"
			if e.Asked != nil {
				asked++
			}
		}
		if done {
			require.Equal(t, 2, asked, "b and c")
			return
		}
	}
	t.Fatal("the result of a is nowhere")
}

func TestReuseTakesAnswersToTheSamePrompts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := drawGraph(t, 8)
		earlier := &memory{}
		want, err := teamOf(t, &counter{}).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "first", Journal: earlier})
		require.NoError(t, err)
		again, second := &counter{}, &memory{others: earlier.exchanges()}
		res, err := teamOf(t, again).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "second", Journal: second, Reuse: true})
		require.NoError(t, err)
		require.Empty(t, again.count())
		require.Equal(t, answers(want), answers(res))
		require.Zero(t, res.Usage)
		for _, tk := range res.Tasks {
			require.Equal(t, "first", tk.Reused)
			require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 5}, tk.Saved)
			require.Equal(t, "second", tk.Envelope.Header().Run, "it is issued anew")
		}
		third, err := teamOf(t, again).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "third", Journal: &memory{others: second.exchanges()}, Reuse: true})
		require.NoError(t, err)
		replayed, err := start(context.Background(), teamOf(t, nobody(t)), specs, &engine.RunOptions{RunID: "second", Replay: &engine.Replay{}, Journal: after(second.history(second.len()))})
		require.NoError(t, err)
		same(t, document(t, res), document(t, replayed))
		for _, tk := range third.Tasks {
			require.Equal(t, "first", tk.Reused, "where it was made")
			require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 5}, tk.Saved)
		}
	})
}

func TestEqualResultStopsTheRerun(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "Say one.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker", DependsOn: task.On("a")}}
	always := func() (*counted, *engine.Team) {
		c := &counted{counter: counter{}}
		return c, teamOf(t, c)
	}
	earlier := &memory{}
	_, tm := always()
	_, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{Journal: earlier})
	require.NoError(t, err)
	specs[0].Description = "Say one, please."
	c, tm := always()
	res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{Journal: &memory{others: earlier.exchanges()}, Reuse: true})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, map[string]int{"a": 1}, c.count(), "b would be asked the same")
}

// counted is an agent that always says the same.
type counted struct{ counter }

func (c *counted) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	r, err := c.counter.Run(ctx, p)
	r.Text = "one"
	return r, err
}

func TestReuseIsRefused(t *testing.T) {
	t.Parallel()
	spec := task.Spec{Title: "a", Description: "A.", Assignee: "worker"}
	run := func(o engine.RunOptions, s task.Spec, set func(*engine.Config), others []record.AgentCall) (*counter, *memory, *engine.Result) {
		c, journal := &counter{}, &memory{others: others}
		o.Journal = journal
		tm := teamOf(t, c, set)
		res, err := tm.RunTasks(t.Context(), []task.Spec{s}, &o)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		return c, journal, res
	}
	same := func(*engine.Config) {}
	_, first, _ := run(engine.RunOptions{}, spec, same, nil)
	edited := func(change func(*task.Spec)) task.Spec { s := spec; change(&s); return s }
	tests := []struct {
		name string
		o    engine.RunOptions
		spec task.Spec
		set  func(*engine.Config)
		want int // calls
	}{
		{"it is taken", engine.RunOptions{Reuse: true}, spec, same, 0},
		{"nobody asked for it", engine.RunOptions{}, spec, same, 1},
		{"by name", engine.RunOptions{Reuse: true, Fresh: []string{"A"}}, spec, same, 1},
		{"by the task", engine.RunOptions{Reuse: true}, edited(func(s *task.Spec) { s.Reuse = "never" }), same, 1},
		{"by the agent", engine.RunOptions{Reuse: true}, spec, func(c *engine.Config) { c.Agents[0].Reuse = "never" }, 1},
		{"another version", engine.RunOptions{Reuse: true}, spec, func(c *engine.Config) { c.Agents[0].Version = "2" }, 1},
		{"another system prompt", engine.RunOptions{Reuse: true}, spec, func(c *engine.Config) { c.Agents[0].SystemPrompt = "Be brief." }, 1},
		{"another schema", engine.RunOptions{Reuse: true}, edited(func(s *task.Spec) { s.OutputSchema = json.RawMessage(`{"type":"string"}`) }), func(c *engine.Config) {
			c.Agents[0].Agent = versioned{reply(agent.Reply{Text: `"x"`})}
		}, 1},
		{"another title", engine.RunOptions{Reuse: true}, edited(func(s *task.Spec) { s.Title = "b" }), same, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, journal, res := run(tt.o, tt.spec, tt.set, first.exchanges())
			asked := 0
			for _, e := range journal.history(journal.len()).Log {
				if e.Asked != nil {
					asked++
				}
			}
			require.Equal(t, tt.want, asked)
			require.Equal(t, tt.want == 0, res.Tasks[0].Reused != "")
		})
	}
}

type versioned struct{ engine.Agent }

func (versioned) Version() string { return "1" }

func reply(r agent.Reply) engine.Agent {
	return engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return r, nil })
}

// What was confidential stays so, though the task is internal now; what has
// expired is made anew.
//
// Requirement: G18.
func TestReusedResultIsIssuedAnew(t *testing.T) {
	t.Parallel()
	spec := task.Spec{Title: "a", Description: "A.", Assignee: "worker", Classification: label.Confidential, TTL: time.Hour}
	first := &memory{}
	_, err := teamOf(t, &counter{}).RunTasks(t.Context(), []task.Spec{spec}, &engine.RunOptions{Journal: first})
	require.NoError(t, err)
	kept := first.exchanges()

	run := func(s task.Spec, others []record.AgentCall) (*counter, *engine.TaskResult) {
		c := &counter{}
		res, err := teamOf(t, c).RunTasks(t.Context(), []task.Spec{s}, &engine.RunOptions{Journal: &memory{others: others}, Reuse: true})
		require.NoError(t, err)
		return c, &res.Tasks[0]
	}
	c, tk := run(spec, kept)
	require.Empty(t, c.count())
	require.Equal(t, label.Confidential, tk.Label)
	require.False(t, tk.Envelope.Header().ExpiresAt.After(kept[0].Result.ExpiresAt), "it lives no longer")

	lower := spec
	lower.Classification = label.Internal
	c, tk = run(lower, kept)
	require.Equal(t, map[string]int{"a": 1}, c.count(), "it is above what the task may be now, so it is made anew")
	require.Equal(t, label.Internal, tk.Label)

	old := slices.Clone(kept)
	rec := *old[0].Result
	rec.CreatedAt, rec.ExpiresAt = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	old[0].Result = &rec
	c, _ = run(spec, old)
	require.Equal(t, map[string]int{"a": 1}, c.count(), "it has expired")

	forged := slices.Clone(kept)
	rec = *forged[0].Result
	rec.Text = "something else"
	forged[0].Result = &rec
	c, tk = run(spec, forged)
	require.Equal(t, map[string]int{"a": 1}, c.count(), "it does not verify")
	require.NotEqual(t, "something else", tk.Result)
}

// An answer that was given as confidential stays so where what it was made from
// counts for less today, as long as the plan allows that.
//
// Requirement: G18.
func TestReusedResultKeepsItsLabel(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{
		{Title: "a", Description: "A.", Assignee: "worker", Classification: label.Confidential},
		{Title: "b", Description: "B.", Assignee: "worker", DependsOn: []task.Ref{{Task: "a", Optional: true}}},
	}
	failing := func() *counter { return &counter{fail: map[string]bool{"a": true}} }
	first := &memory{}
	res := run(t, teamOf(t, failing()), &engine.RunOptions{Journal: first}, specs...)
	require.Equal(t, label.Internal, of(t, res, "b").Label, "nothing confidential reached it")
	kept := first.exchanges()
	for i := range kept {
		if kept[i].Result != nil {
			h := kept[i].Result.Header
			h.Classification = label.Confidential
			e, err := envelope.New(h, envelope.Text(kept[i].Result.Text))
			require.NoError(t, err)
			kept[i].Result = new(e.Record())
		}
	}
	c := failing()
	res = run(t, teamOf(t, c), &engine.RunOptions{Journal: &memory{others: kept}, Reuse: true}, specs...)
	require.Equal(t, map[string]int{"a": 1}, c.count())
	require.Equal(t, label.Confidential, of(t, res, "b").Label)
	require.Equal(t, label.Confidential, of(t, res, "b").Envelope.Classification())
}
