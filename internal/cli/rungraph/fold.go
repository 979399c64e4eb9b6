package rungraph

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// instance matches the rounds and the items at the end of a title, the outermost first: #2.1 is the first
// round of a loop in the second round of another.
var instance = regexp.MustCompile(`\[\d+\]|[#.]\d+`)

// marks returns the title of a task as written, and the rounds and items that follow it.
func marks(title string) (written string, of []string) {
	written = naming.WithoutInstance(title)
	return written, instance.FindAllString(title[len(written):], -1)
}

// foldsOf adds the folds of a task. A fold of a list of loops has the title of the loop, and the loops in it are folds
// themselves.
func (g *graph) foldsOf(n *Node) {
	written, of := marks(n.Title)
	loops := g.loopsOf(n) // the innermost first
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
			g.addFold(n, title(round)+before, kindList, mark, g.mostItems(n, lists))
			lists++
			continue
		}
		g.addFold(n, title(round)+before, kindLoop, mark, g.mostRounds(n, i == len(of)-1))
		round++
	}
	if n.Kind == kindLoop {
		g.addFold(n, n.Title, kindLoop, "", g.mostRounds(n, true))
	}
}

// addFold adds a task to the part of a fold that its mark names.
func (g *graph) addFold(n *Node, title, kind, mark string, most int) {
	f := g.folds[title]
	if f == nil {
		f = &Fold{Title: title, Kind: kind}
		g.folds[title], g.document.Folds = f, append(g.document.Folds, f)
	}
	f.Most = max(f.Most, most)
	number, _ := strconv.Atoi(strings.Trim(mark, "[]#.")) // zero without a mark
	n.Folds = append(n.Folds, Part{title, number})
}

// loopsOf returns the titles of the loops that a task is in, the innermost first, as far as they are known.
func (g *graph) loopsOf(n *Node) (titles []string) {
	for t := g.planned(task.ID(n.ID)); t != nil && t.Instance != nil && t.Instance.Loop != ""; {
		titles = append(titles, t.Instance.Loop)
		t = g.planned(task.NewID(t.Instance.Loop))
	}
	return titles
}

// mostItems returns how many items the list around a task may have, the nth from outside.
func (g *graph) mostItems(of *Node, n int) int {
	t := g.planned(task.ID(of.ID))
	if t == nil || t.Instance == nil || n >= len(t.Instance.Lists) {
		return 0
	}
	return t.Instance.Lists[n].Most
}

// mostRounds returns how many rounds the innermost loop around a task may have.
func (g *graph) mostRounds(of *Node, innermost bool) int {
	t := g.planned(task.ID(of.ID))
	if t == nil || t.Instance == nil || !innermost {
		return 0
	}
	return t.Instance.Rounds
}
