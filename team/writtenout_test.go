package team_test

import (
	"cmp"
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
	"github.com/runteam/runteam/person"
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
	reads int      // percent of the tasks before it that a task depends on
	input []string // the items of the input that lists may be of

	cases bool // some tasks are alternatives, of which another task gets the one that runs
	other bool // some tasks are for a person, and some have judges
}

// boss is the person among the agents of a drawing.
const boss = "boss"

// A drawnScope is the tasks of one round, as written.
type drawnScope struct {
	outer *drawnScope
	nodes []*drawnNode
}

// A drawnNode is a task, a task for each item of a list, several of them, or a loop.
type drawnNode struct {
	spec    task.Spec   // without tasks
	certain bool        // it runs whenever its round does
	inside  *drawnScope // of a loop, or of several tasks for each item
	output  *drawnNode  // of them, whose result the loop has, or each gets
	isCase  bool        // its condition is a case, which another completes
}

// written returns the node as it is written, with the tasks in it.
func (n *drawnNode) written() task.Spec {
	s := n.spec
	switch {
	case s.Repeat != nil:
		s.Repeat = new(*s.Repeat)
		s.Repeat.Tasks = n.inside.written()
	case n.inside != nil:
		s.ForEach = new(*s.ForEach)
		s.ForEach.Tasks = n.inside.written()
	}
	return s
}

// written returns the tasks of a scope as they are written.
func (in *drawnScope) written() (specs []task.Spec) {
	for _, n := range in.nodes {
		specs = append(specs, n.written())
	}
	return specs
}

// oracle returns what a task answers that decides what runs: it depends on the instance.
func (d *drawing) oracle(instance string) (ok bool, kind string, items int) {
	instance = canonical(instance)
	sum := sha256.Sum256(fmt.Append(nil, d.seed, instance))
	accepts := strings.Contains(instance, ": judge ") && strings.HasSuffix(instance, "#2") // the last round, or the run would fail
	return sum[0]%2 == 0 || accepts, [...]string{"a", "b", "c"}[sum[1]%3], int(sum[2]) % (mostItems + 2)
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
		if depth < mostNested && i > 0 && d.chance(40, "construct") {
			d.construct(n, in, depth)
		} else {
			n.spec.Description, n.spec.Assignee, n.spec.OutputSchema = "d", "worker", []byte(decided)
			if depth < mostNested && n.spec.When == nil && i > 0 && d.chance(35, "list") {
				d.list(n, in)
			}
			d.depend(n, in, i > 0)
			d.judge(n, depth)
		}
		in.nodes = append(in.nodes, n)
	}
	if d.cases && d.chance(25, "cases") {
		d.alternatives(in)
	}
	return in
}

// alternatives adds two tasks of which one runs, and one that gets the result of that one.
func (d *drawing) alternatives(in *drawnScope) {
	of := in.nodes[0].spec.Title
	add := func(when *task.Condition, ref task.Ref) string {
		d.named++
		n := &drawnNode{certain: when == nil, isCase: when != nil}
		n.spec = task.Spec{Title: fmt.Sprint("T", d.named), Description: "d", Assignee: "worker", OutputSchema: []byte(decided), When: when, DependsOn: []task.Ref{ref}}
		in.nodes = append(in.nodes, n)
		return n.spec.Title
	}
	first := add(task.In(of, "/kind", "a"), task.Ref{Task: of})
	second := add(task.In(of, "/kind", "b", "c"), task.Ref{Task: of})
	add(nil, task.Ref{OneOf: []string{first, second}})
}

// judge gives some tasks to a person, and judges to some.
func (d *drawing) judge(n *drawnNode, depth int) {
	if !d.other {
		return
	}
	if d.chance(20, "person") {
		n.spec.Assignee = boss
	}
	if n.spec.ForEach != nil {
		depth++
	}
	if depth < mostNested && d.chance(15, "judged") {
		n.spec.Verify = &task.Verify{Judges: []task.Judge{{Agent: "worker"}, {Agent: one(d, []string{"worker", boss}, "judge")}}, Quorum: 2}
		if d.chance(40, "keep") {
			n.spec.Verify.OnDissent = "keep"
		}
	}
}

