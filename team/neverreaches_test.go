package team_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A governedGraph is a drawn graph whose tasks have labels and several agents, with a policy.
type governedGraph struct {
	*drawnGraph
	agents []team.Member
	people []bool          // which agents are people
	writes map[string]bool // which of them have tasks, and are not only judges
	policy *handoff.Policy
	titles []string          // as written
	decide []string          // those whose results decide what runs, once for each time
	words  map[string]string // canaries, by what they are planted in: title and path

	prompts map[string]int // how many were of a kind

	other   string // one of them; empty if there is none
	changed string // the task whose instances answer otherwise; empty for none
}

// planted are the paths of the texts of a result.
var planted = []task.Path{"/text", "/note", "/items/*/q"}

// withNote is the schema of results that also have a note, which no task needs.
var withNote = strings.Replace(decided, `"text":{"type":"string"},`, `"text":{"type":"string"},"note":{"type":"string"},`, 1)

// drawGoverned draws a graph for so many agents. With many, few of them read what one task made.
func drawGoverned(t *rapid.T, agents int) *governedGraph {
	g := &governedGraph{drawnGraph: drawGraphThatReads(t, 160/agents), policy: &handoff.Policy{}, words: map[string]string{}, writes: map[string]bool{}, prompts: map[string]int{}}
	levels := []label.Classification{label.Internal, label.Confidential, label.Confidential, label.Confidential, label.Confidential, label.Confidential}
	for i := range agents {
		g.agents = append(g.agents, team.Member{Name: fmt.Sprint("a", i), Accepts: one(g.drawing, levels, "accepts")})
		g.people = append(g.people, g.chance(20, "person"))
	}
	g.specs = g.govern(g.specs, 0)
	names := []string{handoff.User, handoff.Anyone}
	for i := range g.agents {
		names = append(names, g.agents[i].Name)
	}
	paths := []task.Path{"/text", "/note", "note", "/items/*/q", "q"}
	for _, from := range names[2:] {
		for _, to := range names {
			if !g.chance(140/agents, "rule") || from == to || to == handoff.Anyone || !g.writes[from] {
				continue
			}
			r := handoff.PairRule{From: from, To: to}
			switch {
			case to == handoff.User && g.chance(40, "minimal"):
				r.Mode = handoff.Minimal
			case g.chance(30, "allow"):
				r.Allow = []task.Path{"/ok", "/kind", "/tag", "/items/*/n", one(g.drawing, planted, "allowed")}
			default:
				r.Block = []task.Path{one(g.drawing, paths, "blocked")}
			}
			g.policy.Rules = append(g.policy.Rules, r)
		}
	}
	if len(g.decide) > 0 {
		g.other = one(g.drawing, g.decide, "other")
	}
	return g
}

// A template says what a task without a model makes of what it reads.
const (
	repeats = "{{range .results}}{{.}} {{end}}"
	counts  = "{{len .results}}"
)

// repeat makes tasks without a model repeat what they read, or say nothing of it.
func (g *governedGraph) repeat(specs []task.Spec, says string) {
	for i := range specs {
		switch s := &specs[i]; {
		case s.Template != "":
			s.Template = says
		case s.Repeat != nil:
			g.repeat(s.Repeat.Tasks, says)
		case s.ForEach != nil:
			g.repeat(s.ForEach.Tasks, says)
		}
	}
}

// cases adds two tasks of which one runs, one that reads whichever that is, and perhaps one without a
// model that reads all of them and repeats it.
func (g *governedGraph) cases(specs []task.Spec) []task.Spec {
	add := func(s task.Spec) string {
		g.named++
		s.Title, s.Description = fmt.Sprint("T", g.named), "d"
		specs = append(specs, s)
		return s.Title
	}
	of := specs[0].Title
	first := add(task.Spec{When: task.In(of, "/kind", "a"), DependsOn: task.On(of)})
	other := add(task.Spec{When: task.Otherwise(), DependsOn: task.On(of)})
	both := add(task.Spec{DependsOn: []task.Ref{{OneOf: []string{first, other}}}})
	if g.chance(50, "computed") {
		said := add(task.Spec{DependsOn: task.On(of, both), Template: repeats})
		specs[len(specs)-1].Description = ""
		add(task.Spec{DependsOn: task.On(said)})
	}
	return specs
}

