package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Runs that differ only in one source, or in one place of it, are the same for
// every reader that it does not reach by the flow table, and everything that did
// reach a reader in a run is in the table. Variants differ in words, members,
// findings, shapes and sizes within a class.
//
// Two variants are not compared where a task fails in one only, or the
// coordinator is called more or less often. This is legitimate: an agent that may read the
// changed place can fail because of it, and a task whose required context lacks in one
// variant what it needs is withheld by the gate and fails. Every reader knows the status of
// tasks and the first failed dependency of one that was canceled, and no gate hides them.
// Why a task failed by itself is compared.
//
// Where the gate rules otherwise on a pair that the place does reach, or a result comes to
// another size class, only the words of prompts are compared: receipts have the size class of a failure that is withheld, and
// events and results the verdict and the rule of every ruling, also above the user's
// clearance (G50).

// A tally counts what a number of settings came to.
type tally struct {
	settings, planned, runs int
	compared                int // prompts of whom a changed source cannot reach
	calls                   int // of tools that a changed source cannot reach
	lowered                 int // calls of tools with arguments that a declassifier lowered
	loweredResults          int // parts of results of tools that a declassifier lowered
	endorsed                int // calls of tools with external effects by agents that read results of tools, which an entry endorses
	unmoved                 int // readers whom a changed source never reaches
	moved                   int // runs in which a changed source did change a prompt
	met                     int // canaries found in prompts and in what the user reads
	told                    int // runs of which the user is told the same
	kept                    int // of them, with a trace and a journal
	uneven                  int // runs in which a task failed, or did not
	branched                int // runs in which other tasks were needed
	sent                    int // handoffs in prompts
	children                int // prompts of children
	blind                   int // prompts of agents that may send to the changed one, whom it cannot reach
	held                    int // prompts of holders of transferred conversations
	transferred             int // results of such conversations
	apart                   int // prompts of holders, whom the changed source cannot reach
	heldCalls               int // calls of tools by holders
	people                  int // prompts of people, whom the changed source cannot reach
	approvals               int // questions whether a tool may be called, which the changed source cannot reach
	shown                   int // calls of tools that people are shown
	replaced                int // prompts after the policy was replaced, whose reader the changed source cannot reach
	apartCalls              int // of them, calls that the changed source cannot reach
}

func (t *tally) add(o tally) {
	t.settings, t.planned, t.runs = t.settings+o.settings, t.planned+o.planned, t.runs+o.runs
	t.compared, t.unmoved, t.moved, t.met = t.compared+o.compared, t.unmoved+o.unmoved, t.moved+o.moved, t.met+o.met
	t.calls, t.lowered, t.loweredResults, t.endorsed = t.calls+o.calls, t.lowered+o.lowered, t.loweredResults+o.loweredResults, t.endorsed+o.endorsed
	t.told, t.kept, t.uneven = t.told+o.told, t.kept+o.kept, t.uneven+o.uneven
	t.branched += o.branched
	t.sent, t.children, t.blind = t.sent+o.sent, t.children+o.children, t.blind+o.blind
	t.held, t.transferred, t.apart = t.held+o.held, t.transferred+o.transferred, t.apart+o.apart
	t.heldCalls, t.apartCalls = t.heldCalls+o.heldCalls, t.apartCalls+o.apartCalls
	t.people, t.approvals, t.replaced = t.people+o.people, t.approvals+o.approvals, t.replaced+o.replaced
	t.shown += o.shown
}

// chosenSettings are the seeds of settings that can be run. Together they have each construct that a setting can have
// at least three times, and three of them notice each fault of docs/mutants.md that this test is for. If settings are
// drawn in another way, choose again: the slow form lists, with -v, what a seed has.
var chosenSettings = []int{28, 46, 53, 72, 86, 134, 169, 188, 333, 354, 396, 417, 437, 471, 486, 550, 575, 591, 627, 628, 724, 727, 737, 768, 775, 910, 965, 975, 1036, 1059, 1096, 1150, 1151, 1234, 1301, 1313, 1357, 1383, 1430, 1439, 1447, 1475, 1589, 1675, 2093, 3590}

// See GATE.md. The settings are the same in every run of the test.
//
// Requirement: G54.
func TestNonInterference(t *testing.T) {
	t.Parallel()
	const shards = 4
	seeds := chosenSettings[:len(chosenSettings)/slowtest.Every(16)]
	if slowtest.Enabled() {
		seeds = slices.Clone(chosenSettings)
		for seed := range slowtest.Cases(160, 640) {
			seeds = append(seeds, seed+1)
		}
	}
	sums := make([]tally, shards)
	t.Run("settings", func(t *testing.T) {
		for k := range shards {
			t.Run(strconv.Itoa(k), func(t *testing.T) {
				t.Parallel()
				for i := k; i < len(seeds); i += shards {
					requireApart(t, seeds[i], &sums[k])
				}
			})
		}
	})
	var sum tally
	for _, s := range sums {
		sum.add(s)
	}
	t.Logf("%+v", sum)
	switch {
	case slowtest.Enabled():
		sum.requireShares(t)
	case !slowtest.RaceDetector:
		sum.requireEach(t)
	default: // under the race detector they are too few
	}
}

