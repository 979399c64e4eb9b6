// Package memo finds what is recorded of a call that a run is about to make: the answer of an agent to the same prompt, the
// result of the same call of a tool, the decision of a person, and what earlier processes spent.
//
//	m := memo.Of(history, memo.Own|memo.Lean)
//	found := m.Find(keys, t, false)
//	if found.Answer != nil {
//		… // the agent is not called
//	}
//
// A resume, a replay and the stored plan of a run differ only in their [Flags]. A [Memo] holds the [runstate.State] of
// the same entries, which says what is known of each task; both are filled in one pass. A Memo does not change after
// [Of], but for its Approvals, and is safe for concurrent use. A nil *Memo is that of a run without earlier entries.
package memo

import (
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// Flags say what the entries are used for.
type Flags uint8

// A resume is Own|Lean, a replay Own|Strict. A replay that may call agents has no flags.
const (
	Own    Flags = 1 << iota // they are of this run: its answers stay as they are, and what they took counts
	Lean                     // a prompt is the same also with other messages and another shared memory
	Strict                   // no agent is called: what failed fails again, and what was interrupted is as it was
)

// A Memo is what is recorded of a run before it is resumed or repeated.
type Memo struct {
	State    *runstate.State
	Policies []*record.Command // that replaced the policy of the run

	flags   Flags
	history *record.History
	prompts map[record.Key]*said
	calls   map[string]*Call // by session
	people  map[record.Key]*record.Answer
	tasks   map[task.ID]*Task
	times   processTimes
	spent   *Approvals
}

// Of returns the memo of a history, which must not change any more.
func Of(h *record.History, flags Flags) *Memo {
	m := &Memo{
		State: runstate.New(), spent: newApprovals(), flags: flags, history: h,
		prompts: map[record.Key]*said{}, calls: map[string]*Call{}, people: map[record.Key]*record.Answer{}, tasks: map[task.ID]*Task{}, times: timesOf(h),
	}
	m.State.Repeats = m.Is(Strict)
	runstate.Each(h, func(e *record.Entry) {
		m.State.Apply(e)
		m.times.add(e)
		m.apply(e)
	})
	return m
}

// apply adds the next entry.
func (m *Memo) apply(e *record.Entry) {
	switch {
	case e.Asked != nil:
		m.task(e.Asked.Task).asked(e.Asked)
	case e.Exchange != nil:
		m.exchange(e.Exchange)
	case e.Turn != nil:
		m.said(e.Turn).turn = e.Turn
		m.beginConversation(e.Turn)
	case e.Rejected != nil:
		m.said(e.Rejected).rejected = e.Rejected
	case e.ToolCall != nil:
		m.toolCall(e.ToolCall)
	case e.ToolResult != nil:
		if m.call(e.ToolResult.Session).Result = e.ToolResult; e.ToolResult.Code != codes.ReplyPending {
			m.measured(e.ToolResult)
		}
	case e.Files != nil:
		m.call(e.Files.Session).Files = e.Files
		m.measured(e.Files)
	case e.Question != nil:
		m.question(e.Question)
	case e.Answer != nil:
		if a := e.Answer; a.Missing == "" && m.people[a.Key] == nil { // the first answer counts
			m.people[a.Key] = a
		}
	case e.Command != nil && e.Command.Policy != nil:
		m.Policies = append(m.Policies, e.Command)
	}
}

// Is reports whether a memo has all of these flags. A nil one has none.
func (m *Memo) Is(flags Flags) bool { return m != nil && m.flags&flags == flags }

// Resumed returns the memo of a run that was repeated so far, and is resumed from here. Answers stay found as before.
func (m *Memo) Resumed() *Memo {
	of, state := *m, *m.State
	of.State, of.flags, state.Repeats = &state, m.flags&^Strict, false
	return &of
}

// Mask returns a key as the entries have it.
func (m *Memo) Mask(key record.Key) record.Key {
	if m != nil && m.history.Mask != nil {
		return m.history.Mask(key)
	}
	return key
}

// Version returns the version of an agent's answers in a run that is repeated: what answers now may be another model or
// a script. It is now in any other run, and if the agent had the same version.
func (m *Memo) Version(agent, now string) string {
	if m != nil && !m.Is(Lean) {
		if then, known := m.history.Versions[agent]; known {
			return then
		}
	}
	return now
}

// Began returns when the run began, if that was before now.
func (m *Memo) Began(now time.Time) time.Time {
	if !m.Is(Own) || len(m.history.Begins) == 0 {
		return now
	}
	return m.history.Begins[0].Time
}

// Ended returns when the run ended that is repeated without calls, and now of any other.
func (m *Memo) Ended(now time.Time) time.Time {
	if end := m.End(); end != nil {
		return end.Time
	}
	return now
}

// End returns how the run ended that is repeated without calls. It is nil for any other, and if that one did not end.
func (m *Memo) End() *record.RunEnd {
	if !m.Is(Strict) {
		return nil
	}
	return m.history.End
}
