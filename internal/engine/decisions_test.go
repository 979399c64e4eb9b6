package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Two runs that differ in a secret, which decides about branches, loops, lists and judges, are the
// same for all who may not know it: what is labeled below the secret, by the check beforehand or in
// the run, is equal byte for byte.

// A decisionTally counts what a number of settings came to.
type decisionTally struct {
	settings, refused int
	runs, decided     int            // runs with another secret, and those that were decided otherwise
	kinds             map[string]int // of what was decided otherwise, in how many runs
	below, above      int            // prompts that are below the secret in the label, or not
}

func (t *decisionTally) add(o decisionTally) {
	t.settings, t.refused, t.runs, t.decided = t.settings+o.settings, t.refused+o.refused, t.runs+o.runs, t.decided+o.decided
	t.below, t.above = t.below+o.below, t.above+o.above
	for kind, n := range o.kinds {
		t.kinds[kind] += n
	}
}

// chosenDecisions are the seeds of settings that together have each construct and each kind of decision, and that
// notice each fault of docs/mutants.md that this test is for. If settings are drawn in another way, choose again: the
// slow form lists, with -v, what a seed has.
var chosenDecisions = []int{21, 174, 31, 152, 176, 168, 52, 63, 83, 97, 100, 157, 166, 172}

// See GATE.md. The settings are the same in every run of the test.
//
// Requirement: G55.
func TestDecisionsDoNotInterfere(t *testing.T) {
	t.Parallel()
	const shards = 4
	seeds := chosenDecisions[:len(chosenDecisions)/slowtest.Every(14)]
	if slowtest.Enabled() {
		seeds = nil
		for seed := range slowtest.Cases(64, 192) {
			seeds = append(seeds, seed+1)
		}
	}
	sums := make([]decisionTally, shards)
	t.Run("settings", func(t *testing.T) {
		for k := range shards {
			t.Run(strconv.Itoa(k), func(t *testing.T) {
				t.Parallel()
				sums[k].kinds = map[string]int{}
				for i := k; i < len(seeds); i += shards {
					s, own := rapid.Custom(drawDecisions).Example(seeds[i]), decisionTally{kinds: map[string]int{}}
					if wrong := s.interferes(t.Context(), &own); wrong != "" {
						t.Fatalf("setting %d: %s\n%s", seeds[i], wrong, s)
					}
					t.Logf("setting %d: %+v", seeds[i], own)
					sums[k].add(own)
				}
			})
		}
	})
	sum := decisionTally{kinds: map[string]int{}}
	for _, s := range sums {
		sum.add(s)
	}
	t.Logf("%+v", sum)
	sum.requireShares(t)
}

// requireShares checks that the settings were such as can tell a leak from none.
func (t decisionTally) requireShares(tb testing.TB) {
	tb.Helper()
	require.LessOrEqual(tb, t.refused*20, t.settings, "settings are drawn such that they can be run")
	if slowtest.RaceDetector {
		return
	}
	require.Greater(tb, t.decided, t.runs/8)
	require.Greater(tb, t.below, t.runs*4)
	require.Greater(tb, t.above, t.runs*2)
	for _, kind := range []string{"branch", "loop", "list", "judges", "LOOP_STUCK", "LOOP_LIMIT", "LIST_TOO_LONG", "ANSWER_REJECTED"} {
		require.Greater(tb, t.kinds[kind], t.runs/100, kind)
	}
}

// interferes runs a setting with several secrets, and says what of the difference shows where it must
// not; or nothing.
func (s *decisionSetting) interferes(ctx context.Context, sum *decisionTally) string {
	sum.settings++
	st, err := s.build()
	if err != nil {
		return err.Error()
	}
	plan, err := st.team.Plan(s.specs, s.options(st, 0))
	if err != nil {
		sum.refused++
		return ""
	}
	for i := range plan.Tasks {
		st.atMost[plan.Tasks[i].Title] = plan.Tasks[i].Label
	}
	was, err := st.play(ctx, 0)
	if err != nil {
		return err.Error()
	}
	for secret := range 2 {
		is, err := st.play(ctx, secret+1)
		if err != nil {
			return err.Error()
		}
		sum.runs++
		st.count(was, is, sum)
		if wrong := st.differs(was, is); wrong != "" {
			return wrong
		}
	}
	return ""
}