// requireEach checks that all settings were run, and that each thing which a tally counts came up.
func (sum tally) requireEach(t *testing.T) {
	t.Helper()
	require.Equal(t, sum.settings, sum.planned, "the chosen settings can be run")
	for counts, i := reflect.ValueOf(sum), 0; i < counts.NumField(); i++ {
		require.Greater(t, counts.Field(i).Int(), int64(2), counts.Type().Field(i).Name)
	}
}

// requireShares checks that the settings were such as can tell a leak from none.
func (sum tally) requireShares(t *testing.T) {
	t.Helper()
	require.Greater(t, sum.planned*100, sum.settings*30, "most settings must be such as can be run")
	require.Greater(t, sum.unmoved, sum.runs/2)
	require.Greater(t, sum.compared, sum.runs)
	require.Greater(t, sum.calls, sum.runs/4)
	require.Greater(t, sum.lowered, 0)
	require.Greater(t, sum.loweredResults, sum.planned/40)
	require.Greater(t, sum.endorsed, sum.planned/40)
	require.Greater(t, sum.moved, sum.runs/4)
	require.Greater(t, sum.met, sum.runs*10)
	require.Greater(t, sum.branched, sum.runs/200)
	require.Greater(t, sum.told, sum.runs/25)
	require.Greater(t, sum.kept, sum.told/40)
	require.Less(t, sum.uneven, sum.runs/5)
	require.Greater(t, sum.sent, sum.planned/10)
	require.Greater(t, sum.children, sum.runs/8)
	require.Greater(t, sum.blind, sum.runs/8)
	require.Greater(t, sum.held, sum.planned/5)
	require.Greater(t, sum.transferred, 10)
	require.Greater(t, sum.apart, sum.runs/20)
	require.Greater(t, sum.heldCalls, sum.planned/5)
	require.Greater(t, sum.apartCalls, sum.runs/40)
	require.Greater(t, sum.people, sum.runs/20)
	require.Greater(t, sum.approvals, sum.runs/40)
	require.Greater(t, sum.replaced, sum.runs/80)
	require.Greater(t, sum.shown, sum.planned/10)
}

// requireApart checks the setting of a seed.
func requireApart(t *testing.T, seed int, sum *tally) {
	t.Helper()
	s := rapid.Custom(drawSetting).Example(seed)
	rng := rand.New(rand.NewPCG(uint64(seed), 54))
	var own tally
	if wrong := s.interferes(t.Context(), &own, rng.IntN, bubbleOf(t)); wrong != "" {
		t.Fatalf("setting %d: %s\n%s", seed, wrong, s)
	}
	if own.planned > 0 {
		t.Logf("setting %d: %+v", seed, own)
	}
	sum.add(own)
}

// G54 without a seed; a failure is shrunk.
//
// Requirement: G54.
func FuzzNonInterference(f *testing.F) {
	f.Fuzz(func(of *testing.T, input []byte) {
		rapid.MakeFuzz(func(t *rapid.T) {
			s := drawSetting(t)
			wrong := s.interferes(t.Context(), &tally{}, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "source") }, bubbleOf(of))
			if wrong != "" {
				t.Fatalf("%s\n%s", wrong, s)
			}
		})(of, input)
	})
}

// keeps is one in how many settings a trace and a journal are kept of.
const keeps = 4

// variations is how many sources of a setting are changed, one at a time.
const variations = 3

// interferes runs a setting, and again with sources changed that choose picks.
// It says what is wrong, or nothing. Runs with people are made in bubble.
func (s *setting) interferes(ctx context.Context, sum *tally, choose func(n int) int, bubble func(func())) string {
	sum.settings++
	w := newVariant(func(string) bool { return false })
	st, err := s.build()
	if err != nil {
		return ""
	}
	st.kept = choose(keeps) == 0
	if _, err = st.team.Plan(s.tasks, st.options(w)); err != nil {
		return ""
	}
	planned, err := st.wide.Plan(s.tasks, st.options(w))
	if err != nil {
		return ""
	}
	play := func(w *variant) (out *story, err error) {
		if !s.hasPeople() {
			return st.play(ctx, w)
		}
		bubble(func() { out, err = st.play(context.WithoutCancel(ctx), w) })
		return out, err
	}
	was, err := play(w)
	if err != nil {
		return "it was planned and cannot be run: " + err.Error()
	}
	sum.planned++
	sum.runs++
	v := &view{setting: s, variant: w, story: was, plan: planned, table: planned.Flow(), sum: sum}
	v.indexGraph()
	if wrong := v.known(); wrong != "" {
		return wrong
	}
	places := slices.DeleteFunc(s.places(), func(at spot) bool { return v.source(at.source) < 0 }) // no edge leads to such a holder
	for range variations {
		at := places[choose(len(places))]
		prefix := at.source
		if at.path != "" && choose(2) == 0 {
			prefix += at.path
		} else {
			at.path = ""
		}
		other := newVariant(func(place string) bool { return place == prefix || strings.HasPrefix(place, prefix+"/") })
		changed, err := play(other)
		if err != nil && strings.HasPrefix(prefix, "input/") { // a given input that lacks what is needed is refused beforehand
			sum.uneven++
			continue
		}
		if err != nil {
			return fmt.Sprintf("with %s changed it cannot be run: %v", prefix, err)
		}
		sum.runs++
		if wrong := v.compare(at, changed); wrong != "" {
			return fmt.Sprintf("with %s changed: %s", prefix, wrong)
		}
	}
	return ""
}

