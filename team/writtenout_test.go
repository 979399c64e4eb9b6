package team_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A drawing draws tasks with conditions, loops and lists, nested to three loops. At the same time
// it writes out the rounds and items that run as tasks of their own: what an oracle says of each
// instance decides it. It shares nothing with [task.Unroll] but the names of instances.
type drawing struct {
	t     *rapid.T
	named int
	seed  int
	reads int // percent of the tasks before it that a task depends on
}

// A drawnScope is the tasks of one round, as written.
type drawnScope struct {
	outer *drawnScope
	nodes []*drawnNode
}

// A drawnNode is a task, a task for each item of a list, or a loop.
type drawnNode struct {
	spec    task.Spec
	certain bool        // it runs whenever its round does
	inside  *drawnScope // of a loop
	output  *drawnNode  // of a loop
}

// oracle returns what a task answers that decides what runs: it depends on the instance.
func (d *drawing) oracle(instance string) (ok bool, kind string, items int) {
	sum := sha256.Sum256(fmt.Append(nil, d.seed, instance))
	return sum[0]%2 == 0, [...]string{"a", "b", "c"}[sum[1]%3], int(sum[2]) % (mostItems + 2)
}

const (
	mostItems  = 2
	decided    = `{"type":"object","properties":{"ok":{"type":"boolean"},"kind":{"enum":["a","b","c"]},"text":{"type":"string"},"tag":{"const":"t"},"items":{"type":"array","items":{"type":"object","properties":{"q":{"type":"string"},"n":{"type":"integer"}},"required":["q"]}}},"required":["ok","kind","text","tag","items"]}`
	mostNested = 3
)

func (d *drawing) chance(percent int, what string) bool {
	return rapid.IntRange(0, 99).Draw(d.t, what) < percent
}

// one draws one of several by its number, since rapid prints what it draws.
func one[T any](d *drawing, of []T, what string) T {
	return of[rapid.IntRange(0, len(of)-1).Draw(d.t, what)]
}

// scope draws the tasks of a round. The first one is certain, so that a loop can compare it.
func (d *drawing) scope(outer *drawnScope, depth int) *drawnScope {
	in := &drawnScope{outer: outer}
	for i := range rapid.IntRange(2, 4).Draw(d.t, "tasks") {
		d.named++
		n := &drawnNode{spec: task.Spec{Title: fmt.Sprint("T", d.named)}, certain: true}
		if i > 0 && d.chance(35, "conditional") {
			n.spec.When, n.certain = d.condition(in, true), false
		}
		if depth < mostNested && i > 0 && d.chance(40, "loop") {
			d.loop(n, in, depth)
		} else {
			n.spec.Description, n.spec.Assignee, n.spec.OutputSchema = "d", "worker", []byte(decided)
			if sources := in.visible((*drawnNode).decides); depth < mostNested && len(sources) > 0 && n.spec.When == nil && i > 0 && d.chance(35, "list") {
				from := one(d, sources, "source")
				n.spec.ForEach = &task.ForEach{Task: from.spec.Title, Path: "/items", MaxItems: mostItems, OnOverflow: "first"}
				n.certain = n.certain && from.certain
			}
			d.depend(n, in, i > 0)
		}
		in.nodes = append(in.nodes, n)
	}
	return in
}

