package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// Waits for replies are edges of the graph of tasks: a task waits for those that could reply, and a
// task that has not begun waits for its dependencies. A wait that only a chain of waits back to itself
// could end, or nothing at all, ends at once.

// endBlockedWaits ends the waits that nothing can end any more, one after the other: when one ends, a reply
// may become possible for others. The lock of the run is held.
func (s *scheduler) endBlockedWaits(ctx context.Context) {
	for len(s.replies.list) > 0 {
		g := newWaitGraph(ctx, s)
		i := slices.IndexFunc(s.replies.list, func(w *replyWait) bool { return !g.canEnd(w) })
		if i < 0 {
			return
		}
		w, members := g.blockedBy(s.replies.list[i])
		w.noReply, w.noReplyShown = g.describe(w, members)
		w.finish()
	}
}

// reviewWaits has the waits for replies looked at again if a task has read what they are about: it may not be able to
// reply. The lock of the run is held.
func reviewWaits(s *scheduler, read []mailbox.Message) {
	m := s.run.messages
	for _, msg := range read {
		if h := m.handoffs[m.name(msg)]; h != nil && h.wait != nil {
			s.wakeUp()
			return
		}
	}
}

// A waitGraph says which tasks can still move on: those that work or wait for a person, those that can
// begin, and those that wait for one that can.
type waitGraph struct {
	*scheduler
	starts   bool                 // tasks can still begin
	waits    map[int][]*replyWait // of each task that waits, in the order of the calls
	repliers map[*replyWait][]int // tasks that could reply
	moves    map[int]bool
}

// newWaitGraph returns the graph of what the waits lead to.
func newWaitGraph(ctx context.Context, s *scheduler) *waitGraph {
	g := &waitGraph{scheduler: s, starts: ctx.Err() == nil && !s.run.stopped(), waits: map[int][]*replyWait{}, repliers: map[*replyWait][]int{}, moves: map[int]bool{}}
	for _, w := range s.replies.list {
		g.waits[w.attempt.index] = append(g.waits[w.attempt.index], w)
	}
	var order []int // what is waited for comes first, except in a cycle
	seen := map[int]bool{}
	for _, w := range s.replies.list {
		order = g.reach(w.attempt.index, seen, order)
	}
	for changed := true; changed; {
		changed = false
		for _, i := range order {
			if !g.moves[i] && g.canMove(i) {
				g.moves[i], changed = true, true
			}
		}
	}
	return g
}

// reach appends the tasks that a task waits for, and then the task itself.
func (g *waitGraph) reach(from int, seen map[int]bool, order []int) []int {
	type step struct {
		task int
		next []int
	}
	if seen[from] {
		return order
	}
	seen[from] = true
	for stack := []step{{from, g.waitsFor(from)}}; len(stack) > 0; {
		top := &stack[len(stack)-1]
		if len(top.next) == 0 {
			order = append(order, top.task)
			stack = stack[:len(stack)-1]
			continue
		}
		i := top.next[0]
		if top.next = top.next[1:]; !seen[i] {
			seen[i] = true
			stack = append(stack, step{i, g.waitsFor(i)})
		}
	}
	return order
}

// waitsFor returns the tasks that a task waits for: all of them if it has not begun, any of those that
// could send each reply if it waits for replies.
func (g *waitGraph) waitsFor(i int) (list []int) {
	r := g.run
	if waits := g.waits[i]; waits != nil {
		for _, w := range waits {
			if _, known := g.repliers[w]; !known {
				g.repliers[w] = g.repliersOf(w)
			}
			list = append(list, g.repliers[w]...)
		}
		return list
	}
	if r.queue.Status(i) == task.InProgress {
		return nil
	}
	for _, up := range r.plan.Graph.Upstream(i) {
		if !r.queue.Status(int(up)).Terminal() {
			list = append(list, int(up))
		}
	}
	return list
}

// canMove reports whether a task can move on, by what is known of those that it waits for.
func (g *waitGraph) canMove(i int) bool {
	list := g.waitsFor(i)
	switch {
	case g.waits[i] != nil: // it waits for all replies
		return !slices.ContainsFunc(g.waits[i], func(w *replyWait) bool { return !g.canEnd(w) })
	case g.run.queue.Status(i) == task.InProgress:
		return true
	}
	return g.starts && !slices.ContainsFunc(list, func(k int) bool { return !g.moves[k] })
}

// canEnd reports whether a task that could reply can move on.
func (g *waitGraph) canEnd(w *replyWait) bool {
	return slices.ContainsFunc(g.repliers[w], func(i int) bool { return g.moves[i] })
}

// repliersOf returns the tasks that could reply: the one that was given the handoff or, as long as it is
// unread, each that may read it.
func (g *waitGraph) repliersOf(w *replyWait) (list []int) {
	return slices.DeleteFunc(readersOf(g.scheduler, w.handoff), func(i int) bool {
		return g.run.tasks[i].Assignee != w.handoff.to || !g.canReply(i, w.attempt.index) // a later holder sends nothing
	})
}

