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
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A governedGraph is a drawn graph whose tasks have labels and several agents, with a policy.
type governedGraph struct {
	*drawnGraph
	agents []team.Member
	policy *handoff.Policy
	titles []string          // as written
	decide []string          // those whose results decide what runs, once for each time
	words  map[string]string // canaries, by what they are planted in: title and path

	other   string // one of them; empty if there is none
	changed string // the task whose instances answer otherwise; empty for none
}

// planted are the paths of the texts of a result.
var planted = []task.Path{"/text", "/note", "/items/*/q"}

// withNote is the schema of results that also have a note, which no task needs.
var withNote = strings.Replace(decided, `"text":{"type":"string"},`, `"text":{"type":"string"},"note":{"type":"string"},`, 1)

// drawGoverned draws a graph for so many agents. With many, few of them read what one task made.
func drawGoverned(t *rapid.T, agents int) *governedGraph {
	g := &governedGraph{drawnGraph: drawGraphThatReads(t, 160/agents), policy: &handoff.Policy{}, words: map[string]string{}}
	levels := []label.Classification{label.Internal, label.Confidential, label.Confidential, label.Confidential, label.Confidential, label.Confidential}
	for i := range agents {
		g.agents = append(g.agents, team.Member{Name: fmt.Sprint("a", i), Accepts: one(g.drawing, levels, "accepts")})
	}
	g.govern(g.specs)
	names := []string{handoff.User, handoff.Anyone}
	for i := range g.agents {
		names = append(names, g.agents[i].Name)
	}
	paths := []task.Path{"/text", "/note", "note", "/items/*/q", "q"}
	for _, from := range names[2:] {
		for _, to := range names {
			if !g.chance(140/agents, "rule") || from == to || to == handoff.Anyone {
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

// govern gives tasks their agents and labels, and plants canaries in their results.
func (g *governedGraph) govern(specs []task.Spec) {
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
			g.govern(s.Repeat.Tasks)
			s.Repeat.Until.Leaves(func(c *task.Condition) { decides(c.Task) })
			continue
		}
		if s.ForEach != nil && s.ForEach.Tasks != nil {
			g.govern(s.ForEach.Tasks)
			continue
		}
		by := one(g.drawing, g.agents, "assignee")
		s.Assignee, s.OutputSchema = by.Name, []byte(withNote)
		if by.Accepts == label.Confidential && g.chance(10, "confidential") {
			s.Classification = label.Confidential
		}
		g.titles = append(g.titles, s.Title)
		for _, p := range planted {
			g.words[s.Title+string(p)] = canaryOf(s.Title + string(p))
		}
	}
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
	agents := append([]team.Member(nil), g.agents...)
	for i := range agents {
		agents[i].Agent = agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			seen := canariesIn(p.Text())
			mu.Lock()
			met = append(met, meeting{"", agents[i].Name, p.System() + p.Text()})
			for _, word := range seen {
				met = append(met, meeting{word, agents[i].Name, p.Text()})
			}
			mu.Unlock()
			return agent.Reply{Text: g.answer(instances[p.Receipt().Task], echoed, seen)}, nil
		})
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
	graphs := graphsFor(t, 18/slowtest.Every(3))
	var agents, prompts int
	for seed := range graphs {
		a, p := rapid.Custom(func(t *rapid.T) *governedGraph { return drawGoverned(t, 12) }).Example(seed).apart(t)
		agents, prompts = agents+a, prompts+p
	}
	t.Logf("%d agents compared, in %d prompts", agents, prompts)
	require.Greater(t, prompts, graphs/8)
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
	graphs := graphsFor(t, 12/slowtest.Every(2))
	var planned, holding, met int
	for seed := range graphs {
		h, m, ok := rapid.Custom(func(t *rapid.T) *governedGraph { return drawGoverned(t, 4) }).Example(seed).never(t)
		holding, met = holding+h, met+m
		if ok {
			planned++
		}
	}
	t.Logf("%d of %d graphs can be run; %d assertions hold, %d canaries met", planned, graphs, holding, met)
	require.Greater(t, planned*6, graphs)
	require.Greater(t, holding, planned*20)
	require.Positive(t, met)
	if !slowtest.RaceDetector { // under which the graphs are few
		require.Greater(t, met, planned*20)
	}
}

// FuzzAssertionsHoldInRuns does the same without a seed; a failure is shrunk.
//
// Requirement: G54.
func FuzzAssertionsHoldInRuns(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { drawGoverned(t, 4).never(t) }))
}
