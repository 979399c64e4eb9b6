package rungraph

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A fold is the rounds of a loop, or the tasks for the items of a list.
type fold struct {
	title string
	kind  string
	most  int // how many rounds or items there may be; zero if it is unknown
}

// instance matches the rounds and the items at the end of a title, the outermost first: #2.1 is the first
// round of a loop in the second round of another.
var instance = regexp.MustCompile(`\[\d+\]|[#.]\d+`)

// isInstance reports whether a title is that of a round or an item.
func isInstance(title string) bool { return naming.WithoutInstance(title) != title }

// marks returns the title of a task as written, and the rounds and items that follow it.
func marks(title string) (written string, of []string) {
	written = naming.WithoutInstance(title)
	return written, instance.FindAllString(title[len(written):], -1)
}

// fold finds the folds of all vertices.
func (g *graph) fold() {
	folds := map[string]*fold{}
	for i := range g.vertices {
		if v := &g.vertices[i]; v.Kind != kindInput {
			v.within = g.foldsOf(v, folds)
		}
	}
	if g.plan == nil {
		g.joinRounds()
	}
}

// foldsOf returns the folds of a task. A fold of a list of loops has the title of the loop, and the loops
// in it are folds themselves.
func (g *graph) foldsOf(v *vertex, known map[string]*fold) (within []*fold) {
	written, of := marks(v.Title)
	loops := g.loopsOf(v) // the innermost first
	add := func(title, kind string, most int) {
		key := kind + " " + title
		if known[key] == nil {
			known[key] = &fold{title: title, kind: kind}
		}
		known[key].most = max(known[key].most, most)
		within = append(within, known[key])
	}
	lists, rounds := 0, 0
	for _, mark := range of {
		if mark[0] != '[' {
			rounds++
		}
	}
	title := func(round int) string { // of what is repeated, from this round of the task on
		if n := rounds - 1 - round; n >= 0 && n < len(loops) {
			return naming.WithoutInstance(loops[n])
		}
		return written
	}
	round := 0
	for i, mark := range of {
		before := strings.Join(of[:i], "")
		if mark[0] == '[' {
			add(title(round)+before, kindList, g.mostItems(v, lists))
			lists++
			continue
		}
		add(title(round)+before, kindLoop, g.mostRounds(v, i == len(of)-1))
		round++
	}
	if v.Kind == kindLoop {
		add(v.Title, kindLoop, g.mostRounds(v, true))
	}
	return within
}

// loopsOf returns the titles of the loops that a task is in, the innermost first, as far as they are known.
func (g *graph) loopsOf(v *vertex) (titles []string) {
	for t := g.planned(task.ID(v.ID)); t != nil && t.Instance != nil && t.Instance.Loop != ""; {
		titles = append(titles, t.Instance.Loop)
		t = g.planned(task.NewID(t.Instance.Loop))
	}
	return titles
}

// mostItems returns how many items the list around a task may have, the nth from outside.
func (g *graph) mostItems(v *vertex, n int) int {
	t := g.planned(task.ID(v.ID))
	if t == nil || t.Instance == nil || n >= len(t.Instance.Lists) {
		return 0
	}
	return t.Instance.Lists[n].Most
}

// mostRounds returns how many rounds the innermost loop around a task may have.
func (g *graph) mostRounds(v *vertex, innermost bool) int {
	t := g.planned(task.ID(v.ID))
	if t == nil || t.Instance == nil || !innermost {
		return 0
	}
	return t.Instance.Rounds
}

// joinRounds joins the outermost folds that read each other, such as those of Write and Check: without a plan,
// that is what shows that they are one loop.
func (g *graph) joinRounds() {
	of := make([]*fold, len(g.vertices))
	next := map[*fold][]*fold{}
	var order []*fold
	for i := range g.vertices {
		if w := g.vertices[i].within; len(w) > 0 && w[0].kind == kindLoop {
			of[i] = w[0]
			if next[w[0]] == nil {
				order, next[w[0]] = append(order, w[0]), []*fold{}
			}
		}
	}
	for _, l := range g.links {
		if a, b := of[l.from], of[l.to]; a != nil && b != nil && a != b {
			next[a] = append(next[a], b)
		}
	}
	joined := map[*fold]*fold{}
	for _, f := range order {
		if joined[f] != nil {
			continue
		}
		var titles []string
		for _, other := range order {
			if other == f || reaches(next, f, other) && reaches(next, other, f) {
				joined[other] = f
				titles = append(titles, other.title)
			}
		}
		f.title = strings.Join(titles, ", ")
	}
	for i := range g.vertices {
		if of[i] != nil {
			g.vertices[i].within[0] = joined[of[i]]
		}
	}
}

// reaches reports whether a way leads from one fold to another.
func reaches(next map[*fold][]*fold, from, to *fold) bool {
	seen, open := map[*fold]bool{from: true}, []*fold{from}
	for len(open) > 0 {
		f := open[len(open)-1]
		open = open[:len(open)-1]
		for _, n := range next[f] {
			if n == to {
				return true
			}
			if !seen[n] {
				seen[n] = true
				open = append(open, n)
			}
		}
	}
	return false
}

// visible adds a node for each vertex that is not folded, and for each fold that is not expanded. It returns
// the index of the node that stands for each vertex.
func (g *graph) visible(d *Document, expand []string) []int {
	shown, at := make([]int, len(g.vertices)), map[*fold]int{}
	counts, begun := map[*fold]map[string]bool{}, map[*fold]bool{}
	for i := range g.vertices {
		v := &g.vertices[i]
		inside, depth := g.foldOf(v, expand)
		if inside == nil {
			shown[i] = len(d.Nodes)
			n := v.Node
			if depth > 0 {
				n.Fold = v.within[depth-1].title
			}
			d.Nodes = append(d.Nodes, &n)
			continue
		}
		k, known := at[inside]
		if !known {
			k = len(d.Nodes)
			n := &Node{ID: "fold:" + inside.title, Title: inside.title, Kind: inside.kind, Agent: v.Agent}
			if depth > 0 {
				n.Fold = v.within[depth-1].title
			}
			at[inside], d.Nodes, counts[inside] = k, append(d.Nodes, n), map[string]bool{}
		}
		shown[i] = k
		d.Nodes[k].include(v)
		begun[inside] = begun[inside] || v.started
		if _, of := marks(v.Title); depth < len(of) && (inside.kind == kindList || v.started) {
			counts[inside][of[depth]] = true
		}
	}
	for f, k := range at {
		n := d.Nodes[k]
		n.Count = len(counts[f])
		if ended := g.run.History.End != nil; !ended && f.kind == kindList && n.Count == f.most && !begun[f] {
			n.Count = 0 // the list is not there yet
		}
		if g.run.History.End == nil && f.most > n.Count {
			n.Most = f.most
		}
	}
	return shown
}

// foldOf returns the outermost fold of a vertex that is not expanded, and how many are around it; nil if all
// are.
func (g *graph) foldOf(v *vertex, expand []string) (inside *fold, depth int) {
	for depth, f := range v.within {
		if !slices.Contains(expand, f.title) {
			return f, depth
		}
	}
	return nil, len(v.within)
}

// include adds a vertex to the node of a fold.
func (n *Node) include(v *vertex) {
	n.Members = append(n.Members, task.ID(v.ID))
	if v.Kind != kindLoop && n.Agent != v.Agent {
		n.Agent = ""
	}
	if v.Label != nil {
		n.Label = new(cmp.Or(n.Label, new(label.Public)).Join(*v.Label))
	}
}