// A spot is a place of a source; the empty path is all of it.
type spot struct{ source, path string }

// places are all places of the sources of a setting.
func (s *setting) places() (out []spot) {
	add := func(source string, f form) {
		for _, p := range f.places() {
			out = append(out, spot{source, p})
		}
	}
	for i, in := range s.inputs {
		add(fmt.Sprintf("input/%d", i), in.form)
	}
	for i := range s.messages {
		add(fmt.Sprintf("message/%d", i), plain)
	}
	if s.goal {
		add("goal", plain)
	}
	for i := range s.tasks {
		_, f := s.member(s.tasks[i].Assignee)
		add(fmt.Sprintf("task/%d", i), f)
		if s.transfersTask(i) {
			out = append(out, slices.Repeat([]spot{{source: fmt.Sprintf("task/%d", i)}}, 16)...) // how often it calls tools before changes too
			for k := range s.agents {
				add(fmt.Sprintf("held/%d-%s", i, s.agents[k].Name), plain)
			}
		}
	}
	for n := range s.sources {
		for _, p := range toolPlaces {
			out = append(out, spot{fmt.Sprintf("tool/%d", n), string(p)})
		}
	}
	for i := range s.tasks { // what decides is changed more often
		s.tasks[i].When.Leaves(func(c *task.Condition) {
			up := slices.IndexFunc(s.tasks, func(t task.Spec) bool { return t.Title == c.Task })
			out = append(out, slices.Repeat([]spot{{source: fmt.Sprintf("task/%d", up)}}, 16)...)
		})
	}
	return out
}

// transfersTask reports whether the agent of a task transfers its conversation.
func (s *setting) transfersTask(i int) bool { return s.transferTurn(i) >= 0 }

// transferTurn is the first turn in which the agent of a task transfers its conversation, or -1.
func (s *setting) transferTurn(i int) int {
	return slices.IndexFunc(s.acts[i], func(turn []netAction) bool { return turn != nil && turn[0].tool == plan.TransferPrefix })
}

// split cuts the name of a place into source and path.
func split(place string) spot {
	parts := strings.SplitN(strings.TrimSuffix(place, saidPlace), "/", 3)
	if len(parts) < 3 {
		return spot{source: strings.Join(parts, "/")}
	}
	return spot{parts[0] + "/" + parts[1], "/" + parts[2]}
}

// A view holds what came of a run to the flow table.
type view struct {
	setting *setting
	variant *variant
	story   *story
	plan    *engine.Plan
	table   *flow.Table
	sum     *tally

	named      map[int][]string   // what steps returned
	toolPlaces map[toolSource]int // what toolAt returned
	reached    map[spot]spread    // what spreads returned
	edgesFrom  map[int][]int      // by source: indexes of its edges
	sourcesOf  map[int][]int      // by task of the graph: indexes of its sources
}

// source is the index of a source in the table.
func (v *view) source(name string) int {
	kind, number, _ := strings.Cut(name, "/")
	want := map[string]handoff.SourceKind{"input": handoff.Input, "message": handoff.Message, "goal": handoff.Goal, "task": handoff.Dependency, "tool": handoff.ToolResult}[kind]
	nth := 0
	fmt.Sscan(number, &nth)
	if kind == "held" {
		by, step := v.setting.heldStep(name)
		return slices.IndexFunc(v.table.Graph().Sources, func(src flow.Source) bool {
			return src.Kind == handoff.Transferred && src.From == by && v.table.Graph().Tasks[src.Task].Title == step
		})
	}
	if want == handoff.ToolResult {
		return v.toolAt(v.setting.sources[nth])
	}
	for i, src := range v.table.Graph().Sources {
		if src.Kind != want || want == handoff.Message && src.Task >= 0 { // the handoffs of a task
			continue
		}
		if nth--; nth < 0 {
			return i
		}
	}
	panic("no source " + name)
}

// A spread is the readers that something reaches by the edges of the graph,
// computed without the table, task by task.
type spread struct {
	direct, tainted map[string]bool // titles of tasks and turns
	shown, user     bool            // to the user: itself, or also what derives from it
}

// A passedSource is a source that a spread follows: itself, or as what derives from it.
type passedSource struct {
	source int
	itself bool
}

// spreads follows a place of a source.
func (v *view) spreads(at spot) spread {
	out, known := v.reached[at]
	if !known {
		out = v.follow(at)
		v.reached[at] = out
	}
	return out
}

// indexGraph notes which edges lead from each source, and which sources each task has.
func (v *view) indexGraph() {
	v.reached, v.edgesFrom, v.sourcesOf = map[spot]spread{}, map[int][]int{}, map[int][]int{}
	g := v.table.Graph()
	for i := range g.Edges {
		v.edgesFrom[g.Edges[i].Source] = append(v.edgesFrom[g.Edges[i].Source], i)
	}
	for i := range g.Sources {
		v.sourcesOf[g.Sources[i].Task] = append(v.sourcesOf[g.Sources[i].Task], i)
	}
}

