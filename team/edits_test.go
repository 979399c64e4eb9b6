package team_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// An editedGraph is a drawn graph that is run, edited and run again. Its agents answer what they
// read, so a model of the graph knows each prompt without a run.
type editedGraph struct {
	*drawing
	root     *drawnScope
	versions map[string]int // of agents
}

// editor is the person among the agents.
const editor = "editor"

func drawEdited(t *rapid.T) *editedGraph {
	g := &editedGraph{drawing: &drawing{t: t, reads: 40, cases: true}, versions: map[string]int{}}
	for range rapid.IntRange(0, mostItems+1).Draw(t, "items") {
		g.input = append(g.input, g.item())
	}
	g.root = g.scope(nil, 0)
	for _, n := range g.nodes() {
		s := &n.spec
		first := g.chance(40, "first") // a loop must have a task that calls an agent
		switch {
		case n.inside != nil:
		case !first && len(s.DependsOn)+len(s.Uses) == 0 && s.When == nil && s.ForEach == nil:
			s.Description, s.Assignee, s.Value = "", "", []byte(g.reply("value", s.Title).text())
		default:
			s.Assignee = one(g.drawing, []string{"worker", "worker", "checker", "checker", editor}, "assignee")
		}
	}
	return g
}

func (g *editedGraph) nodes() []*drawnNode { return g.root.all() }

// all returns all nodes, and those inside after what they are inside of.
func (in *drawnScope) all() (all []*drawnNode) {
	for scopes := []*drawnScope{in}; len(scopes) > 0; scopes = scopes[1:] {
		for _, n := range scopes[0].nodes {
			if all = append(all, n); n.inside != nil {
				scopes = append(scopes, n.inside)
			}
		}
	}
	return all
}

// A drawnReply is what a task answers.
type drawnReply struct {
	ok         bool
	kind, word string
	items      []string // one letter each
}

// reply is what someone answers to what they read. There are few answers, so that a change often
// has no effect on what follows.
func (g *editedGraph) reply(who, read string) drawnReply {
	sum := sha256.Sum256(fmt.Append(nil, who, g.versions[who], read))
	r := drawnReply{ok: sum[0]%2 == 0, kind: string("abc"[sum[1]%3]), word: string("xyz"[sum[2]%3])}
	for _, b := range sum[4 : 4+sum[3]%(mostItems+2)] {
		r.items = append(r.items, string("abc"[b%3]))
	}
	return r
}

func (r drawnReply) text() string {
	items := make([]string, len(r.items))
	for k := range items {
		items[k] = r.item(k)
	}
	return fmt.Sprintf(`{"items":[%s],"kind":%q,"ok":%t,"tag":"t","text":%q}`, strings.Join(items, ","), r.kind, r.ok, r.word)
}

func (r drawnReply) item(k int) string { return fmt.Sprintf(`{"n":1,"q":%q}`, r.items[k]) }

// A drawnCall is a prompt: who gets it, which instance of a task it is for, and what it says.
type drawnCall struct{ who, instance, read string }

// prompts interprets the graph as it is written now: it returns each prompt of a run from the
// beginning to the end.
func (g *editedGraph) prompts() (calls []drawnCall) {
	replies := map[string]drawnReply{}
	w := &writer{drawing: g.drawing, left: map[string]bool{}, answer: func(instance string) (bool, string, int) {
		r := replies[instance]
		return r.ok, r.kind, len(r.items)
	}}
	w.ran = func(s *task.Spec, n *drawnNode) {
		if s.Value != nil {
			replies[s.Title] = g.reply("value", n.spec.Title)
			return
		}
		var read strings.Builder
		read.WriteString(n.spec.Title + "\n" + s.Description)
		for _, u := range s.Uses {
			read.WriteString("\n" + u.Title + ": " + g.input[int(u.Name[len("list")]-'0')])
		}
		for _, ref := range s.DependsOn {
			from, text := replies[ref.Task], "withheld"
			switch {
			case w.left[ref.Task]:
			case ref.Item != "":
				text = from.item(int(ref.Item[len("/items/")] - '0'))
			case ref.Need != nil:
				text = fmt.Sprintf(`{"ok":%t,"text":%q}`, from.ok, from.word)
			default:
				text = from.text()
			}
			read.WriteString("\n" + ref.Title + ": " + text)
		}
		replies[s.Title] = g.reply(s.Assignee, read.String())
		calls = append(calls, drawnCall{g.name(s.Assignee), s.Title, read.String()})
	}
	w.round(g.root, &writtenRound{})
	return calls
}

