package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestSoak runs random teams over random graphs on one journal, with a model that
// misbehaves, and holds each run to what every run must keep. SOAK says for how
// long, as in SOAK=5m; without it a few seeds run. A failure names its seed, and
// SOAKSEED runs that one alone.
func TestSoak(t *testing.T) {
	short, seed, until := 8, uint64(1), time.Time{}
	if s := os.Getenv("SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		require.NoError(t, err)
		seed, until = rand.Uint64N(1<<40), time.Now().Add(d)
	}
	if s := os.Getenv("SOAKSEED"); s != "" {
		_, err := fmt.Sscan(s, &seed)
		require.NoError(t, err)
		short, until = 1, time.Time{}
	}
	key := []byte("0123456789abcdef0123456789abcdef")
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Key: key, AuditKey: key})
	require.NoError(t, err)
	defer j.Close()
	s := &soak{journal: j, key: key}
	at := seed
	defer func() { // also after a failure in the middle of a run
		if t.Failed() {
			t.Logf("to repeat it: SOAKSEED=%d go test -race ./team -run 'TestSoak$'", at)
		}
	}()
	for n := 0; (n < short || time.Now().Before(until)) && !t.Failed(); n++ {
		at = seed + uint64(n)
		s.one(t, at)
		s.weigh(t, n)
	}
	t.Logf("%d runs of %d tasks: %v; %d resumed answers, %d messages, %d model faults", s.runs, s.tasks, s.ended, s.again, s.messages, s.faults)
	if s.runs >= 300 { // enough that each end must have come up
		for _, status := range []engine.Status{engine.StatusOK, engine.StatusError, engine.StatusCanceled, engine.StatusBudget} {
			require.NotZero(t, s.ended[status], "no run ended with %s", status)
		}
		require.NotZero(t, s.messages)
		require.NotZero(t, s.again)
	}
}

// A soak is what all runs share and what they did.
type soak struct {
	journal     *journal.Journal
	key         []byte
	runs, tasks int
	ended       map[engine.Status]int
	again       int // answers that were not asked for again
	messages    int
	faults      int
	heaps       []uint64
}

// A basin is one random team with its graph.
type basin struct {
	r      *rand.Rand
	config engine.Config
	specs  []task.Spec
	o      engine.RunOptions
	cancel time.Duration
	bus    bool            // each process of the run has one
	secret map[string]bool // titles of the tasks that are confidential themselves

	mu     sync.Mutex // guards the rest
	calm   bool       // the model behaves
	calls  map[string]int
	faults int
	seen   map[string][]string // prompts by agent
}

const soakCanary = "canary-confidential"

var errSoak = errors.New("out of order")

