package memo

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Found is what is recorded of a prompt. What must not be used now is nil.
type Found struct {
	Answer   *record.AgentCall // to the prompt; in a replay without calls also a failure
	Rejected *record.AgentCall // an answer that the agent had to correct, from which it continues
	Turn     *record.AgentCall // what the agent said before it called tools, if the conversation was interrupted
}

// said is what agents said to one prompt.
type said struct {
	answers        []*record.AgentCall // the last of each task that had the prompt; the newest is the last
	rejected, turn *record.AgentCall   // the newest
}

// said returns what was said to the prompt of a call.
func (m *Memo) said(x *record.AgentCall) *said {
	key := m.keyOf(x.Keys)
	s := m.prompts[key]
	if s == nil {
		s = &said{}
		m.prompts[key] = s
	}
	return s
}

// keyOf returns the key by which what was said to a prompt is found.
func (m *Memo) keyOf(keys record.Keys) record.Key {
	if m.Is(Lean) {
		return keys.Core
	}
	return keys.Key
}

// exchange adds the end of a call.
func (m *Memo) exchange(x *record.AgentCall) {
	if m.keyOf(x.Keys) != (record.Key{}) && (m.Is(Strict) || x.Completed()) {
		s := m.said(x)
		if last := len(s.answers) - 1; last >= 0 && s.answers[last].Task == x.Task {
			s.answers = s.answers[:last]
		}
		s.answers = append(s.answers, x)
	}
	m.task(x.Task).ended(x)
}

// Find returns what is recorded of a prompt for a task. Its Key is that by the versions of agents in the run that is
// repeated. isCommand says that a command is given the prompt.
func (m *Memo) Find(keys record.Keys, t *task.Task, isCommand bool) (f Found) {
	if m == nil {
		return f
	}
	s := m.prompts[m.Mask(m.keyOf(keys))]
	if s == nil {
		return f
	}
	f.Answer = s.answerFor(t)
	if m.Is(Strict) || !isCommand { // what a command left in its workspace before it was interrupted is gone, so it begins again
		f.Rejected = m.rejected(s, t)
	}
	if m.Is(Own) && !m.Is(Strict) && s.turn != nil && !s.turn.Sends {
		f.Turn = s.turn
	}
	return f
}

// rejected returns an answer that an agent had to correct, if it continues from there: the run was interrupted before the
// correction became the result, or it is repeated with all its prompts.
func (m *Memo) rejected(s *said, t *task.Task) *record.AgentCall {
	if len(s.answers) > 0 && (m.Is(Lean) || len(t.OutputFiles) > 0) { // output files belong to the last answer
		return nil
	}
	return s.rejected
}

// answerFor returns the answer for a task: its own, if it has one, else that of another task, since an item may have
// moved in its list. But each round of a loop asks.
func (s *said) answerFor(t *task.Task) (other *record.AgentCall) {
	for _, x := range slices.Backward(s.answers) {
		switch {
		case x.Task == t.ID:
			return x
		case other == nil && !isOtherRound(t, x):
			other = x
		}
	}
	return other
}

// isOtherRound reports whether an answer is that of another round of a task.
func isOtherRound(t *task.Task, x *record.AgentCall) bool {
	if t.Instance == nil || t.Instance.Round == 0 {
		return false
	}
	rounds := roundsOf(x.Title)
	return rounds != "" && rounds != roundsOf(t.Title)
}

// roundsOf returns the rounds in the title of an instance, without its items.
func roundsOf(title string) string { return strings.Join(inTitle.FindAllString(title, -1), "") }

var inTitle = regexp.MustCompile(`#[0-9.]+`)

// Given returns the answer of a person to the question with a key as the entries have it; nil if there is none.
func (m *Memo) Given(key record.Key) *record.Answer {
	if !m.Is(Own) {
		return nil
	}
	return m.people[key]
}