// name returns who an agent is now.
func (g *editedGraph) name(who string) string { return fmt.Sprint(who, g.versions[who]) }

// readIn returns what a prompt says, as the model has it.
func readIn(p prompt.Prompt) string {
	title, rest, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n\n")
	description, _, _ := strings.Cut(rest, "\n\n## ")
	var read strings.Builder
	read.WriteString(title + "\n" + description)
	for _, s := range p.Sections() {
		text := s.Text + s.JSON
		if s.Withheld != "" {
			text = "withheld"
		}
		if s.Kind == handoff.Input || s.Kind == handoff.Dependency {
			read.WriteString("\n" + s.Title + ": " + text)
		}
	}
	return read.String()
}

var errStopped = errors.New("the process stops")

// An editedRun is a run of the graph as it is written now.
type editedRun struct {
	*editedGraph
	stopAt int  // which call is interrupted, from 1; zero for none
	later  bool // the person does not answer each question now

	mu    sync.Mutex
	calls []drawnCall // that were answered
}

// team returns the team of the run. stop ends the run.
func (r *editedRun) team(t require.TestingT, instances map[task.ID]string, stop func(error)) *team.Team {
	asks := func(who string) agent.Func {
		return func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			read := readIn(p)
			reply := r.reply(who, read)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.later && who == editor && (reply.ok || r.stopAt > 0) { // nothing is answered while the process stops
				return agent.Reply{}, person.ErrLater
			}
			if len(r.calls)+1 == r.stopAt {
				stop(errStopped)
				return agent.Reply{}, context.Cause(ctx)
			}
			r.calls = append(r.calls, drawnCall{r.name(who), instances[p.Receipt().Task], read})
			return agent.Reply{Text: reply.text()}, nil
		}
	}
	var members []team.Member
	for _, who := range []string{"worker", "checker"} {
		members = append(members, team.Member{Name: who, Backend: team.Backend{Version: r.name(who)}, Agent: asks(who)})
	}
	tm, err := team.New(team.Config{Agents: append(members, team.Member{Name: editor, Agent: person.New(asks(editor))})})
	require.NoError(t, err)
	return tm
}

// perform runs the graph, or resumes the run, and returns which prompts were answered.
func (r *editedRun) perform(t require.TestingT, j *journal.Journal, run string, resume bool) []drawnCall {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	specs := r.root.written()
	written, _, err := task.Unroll(specs)
	require.NoError(t, err)
	instances := map[task.ID]string{}
	for _, s := range written {
		instances[task.NewID(s.Title)] = s.Title
	}
	o := &team.RunOptions{Journal: j, RunID: run, Reuse: !resume, Inputs: r.inputs()[:1], Tasks: specs}
	if r.stopAt > 0 {
		o.MaxConcurrency = 1
	}
	tm := r.team(t, instances, stop)
	var res *team.Result
	if resume {
		o.RunID = ""
		res, err = tm.Resume(ctx, run, o)
	} else {
		res, err = tm.RunTasks(ctx, specs, o)
	}
	if r.stopAt == 0 {
		require.NoError(t, err)
		require.True(t, res.Status == team.StatusOK || r.later && res.Status == team.StatusSuspended, res.Status)
	}
	return r.calls
}

