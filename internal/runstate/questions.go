package runstate

import (
	"encoding/hex"
	"slices"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A Question is a question to a person and what became of it.
type Question struct {
	record.Question
	Answer *record.Answer // nil if there is none that can be read
	Ended  bool           // the task has an end that is newer than the question, or does not ask any more
	Failed bool           // that end is a failure
	Unused bool           // the run does not need the task, or its spec no longer has it

	Earlier []Question // those that the task asked before it, and that were answered
}

// ID names the question within its run.
func (q *Question) ID() string { return hex.EncodeToString(q.Key[:]) }

// Open reports whether the question can be answered.
func (q *Question) Open() bool { return q.Answer == nil && !q.Ended }

// Approves reports whether the answer lets something happen: a call of a tool, the tasks of a plan, or
// the use of a declassifier.
func (q *Question) Approves() bool { return q.Call != "" || q.Approval != "" }

// keepEarlier makes room for the next question of the task.
func (q *Question) keepEarlier() {
	if q.Answer != nil {
		earlier := *q
		earlier.Earlier = nil
		q.Earlier, q.Answer = append(q.Earlier, earlier), nil
	}
}

// questions are what a task asks people.
type questions struct {
	list    []*Question // asked last: one, or those about the calls of one turn
	waiting int         // the number of the attempt that waits for an approval or a reply; zero if none does
}

// ask adds a question. It takes the place of those before, unless they are about other calls of its turn.
func (t *questions) ask(asked *record.Question) {
	if asked.Call != "" {
		t.waiting = asked.Attempt
	}
	isTurn := len(t.list) > 0 && asked.List != (record.Key{}) && t.list[0].List == asked.List
	if len(t.list) > 0 && !isTurn {
		t.list = []*Question{t.merge()}
	}
	i := slices.IndexFunc(t.list, func(q *Question) bool { return !isTurn || q.Call == asked.Call })
	if i < 0 {
		t.list = append(t.list, &Question{Question: *asked})
		return
	}
	q := t.list[i]
	if q.Key != asked.Key {
		q.keepEarlier()
	}
	q.Question, q.Ended, q.Failed = *asked, false, false
}

// merge returns the first question, with those of the others that were answered before it.
func (t *questions) merge() *Question {
	first := t.list[0]
	for _, other := range t.list[1:] {
		first.keepEarlier()
		other.keepEarlier()
		first.Earlier = append(first.Earlier, other.Earlier...)
	}
	return first
}

// answer adds an answer.
func (t *questions) answer(a *record.Answer) {
	for _, q := range t.list {
		if a.Missing == "" && q.Key == a.Key {
			q.Answer = a
		}
	}
}

// attemptEnded ends all questions: the attempt that asked them has ended.
func (t *questions) attemptEnded(x *record.AgentCall) {
	for _, q := range t.list {
		q.Ended, q.Failed = true, !x.Completed()
	}
}

// called ends the question about a call of a tool, which was made or was answered without.
func (t *questions) called(session string) {
	t.waiting = 0
	for _, q := range t.list {
		if q.Call == session {
			q.Ended = true
		}
	}
}

// waits reports whether a question is open.
func (t *questions) waits() bool { return slices.ContainsFunc(t.list, (*Question).Open) }

// Questions returns what each task asked people last: one question, or those about the calls of one turn, in their
// order. The tasks have the order of their first entries. They are copies.
func (s *State) Questions() (list []*Question) {
	for _, t := range s.order {
		list = append(list, s.QuestionsOf(t)...)
	}
	return list
}

// QuestionsOf returns what a task asked people last. They are copies.
func (s *State) QuestionsOf(t *Task) (list []*Question) {
	for _, of := range t.questions.list {
		q := new(*of)
		if q.Answer == nil && s.isUnused(t) {
			q.Ended, q.Unused = true, true
		}
		list = append(list, q)
	}
	return list
}

// isUnused reports whether the last process did not have or need a task, since the spec has changed. The tasks of a
// goal are not known before its plan.
func (s *State) isUnused(t *Task) bool {
	return !t.Step && (s.End != nil && s.Status(t) == task.NotNeeded || !s.Has(t))
}
