package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/naming"
)

// Instances are the tasks in rounds of loops, and those for items of lists. They have a row, and
// count, when they start or end: most of those that may run never do. A table shows those of one
// task together.
type instances struct {
	groups map[string]*group // by the title as written
}

// A group is the instances of one task.
type group struct {
	title, agent string
	position     int    // in the plan
	list         bool   // one for each item of a list
	loop         string // the title of the loop that they are in; empty for none
	most         int    // how many there may be
	leftOut      int    // how many of these do not run
	rows         []int  // of those that have one
}

// newInstances returns the instances of a plan.
func newInstances(plan *engine.Plan) instances {
	n := instances{groups: map[string]*group{}}
	for i := range plan.Tasks {
		if t := &plan.Tasks[i]; hasInstances(plan, t) {
			n.groups[t.Title] = &group{title: t.Title, agent: t.Assignee, position: i, list: t.ForEach != "", most: t.Rounds}
		}
	}
	if plan.Graph == nil {
		return n
	}
	for i := range plan.Graph.Len() {
		if of := plan.Graph.Task(i).Instance; of != nil && n.groups[of.Title] != nil {
			n.groups[of.Title].loop = naming.WithoutInstance(of.Loop)
		}
	}
	return n
}

// hasInstances reports whether a task of a plan stands for its instances: it is in a loop, or for the
// items of a list.
func hasInstances(plan *engine.Plan, t *engine.PlannedTask) bool {
	if !t.Loop || plan.Graph == nil {
		return t.Rounds > 0 && !t.Loop
	}
	i, _ := plan.Graph.Index(t.ID)
	of := plan.Graph.Task(i)
	return of.Title != of.Instance.Title
}

// plan adds an instance that a coordinator has planned, as task i.
func (n *instances) plan(p event.Planned, i int) {
	g := n.groups[p.Written]
	if g == nil {
		g = &group{title: p.Written, agent: p.Agent, position: i, list: strings.HasPrefix(p.Title[len(p.Written):], "[")}
		n.groups[p.Written] = g
	}
	g.most++
}

// group returns the group of the task that an event is about an instance of, or nil.
func (n *instances) group(e event.Event) *group {
	if ofCoordinator(e) {
		return nil
	}
	return n.groups[naming.WithoutInstance(e.Title)]
}

// isLeftOut reports whether an event is about an instance that does not run, since there is no such
// round or item, or because of one.
func (n *instances) isLeftOut(e event.Event) bool {
	g := n.group(e)
	if e.Type != event.TaskNotNeeded || g == nil {
		return false
	}
	if e.Code == codes.LeftOut {
		g.leftOut++
	}
	return e.Code == codes.LeftOut
}

// roundOf returns the round at the end of the title of an instance, such as #2 of [3]#2 and of #2[3], and
// whether the instance is for an item of a list.
func roundOf(end string) (round string, item bool) {
	if at := strings.IndexByte(end, '#'); at >= 0 {
		round, _, _ = strings.Cut(end[at:], "[")
	}
	return round, strings.Contains(end, "[")
}

// unstarted returns how many instances will have a row, as far as that is known: of a list outside
// of loops, once it is there.
func (g *group) unstarted() int {
	if !g.list || g.loop != "" || g.leftOut+len(g.rows) == 0 {
		return 0
	}
	return max(g.most-g.leftOut-len(g.rows), 0)
}

// maxNamed is how many failed instances of a task have a row of their own.
const maxNamed = 3

// folded returns the rows of a table: those of tasks, and for each task with instances one that
// counts them, or that of the round which began last, followed by the first that failed.
func (t *tracker) folded() []row {
	var rows []row
	for i := range t.rows {
		if r := t.rows[i]; r.round == "" && !r.item {
			rows = append(rows, r)
		}
	}
	rounds := map[string]row{} // by the title of a loop, that of its tasks which began last
	for _, g := range t.groups {
		shown, last := t.fold(g)
		rows = append(rows, shown...)
		if known := rounds[g.loop]; g.loop != "" && last.begun > known.begun {
			rounds[g.loop] = last
		}
	}
	for i := range rows {
		r := &rows[i]
		if now, is := rounds[r.title]; is && r.state == waiting {
			r.state, r.counts = running, "round "+strings.TrimPrefix(now.round, "#")
			if r.rounds > 0 {
				r.counts += fmt.Sprintf(" of at most %d", r.rounds)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.position, b.position) })
	return rows
}

// fold returns the rows that a table has for the instances of a task, and the one that began last.
func (t *tracker) fold(g *group) (shown []row, last row) {
	sum := row{title: g.title, agent: g.agent, position: g.position}
	if len(g.rows) == 0 {
		if sum.title += format.Rounds(g.most - g.leftOut); g.most == g.leftOut {
			sum.title, sum.state, sum.counts = g.title+" ×0", notNeeded, "the list is empty"
		}
		return []row{sum}, row{}
	}
	last = t.rows[g.rows[len(g.rows)-1]]
	for _, i := range g.rows {
		if t.rows[i].begun > last.begun {
			last = t.rows[i]
		}
	}
	var failures []row
	counts, n := [len(states)]int{}, 0
	for _, i := range g.rows {
		r := t.rows[i]
		if (r.state == failed || r.state == accepted) && (g.list || r.round != last.round) {
			failures = append(failures, r)
		}
		if r.round == last.round {
			counts[r.state]++
			n++
			sum.ended, sum.begun = max(sum.ended, r.ended), max(sum.begun, r.begun)
		}
	}
	failures = failures[:min(len(failures), maxNamed)]
	if !g.list {
		last.position = g.position
		return append([]row{last}, failures...), last
	}
	counts[waiting] += g.unstarted()
	n += g.unstarted()
	sum.title = format.Instances(sum.title+last.round, n)
	sum.state, sum.counts = summary(counts)
	return append([]row{sum}, failures...), last
}

// summary returns the state of a row that stands for several, of each state so many, and what it
// says about them.
func summary(counts [len(states)]int) (s state, text string) {
	var all []string
	for _, of := range [...]state{done, running, retrying, asked, waiting, failed, accepted, skipped, notNeeded, cancelled} {
		if counts[of] > 0 {
			all = append(all, fmt.Sprintf("%d %s", counts[of], states[of].word))
		}
	}
	for _, of := range [...]state{running, retrying, waiting, asked, failed, accepted, skipped, cancelled, done, notNeeded} {
		if counts[of] > 0 {
			s = of
			break
		}
	}
	if s == waiting && counts[waiting] < total(counts) {
		s = running // some have ended, and the others wait for a slot
	}
	return s, format.List(all, len(all))
}

func total(counts [len(states)]int) (n int) {
	for _, one := range counts {
		n += one
	}
	return n
}