func (v *view) follow(at spot) spread {
	g := v.table.Graph()
	out := spread{direct: map[string]bool{}, tainted: map[string]bool{}}
	passes := func(s *pick.Selection) bool {
		return at.path == "" || s.MayPass(strings.Split(at.path[1:], "/"))
	}
	var passed []passedSource
	for _, first := range v.sources(at) {
		passed = append(passed, passedSource{first, true})
	}
	seen := map[int]bool{}
	for k := 0; k < len(passed); k++ {
		from, itself := passed[k].source, passed[k].itself
		for _, i := range v.edgesFrom[from] {
			e := &g.Edges[i]
			if e.Reach() == flow.Never || itself && !passes(&e.Delivers) || g.Sources[from].Kind == handoff.Condition && e.Rule == gate.RuleTransfer {
				continue // of runs in which the same holders are asked, the prompts are compared
			}
			for _, step := range v.steps(e.Task) {
				out.direct[step] = out.direct[step] || itself
				out.tainted[step] = true
			}
			if seen[e.Task] {
				continue
			}
			seen[e.Task] = true
			for _, r := range v.sourcesOf[e.Task] {
				passed = append(passed, passedSource{r, false})
			}
		}
		for i := range g.Sights {
			s := &g.Sights[i]
			if s.Source == from && s.Reach() != flow.Never && (!itself || passes(&s.Delivers)) {
				out.user, out.shown = true, out.shown || itself
			}
		}
	}
	return out
}

// compare holds a run with a place changed to the one without.
func (v *view) compare(at spot, changed *story) string {
	to, source := v.spreads(at), v.source(at.source)
	if v.story.endings() != changed.endings() {
		v.sum.uneven++
		return ""
	}
	if v.story.branches() != changed.branches() {
		v.sum.branched++
	}
	g := v.table.Graph()
	never := map[string]bool{}
	for r := range g.Readers {
		if v.never(at, r) {
			never[g.Readers[r].Name] = true
			v.sum.unmoved++
		}
	}
	writer := v.writer(at.source) // its later turns have its own words
	untouched := func(s *sight) bool {
		if s.step == writer || s.step == "children of "+writer || strings.HasSuffix(s.step, " for "+writer) || flow.IsApproval(s.step) && strings.HasSuffix(s.step, " in "+writer) {
			return false
		}
		m, _ := v.setting.member(s.agent)
		return !to.tainted[s.step] || never[s.agent] || m != nil && slices.ContainsFunc(v.setting.leaves(m), func(where string) bool { return never[where] })
	}
	was, is := v.story.sightsOf(untouched), changed.sightsOf(untouched)
	if len(was) != len(is) {
		return fmt.Sprintf("there are %d prompts whose readers it never reaches, instead of %d", len(is), len(was))
	}
	same := v.story.ruled == changed.ruled && slices.Equal(v.story.sizes(), changed.sizes())
	for i := range was {
		if !same || was[i].call == nil && strings.Contains(was[i].step, " in Task ") && was[i].receipt.Session != is[i].receipt.Session {
			is[i].written = was[i].written // the session of a later holder counts the turns before it
		}
		if wrong := was[i].differs(&is[i]); wrong != "" {
			return wrong
		}
		if was[i].call != nil {
			v.sum.calls++
			if was[i].call.caller.held {
				v.sum.apartCalls++
			}
		} else {
			v.sum.compared++
			switch {
			case flow.IsApproval(was[i].step):
				v.sum.approvals++
			case v.setting.isPerson(was[i].agent):
				v.sum.people++
			case strings.Contains(was[i].step, " in Task "): // of a holder
				v.sum.apart++
			}
			if was[i].policy != v.setting.first() {
				v.sum.replaced++
			}
			if by := g.Sources[source].Task; by >= 0 && v.setting.reaches(was[i].agent, g.Sources[source].From) {
				v.sum.blind++
			}
		}
	}
	if !slices.EqualFunc(v.story.sights, changed.sights, func(a, b sight) bool { return a.differs(&b) == "" }) {
		v.sum.moved++
	}
	if !never[handoff.User] && to.user || v.open(at) || !same {
		return ""
	}
	v.sum.told++
	if v.story.told != changed.told {
		return "what the user is told differs\n" + difference(v.story.told, changed.told)
	}
	if v.story.shown != changed.shown {
		return "the prompts that the user is shown differ\n" + difference(v.story.shown, changed.shown)
	}
	if v.story.record != "" {
		v.sum.kept++
	}
	if v.story.record != changed.record {
		return "what a trace and a journal keep differs\n" + difference(v.story.record, changed.record)
	}
	return ""
}