// construct makes a node a loop, or several tasks for each item of a list.
func (d *drawing) construct(n *drawnNode, in *drawnScope, depth int) {
	if n.spec.When == nil && d.chance(30, "several") {
		d.list(n, in)
		d.several(n, in, depth)
		return
	}
	d.loop(n, in, depth)
}

// list makes a node run for each item of a list: of the input, or of a result.
func (d *drawing) list(n *drawnNode, in *drawnScope) {
	n.spec.ForEach = &task.ForEach{As: "item" + n.spec.Title, MaxItems: mostItems, OnOverflow: "first"}
	sources := in.visible((*drawnNode).decides)
	if d.chance(30, "input") {
		n.spec.ForEach.Input = "list"
		return
	}
	from := one(d, sources, "source")
	n.spec.ForEach.Task, n.spec.ForEach.Path = from.spec.Title, "/items"
	n.certain = n.certain && from.certain
}

// several draws the tasks that run for each item. They get the item if they name it.
func (d *drawing) several(n *drawnNode, outer *drawnScope, depth int) {
	n.inside = d.scope(outer, depth+1)
	f := n.spec.ForEach
	for _, in := range n.inside.nodes {
		reads := func(ref task.Ref) bool { return ref.Task == f.Task }
		if in.inside == nil && in.spec.ForEach == nil && !slices.ContainsFunc(in.spec.DependsOn, reads) && d.chance(60, "uses") {
			in.spec.Uses = []task.Use{{Name: f.As}}
		}
	}
	n.output = d.output(n.inside)
	f.Output = n.output.spec.Title
}

// output draws which task has the result of a loop, or of an item.
func (d *drawing) output(in *drawnScope) *drawnNode {
	return one(d, slices.DeleteFunc(slices.Clone(in.nodes), func(n *drawnNode) bool { return !n.certain || !n.decides() }), "output")
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
	n.output = d.output(n.inside)
	n.spec.Repeat = &task.Repeat{MaxRounds: rapid.IntRange(1, 3).Draw(d.t, "rounds"), Until: d.condition(n.inside, false), Output: n.output.spec.Title}
	for _, in := range n.inside.nodes {
		for _, before := range n.inside.nodes {
			if in.inside == nil && before.decides() && d.chance(30, "before") {
				in.spec.DependsOn = append(in.spec.DependsOn, task.Ref{Task: before.spec.Title, Round: task.Previous, Optional: true})
			}
		}
	}
}

// A writer writes out the rounds and items that run.
type writer struct {
	*drawing
	out    []task.Spec
	left   map[string]bool                           // instances that do not run, by their condition or what they require
	answer func(instance string) (bool, string, int) // what decides what runs
	last   map[string]string                         // of instances with judges, the round that has the result
	runs   []string                                  // what runs, as [canonical] names it
	ran    func(s *task.Spec, n *drawnNode)          // follows each instance that runs, in an order in which they could; nil for none
}

// A writtenRound is one round: by title, the instance that has the result of each node, or the
// instances for items.
type writtenRound struct {
	outer  *writtenRound
	before *writtenRound
	suffix string
	is     map[string]string
	items  map[string][]task.Ref // by the title of a list

	of   *drawnNode // the list that it is for an item of; nil for a round
	item int
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
	ok, kind, _ := w.said(r.find(c.Task))
	if c.Path == "/ok" {
		return slices.Contains(c.Values, fmt.Sprint(ok))
	}
	return slices.Contains(c.Values, fmt.Sprintf("%q", kind))
}

// said returns what the result of an instance says.
func (w *writer) said(instance string) (bool, string, int) {
	return w.answer(cmp.Or(w.last[instance], instance))
}