// edit changes the graph in one way. It returns what it changes, or "" if there is nothing such.
func (g *editedGraph) edit() string {
	pick := func(is func(n *drawnNode) bool) *drawnNode {
		some := slices.DeleteFunc(g.nodes(), func(n *drawnNode) bool { return !is(n) })
		if len(some) == 0 {
			return nil
		}
		return one(g.drawing, some, "edited")
	}
	switch what := one(g.drawing, []string{"items", "items", "maxRounds", "maxItems", "condition", "instruction", "version", "value"}, "edit"); what {
	case "items":
		return g.editItems()
	case "version":
		g.versions[one(g.drawing, []string{"worker", "checker"}, "version")]++
		return what
	case "value":
		g.versions["value"]++
		for _, n := range g.nodes() {
			if n.spec.Value != nil {
				n.spec.Value = []byte(g.reply("value", n.spec.Title).text())
			}
		}
		return what
	case "instruction":
		pick(func(n *drawnNode) bool { return n.spec.Description != "" }).spec.Description += "!"
		return what
	case "maxRounds":
		if n := pick(func(n *drawnNode) bool { return n.spec.Repeat != nil }); n != nil {
			n.spec.Repeat.MaxRounds = rapid.IntRange(1, 3).Draw(g.t, what)
			return what
		}
	case "maxItems":
		if n := pick(func(n *drawnNode) bool { return n.spec.ForEach != nil }); n != nil {
			n.spec.ForEach.MaxItems = rapid.IntRange(1, mostItems+1).Draw(g.t, what)
			return what
		}
	case "condition":
		if n := pick(func(n *drawnNode) bool { return n.spec.When != nil && !n.isCase || n.spec.Repeat != nil }); n != nil {
			c := n.spec.When
			if c == nil {
				c = n.spec.Repeat.Until
			}
			c.Leaves(editValue)
			return what
		}
	}
	return ""
}

// editValue changes a value that a condition compares.
func editValue(c *task.Condition) {
	next := map[string]string{`true`: `false`, `false`: `true`, `"a"`: `"b"`, `"b"`: `"c"`, `"c"`: `"a"`}
	for k, v := range c.Values {
		c.Values[k] = next[v]
	}
}

// editItems changes the input: an item is added, removed, changed, or they are reordered.
func (g *editedGraph) editItems() string {
	what := one(g.drawing, []string{"add", "remove", "change", "reorder"}, "items")
	at := rapid.IntRange(0, len(g.input)).Draw(g.t, "at")
	switch {
	case what == "add":
		g.input = slices.Insert(slices.Clone(g.input), at, g.item())
	case at == len(g.input):
		return ""
	case what == "remove":
		g.input = slices.Delete(slices.Clone(g.input), at, at+1)
	case what == "change":
		g.input = slices.Clone(g.input)
		g.input[at] = g.item()
	default:
		g.input = slices.Concat(g.input[at:], g.input[:at])
	}
	return "item: " + what
}

// requireCalls requires that exactly some prompts were asked. It says which differ.
func requireCalls(t require.TestingT, want, got []drawnCall) {
	lacks := func(all []drawnCall) func(drawnCall) bool {
		left := slices.Clone(all)
		return func(c drawnCall) bool {
			k := slices.Index(left, c)
			if k >= 0 {
				left = slices.Delete(left, k, k+1)
			}
			return k >= 0
		}
	}
	require.Empty(t, left(got, lacks(want)), "asked again")
	require.Empty(t, left(want, lacks(got)), "not asked")
}

// left returns the prompts that are answered by no other, sorted.
func left(prompts []drawnCall, answered func(c drawnCall) bool) []drawnCall {
	return sortedCalls(slices.DeleteFunc(slices.Clone(prompts), answered))
}

func sortedCalls(calls []drawnCall) []drawnCall {
	return slices.SortedFunc(slices.Values(calls), func(a, b drawnCall) int {
		return strings.Compare(a.instance+"\n"+a.who+a.read, b.instance+"\n"+b.who+b.read)
	})
}

// isPerson reports whether a prompt is for the person, whose answers are for one question.
func (c drawnCall) isPerson() bool { return strings.HasPrefix(c.who, editor) }

// sameAs reports whether an agent that answered one prompt need not be asked the other.
func (c drawnCall) sameAs(o drawnCall) bool { return c.who == o.who && c.read == o.read }

var roundsIn = regexp.MustCompile(`#[\d.]+`)