// endings is how the tasks of a run ended, because of which dependency, and how often
// the coordinator was asked.
func (s *story) endings() string {
	var b strings.Builder
	for i := range s.result.Tasks {
		status := s.result.Tasks[i].Status
		if status == task.NotNeeded { // by a condition, which the table knows
			status = task.Completed
		}
		fmt.Fprint(&b, status)
		if err := s.result.Tasks[i].Error; err != nil && err.Root != "" {
			fmt.Fprint(&b, " because of ", err.Root)
		}
		if of := s.result.Tasks[i].Receipts; len(of) > 0 && of[len(of)-1].Contract.HeldBefore != nil { // to one that lacks what is needed, it is not transferred
			fmt.Fprint(&b, of[len(of)-1].Contract.HeldBefore, of[len(of)-1].Agent)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, len(s.result.Steps))
	return b.String()
}

// sizes are the size classes of the results of a run, which receipts have of what is withheld.
func (s *story) sizes() (classes []int) {
	for i := range s.result.Tasks {
		if e := s.result.Tasks[i].Envelope; e != nil {
			classes = append(classes, bytesize.Class(e.Size()))
		}
	}
	return classes
}

// branches is which tasks of a run were needed.
func (s *story) branches() string {
	var b strings.Builder
	for i := range s.result.Tasks {
		fmt.Fprintln(&b, s.result.Tasks[i].Status == task.NotNeeded)
	}
	return b.String()
}

// open reports whether a source is one that the user may see, and brought along:
// the record of the run shows all of it.
func (v *view) open(at spot) bool {
	if strings.HasPrefix(at.source, "task/") || strings.HasPrefix(at.source, "held/") || strings.HasPrefix(at.source, "tool/") {
		return false
	}
	return v.table.Graph().Sources[v.source(at.source)].Label <= v.setting.user
}

func (s *story) sightsOf(which func(*sight) bool) (list []sight) {
	for i := range s.sights {
		if which(&s.sights[i]) {
			list = append(list, s.sights[i])
		}
	}
	return list
}

// differs says how two prompts differ for their reader, receipt and all.
func (s *sight) differs(o *sight) string {
	switch {
	case s.agent != o.agent || s.step != o.step:
		return fmt.Sprintf("a prompt is for %q of %s instead of %q of %s", o.step, o.agent, s.step, s.agent)
	case s.call != nil && s.text != o.text:
		return fmt.Sprintf("the arguments of %q differ, which it never reaches\n%s", s.step, difference(s.text, o.text))
	case s.system != o.system || s.text != o.text:
		return fmt.Sprintf("the prompt of %q for %s differs, whom it never reaches\n--- was\n%s\n--- is\n%s", s.step, s.agent, s.system+"\n"+s.text, o.system+"\n"+o.text)
	}
	if s.written != o.written {
		return fmt.Sprintf("the receipt of %q for %s differs, whom it never reaches\n%s", s.step, s.agent, difference(s.written, o.written))
	}
	return ""
}

// never reports whether the table says that a place of a source never reaches a
// reader, nor derives into what does.
func (v *view) never(at spot, reader int) bool {
	if !v.reach(at, reader) {
		return true
	}
	return at.path != "" && v.holds(at, flow.Derives, reader)
}

// reach reports whether a place of a source reaches a reader by the table, itself or as something else.
func (v *view) reach(at spot, reader int) bool {
	return slices.ContainsFunc(v.sources(at), func(source int) bool { return v.table.Reach(source, reader) != flow.Never })
}

// holds reports whether an assertion about a source holds, or about a place
// in it.
func (v *view) holds(at spot, claim flow.Claim, reader int) bool {
	g := v.table.Graph()
	src := &g.Sources[v.source(at.source)]
	about := flow.Subject{Kind: flow.OfInput, Name: src.Name}
	switch src.Kind {
	case handoff.Input:
	case handoff.Dependency:
		about.Kind = flow.OfTask
	default:
		return false
	}
	if src.Structured() {
		about.Path = asked(at.path)
	}
	found, err := v.table.Check(flow.Assertion{Subject: about, Claim: claim, Reader: g.Readers[reader].Name})
	if err != nil {
		panic(err)
	}
	return found.Holds && (at.path == "" || src.Structured())
}

// asked is a place as an assertion may name it.
func asked(path string) task.Path {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err == nil {
			parts[i] = "*"
		}
	}
	return task.Path(strings.Join(parts, "/"))
}

func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			return excerpts(as[i], bs[min(i, len(bs)-1)])
		}
	}
	return "it is longer"
}

// excerpts returns the parts of two long lines where they begin to differ.
func excerpts(a, b string) string {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	cut := func(s string) string { return s[max(at-300, 0):min(at+100, len(s))] }
	return "…" + cut(a) + "…\n…" + cut(b) + "…"
}

// known holds everything that was met anywhere in a run to the table, the
// labels, and the policy as it is written.
func (v *view) known() string {
	for i := range v.story.sights {
		if wrong := v.sight(&v.story.sights[i]); wrong != "" {
			s := &v.story.sights[i]
			return fmt.Sprintf("%s\n--- the prompt of %q for %s\n%s\n%s", wrong, s.step, s.agent, s.system, s.text)
		}
	}
	for i := range v.story.result.Tasks {
		if r := &v.story.result.Tasks[i]; r.Label > v.plan.Tasks[i].Label {
			return fmt.Sprintf("the result of %q is %v, at most %v was said", r.Title, r.Label, v.plan.Tasks[i].Label)
		}
	}
	return cmp.Or(v.ofHolders(), v.outside())
}

func (v *view) reader(name string) int {
	return slices.IndexFunc(v.table.Graph().Readers, func(r flow.Reader) bool { return r.Name == name })
}