// A decisionStage is the team of a setting.
type decisionStage struct {
	*decisionSetting
	stage
	atMost  map[string]label.Classification // by the title of a task as written, its label in the plan
	titles  map[task.ID]string              // as written
	toolsOf map[task.ID][]string            // that a task may call
	moment  func()                          // called whenever an agent is; nil does nothing
}

// A decisionRun is what came of a run.
type decisionRun struct {
	result *engine.Result
	sights []sight  // of agents and tools; the step is the title as written
	told   string   // what the caller is told
	shown  []string // prompts as the caller sees them
}

// build makes the team.
func (s *decisionSetting) build() (*decisionStage, error) {
	st := &decisionStage{decisionSetting: s, stage: stage{setting: &setting{}}, atMost: map[string]label.Classification{}, titles: map[task.ID]string{}, toolsOf: map[task.ID][]string{}}
	written, _, err := task.Unroll(s.specs)
	if err != nil {
		return nil, err
	}
	for i := range written {
		st.toolsOf[task.NewID(written[i].Title)] = written[i].Tools
		st.titles[task.NewID(written[i].Title)] = written[i].Title
		if in := written[i].Instance; in != nil {
			st.titles[task.NewID(written[i].Title)] = in.Title
		}
	}
	does := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		st.look(p, st.titles[p.Receipt().Task])
		if st.moment != nil {
			st.moment()
		}
		return s.reply(ctx, p, st.toolsOf[p.Receipt().Task])
	}
	cfg := engine.Config{Policy: s.policy()}
	for _, name := range slices.Concat(insiders, outsiders, []string{reviewing, approving, apart, headings}) {
		m := engine.Member{Name: name, Accepts: s.accepts(name), Agent: settled{does}}
		switch name {
		case reviewing, approving:
			m.Agent = person.New(does)
		case headings:
			m.Handoff = handoff.Minimal
		case toolUser:
			m.Tools, m.AllowUntrusted = st.tools(), slices.Concat(openTools, secretTools)
		}
		cfg.Agents = append(cfg.Agents, m)
	}
	if s.goal {
		cfg.Coordinator = &engine.Coordinator{Accepts: new(s.accepts("coordinator")), Agent: engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			st.look(p, answering)
			return s.reply(ctx, p, nil)
		})}
	}
	if s.bus {
		for _, from := range slices.Concat(insiders, outsiders) {
			for _, to := range slices.Concat(insiders, outsiders) {
				if from != to {
					cfg.Edges = append(cfg.Edges, handoff.Edge{From: from, To: to})
				}
			}
		}
		if cfg.Edges, err = usable(cfg, s.specs, &engine.RunOptions{Inputs: s.inputs("zq")}); err != nil {
			return nil, err
		}
	}
	st.team, err = engine.New(cfg)
	return st, err
}

