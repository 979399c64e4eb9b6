package team_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/runteam/runteam/task"
)

// drawJudges gives judges to some tasks. They keep every result, so that there is one round.
func (g *editedGraph) drawJudges() {
	for _, n := range g.root.nodes { // not in loops and lists, whose judges have other names
		if s := &n.spec; n.inside == nil && s.ForEach == nil && s.Value == nil && s.Assignee != editor && g.chance(25, "judged") {
			s.Verify = &task.Verify{OnDissent: "keep", Quorum: 1}
			for range rapid.IntRange(1, 2).Draw(g.t, "judges") {
				s.Verify.Judges = append(s.Verify.Judges, task.Judge{Agent: one(g.drawing, []string{"worker", "checker"}, "judge")})
			}
		}
	}
}

// judgements returns the prompts of the judges of a result.
func (g *editedGraph) judgements(n *drawnNode, of drawnReply) (calls []drawnCall) {
	alone := n.spec
	alone.DependsOn, alone.When, alone.Uses = nil, nil, nil
	written, _, err := task.Unroll([]task.Spec{alone})
	if err != nil {
		panic(err)
	}
	for i := range written {
		if j := &written[i]; isJudge(j.Title) {
			title := j.Title[:strings.LastIndexByte(j.Title, '#')]
			calls = append(calls, drawnCall{g.name(j.Assignee), j.Title, title + "\n" + j.Description + "\nProposed answer: " + of.text()})
		}
	}
	return calls
}

// isJudge reports whether an instance judges the result of another one.
func isJudge(instance string) bool { return strings.Contains(instance, ": judge ") }

// judgedOf returns how many prompts are of judges.
func judgedOf(calls []drawnCall) (n int) {
	for i := range calls {
		if isJudge(calls[i].instance) {
			n++
		}
	}
	return n
}