// one makes a run, interrupts it or not, and resumes it until it is done.
func (s *soak) one(t *testing.T, seed uint64) {
	before := runtime.NumGoroutine()
	b := newBasin(seed)
	tm := s.team(t, b)
	if _, err := tm.Plan(b.specs, &b.o); err != nil { // a random policy may contradict a random graph
		b.config.Policy = nil
		tm = s.team(t, b)
	}
	id := fmt.Sprintf("soak-%d", seed)
	first := s.run(t, tm, b, id, nil)
	if first == nil {
		return
	}
	s.runs, s.tasks = s.runs+1, s.tasks+len(first.Tasks)
	if s.ended == nil {
		s.ended = map[engine.Status]int{}
	}
	s.ended[first.Status]++

	// The run is resumed by the same team without faults, cancels and budget.
	b.mu.Lock()
	b.calm, b.cancel, b.calls = true, 0, map[string]int{}
	b.mu.Unlock()
	b.o.MaxTokenBudget, b.o.Timeout = 0, 0
	second := s.run(t, tm, b, id, first)
	s.again += b.requireKept(t, first, second)
	b.mu.Lock()
	b.calls = map[string]int{}
	b.mu.Unlock()
	third := s.run(t, tm, b, id, second)
	s.again += b.requireKept(t, second, third)
	s.faults += b.faults
	for i := 0; runtime.NumGoroutine() > before && i < 200; i++ {
		time.Sleep(5 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines are left of %d:\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

// requireKept holds the second of two results to the first, which went before it:
// what completed is not asked for again and is what it was. It returns how many
// tasks that are. A task of which something that it reads may have changed is
// none: an optional dependency that failed, or the shared memory.
func (b *basin) requireKept(t *testing.T, first, second *engine.Result) (kept int) {
	stable := map[string]bool{}
	for i := range second.Tasks {
		was, is, of := &first.Tasks[i], &second.Tasks[i], &b.specs[i]
		stable[of.Title] = was.Status == task.Completed && of.MemoryScope != task.ScopeAll
		for _, d := range of.DependsOn {
			stable[of.Title] = stable[of.Title] && stable[d.Task]
		}
		if !stable[of.Title] {
			continue
		}
		kept++
		require.Equal(t, task.Completed, is.Status, is.Title)
		require.Equal(t, was.Result, is.Result, is.Title)
		require.Zero(t, b.calls[is.Title], "%s is asked again", is.Title)
	}
	return kept
}

// opensFirst is a journal that says when a run was opened.
type opensFirst struct {
	record.Store
	opened func()
}

func (j opensFirst) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	log, err := j.Store.OpenRun(ctx, o)
	j.opened()
	return log, err
}

// run makes or resumes the run on the journal and checks it.
func (s *soak) run(t *testing.T, tm *engine.Team, b *basin, id string, earlier *engine.Result) *engine.Result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := b.o
	var heard audience
	o.RunID, o.Subscribers = id, []func(event.Event){heard.take}
	o.Journal = opensFirst{s.journal, func() {
		if b.cancel > 0 {
			time.AfterFunc(b.cancel, cancel)
		}
	}}
	if b.bus {
		o.Bus = tm.NewBus()
	}
	play := func() (*engine.Result, error) { return tm.RunTasks(ctx, b.specs, &o) }
	if o.Tasks = b.specs; earlier != nil {
		play = func() (*engine.Result, error) { return tm.Resume(ctx, id, &o) }
	}
	res, err := play()
	require.NoError(t, err)
	require.NoError(t, res.JournalErr)
	var head audit.Head
	require.NoError(t, head.UnmarshalText([]byte(res.Audit)))
	s.check(t, b, &o, res, &heard, earlier != nil)
	report, err := s.journal.Verify(context.Background(), id, audit.VerifyOptions{Key: s.key, Head: head})
	require.NoError(t, err)
	require.Equal(t, audit.Verified, report.Status, report.Why)
	return res
}

// check holds a run to what every run must keep.
func (s *soak) check(t *testing.T, b *basin, o *engine.RunOptions, res *engine.Result, heard *audience, resumed bool) {
	for i := range res.Tasks {
		require.True(t, res.Tasks[i].Status.Terminal(), "%s is %s", res.Tasks[i].Title, res.Tasks[i].Status)
	}
	require.NotEmpty(t, heard.events)
	require.Equal(t, event.RunStart, heard.events[0].Type)
	require.Equal(t, event.RunComplete, heard.events[len(heard.events)-1].Type)
	working := map[string]bool{}
	for i, e := range heard.events {
		require.Equal(t, i+1, e.Seq)
		session := fmt.Sprint(e.Task, "/", e.Attempt)
		switch e.Type {
		case event.AgentStart:
			working[session] = true
		case event.AgentComplete:
			require.True(t, working[session], "an end without a start: %+v", e)
		case event.Message:
			s.messages++
		}
	}
	if o.MaxTokenBudget > 0 && !resumed && *o.UserAccepts >= label.Confidential { // below that usage is told by its class
		require.LessOrEqual(t, res.Usage.InputTokens+res.Usage.OutputTokens, o.MaxTokenBudget)
	}
	b.mu.Lock()
	for _, p := range b.seen["low"] {
		require.NotContains(t, p, soakCanary, "a prompt of an agent that may read what is internal")
	}
	b.mu.Unlock()
	if *o.UserAccepts < label.Confidential {
		document, err := json.Marshal(res)
		require.NoError(t, err)
		events, err := json.Marshal(heard.events)
		require.NoError(t, err)
		require.NotContains(t, string(document)+string(events), soakCanary, "what the caller reads")
	}
}

// team makes the team, with the edges along which something can be read.
func (s *soak) team(t *testing.T, b *basin) *engine.Team {
	var err error
	b.config.Edges, err = usable(b.config, b.specs, &b.o)
	require.NoError(t, err)
	tm, err := engine.New(b.config)
	require.NoError(t, err)
	return tm
}

// weigh holds the heap of a long soak to a bound.
func (s *soak) weigh(t *testing.T, n int) {
	if n%50 != 49 {
		return
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.heaps = append(s.heaps, m.HeapAlloc)
	if early := slices.Max(s.heaps[:min(len(s.heaps), 4)]); m.HeapAlloc > 2*early+64<<20 {
		t.Fatalf("the heap grows: %d MiB after %d runs, %d MiB after the first", m.HeapAlloc>>20, n+1, early>>20)
	}
}

func newBasin(seed uint64) *basin {
	r := rand.New(rand.NewPCG(seed, 7))
	b := &basin{r: r, calls: map[string]int{}, seen: map[string][]string{}, secret: map[string]bool{}}
	chance := func(one int) bool { return r.IntN(one) == 0 }
	b.o = engine.RunOptions{MaxConcurrency: 1 + r.IntN(6), UserAccepts: new(label.Confidential), Random: func() float64 { return 0.5 }}
	if chance(3) {
		b.o.UserAccepts = new(label.Internal)
	}
	names := []string{"high", "low", "func"}
	retry := llm.RetryOptions{Extra: r.IntN(3), Delay: time.Microsecond}
	model := func(name string) engine.Agent {
		return versioned{agent.New(llm.ModelFunc(func(ctx context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			return b.call(ctx, seed, name, req)
		}), agent.Options{Settings: llm.Settings{MaxTokens: 64}, Retry: retry})}
	}
	b.config.Agents = []engine.Member{
		{Name: "high", Agent: model("high"), Accepts: label.Confidential, Backend: plan.Backend{Endpoint: "http://127.0.0.1"}},
		{Name: "low", Agent: model("low"), Backend: plan.Backend{Endpoint: "http://127.0.0.1"}},
		{Name: "func", Agent: versioned{engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) { return b.work(ctx, seed, p) })}, Accepts: label.Confidential},
	}
	b.config.Edges = edges("func>high", "func>low")
	if chance(2) {
		mode := []handoff.Mode{handoff.Full, handoff.Minimal}[r.IntN(2)]
		b.config.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: names[r.IntN(3)], To: names[r.IntN(3)], Mode: mode}}}
	}
	if chance(4) {
		b.config.Agents[0].MaxParallel = 1
	}
	for i := range 2 + r.IntN(12) {
		s := task.Spec{Title: fmt.Sprintf("t%d", i), Description: "Work.", Assignee: names[r.IntN(3)], MaxRetries: r.IntN(3), RetryDelay: task.NoDelay}
		if s.Assignee != "low" && chance(3) {
			s.Classification, b.secret[s.Title] = label.Confidential, true
		}
		for k := range i {
			if chance(4) {
				s.DependsOn = append(s.DependsOn, task.Ref{Task: fmt.Sprintf("t%d", k), Optional: s.Assignee == "low" || chance(3)})
			}
		}
		if chance(5) {
			s.MemoryScope = task.ScopeAll
		}
		if chance(5) {
			s.Timeout = 200 * time.Millisecond
		}
		if chance(6) {
			s.OutputSchema = []byte(`{"type":"object","properties":{"said":{"type":"string"}},"required":["said"]}`)
		}
		b.specs = append(b.specs, s)
	}
	b.specs = append(b.specs, task.Spec{Title: "end", Description: "Work.", Assignee: "low"}) // an answer that the caller may see
	for range r.IntN(3) {
		b.o.Messages = append(b.o.Messages, engine.Message{From: "user", To: []string{"*", "high", "low"}[r.IntN(3)], Text: "mind the pump"})
	}
	if chance(2) {
		b.bus = true
	}
	if chance(3) {
		b.o.Memory = teammemory.NewMapStore()
	}
	if chance(4) {
		b.o.MaxTokenBudget = 500 + r.IntN(3000)
	}
	switch r.IntN(4) {
	case 0:
		b.cancel = time.Duration(1+r.IntN(20)) * time.Millisecond
	case 1:
		b.o.Timeout = time.Duration(20+r.IntN(60)) * time.Millisecond
	}
	if chance(4) { // the coordinator answers from the results
		b.o.Answer = &engine.Goal{Text: "Tell what there is."}
		b.config.Coordinator = &engine.Coordinator{Agent: model("coordinator"), Backend: plan.Backend{Endpoint: "http://127.0.0.1"}}
	}
	return b
}