// otherRound reports whether two instances are of different rounds of one task: each round asks.
func (c drawnCall) otherRound(o drawnCall) bool {
	rounds := func(instance string) []string { return roundsIn.FindAllString(instance, -1) }
	return titleOf(c.instance) == titleOf(o.instance) && !slices.Equal(rounds(c.instance), rounds(o.instance))
}

// edits counts what the edits of graphs came to.
type edits struct {
	kinds         map[string]int
	asked, cached int // prompts of edited graphs
}

// reused runs a graph, edits it and runs it again with the answers of the first run.
func (g *editedGraph) reused(t require.TestingT, sum *edits) {
	j := journal.InMemory()
	defer j.Close()
	before := g.prompts()
	requireCalls(t, before, (&editedRun{editedGraph: g}).perform(t, j, "first", false))
	g.editSome(sum)
	after := g.prompts()
	fresh := left(after, func(c drawnCall) bool { return !c.isPerson() && slices.ContainsFunc(before, c.sameAs) })
	requireCalls(t, fresh, (&editedRun{editedGraph: g}).perform(t, j, "second", false))
	sum.add(after, fresh)
}

// resumed runs a graph until it is interrupted, or waits for the person, edits it, and resumes it.
func (g *editedGraph) resumed(t require.TestingT, sum *edits) {
	j := journal.InMemory()
	defer j.Close()
	r := &editedRun{editedGraph: g, later: true}
	if g.chance(60, "interrupted") {
		r.stopAt = rapid.IntRange(1, len(g.prompts())).Draw(g.t, "call")
	}
	before := r.perform(t, j, "run", false)
	g.editSome(sum)
	after := g.prompts()
	fresh := left(after, func(c drawnCall) bool {
		return slices.ContainsFunc(before, func(b drawnCall) bool {
			return c.sameAs(b) && (b.instance == c.instance || !c.isPerson() && !c.otherRound(b))
		})
	})
	requireCalls(t, fresh, (&editedRun{editedGraph: g}).perform(t, j, "run", true))
	sum.add(after, fresh)
	require.Empty(t, (&editedRun{editedGraph: g}).perform(t, j, "run", true), "all is answered")
}

func (g *editedGraph) editSome(sum *edits) {
	for left := rapid.IntRange(1, 2).Draw(g.t, "edits"); left > 0; {
		if what := g.edit(); what != "" {
			sum.kinds[what]++
			left--
		}
	}
}

func (sum *edits) add(after, fresh []drawnCall) {
	sum.asked, sum.cached = sum.asked+len(fresh), sum.cached+len(after)-len(fresh)
}

// TestEditsAskOnlyForWhatIsNew edits graphs and runs them again, or resumes them. Exactly the prompts
// that the first run has not answered are asked. A model of the graph says which these are.
func TestEditsAskOnlyForWhatIsNew(t *testing.T) {
	t.Parallel()
	sum := &edits{kinds: map[string]int{}}
	graphs := graphsFor(t, 5, 6, 24, 28, 29, 34, 37)
	for _, seed := range graphs {
		rapid.Custom(func(d *rapid.T) bool { drawEdited(d).reused(t, sum); return true }).Example(seed)
		rapid.Custom(func(d *rapid.T) bool { drawEdited(d).resumed(t, sum); return true }).Example(seed)
	}
	t.Logf("%d prompts asked and %d not; edits: %v", sum.asked, sum.cached, sum.kinds)
	require.Greater(t, min(sum.asked, sum.cached), len(graphs))
	require.Len(t, sum.kinds, 10, "every kind of edit must be there")
	require.Greater(t, slices.Min(slices.Collect(maps.Values(sum.kinds))), len(graphs)/20)
}

// FuzzEditsAskOnlyForWhatIsNew does the same without a seed; a failure is shrunk.
func FuzzEditsAskOnlyForWhatIsNew(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		g, sum := drawEdited(t), &edits{kinds: map[string]int{}}
		if g.chance(50, "resumed") {
			g.resumed(t, sum)
		} else {
			g.reused(t, sum)
		}
	}))
}