// govern gives tasks their agents, judges and labels, and plants canaries in their results. It adds
// tasks that [drawing] does not draw.
func (g *governedGraph) govern(specs []task.Spec, depth int) []task.Spec {
	if g.chance(40, "cases") {
		specs = g.cases(specs)
	}
	for i := range specs {
		s := &specs[i]
		decides := func(title string) {
			if slices.Contains(g.titles, title) {
				g.decide = append(g.decide, title)
			}
		}
		s.When.Leaves(func(c *task.Condition) { decides(c.Task) })
		if s.ForEach != nil {
			decides(s.ForEach.Task)
		}
		if s.Repeat != nil {
			s.Repeat.Tasks = g.govern(s.Repeat.Tasks, depth+1)
			s.Repeat.Until.Leaves(func(c *task.Condition) { decides(c.Task) })
			continue
		}
		if s.ForEach != nil && s.ForEach.Tasks != nil {
			s.ForEach.Tasks = g.govern(s.ForEach.Tasks, depth+1)
			continue
		}
		if s.Template != "" {
			continue
		}
		by := one(g.drawing, g.agents, "assignee")
		s.Assignee, s.OutputSchema, g.writes[by.Name] = by.Name, []byte(withNote), true
		if by.Accepts == label.Confidential && g.chance(5, "confidential") {
			s.Classification = label.Confidential
		}
		if depth < mostNested && (depth+1 < mostNested || s.ForEach == nil) && g.chance(12, "judged") {
			s.Verify = &task.Verify{OnDissent: one(g.drawing, []string{"keep", "revise"}, "dissent"), Judges: []task.Judge{{Agent: one(g.drawing, g.agents, "judge").Name}, {Agent: one(g.drawing, g.agents, "judge").Name}}}
			if s.Verify.OnDissent == "revise" {
				s.Verify.MaxRounds = 2
			}
		}
		g.titles = append(g.titles, s.Title)
		for _, p := range planted {
			g.words[s.Title+string(p)] = canaryOf(s.Title + string(p))
		}
	}
	return specs
}

// canaryOf returns a word that stands nowhere else.
func canaryOf(place string) string {
	sum := sha256.Sum256([]byte(place))
	word := []byte("can")
	for _, b := range sum[:12] {
		word = append(word, 'a'+b%16)
	}
	return string(word)
}

// canariesIn returns the canaries in a text, each once.
func canariesIn(text string) []string {
	words := anyCanary.FindAllString(text, -1)
	slices.Sort(words)
	return slices.Compact(words)
}

var anyCanary = regexp.MustCompile(`can[a-p]{12}`)

// titleOf returns a title as written, without the round and the item.
func titleOf(instance string) string { return instanceName.FindStringSubmatch(instance)[1] }

// A meeting is a canary in what a reader got. A prompt is also one without a word.
type meeting struct{ word, reader, where string }