// sight holds one prompt.
func (v *view) sight(s *sight) string {
	if s.call != nil {
		return v.call(s)
	}
	for _, p := range v.plan.Tasks {
		if p.Title == s.step && s.receipt.Classification > p.Label {
			return fmt.Sprintf("the prompt is %v, at most %v was said", s.receipt.Classification, p.Label)
		}
	}
	reader := v.reader(s.agent)
	clearance := v.clearance(s.agent)
	if s.receipt.Classification > clearance {
		return fmt.Sprintf("the prompt is %v, and its reader accepts %v", s.receipt.Classification, clearance)
	}
	all := s.system + "\n" + s.given
	for _, hidden := range append(cards[:], tokens[:]...) {
		if strings.Contains(all, hidden) {
			return "it has what is always redacted: " + hidden
		}
	}
	for _, c := range canaries.FindAllString(all, -1) {
		at, met := v.variant.known[c]
		if !met {
			continue // cut
		}
		if wrong := v.arrived(split(at), strings.HasSuffix(at, saidPlace), reader, s); wrong != "" {
			return fmt.Sprintf("%s of %s: %s", c, at, wrong)
		}
	}
	return cmp.Or(v.handed(s), v.ofChild(s), v.ofHolder(s), v.delivered(s), v.approved(s))
}

// clearance is that of a reader by the spec: the coordinator reads no more than the caller.
func (v *view) clearance(agent string) label.Classification {
	if m, _ := v.setting.member(agent); m != nil {
		return v.setting.clearance(m)
	}
	return min(v.setting.user, v.setting.coordinator)
}

// arrived holds a canary that a prompt has, in whatever words.
// What is said before the answer counts as all of the source.
func (v *view) arrived(at spot, said bool, reader int, s *sight) string {
	v.sum.met++
	source := v.source(at.source)
	if source < 0 {
		return "the table does not know that holder"
	}
	if !v.reach(at, reader) {
		return "by the table it never reaches " + s.agent
	}
	if m, _ := v.setting.member(s.agent); m != nil {
		for _, where := range v.setting.leaves(m) {
			if !v.reach(at, v.reader(where)) {
				return "by the table it never reaches " + where
			}
		}
	}
	if !v.spreads(at).tainted[s.step] {
		return "no edges lead to " + s.step
	}
	if said && (len(v.sources(at)) > 1 || strings.HasPrefix(at.source, "held/")) { // it may have been in a handoff, which has the label of an earlier turn
		return ""
	}
	if v.holds(at, flow.Derives, reader) {
		return "an assertion holds that it never derives into " + s.agent
	}
	src := &v.table.Graph().Sources[source]
	if len(v.setting.policy.Declassify) == 0 && s.receipt.Classification < v.label(at) {
		return fmt.Sprintf("it is %v, and the prompt is %v", src.Label, s.receipt.Classification)
	}
	return ""
}

// label is that of a source as it was in the run.
func (v *view) label(at spot) label.Classification {
	i, ok := strings.CutPrefix(at.source, "task/")
	if held, isHeld := strings.CutPrefix(at.source, "held/"); isHeld {
		i, _, ok = strings.Cut(held, "-")
	}
	if ok {
		r, _ := v.story.result.Task("Task " + i)
		if r.Error != nil { // its words are as sensitive as its prompt was
			return r.Receipts[len(r.Receipts)-1].Classification
		}
		return r.Label
	}
	return v.table.Graph().Sources[v.source(at.source)].Label
}

// delivered holds each piece of context in a prompt that came from its source itself.
func (v *view) delivered(s *sight) string {
	for _, part := range []struct {
		text   string
		system bool
	}{{s.system, true}, {cmp.Or(s.added, s.text), false}} {
		ranges := s.receipt.Text
		if part.system {
			ranges = s.receipt.System
		}
		for _, at := range ranges {
			if at.Source < 0 || s.receipt.Sources[at.Source].Decision == nil {
				continue
			}
			d := s.receipt.Sources[at.Source].Decision
			for _, c := range canaries.FindAllString(part.text[at.Start:at.End], -1) {
				place, met := v.variant.known[c]
				if !met || strings.HasSuffix(place, saidPlace) {
					continue
				}
				if strings.HasPrefix(place, "held/") && naming.IsChain(d.From) && d.Source.Kind == handoff.Dependency && v.isResult(split(place).source, d) {
					if wrong := v.ofChain(split(place), d, s); wrong != "" {
						return fmt.Sprintf("%s of %s was delivered: %s", c, place, wrong)
					}
				}
				if !v.is(split(place).source, d) {
					continue
				}
				if wrong := v.lawful(split(place), d, s, part.system); wrong != "" {
					return fmt.Sprintf("%s of %s was delivered: %s", c, place, wrong)
				}
			}
		}
	}
	return ""
}

// isResult reports whether a decision is about the result of the task in which a holder said something.
func (v *view) isResult(source string, d *gate.Decision) bool {
	_, step := v.setting.heldStep(source)
	_, title, _ := strings.Cut(step, " in ")
	return !d.Translated && d.Source.Name == string(task.NewID(title))
}