// judged follows the rounds of an instance that has judges, which the written out task has too.
func (w *writer) judged(s *task.Spec) {
	for k := 1; ; k++ {
		round, accepts, seen := fmt.Sprint("#", k), 0, map[string]int{}
		w.runs = append(w.runs, canonical(s.Title+round))
		for _, j := range s.Verify.Judges {
			title := s.Title + ": judge " + j.Agent
			if seen[j.Agent]++; seen[j.Agent] > 1 {
				title += " 2"
			}
			w.runs = append(w.runs, canonical(title+round))
			if ok, _, _ := w.answer(title + round); ok {
				accepts++
			}
		}
		if accepts == len(s.Verify.Judges) || s.Verify.OnDissent == "keep" {
			w.last[s.Title] = s.Title + round
			return
		}
	}
}

// round writes out the nodes of a scope.
func (w *writer) round(in *drawnScope, r *writtenRound) {
	r.is, r.items = map[string]string{}, map[string][]task.Ref{}
	for _, n := range in.nodes {
		title := n.spec.Title
		refs, runs := w.refs(n, r)
		runs = runs && (n.spec.When == nil || w.holds(n.spec.When, r))
		switch {
		case n.spec.ForEach != nil && runs:
			w.items(n, refs, r)
		case n.spec.ForEach != nil:
		case n.inside != nil && runs:
			r.is[title] = w.rounds(n, r)
		default:
			r.is[title] = w.add(title+r.suffix, n, refs, runs, r)
		}
	}
}

// items writes out the instances for the items of a list.
func (w *writer) items(n *drawnNode, refs []task.Ref, r *writtenRound) {
	title, f := n.spec.Title, n.spec.ForEach
	length := len(w.input)
	if f.Task != "" {
		from := r.find(f.Task)
		if w.left[from] {
			return
		}
		_, _, length = w.said(from)
	}
	for k := range min(length, f.MaxItems) {
		one := &writtenRound{outer: r, suffix: fmt.Sprintf("%s[%d]", r.suffix, k+1), item: k, of: n}
		output := title
		if n.inside != nil {
			output = n.output.spec.Title
			w.round(n.inside, one)
		} else {
			one.is = map[string]string{title: w.add(title+one.suffix, n, refs, true, one)}
		}
		r.items[title] = append(r.items[title], task.Ref{Task: one.find(output), Title: fmt.Sprintf("%s[%d]", output, k+1)})
	}
}

// add writes out one task.
func (w *writer) add(instance string, n *drawnNode, refs []task.Ref, runs bool, r *writtenRound) string {
	s := n.spec
	s.Title, s.DependsOn, s.When, s.ForEach, s.Repeat, s.Uses = instance, refs, n.spec.When.Clone(), nil, nil, nil
	if n.inside != nil { // a loop that does not run
		by := n.output
		for by.inside != nil {
			by = by.output
		}
		s.Description, s.Assignee, s.OutputSchema = "d", by.spec.Assignee, []byte(decided)
	}
	s.When.Leaves(func(c *task.Condition) { c.Task = r.find(c.Task) })
	for in := r; in != nil; in = in.outer {
		if of := in.of; of != nil && (of == n || slices.ContainsFunc(n.spec.Uses, func(u task.Use) bool { return u.Name == of.spec.ForEach.As })) {
			in.grant(&s)
		}
	}
	if w.left[instance] = !runs; runs && w.ran != nil {
		w.ran(&s, n)
	}
	switch w.out = append(w.out, s); {
	case !runs:
	case s.Verify != nil:
		w.judged(&s)
	default:
		w.runs = append(w.runs, canonical(instance))
	}
	return instance
}

// grant grants a task the item of a round.
func (r *writtenRound) grant(s *task.Spec) {
	f := r.of.spec.ForEach
	all, item := []task.Path{f.Path + "/*", f.Path + "/*/**"}, f.Path+task.Path(fmt.Sprintf("/%d", r.item))
	if f.Input != "" {
		s.Uses = []task.Use{{Name: fmt.Sprint(f.Input, r.item), Title: f.As}} // an input of its own
		return
	}
	s.DependsOn = append([]task.Ref{{Task: r.outer.find(f.Task), As: task.Structured, Need: all, Item: item, Title: f.As}}, s.DependsOn...)
}