// readersOf returns the tasks that have not ended and that have read a handoff or, as long as it is unread,
// that may read it. The lock of the run is held.
func readersOf(s *scheduler, h *sentHandoff) (list []int) {
	r := s.run
	if h.lost || h.isRead {
		return nil
	}
	reader, unread := r.messages.readerOf(h.msg)
	for i := range r.tasks {
		if !plan.MayHold(r.plan, i, h.to) || r.queue.Status(i).Terminal() || !unread && i != reader {
			continue
		}
		if unread {
			to, _ := r.team.Index(h.to)
			x := r.team.MessageCrossing(h.from, h.msg.Envelope.Classification(), &r.team.Capabilities[to])
			if x.Withheld() || x.After > plan.Bound(r.plan, i) {
				continue
			}
		}
		list = append(list, i)
	}
	return list
}

// canReply reports whether a task may send a handoff that another one may read.
func (g *waitGraph) canReply(i, to int) bool {
	t := g.run.plan.Graph.Task(i)
	return !plan.Joins(t) && !t.IsComputed() && slices.ContainsFunc(plan.RuntimeTools(g.run.plan, i), func(f plan.RuntimeTool) bool { return f.Name == plan.SendHandoff }) &&
		plan.MayReply(g.run.plan, i, to)
}

// readerOf returns the task that was given a message, be it to a later holder, or reports that it waits in an inbox.
func (m *runMessages) readerOf(msg mailbox.Message) (task int, unread bool) {
	for _, by := range []map[int][]mailbox.Message{m.given, m.again, m.directed, m.turns} {
		for i, list := range by {
			if slices.ContainsFunc(list, func(one mailbox.Message) bool { return one.ID == msg.ID }) {
				return i, false
			}
		}
	}
	for i, in := range m.holders {
		if in.has(msg) {
			return i, false
		}
	}
	return -1, true
}

// blockedBy follows a wait that nothing can end to the one that is to end first: the newest of a cycle,
// or the last that nothing is left for. It returns the tasks on the way there, from that wait on.
func (g *waitGraph) blockedBy(w *replyWait) (last *replyWait, members []int) {
	var path []int
	on := map[int]*replyWait{} // the wait of each task on the path that nothing can end
	for at := w.attempt.index; ; {
		path = append(path, at)
		next := g.waitsFor(at)
		if waits := g.waits[at]; waits != nil {
			if last = w; at != w.attempt.index {
				last = waits[slices.IndexFunc(waits, func(w *replyWait) bool { return !g.canEnd(w) })]
			}
			on[at], next = last, g.repliers[last]
		}
		k := slices.IndexFunc(next, func(i int) bool { return !g.moves[i] })
		if k < 0 {
			return last, path[slices.Index(path, last.attempt.index):]
		}
		at = next[k]
		if start := slices.Index(path, at); start >= 0 {
			path = path[start:]
			break
		}
	}
	newest := -1
	for _, i := range path {
		newest = max(newest, slices.Index(g.replies.list, on[i]))
	}
	last = g.replies.list[newest]
	at := slices.Index(path, last.attempt.index)
	return last, append(append(slices.Clone(path[at:]), path[:at]...), last.attempt.index)
}

// describe says why nothing can end a wait: for the agent with its own name and those of its neighbors, and for
// the user with the titles of tasks.
func (g *waitGraph) describe(w *replyWait, members []int) (text, shown string) {
	if w.handoff.lost {
		text = fmt.Sprintf("the inbox of %s is full, so it was not delivered", w.handoff.to)
		return text, text
	}
	if len(members) < 2 || members[len(members)-1] != w.attempt.index {
		text = fmt.Sprintf("no task of %s is left that could reply", w.handoff.to)
		return text, text
	}
	var names, titles []string
	for k, i := range members[:len(members)-1] {
		verb := "waits for"
		if g.waits[i] == nil {
			verb = "begins after"
		}
		next := members[k+1]
		names = append(names, fmt.Sprintf("%s %s %s", g.nameFor(w, i), verb, g.nameFor(w, next)))
		titles = append(titles, fmt.Sprintf("%q %s %q", g.run.tasks[i].Title, verb, g.run.tasks[next].Title))
	}
	return "it would wait for itself: " + strings.Join(names, ", "), "it would wait for itself: " + strings.Join(titles, ", ")
}

// nameFor returns what the agent that waits is told of a task: whose it is, if the agent may send to that one.
func (g *waitGraph) nameFor(w *replyWait, i int) string {
	if _, neighbor := g.run.team.Network.Reaches(w.attempt.member, int(g.run.plan.Members[i])); neighbor || g.run.tasks[i].Assignee == w.attempt.caps.Agent {
		return g.run.tasks[i].Assignee
	}
	return "another task"
}