// meetings runs the graph and returns which canaries readers met. If echoed, every text of a
// result also has all canaries of the prompt.
func (g *governedGraph) meetings(t require.TestingT, echoed bool, assert []string) (met []meeting, held map[string]bool, planned bool) {
	var mu sync.Mutex
	instances := map[task.ID]string{}
	if g.repeat(g.specs, counts); echoed {
		g.repeat(g.specs, repeats)
	}
	agents := append([]team.Member(nil), g.agents...)
	for i := range agents {
		answers := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			seen := canariesIn(p.Text())
			mu.Lock()
			met = append(met, meeting{"", agents[i].Name, p.System() + p.Text()})
			for _, word := range seen {
				met = append(met, meeting{word, agents[i].Name, p.Text()})
			}
			mu.Unlock()
			return agent.Reply{Text: g.answer(instances[p.Receipt().Task], echoed, seen)}, nil
		}
		if agents[i].Agent = agent.Func(answers); g.people[i] {
			agents[i].Agent = person.New(answers)
		}
	}
	tm, err := team.New(team.Config{Agents: agents, Policy: g.policy})
	require.NoError(t, err)
	p, err := tm.Plan(g.specs, &team.RunOptions{Assert: assert, Inputs: g.inputs()})
	if err != nil {
		return nil, nil, false
	}
	held = map[string]bool{}
	for _, a := range assert {
		held[a] = true
	}
	broken, _ := errors.AsType[task.Problems](p.Err())
	for _, b := range broken {
		i, err := strconv.Atoi(strings.TrimPrefix(b.Pointer, "/assert/"))
		require.NoError(t, err, b)
		delete(held, assert[i])
	}
	unrolled, _, err := task.Unroll(g.specs)
	require.NoError(t, err)
	for _, s := range unrolled {
		instances[task.NewID(s.Title)] = s.Title
	}
	res, _ := tm.RunTasks(context.Background(), g.specs, &team.RunOptions{RunID: "run", Inputs: g.inputs()}) // tasks may fail for what is withheld
	require.NotNil(t, res)
	shown, err := json.Marshal(res)
	require.NoError(t, err)
	for _, word := range canariesIn(string(shown)) {
		met = append(met, meeting{word, handoff.User, string(shown)})
	}
	return met, held, true
}

// answer is the result of an instance.
func (g *governedGraph) answer(instance string, echoed bool, seen []string) string {
	word := ""
	ok, kind, n := g.oracle(instance)
	if titleOf(instance) == g.changed {
		ok, kind, n = g.oracle(instance + " changed")
		word = " changed"
	}
	if strings.Contains(instance, ": judge ") {
		critique := "why"
		if echoed {
			critique = strings.Join(append(seen, critique), " ")
		}
		raw, _ := json.Marshal(map[string]any{"accept": ok, "critique": critique})
		return string(raw)
	}
	says := func(path string) string {
		words := []string{g.words[titleOf(instance)+path] + word}
		if echoed {
			words = append(words, seen...)
		}
		return strings.Join(words, " ")
	}
	items := make([]map[string]any, n)
	for k := range items {
		items[k] = map[string]any{"q": says("/items/*/q"), "n": k}
	}
	raw, _ := json.Marshal(map[string]any{"ok": ok, "kind": kind, "text": says("/text"), "note": says("/note"), "tag": "t", "items": items})
	return string(raw)
}

// assertions returns an assertion for each canary and reader.
func (g *governedGraph) assertions(claim string) (all []string, of map[string]map[string]string) {
	of = map[string]map[string]string{}
	for _, title := range g.titles {
		for _, p := range planted {
			word := g.words[title+string(p)]
			of[word] = map[string]string{}
			for _, reader := range []string{"a0", "a1", "a2", "a3", handoff.User} {
				of[word][reader] = fmt.Sprintf("task %s %s never %s %s", title, p, claim, reader)
				all = append(all, of[word][reader])
			}
		}
	}
	return all, of
}

// never checks what the flow table says in a run. It reports how many assertions hold, and how
// many canaries were met.
func (g *governedGraph) never(t require.TestingT) (holding, met int, planned bool) {
	for claim, echoed := range map[string]bool{"reaches": false, "derives into": true} {
		all, of := g.assertions(claim)
		meetings, held, planned := g.meetings(t, echoed, all)
		if !planned {
			return 0, 0, false
		}
		for _, m := range meetings {
			g.note(m)
			if assertion := of[m.word][m.reader]; held[assertion] {
				require.Failf(t, "an assertion does not hold", "%s\n%s\n%+v", assertion, m.where, g.policy.Rules)
			}
		}
		for _, assertion := range all {
			if held[assertion] {
				holding++
			}
		}
		met += len(meetings)
	}
	return holding, met, true
}