// note counts a call and returns its title, which one of the title it is, and
// whether it is to misbehave.
func (b *basin) note(name string, text string) (title string, number int, calm bool) {
	title, _, _ = strings.Cut(strings.TrimPrefix(text, "# Task: "), "\n")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[title]++
	b.seen[name] = append(b.seen[name], text)
	return title, b.calls[title], b.calm
}

// fault draws what goes wrong with a call; zero is nothing.
func (b *basin) fault(seed uint64, title string, number int, calm bool) int {
	if calm {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, seed, title, number)
	n := int(h.Sum64() % 24)
	if n > 0 && n < 10 {
		b.mu.Lock()
		b.faults++
		b.mu.Unlock()
	}
	return n
}

// answer is the text of a task, which repeats confidential text where allowed.
func answer(p string) string {
	if strings.Contains(p, "JSON Schema") || strings.Contains(p, `"said"`) {
		return `{"said":"words"}`
	}
	return "words of " + p[:min(len(p), 12)]
}

// call is the model.
func (b *basin) call(ctx context.Context, seed uint64, name string, req llm.Request) (llm.Response, error) {
	text := req.Messages[0].Text
	title, number, calm := b.note(name, text)
	usage := llm.Usage{InputTokens: (len(req.System) + len(text)) / 8, OutputTokens: 10}
	said := answer(req.System + text)
	if b.secret[title] && strings.HasPrefix(said, "words") {
		said = soakCanary + " " + said
	}
	switch b.fault(seed, title, number, calm) {
	case 1:
		return llm.Response{}, &llm.Error{Kind: callfault.RateLimited, Status: 429, Message: "slow down"}
	case 2:
		return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 500, Message: "oops"}
	case 3:
		return llm.Response{}, &llm.Error{Kind: callfault.Cut, Message: "cut", Usage: usage}
	case 4:
		return llm.Response{Text: `{"said":`, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: usage}, nil
	case 5:
		panic("the model panics")
	case 6:
		runtime.Goexit()
	case 7:
		return llm.Response{Text: strings.Repeat("x", gate.MaxReply+1), CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: usage}, nil
	case 8:
		select {
		case <-ctx.Done():
			return llm.Response{}, context.Cause(ctx)
		case <-time.After(30 * time.Millisecond):
		}
	case 9:
		return llm.Response{CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: usage}, nil
	}
	return llm.Response{Text: said, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: usage}, nil
}