// rounds writes out the rounds of a loop, and returns the instance that has its result.
func (w *writer) rounds(n *drawnNode, outer *writtenRound) string {
	var before *writtenRound
	for k := 1; ; k++ {
		r := &writtenRound{outer: outer, before: before, suffix: fmt.Sprintf("%s#%d", outer.suffix, k)}
		if outer.suffix != "" && !strings.HasSuffix(outer.suffix, "]") {
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
				item.Need, item.Optional = ref.Need, ref.Optional
				refs = append(refs, item)
			}
			continue
		case len(ref.OneOf) > 0:
			ref.Task = ref.OneOf[0]
			if w.left[r.find(ref.Task)] {
				ref.Task = ref.OneOf[1]
			}
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
	ofInput      = regexp.MustCompile(`### \S+\n(\[envelope from "user", internal)(?:, in parts)?`) // written out, it is an input of its own
	titleLine    = regexp.MustCompile(`^(# Task: T\d+)(?:#[\d.]+|\[\d+\])*`)
	judgedLine   = regexp.MustCompile(`(The task was "T\d+)(?:#[\d.]+|\[\d+\])*`)
	instanceName = regexp.MustCompile(`(T\d+)(?:#[\d.]+|\[\d+\])*`)
	partsOfName  = regexp.MustCompile(`^(T\d+)((?:#[\d.]+|\[\d+\])*)(: \D+(?: \d+)?)?((?:#[\d.]+|\[\d+\])*)$`)
)

// canonical returns one name for an instance that is in a round or an item, and for one that is written
// out with judges: T1: judge worker#2#1 for T1: judge worker#2.1 and T1#2: judge worker#1.
func canonical(instance string) string {
	if m := partsOfName.FindStringSubmatch(instance); m != nil {
		return m[1] + m[3] + strings.ReplaceAll(m[2]+m[4], ".", "#")
	}
	return instance
}

// promptsOf runs tasks and returns the prompt of each instance, without fences and the round or item in its
// title.
// Agents answer equal prompts equally, but for what the oracle says of an instance.
func (d *drawing) promptsOf(t require.TestingT, specs []task.Spec, runs []string) map[string]string {
	var mu sync.Mutex
	all := map[string]string{}
	titles := map[task.ID]string{}
	written, _, err := task.Unroll(specs)
	require.NoError(t, err)
	for i := range written {
		if name := canonical(written[i].Title); slices.Contains(runs, name) {
			titles[task.NewID(written[i].Title)] = name
		}
	}
	worker := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		instance, known := titles[p.Receipt().Task]
		if !known {
			return agent.Reply{}, fmt.Errorf("a task runs that is not written out: %s", p.Text())
		}
		text := ofInput.ReplaceAllString(judgedLine.ReplaceAllString(titleLine.ReplaceAllString(fenceID.ReplaceAllString(p.Text(), "envelope"), "$1"), "$1"), "### item\n$1")
		mu.Lock()
		all[instance] = text
		mu.Unlock()
		word := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:12]
		ok, kind, n := d.oracle(instance)
		if strings.Contains(instance, ": judge ") {
			return agent.Reply{Text: fmt.Sprintf(`{"accept":%t,"critique":%q}`, ok, word)}, nil
		}
		items := make([]string, n)
		for k := range items {
			items[k] = fmt.Sprintf(`{"q":"%s %d","n":%d}`, word, k, k)
		}
		return agent.Reply{Text: fmt.Sprintf(`{"ok":%t,"kind":%q,"text":%q,"tag":"t","items":[%s]}`, ok, kind, word, strings.Join(items, ","))}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: worker}, {Name: boss, Agent: person.New(worker)}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(context.Background(), specs, &team.RunOptions{Inputs: d.inputs()})
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	return all
}

// inputs returns the input that lists may be of, and each of its items.
func (d *drawing) inputs() []team.Input {
	all := []team.Input{{Name: "list", Text: "[" + strings.Join(d.input, ",") + "]"}}
	for k, item := range d.input {
		all = append(all, team.Input{Name: fmt.Sprint("list", k), Text: item})
	}
	return all
}

// A drawnGraph is tasks as they are written, and the same with what runs written out.
type drawnGraph struct {
	*drawing
	specs, out []task.Spec
	root       *drawnScope
	runs       []string // what runs, as [canonical] names it
}