// note counts prompts of judges and people, and those with results of tasks without a model.
func (g *governedGraph) note(m meeting) {
	if m.word != "" || m.reader == handoff.User {
		return
	}
	n, _ := strconv.Atoi(m.reader[1:])
	for what, is := range map[string]bool{"judge": strings.Contains(m.where, ": judge "), "person": g.people[n], "computed": strings.Contains(m.where, "(by computed)")} {
		if is {
			g.prompts[what]++
		}
	}
}

// apart checks that agents which a task never derives into read the same if it answers otherwise,
// whatever that decides. It reports how many agents were compared, and in how many prompts.
func (g *governedGraph) apart(t require.TestingT) (agents, prompts int) {
	of := g.other
	assert := make([]string, len(g.agents))
	for i := range assert {
		assert[i] = fmt.Sprintf("task %s never derives into %s", of, g.agents[i].Name)
	}
	was, held, planned := g.meetings(t, true, assert)
	if !planned || of == "" || len(held) == 0 {
		return 0, 0
	}
	g.changed = of
	is, _, _ := g.meetings(t, true, assert)
	for i, assertion := range assert {
		if name := g.agents[i].Name; held[assertion] {
			before, after := readBy(was, name), readBy(is, name)
			require.Equal(t, before, after, assertion)
			agents, prompts = agents+1, prompts+len(before)
		}
	}
	return agents, prompts
}

// readBy returns the prompts of a reader in a stable order.
func readBy(all []meeting, reader string) (prompts []string) {
	for _, m := range all {
		if m.reader == reader && m.word == "" {
			prompts = append(prompts, m.where)
		}
	}
	slices.Sort(prompts)
	return prompts
}

// TestDecisionsStayApart checks that two runs which differ in what decides conditions, loops and
// lists give equal bytes to whoever it never derives into.
//
// Requirement: G55.
func TestDecisionsStayApart(t *testing.T) {
	t.Parallel()
	graphs := graphsFor(t, 169, 239, 354)
	var agents, prompts int
	for _, seed := range graphs {
		a, p := rapid.Custom(func(t *rapid.T) *governedGraph { return drawGoverned(t, 12) }).Example(seed).apart(t)
		agents, prompts = agents+a, prompts+p
	}
	t.Logf("%d agents compared, in %d prompts", agents, prompts)
	require.Greater(t, prompts, len(graphs)/8)
}

// FuzzDecisionsStayApart does the same without a seed; a failure is shrunk.
//
// Requirement: G55.
func FuzzDecisionsStayApart(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { drawGoverned(t, 12).apart(t) }))
}

// TestAssertionsHoldInRuns checks that what never reaches a reader by the flow table, or never
// derives into what it reads, does not in a run of drawn graphs with labels and rules.
//
// Requirement: G54.
func TestAssertionsHoldInRuns(t *testing.T) {
	t.Parallel()
	graphs := graphsFor(t, 3, 6, 9, 24, 32, 54)
	var planned, holding, met int
	prompts := map[string]int{}
	for _, seed := range graphs {
		g := rapid.Custom(func(t *rapid.T) *governedGraph { return drawGoverned(t, 4) }).Example(seed)
		h, m, ok := g.never(t)
		holding, met = holding+h, met+m
		for what, n := range g.prompts {
			prompts[what] += n
		}
		if ok {
			planned++
		}
	}
	t.Logf("%d of %d graphs can be run; %d assertions hold, %d canaries met; prompts of a kind: %v", planned, len(graphs), holding, met, prompts)
	require.Greater(t, planned*6, len(graphs))
	require.Greater(t, holding, planned*20)
	require.Greater(t, met, planned*20)
	require.Len(t, prompts, 3, "judges, people and tasks without a model take part")
}

// FuzzAssertionsHoldInRuns does the same without a seed; a failure is shrunk.
//
// Requirement: G54.
func FuzzAssertionsHoldInRuns(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { drawGoverned(t, 4).never(t) }))
}
