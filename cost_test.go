package runteam_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// costFile has what a unit of each kind of work may allocate.
const costFile = "docs/costs.md"

// By how much a figure may differ from its row. What the buffers of a journal and of its database allocate
// depends on how far the writer has come when the next batch is there.
const (
	costRoom       = 0.02
	journaledBytes = 0.05
)

// A cost is what one unit of some work allocates.
type cost struct{ allocations, bytes float64 }

// TestCosts compares what a task, a turn, a decision, a redacted KiB and a journal entry allocate with
// docs/costs.md. Allocations do not depend on how fast the machine is. It is not parallel, since what
// other tests allocate would count.
func TestCosts(t *testing.T) { //nolint:paralleltest // see above
	if slowtest.RaceDetector {
		t.Skip("the race detector allocates")
	}
	page := read(t, costFile)
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([0-9.]+) \| ([0-9,]+) \|$`)
	known := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		known[m[1]] = true
	}
	for _, w := range works() {
		got := w.measure(t)
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(w.name) + ` \| ([0-9.]+) \| ([0-9,]+) \|$`).FindStringSubmatch(page)
		line := fmt.Sprintf("| %s | %.1f | %s |", w.name, got.allocations, thousands(int(math.Round(got.bytes))))
		if delete(known, w.name); m == nil {
			t.Errorf("%s has no row for this work; write %q", costFile, line)
			continue
		}
		was, bytesRoom := cost{number(t, m[1]), number(t, m[2])}, costRoom
		if w.isJournaled() {
			bytesRoom = journaledBytes
		}
		switch {
		case got.allocations > was.allocations*(1+costRoom)+0.05 || got.bytes > was.bytes*(1+bytesRoom)+0.5:
			t.Errorf("%s: %.2f allocations and %.0f bytes, and %s allows %.1f and %.0f: allocate less, or write %q and say in the commit why it grew", w.name, got.allocations, got.bytes, costFile, was.allocations, was.bytes, line)
		case got.allocations >= was.allocations*(1-costRoom)-0.05 && got.bytes >= was.bytes*(1-bytesRoom)-0.5:
		case *update:
			page = strings.Replace(page, m[0], line, 1)
		default:
			t.Errorf(`%s: %.2f allocations and %.0f bytes are less than %s says, so that it could grow unseen: run "go test . -run TestCosts -update"`, w.name, got.allocations, got.bytes, costFile)
		}
	}
	for name := range known {
		t.Errorf("%s has a row for %q, which is not measured", costFile, name)
	}
	if *update {
		require.NoError(t, os.WriteFile(costFile, []byte(page), 0o644))
	}
}

// A work is something whose cost docs/costs.md has.
type work struct {
	name  string
	setup func(t testing.TB) (do func() (units int))
}

// isJournaled reports whether tasks are stored in a journal.
func (w work) isJournaled() bool { return strings.Contains(w.name, "with a journal") }

// measure returns the cost of one unit: the least of some repetitions, since the runtime now and then
// allocates something, too.
func (w work) measure(t testing.TB) cost {
	t.Helper()
	do := w.setup(t)
	do() // fills the pools
	least := cost{math.Inf(1), math.Inf(1)}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would empty them
	times := 5
	if w.isJournaled() {
		times = 20 // how many entries a batch has depends on how far the writer is
	}
	for range times {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := float64(do())
		runtime.ReadMemStats(&after)
		least.allocations = min(least.allocations, float64(after.Mallocs-before.Mallocs)/n)
		least.bytes = min(least.bytes, float64(after.TotalAlloc-before.TotalAlloc)/n)
	}
	return least
}

// works returns all that is measured.
func works() (list []work) {
	for _, shape := range costShapes {
		for _, with := range costTeams {
			list = append(list, work{"task, " + shape.name + with.name, func(t testing.TB) func() int { return with.run(t, shape.specs(with.tasks)) }})
		}
	}
	return append(list,
		work{"turn", turnCost},
		work{"decision on a text of 1 KiB", decisionCost},
		work{"redacted KiB", redactionCost},
		work{"journal entry", entryCost},
	)
}

// A costShape is a graph: no dependency at all, one long chain, and layers of ten in which each task
// depends on three of the layer above.
type costShape struct {
	name string
	deps func(i int) []int
}

var costShapes = []costShape{
	{"wide", func(int) []int { return nil }},
	{"chain", func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}},
	{"layered", func(i int) []int {
		if i < 10 {
			return nil
		}
		above, k := (i/10-1)*10, i%10
		return []int{above + k, above + (k+1)%10, above + (k+2)%10}
	}},
}

// specs returns n tasks.
func (s costShape) specs(n int) []task.Spec {
	list := make([]task.Spec, n)
	for i := range list {
		list[i] = task.Spec{Title: "task " + strconv.Itoa(i), Description: "Do your part.", Assignee: "worker"}
		for _, d := range s.deps(i) {
			list[i].DependsOn = append(list[i].DependsOn, task.Ref{Task: list[d].Title})
		}
	}
	return list
}

// A costTeam is what a run has beside its tasks.
type costTeam struct {
	name      string
	change    func(t testing.TB, c *engine.Config)
	does      engine.AgentFunc
	tasks     int
	journaled bool
}

// answers is an agent that answers at once, with 20 bytes.
var answers = engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
	return agent.Reply{Text: "The answer is short."}, nil
})

var costTeams = []costTeam{
	{does: answers, tasks: 1_000},
	{name: ", with a journal", does: answers, tasks: 50, journaled: true},
	{name: ", with a call of a tool", does: callsOnce, tasks: 100, change: func(t testing.TB, c *engine.Config) { c.Agents[0].Tools = []*tool.Tool{lookup(t)} }},
	{name: ", with a policy", does: answers, tasks: 1_000, change: func(_ testing.TB, c *engine.Config) {
		c.Policy = &handoff.Policy{Rules: []handoff.PairRule{
			{From: "worker", To: "worker", Mode: handoff.Full}, {From: handoff.Anyone, To: "worker", Redact: handoff.Redaction{Kinds: []redact.Kind{"ip"}}},
		}}
	}},
	{name: ", with an unused edge", does: answers, tasks: 1_000, change: func(_ testing.TB, c *engine.Config) {
		c.Agents = append(c.Agents, engine.Member{Name: "other", Agent: answers})
		c.Edges = []handoff.Edge{{From: "worker", To: "other"}}
	}},
}

// callsOnce is an agent that calls a tool and then answers.
var callsOnce = engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
	if len(p.Messages()) > 1 {
		return agent.Reply{Text: "The answer is short."}, nil
	}
	return agent.Reply{ToolCalls: []llm.ToolCall{{ID: "1", Name: "look", Arguments: `{"n":1}`}}}, nil
})

// lookup returns a tool that has no effect.
func lookup(t testing.TB) *tool.Tool {
	t.Helper()
	look, err := tool.New("look", "", func(context.Context, struct{ N int }) (string, error) { return "It is there.", nil }, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	return look
}

// run returns a function that runs the tasks once.
func (c costTeam) run(t testing.TB, specs []task.Spec) func() int {
	t.Helper()
	cfg := engine.Config{Agents: []engine.Member{{Name: "worker", Agent: c.does}}}
	if c.change != nil {
		c.change(t, &cfg)
	}
	team, err := engine.New(cfg)
	require.NoError(t, err)
	return func() int {
		o := &engine.RunOptions{MaxConcurrency: 1, RunID: "run"} // more would share pools differently each time
		if c.journaled {
			j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
			require.NoError(t, err)
			defer j.Close()
			log, err := j.Begin(t.Context(), journal.Info{Run: "run"})
			require.NoError(t, err)
			o.Journal = journaltest.Opened(commitEach{log})
		}
		res, err := team.RunTasks(t.Context(), specs, o)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		return len(specs)
	}
}

// commitEach makes each batch of entries a commit of its own. Otherwise the disk decides how many share one.
type commitEach struct{ record.Log }

func (l commitEach) Append(entries []record.Entry, done func(error)) {
	durable := make(chan struct{})
	l.Log.Append(entries, func(err error) {
		close(durable)
		done(err)
	})
	<-durable
}

// turnCost is a conversation of 50 turns, each with the call of a tool.
func turnCost(t testing.TB) func() int {
	const turns = 50
	talks := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		n := len(p.Messages()) / 2
		if n == turns-1 {
			return agent.Reply{Text: "done"}, nil
		}
		return agent.Reply{ToolCalls: []llm.ToolCall{{ID: "1", Name: "look", Arguments: `{"n":` + strconv.Itoa(n) + `}`}}}, nil
	})
	c := costTeam{does: talks, tasks: 1, change: func(t testing.TB, c *engine.Config) { c.Agents[0].Tools = []*tool.Tool{lookup(t)} }}
	run := c.run(t, costShapes[0].specs(c.tasks))
	return func() int { return run() * turns }
}

// decisionCost is the gate for a text of 1 KiB that passes.
func decisionCost(t testing.TB) func() int {
	made, err := envelope.New(envelope.Header{ID: "e", Producer: "writer", Classification: label.Internal, CreatedAt: time.Unix(1, 0)}, envelope.Text(strings.Repeat("All is well. ", 80)[:1024]))
	require.NoError(t, err)
	book, err := gate.Compile(&handoff.Policy{}, []gate.Party{{Name: "writer"}, {Name: "reader"}})
	require.NoError(t, err)
	source := gate.Source{Kind: handoff.Dependency, Name: "t"}
	grant := gate.WholeOf(source, "")
	grant.Terms = book.Between("writer", "reader")
	contract, err := gate.Negotiate(gate.Request{Session: "s", Caller: handoff.User, Run: "run", Task: "t", Classification: label.Internal, Grants: []gate.Grant{grant}},
		&gate.Capabilities{Agent: "reader", Accepts: label.Internal, Produces: label.Internal})
	require.NoError(t, err)
	c, o := gate.Compartment{Contract: contract}, gate.Offer{Source: source, Title: "T", Assignee: "writer", Status: task.Completed, Envelope: made}
	return func() int {
		const n = 1_000
		for range n {
			d, err := c.Decide(t.Context(), &o, time.Unix(2, 0))
			require.NoError(t, err)
			if !d.IsDelivered() {
				t.Fatal(d.Reason)
			}
		}
		return n
	}
}

// redactionCost is a text with something to redact in each KiB.
func redactionCost(t testing.TB) func() int {
	const n = 64
	one := strings.Repeat("Nothing to see in this sentence. ", 31)
	text, r := strings.Repeat(one[:995]+" mail eve.adams@acme.com now ", n), redact.Default()
	return func() int {
		redacted, found, err := r.Text(text)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.NotEqual(t, text, redacted)
		return n
	}
}

// entryCost is an entry of the journal, 100 in a batch.
func entryCost(t testing.TB) func() int {
	const batches, each = 20, 100
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	log, err := j.Begin(t.Context(), journal.Info{Run: "run"})
	require.NoError(t, err)
	batch := make([]record.Entry, each)
	for i := range batch {
		batch[i] = record.Entry{Asked: &record.CallStart{Session: "run/t/1", Task: "t", Agent: "worker", Attempt: 1, Time: time.Unix(1, 0), Bytes: 100}}
	}
	return func() int {
		for range batches {
			done := make(chan error, 1)
			log.Append(batch, func(err error) { done <- err })
			require.NoError(t, <-done)
		}
		return batches * each
	}
}

// number reads a figure of the page.
func number(t testing.TB, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return n
}