// is reports whether a decision is about a source itself.
func (v *view) is(source string, d *gate.Decision) bool {
	src := v.table.Graph().Sources[v.source(source)]
	switch d.Source.Kind {
	case handoff.Input:
		return src.Kind == handoff.Input && src.Name == d.Source.Name
	case handoff.Dependency, handoff.Memory:
		return src.Kind == handoff.Dependency && strings.HasPrefix(string(d.Envelope), string(task.NewID(src.Name))+"/1") && !d.Translated
	case handoff.Goal:
		return src.Kind == handoff.Goal
	case handoff.ToolResult:
		return src.Kind == handoff.ToolResult && src.From == d.From
	}
	return false
}

// lawful compares what was delivered with the policy: every rule for the pair, and
// the declassifier where the reader is not cleared.
func (v *view) lawful(at spot, d *gate.Decision, s *sight, system bool) string {
	source, reader := v.source(at.source), v.reader(s.agent)
	if v.table.Reach(source, reader) < flow.Part && !v.table.Wrote(source, reader) {
		return fmt.Sprintf("by the table it comes to %s as %v", s.agent, v.table.Reach(source, reader))
	}
	if !v.spreads(at).direct[s.step] {
		return "no edge leads to " + s.step
	}
	if v.holds(at, flow.Reaches, reader) && !v.table.Wrote(source, reader) {
		return "an assertion holds that it never reaches " + s.agent
	}
	if d.Source.Kind == handoff.Goal {
		return ""
	}
	var tokens []string
	if at.path != "" {
		tokens = strings.Split(at.path[1:], "/")
	}
	if wrong := v.lawless(tokens, d, s); wrong != "" {
		return wrong
	}
	if d.Before > v.clearance(s.agent) || d.After < d.Before {
		if d.Source.Kind == handoff.ToolResult {
			v.sum.loweredResults++
		}
		return v.lowered(tokens, d)
	}
	if system && !slices.ContainsFunc(v.setting.policy.Endorse, func(e handoff.Endorser) bool { return e.From == d.From && e.To == d.To }) {
		return "it stands in the system prompt, and no entry endorses it"
	}
	return ""
}

// lawless says which rule for a pair a delivery breaks, or which default of a
// pair without one, or what the task did not need.
func (v *view) lawless(tokens []string, d *gate.Decision, s *sight) string {
	states, minimal := 0, 0 // of the rules for the pair, by how exact they are: 2, 1, 0
	for i := range s.policy.Rules {
		r := &s.policy.Rules[i]
		from, to := r.From == d.From || r.From == handoff.Anyone, r.To == d.To || r.To == handoff.Anyone
		if !from || !to {
			continue
		}
		if wrong := breaks(r, tokens, d); wrong != "" {
			return wrong
		}
		rank := 1
		if r.From != handoff.Anyone && r.To != handoff.Anyone {
			rank = 2
		}
		if r.Mode != "" || r.Allow != nil {
			states = max(states, rank)
		}
		if r.Mode == handoff.Minimal {
			minimal = max(minimal, rank)
		}
	}
	if m, _ := v.setting.member(d.To); states == 0 && m != nil && d.From != handoff.User && (m.Handoff == handoff.Minimal || v.setting.policy.Default == handoff.Minimal) {
		return "the default is minimal"
	}
	if minimal > 0 && minimal == states {
		return "a rule is minimal"
	}
	for _, need := range v.needs(d, s.step) {
		if !slices.ContainsFunc(need, func(p task.Path) bool { return pick.Covers(p, tokens) }) {
			return fmt.Sprintf("the task needs %v", need)
		}
	}
	return ""
}

// needs is what a task says that it needs of a source, if it does.
func (v *view) needs(d *gate.Decision, step string) (out [][]task.Path) {
	for i := range v.setting.tasks {
		tk := &v.setting.tasks[i]
		if tk.Title != step {
			continue
		}
		for _, u := range tk.Uses {
			if d.Source.Kind == handoff.Input && u.Name == d.Source.Name && u.Need != nil {
				out = append(out, u.Need)
			}
		}
		for _, ref := range tk.DependsOn {
			if d.Source.Kind == handoff.Dependency && string(task.NewID(ref.Task)) == d.Source.Name && ref.Need != nil {
				out = append(out, ref.Need)
			}
		}
	}
	return out
}

// breaks says which part of a rule a delivery breaks.
func breaks(r *handoff.PairRule, tokens []string, d *gate.Decision) string {
	blocks := r.Block
	if r.Translate != nil {
		blocks = slices.Concat(blocks, r.Translate.Filter)
	}
	for _, b := range blocks {
		if blocked(string(b), tokens) {
			return fmt.Sprintf("rule %s→%s blocks %s", r.From, r.To, b)
		}
	}
	switch {
	case r.Allow != nil && !slices.ContainsFunc(r.Allow, func(p task.Path) bool { return pick.Covers(p, tokens) }):
		return fmt.Sprintf("rule %s→%s allows %v", r.From, r.To, r.Allow)
	case r.Translate != nil && r.Translate.Fields != nil && !slices.ContainsFunc(r.Translate.Fields, func(p task.Path) bool { return pick.Covers(p, tokens) }):
		return fmt.Sprintf("rule %s→%s keeps %v", r.From, r.To, r.Translate.Fields)
	case r.Ceiling != nil && d.After > *r.Ceiling:
		return fmt.Sprintf("rule %s→%s lets %v through", r.From, r.To, *r.Ceiling)
	}
	return ""
}