// tools are two tools that may read nothing secret, one of which a person approves.
func (st *decisionStage) tools() (list []*tool.Tool) {
	for _, x := range []struct {
		name    string
		options tool.Options
	}{
		{openTools[0], tool.Options{Repeatable: true}},
		{openTools[1], tool.Options{Repeatable: true, Approve: approving}},
		{secretTools[0], tool.Options{Repeatable: true, Accepts: st.level, Stateful: true}},
	} {
		list = append(list, &tool.Tool{
			Name: x.name, Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`), Options: x.options,
			Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				st.mu.Lock()
				defer st.mu.Unlock()
				st.called = append(st.called, sight{agent: "tool:" + x.name, step: st.titles[task.ID(strings.Split(c.ID, "/")[1])], text: string(c.Arguments), call: &toolSight{}})
				return tool.Result{Text: "found " + letters(12, string(c.Arguments))}, nil
			},
		})
	}
	return list
}

// options are those of a run with a secret.
func (s *decisionSetting) options(st *decisionStage, secret int) *engine.RunOptions {
	o := &engine.RunOptions{RunID: "run", MaxConcurrency: 1, UserAccepts: new(s.accepts("user"))}
	if s.lowered {
		o.Recorder, o.Subscribers = st.Record, []func(event.Event){st.heard}
	}
	o.Inputs = s.inputs("zq" + letters(10, "secret", strconv.Itoa(secret)))
	if s.goal {
		o.Answer = &engine.Goal{Text: "Answer.", Classification: label.Internal}
	}
	if s.bus {
		o.Bus = st.team.NewBus()
	}
	return o
}

// play runs the setting with a secret.
func (st *decisionStage) play(ctx context.Context, secret int) (*decisionRun, error) {
	st.sights, st.called, st.shown = nil, nil, nil
	st.told.Reset()
	st.ruled.Reset()
	o := st.decisionSetting.options(st, secret)
	res, err := st.team.RunTasks(ctx, st.specs, o)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.writeReceipts()
	slices.Sort(st.shown) // a prompt that is prepared ahead can be recorded twice
	return &decisionRun{result: res, sights: append(st.sights, st.called...), told: sortedLines(st.told.String()) + st.reads(res), shown: slices.Compact(st.shown)}, nil
}

// hidden is what a decision does not depend on if it is declassified: words, and digests of them.
var hidden = regexp.MustCompile(`zq[a-p]{10}|[0-9a-f]{4,}`)

// reply answers a prompt as a function of it, in the form that its schema has.
func (s *decisionSetting) reply(ctx context.Context, p prompt.Prompt, tools []string) (agent.Reply, error) {
	text := conversation(p)
	basis := text
	if s.lowered {
		basis = hidden.ReplaceAllString(text, "")
	}
	choose := func(n int, what string) int {
		sum := sha256.Sum256([]byte(what + basis))
		return int(sum[0]) % n
	}
	word := func(what string) string { return "zq" + letters(10, text, what) }
	r := agent.Reply{Usage: llm.Usage{InputTokens: 100, OutputTokens: 10}}
	if s.bus && p.Receipt().Classification == s.level { // what others send arrives at a time that depends on decisions
		out := engine.OutboxFrom(ctx)
		for _, to := range append(slices.Clone(insiders), outsiders...) {
			if choose(4, to) == 0 {
				_ = out.Send(to, "I tell you "+word(to)) // nobody sends to itself
			}
		}
	}
	switch schema := p.Schema(); {
	case len(tools) > 0 && len(p.Messages()) == 1 && choose(2, "calls") == 0:
		for _, name := range tools {
			r.ToolCalls = append(r.ToolCalls, llm.ToolCall{Name: name, Arguments: encoded(map[string]any{"q": word(name)})})
		}
	case strings.Contains(schema, `"decision"`):
		r.Text = encoded(map[string]any{"decision": []string{"yes", "no", "always"}[choose(3, "decision")]})
	case strings.Contains(schema, `"critique"`):
		r.Text = encoded(map[string]any{"accept": choose(2, "accept") == 0, "critique": word("critique")})
	case schema != "":
		list := []any{}
		for i := range choose(5, "list") {
			list = append(list, map[string]any{"id": word(strconv.Itoa(i)), "q": []string{"a", "b"}[choose(2, strconv.Itoa(i))]})
		}
		r.Text = encoded(map[string]any{"kind": []string{"red", "sky", "tan"}[choose(3, "kind")], "ok": choose(3, "ok") == 0, "score": choose(10, "score"), "list": list, "note": word("note")})
	default:
		r.Text = "It is " + word("text")
	}
	return r, nil
}

// count adds what differs between two runs to a tally.
func (st *decisionStage) count(was, is *decisionRun, sum *decisionTally) {
	a, b := st.outcomes(was), st.outcomes(is)
	differ := map[string]bool{}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		if a[key] != b[key] {
			differ[st.kinds[st.titles[task.ID(key)]]] = true
			for _, word := range []string{a[key], b[key]} {
				if _, code, failed := strings.Cut(word, " "); failed {
					differ[code] = true
				}
			}
		}
	}
	if len(differ) > 0 {
		sum.decided++
	}
	for kind := range differ {
		sum.kinds[kind]++
	}
	for i := range is.sights {
		if s := &is.sights[i]; s.call == nil && s.receipt.Classification >= st.level {
			sum.above++
		} else {
			sum.below++
		}
	}
}

// outcomes is how each task of a run ended.
func (st *decisionStage) outcomes(r *decisionRun) map[string]string {
	all := map[string]string{}
	for i := range r.result.Tasks {
		t := &r.result.Tasks[i]
		all[string(t.ID)] = string(t.Status)
		if t.Error != nil {
			all[string(t.ID)] += " " + t.Error.Code
		}
	}
	return all
}

// differs says what differs between two runs for someone who may not know the secret.
func (st *decisionStage) differs(was, is *decisionRun) string {
	type view struct {
		name string
		of   func(*decisionRun) []string
	}
	views := []view{{"what is below the secret by the plan", st.belowInPlan}}
	if !st.bus { // where messages may arrive, the label of a prompt depends on whether they do
		views = append(views, view{"what is below the secret in the run", st.belowInRun})
	}
	if st.lowered {
		views = append(views, view{"what the caller is told", func(r *decisionRun) []string {
			return strings.Split(order.ReplaceAllString(r.told, ""), "\n")
		}})
	}
	if st.lowered && !st.bus {
		views = append(views, view{"what the caller is shown", func(r *decisionRun) []string { return r.shown }})
	}
	for _, v := range views {
		a, b := v.of(was), v.of(is)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			return v.name + " differs\n" + difference(strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	return ""
}

// order is what depends on what had ended before.
var order = regexp.MustCompile(`"bytesIfShared":[0-9]+`)

// seen is everything that the reader of a prompt, or a tool, is given.
func (s *sight) seen() string {
	return fmt.Sprintf("%s of %s is given %q %q %s", s.step, s.agent, s.system, s.text, s.written)
}

// belowInPlan is what tasks are given and make that have a label below the secret by the plan, and
// what tools and approvers get.
func (st *decisionStage) belowInPlan(r *decisionRun) (all []string) {
	for i := range r.sights {
		s := &r.sights[i]
		level, known := st.atMost[s.step]
		if known && level < st.level || st.accepts(s.agent) < st.level {
			all = append(all, s.seen())
		}
	}
	for i := range r.result.Tasks {
		t := &r.result.Tasks[i]
		if st.atMost[st.titles[t.ID]] < st.level {
			all = append(all, made(t))
		}
	}
	return all
}

// belowInRun is what tasks were given and made with a label below the secret.
func (st *decisionStage) belowInRun(r *decisionRun) (all []string) {
	for i := range r.sights {
		if s := &r.sights[i]; s.call == nil && s.receipt.Classification < st.level {
			all = append(all, s.seen())
		}
	}
	for i := range r.result.Tasks {
		t := &r.result.Tasks[i]
		if t.Status == task.Completed && min(t.Label, t.Envelope.Classification()) < st.level {
			all = append(all, made(t))
		}
	}
	return all
}

// made is what a task has as its result, and in whose hands it is.
func made(t *engine.TaskResult) string {
	return fmt.Sprintf("%s has made %v %v %q %q", t.Title, t.Status, t.Label, t.Result, t.Structured)
}

// String describes a setting for a failure message.
func (s *decisionSetting) String() string {
	var specs []any
	if err := json.Unmarshal([]byte(encoded(s.specs)), &specs); err != nil {
		panic(err)
	}
	return fmt.Sprintf("secret %v, lowered %v, bus %v, goal %v\n%s", s.level, s.lowered, s.bus, s.goal, encoded(withoutZeros(specs)))
}

// withoutZeros is a JSON value without members that say nothing.
func withoutZeros(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutZeros(value[i])
		}
	case map[string]any:
		for name, x := range value {
			if x = withoutZeros(x); x == nil || x == "" || x == false || x == 0.0 || fmt.Sprint(x) == "map[]" {
				delete(value, name)
			} else {
				value[name] = x
			}
		}
	}
	return value
}