// drawGraph draws a graph with everything that can be written out.
func drawGraph(t *rapid.T) *drawnGraph {
	return (&drawing{t: t, reads: 40, cases: true, other: true}).graph()
}

// drawGraphThatReads draws a graph in which a task depends on so many percent of those before it.
func drawGraphThatReads(t *rapid.T, percent int) *drawnGraph {
	return (&drawing{t: t, reads: percent}).graph()
}

func (d *drawing) graph() *drawnGraph {
	t := d.t
	d.seed = rapid.IntRange(0, 1_000_000).Draw(t, "seed")
	for range rapid.IntRange(0, mostItems+1).Draw(t, "items") {
		d.input = append(d.input, d.item())
	}
	in := d.scope(nil, 0)
	w := &writer{drawing: d, left: map[string]bool{}, last: map[string]string{}, answer: d.oracle}
	w.round(in, &writtenRound{})
	return &drawnGraph{drawing: d, specs: in.written(), out: w.out, root: in, runs: w.runs}
}

// item draws an item of the input.
func (d *drawing) item() string {
	return one(d, []string{`{"q":"a"}`, `{"q":"b"}`, `{"q":"c"}`, `{"n":4,"q":"d"}`}, "item")
}

// requireEqualPrompts requires that the same instances run, with equal prompts.
func (g *drawnGraph) requireEqualPrompts(t require.TestingT) {
	want, got := g.promptsOf(t, g.out, g.runs), g.promptsOf(t, g.specs, g.runs)
	require.Equal(t, slices.Sorted(slices.Values(g.runs)), slices.Sorted(maps.Keys(want)))
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for instance, text := range want {
		require.Equal(t, text, got[instance], instance)
	}
}

// graphsFor returns the seeds of the graphs that a property draws: the ones given, and in slow tests from 0 to 49, each night
// to 99, or as many as the variable GRAPHS says for `make graphs`. The ones given are small graphs that together have every
// construct of the property, which the property requires.
func graphsFor(t *testing.T, few ...int) []int {
	t.Helper()
	slowtest.NotUnderRace(t)
	many := slowtest.Cases(50, 100)
	if text := os.Getenv("GRAPHS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		many = n
	} else if !slowtest.Enabled() {
		return few
	}
	seeds := slices.Clone(few)
	for seed := range many {
		if !slices.Contains(few, seed) {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// TestGraphsHaveThePromptsOfWhatRan compares tasks with conditions, alternatives, loops, lists, judges
// and people with the same tasks for the rounds and items that run.
func TestGraphsHaveThePromptsOfWhatRan(t *testing.T) {
	t.Parallel()
	graphs := graphsFor(t, 7, 14, 24, 37, 42, 45, 69, 73)
	var rounds, items, nested, several, judged, oneOf, people int
	for _, seed := range graphs {
		g := rapid.Custom(drawGraph).Example(seed)
		g.requireEqualPrompts(t)
		var all strings.Builder
		all.WriteString(strings.Join(g.runs, "\n"))
		for _, s := range g.out {
			if s.Assignee == boss {
				all.WriteString(" " + boss)
			}
		}
		for _, n := range g.root.all() {
			if n.isCase {
				all.WriteString(" isCase")
			}
		}
		for n, sign := range map[*int]string{&rounds: "#2", &items: "[2]", &nested: "#1#1#1", &several: "]#", &judged: ": judge ", &people: boss, &oneOf: "isCase"} {
			if strings.Contains(all.String(), sign) {
				*n++
			}
		}
	}
	t.Logf("of %d graphs, %d have rounds, %d items, %d loops in loops in loops, %d loops in lists, %d judges, %d alternatives, and %d people", len(graphs), rounds, items, nested, several, judged, oneOf, people)
	require.Greater(t, min(rounds, items, nested, several, judged, oneOf, people), max(len(graphs)/10, 1), "many graphs must have what is compared")
}

// FuzzGraphsHaveThePromptsOfWhatRan does the same without a seed; a failure is shrunk.
func FuzzGraphsHaveThePromptsOfWhatRan(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { drawGraph(t).requireEqualPrompts(t) }))
}