// work is the agent written in Go, which sends messages.
func (b *basin) work(ctx context.Context, seed uint64, p prompt.Prompt) (agent.Reply, error) {
	title, number, calm := b.note("func", p.Text())
	if o := engine.OutboxFrom(ctx); o != nil {
		if err := o.Broadcast("news of " + title); err != nil && !errors.Is(err, context.Canceled) {
			var held *gate.WithheldError
			if !errors.As(err, &held) && !errors.Is(err, mailbox.ErrNoEdge) { // no edge was usable
				return agent.Reply{}, err
			}
		}
	}
	switch b.fault(seed, title, number, calm) {
	case 1, 2:
		return agent.Reply{}, errSoak
	case 3:
		return agent.Reply{}, errors.New(strings.Repeat("a long story ", 10_000))
	case 4:
		return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: -1}}, nil
	case 5:
		panic("oh")
	case 6:
		runtime.Goexit()
	case 7:
		return agent.Reply{Text: strings.Repeat("\x01", 1<<20)}, nil
	case 8:
		time.Sleep(30 * time.Millisecond)
	}
	said := answer(p.System() + p.Text())
	if b.secret[title] && strings.HasPrefix(said, "words") {
		said = soakCanary + " " + said
	}
	return agent.Reply{Text: said}, nil
}