// visible returns the nodes of a scope and around it of a kind.
func (in *drawnScope) visible(is func(*drawnNode) bool) (all []*drawnNode) {
	for s := in; s != nil; s = s.outer {
		for _, n := range s.nodes {
			if is(n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// decides reports whether a result of the node can decide what runs.
func (n *drawnNode) decides() bool { return n.spec.ForEach == nil }

// condition draws a condition on results that are there, of the scope or also of those around it.
func (d *drawing) condition(in *drawnScope, around bool) *task.Condition {
	leaf := func() *task.Condition {
		from := in.visible(func(n *drawnNode) bool {
			return n.decides() && n.certain && (around || slices.Contains(in.nodes, n))
		})
		of := one(d, from, "compared").spec.Title
		return one(d, []*task.Condition{task.Equals(of, "/ok", true), task.In(of, "/kind", "a", "b"), task.Not(task.Equals(of, "/kind", "c"))}, "comparison")
	}
	some := []*task.Condition{leaf(), leaf(), task.Exists(in.visible((*drawnNode).decides)[0].spec.Title, "/tag")}
	if around { // a condition on two values is no case, which others would have to complete
		return one(d, []*task.Condition{task.All(some[0], some[2]), task.All(task.Any(some[0], some[1]), some[2])}, "condition")
	}
	return one(d, []*task.Condition{some[0], task.All(some[0], some[1]), task.Any(some[0], some[1])}, "condition")
}

// depend draws what a node reads of others, and of the round before.
func (d *drawing) depend(n *drawnNode, in *drawnScope, mayLack bool) {
	for _, up := range in.visible(func(*drawnNode) bool { return true }) {
		if f := n.spec.ForEach; !d.chance(d.reads, "depends") || f != nil && f.Task == up.spec.Title { // its item is all that it gets
			continue
		}
		ref := task.Ref{Task: up.spec.Title, Optional: d.chance(40, "optional") || !mayLack && !up.certain}
		if d.chance(30, "need") {
			ref.Need = []task.Path{"/ok", "/text"}
		}
		if up.spec.ForEach != nil {
			ref.Task, ref.Each = "", ref.Task
		} else {
			n.certain = n.certain && (ref.Optional || up.certain)
		}
		n.spec.DependsOn = append(n.spec.DependsOn, ref)
	}
}

// loop makes a node a loop.
func (d *drawing) loop(n *drawnNode, outer *drawnScope, depth int) {
	n.inside = d.scope(outer, depth+1)
	certain := slices.DeleteFunc(slices.Clone(n.inside.nodes), func(n *drawnNode) bool { return !n.certain || !n.decides() })
	n.output = one(d, certain, "output")
	n.spec.Repeat = &task.Repeat{MaxRounds: rapid.IntRange(1, 3).Draw(d.t, "rounds"), Until: d.condition(n.inside, false), Output: n.output.spec.Title}
	for _, in := range n.inside.nodes {
		for _, before := range n.inside.nodes {
			if in.spec.Repeat == nil && before.decides() && d.chance(30, "before") {
				in.spec.DependsOn = append(in.spec.DependsOn, task.Ref{Task: before.spec.Title, Round: task.Previous, Optional: true})
			}
		}
		n.spec.Repeat.Tasks = append(n.spec.Repeat.Tasks, in.spec)
	}
}

// A writer writes out the rounds and items that run.
type writer struct {
	*drawing
	out  []task.Spec
	left map[string]bool // instances that do not run, by their condition or what they require
}

// A writtenRound is one round: by title, the instance that has the result of each node, or the
// instances for items.
type writtenRound struct {
	outer  *writtenRound
	before *writtenRound
	suffix string
	is     map[string]string
	items  map[string][]string
}

// find returns the instance that a title means.
func (r *writtenRound) find(title string) string {
	for r.is[title] == "" {
		r = r.outer
	}
	return r.is[title]
}

// holds evaluates a condition with what the oracle says.
func (w *writer) holds(c *task.Condition, r *writtenRound) bool {
	holds := func(c task.Condition) bool { return w.holds(&c, r) }
	switch c.Op {
	case "all":
		return !slices.ContainsFunc(c.Of, func(c task.Condition) bool { return !holds(c) })
	case "any":
		return slices.ContainsFunc(c.Of, holds)
	case "not":
		return !holds(c.Of[0])
	case "exists":
		return true
	}
	ok, kind, _ := w.oracle(r.find(c.Task))
	if c.Path == "/ok" {
		return ok
	}
	return slices.Contains(c.Values, fmt.Sprintf("%q", kind))
}

// round writes out the nodes of a scope.
func (w *writer) round(in *drawnScope, r *writtenRound) {
	r.is, r.items = map[string]string{}, map[string][]string{}
	for _, n := range in.nodes {
		title := n.spec.Title
		refs, runs := w.refs(n, r)
		switch {
		case n.spec.When != nil && !w.holds(n.spec.When, r):
			runs = false
		case n.inside != nil:
			r.is[title] = w.rounds(n, r)
			continue
		}
		if n.spec.ForEach == nil {
			r.is[title] = w.add(title+r.suffix, n.spec.When, refs, runs, r)
			continue
		}
		from := r.find(n.spec.ForEach.Task)
		_, _, items := w.oracle(from)
		for k := range min(items, mostItems) {
			if runs && !w.left[from] {
				item := task.Ref{Task: from, As: task.Structured, Need: []task.Path{"/items/*", "/items/*/**"}, Item: task.Path(fmt.Sprintf("/items/%d", k)), Title: "item"}
				r.items[title] = append(r.items[title], w.add(fmt.Sprintf("%s%s[%d]", title, r.suffix, k+1), nil, append([]task.Ref{item}, refs...), true, r))
			}
		}
	}
}

// add writes out one task.
func (w *writer) add(instance string, when *task.Condition, refs []task.Ref, runs bool, r *writtenRound) string {
	when = when.Clone()
	when.Leaves(func(c *task.Condition) { c.Task = r.find(c.Task) })
	w.out = append(w.out, task.Spec{Title: instance, Description: "d", Assignee: "worker", OutputSchema: []byte(decided), DependsOn: refs, When: when})
	w.left[instance] = !runs
	return instance
}

// rounds writes out the rounds of a loop, and returns the instance that has its result.
func (w *writer) rounds(n *drawnNode, outer *writtenRound) string {
	var before *writtenRound
	for k := 1; ; k++ {
		r := &writtenRound{outer: outer, before: before, suffix: fmt.Sprintf("#%d", k)}
		if outer.suffix != "" {
			r.suffix = fmt.Sprintf("%s.%d", outer.suffix, k)
		}
		w.round(n.inside, r)
		if k == n.spec.Repeat.MaxRounds || w.holds(n.spec.Repeat.Until, r) {
			return r.find(n.output.spec.Title)
		}
		before = r
	}
}

// refs returns what an instance of a node reads, and whether all that it requires is there.
func (w *writer) refs(n *drawnNode, r *writtenRound) (refs []task.Ref, runs bool) {
	runs = true
	for _, ref := range n.spec.DependsOn {
		from := r
		switch {
		case ref.Each != "":
			for from.outer != nil && from.items[ref.Each] == nil {
				from = from.outer
			}
			for _, item := range from.items[ref.Each] {
				refs = append(refs, task.Ref{Task: item, Need: ref.Need, Optional: ref.Optional})
			}
			continue
		case ref.Round != "":
			if from = r.before; from == nil {
				continue
			}
		}
		instance := from.find(ref.Task)
		refs = append(refs, task.Ref{Task: instance, Need: ref.Need, Optional: ref.Optional, Title: ref.Task})
		runs = runs && (ref.Optional || !w.left[instance])
	}
	return refs, runs
}

var (
	fenceID      = regexp.MustCompile(`envelope [0-9a-f]+`)
	instanceName = regexp.MustCompile(`(T\d+)(#[\d.]+)?(\[\d+\])?`)
)

// promptsOf runs tasks and returns the prompt of each, without fences and the names of instances.
// Agents answer equal prompts equally, but for what the oracle says of an instance.
func (d *drawing) promptsOf(t require.TestingT, specs []task.Spec, titles map[task.ID]string) map[string]string {
	var mu sync.Mutex
	all := map[string]string{}
	worker := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		instance, known := titles[p.Receipt().Task]
		if !known {
			return agent.Reply{}, fmt.Errorf("a task runs that is not written out: %s", p.Text())
		}
		text := instanceName.ReplaceAllString(fenceID.ReplaceAllString(p.Text(), "envelope"), "$1")
		mu.Lock()
		all[instance] = text
		mu.Unlock()
		word := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
		ok, kind, n := d.oracle(instance)
		items := make([]string, n)
		for k := range items {
			items[k] = fmt.Sprintf(`{"q":"%s %d","n":%d}`, word, k, k)
		}
		return agent.Reply{Text: fmt.Sprintf(`{"ok":%t,"kind":%q,"text":%q,"tag":"t","items":[%s]}`, ok, kind, word, strings.Join(items, ","))}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: worker}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(context.Background(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	return all
}

// A drawnGraph is tasks as they are written, and the same with what runs written out.
type drawnGraph struct {
	*drawing
	specs, out []task.Spec
	titles     map[task.ID]string // of what runs
}

func drawGraph(t *rapid.T) *drawnGraph { return drawGraphThatReads(t, 40) }

// drawGraphThatReads draws a graph in which a task depends on so many percent of those before it.
func drawGraphThatReads(t *rapid.T, percent int) *drawnGraph {
	d := &drawing{t: t, reads: percent, seed: rapid.IntRange(0, 1_000_000).Draw(t, "seed")}
	in := d.scope(nil, 0)
	w := &writer{drawing: d, left: map[string]bool{}}
	w.round(in, &writtenRound{})
	g := &drawnGraph{drawing: d, out: w.out, titles: map[task.ID]string{}}
	for _, n := range in.nodes {
		g.specs = append(g.specs, n.spec)
	}
	for _, s := range w.out {
		if !w.left[s.Title] {
			g.titles[task.NewID(s.Title)] = s.Title
		}
	}
	return g
}

// requireEqualPrompts requires that the same instances run, with equal prompts.
func (g *drawnGraph) requireEqualPrompts(t require.TestingT) {
	want, got := g.promptsOf(t, g.out, g.titles), g.promptsOf(t, g.specs, g.titles)
	require.Equal(t, slices.Sorted(maps.Values(g.titles)), slices.Sorted(maps.Keys(want)))
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for instance, text := range want {
		require.Equal(t, text, got[instance], instance)
	}
}

// graphsFor returns how many graphs a property draws: few, 200 in slow tests, and GRAPHS of
// `make graphs`.
func graphsFor(t *testing.T, few int) int {
	if text := os.Getenv("GRAPHS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	if slowtest.Enabled() {
		return 200
	}
	return few
}

// TestGraphsHaveThePromptsOfWhatRan compares tasks with conditions, loops and lists with the same
// tasks for the rounds and items that run.
func TestGraphsHaveThePromptsOfWhatRan(t *testing.T) {
	t.Parallel()
	graphs := graphsFor(t, 40/slowtest.Every(4))
	var rounds, items, nested int
	for seed := range graphs {
		g := rapid.Custom(drawGraph).Example(seed)
		g.requireEqualPrompts(t)
		all := strings.Join(slices.Collect(maps.Values(g.titles)), "\n")
		for n, sign := range map[*int]string{&rounds: "#2", &items: "[2]", &nested: "#1.1.1"} {
			if strings.Contains(all, sign) {
				*n++
			}
		}
	}
	if !slowtest.RaceDetector { // under which they are few
		require.Greater(t, min(rounds, items, nested), graphs/10, "many graphs must have what is compared")
	}
}

// FuzzGraphsHaveThePromptsOfWhatRan does the same without a seed; a failure is shrunk.
func FuzzGraphsHaveThePromptsOfWhatRan(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { drawGraph(t).requireEqualPrompts(t) }))
}