// blocked reads the blocks that settings have.
func blocked(block string, tokens []string) bool {
	name, deep := strings.CutPrefix(block, "/**/")
	if deep || !strings.HasPrefix(block, "/") {
		return slices.ContainsFunc(tokens, func(t string) bool { return strings.EqualFold(t, name) })
	}
	segments := strings.Split(block[1:], "/")
	if len(segments) > len(tokens) {
		return false
	}
	for i, s := range segments {
		if s != "*" && !strings.EqualFold(s, tokens[i]) {
			return false
		}
	}
	return true
}

// lowered holds what came to a reader below its label.
func (v *view) lowered(tokens []string, d *gate.Decision) string {
	for _, e := range v.setting.policy.Declassify {
		if e.From != d.From || e.To != d.To {
			continue
		}
		raised := d.Translated && d.After > e.LowerTo // by what the tools of the translating agent return
		if d.After != e.LowerTo && !raised || !slices.ContainsFunc(e.Paths, func(p task.Path) bool { return pick.Covers(p, tokens) }) {
			return fmt.Sprintf("%s lowers %v to %v", e.Name, e.Paths, e.LowerTo)
		}
		return ""
	}
	return fmt.Sprintf("it is %v, and nothing lowers it for %s", d.Before, d.To)
}

// outside holds what the user reads.
func (v *view) outside() string {
	for _, hidden := range tokens {
		if strings.Contains(v.story.told+v.story.shown, hidden) {
			return "the user reads a secret: " + hidden
		}
	}
	plainly := len(v.setting.policy.Declassify) == 0
	for _, where := range [...]struct {
		text  string
		shown bool
	}{{v.story.told, false}, {v.story.shown, true}} {
		for _, c := range canaries.FindAllString(where.text, -1) {
			place, met := v.variant.known[c]
			if !met {
				continue
			}
			v.sum.met++
			at := split(place)
			if plainly && v.label(at) > v.setting.user {
				return fmt.Sprintf("the user, who may see %v, reads %s of %s, which is %v", v.setting.user, c, place, v.label(at))
			}
			if where.shown && !strings.HasPrefix(place, "task/") && !strings.HasPrefix(place, "held/") {
				continue // the user's own
			}
			to := v.spreads(at)
			if !to.user || !v.reach(at, v.reader(handoff.User)) {
				i := strings.Index(where.text, c)
				return fmt.Sprintf("the user reads %s of %s, which by the table never gets there:\n%s", c, place, where.text[max(0, i-500):min(len(where.text), i+200)])
			}
		}
	}
	return ""
}

// String describes a setting for a failure message.
func (s *setting) String() string {
	var b strings.Builder
	for i := range s.agents {
		m := &s.agents[i]
		fmt.Fprintf(&b, "agent %s accepts %v, endpoints %q, handoff %q, form %d, person %v\n", m.Name, m.Accepts, s.leaves(m), m.Handoff, s.forms[i], s.people[i])
	}
	fmt.Fprintf(&b, "user accepts %v; goal %v, coordinator accepts %v\n", s.user, s.goal, s.coordinator)
	for i := range s.tools {
		x := &s.tools[i]
		fmt.Fprintf(&b, "%s accepts %v, produces %v, effect %q, stateful %v %q, files %v, approve %q\n", x.name, x.options.Accepts, x.options.Level(), x.options.Effect, x.options.Stateful, x.options.State, x.files, x.options.Approve)
	}
	fmt.Fprintf(&b, "tools of agents %v, calls of tasks %v, of holders %v\n", s.toolsOf, s.calls, s.looks)
	for _, in := range s.inputs {
		fmt.Fprintf(&b, "%s is %v, form %d\n", in.name, in.level, in.form)
	}
	for _, m := range s.messages {
		fmt.Fprintf(&b, "message from %s to %s, %v\n", m.From, m.To, m.Classification)
	}
	for _, tk := range s.tasks {
		fmt.Fprintf(&b, "%s by %s: uses %+v, depends on %+v, memory %q, broken %v\n", tk.Title, tk.Assignee, tk.Uses, tk.DependsOn, tk.MemoryScope, s.broken[tk.Title])
	}
	fmt.Fprintf(&b, "default %q\n", s.policy.Default)
	for _, r := range s.policy.Rules {
		fmt.Fprintf(&b, "rule %s→%s mode %q allow %v block %v ceiling %v redact %v reveal %v translate %+v\n", r.From, r.To, r.Mode, r.Allow, r.Block, r.Ceiling, r.Redact, r.Reveal, r.Translate)
	}
	if s.narrower != nil {
		fmt.Fprintf(&b, "narrower, in place of it %v, during the task %d: %+v\n", !s.widens, s.during, s.narrower.Rules)
	}
	for _, e := range s.policy.Declassify {
		fmt.Fprintf(&b, "%+v\n", e)
	}
	for _, e := range s.policy.Endorse {
		fmt.Fprintf(&b, "endorse %s→%s\n", e.From, e.To)
	}
	return b.String()
}
