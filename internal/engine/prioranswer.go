package engine

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// keyOf returns the key of a model call by which its answer is found.
func (p *priorRun) keyOf(x *record.AgentCall) record.Key {
	if p.whole {
		return x.Key
	}
	return x.Core
}

// key returns the key by which an earlier answer to the same prompt is found.
func (p *priorRun) key(x *modelCall) record.Key {
	if p.whole {
		return p.masked(x.prior)
	}
	return p.masked(x.core)
}

// versionOf returns the version of the answers that an agent gave in the run that is replayed. What
// answers now may be another model, or a script.
func (p *priorRun) versionOf(m *plan.Member) string {
	was := *m
	if p != nil && p.whole {
		if v, known := p.history.Versions[m.Name]; known {
			was.Version = v
		}
	}
	return was.AnswerVersion()
}

// masked returns a key as the journal stores it.
func (p *priorRun) masked(key record.Key) record.Key {
	if mask := p.history.Mask; mask != nil {
		return mask(key)
	}
	return key
}

// answer returns what an agent answered to the same prompt before, or nil. A task takes its own
// answer, if it has one, else that of another task: an item may have moved in its list. But each
// round of a loop asks. Judges and people need no rule here: see withTask.
func (p *priorRun) answer(x *modelCall) *record.AgentCall {
	if p == nil {
		return nil
	}
	key := p.key(x)
	last := p.answers[key]
	if last == nil || last.Task == x.task.ID {
		return last
	}
	other := last
	if isOtherRound(x.task, last) {
		other = nil
	}
	for _, e := range slices.Backward(p.earlier[key]) {
		switch {
		case e.Task == x.task.ID:
			return e
		case other == nil && !isOtherRound(x.task, e):
			other = e
		}
	}
	return other
}

// isOtherRound reports whether an answer is that of another round of a task.
func isOtherRound(t *task.Task, e *record.AgentCall) bool {
	if t.Instance == nil || t.Instance.Round == 0 {
		return false
	}
	rounds := roundsOf(e.Title)
	return rounds != "" && rounds != roundsOf(t.Title)
}

// roundsOf returns the rounds in the title of an instance, without its items.
func roundsOf(title string) string { return strings.Join(inTitle.FindAllString(title, -1), "") }

var inTitle = regexp.MustCompile(`#[0-9.]+`)

// rejectedAnswer returns an answer to the same prompt that had to be corrected, if the
// run continues from there: it was interrupted before the correction became the
// result, or it is replayed with all its prompts. What a command left in its workspace
// before it was interrupted is gone, so a command begins again.
func (p *priorRun) rejectedAnswer(x *modelCall) *record.AgentCall {
	if p == nil || x.run.fresh.has(x.task.ID) || !p.strict && x.run.team.Find(x.caps.Agent).Process() != nil {
		return nil
	}
	key := p.key(x)
	if p.answers[key] != nil && (!p.whole || len(x.task.OutputFiles) > 0) { // output files belong to the last answer
		return nil
	}
	return p.rejected[key]
}
