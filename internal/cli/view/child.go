package view

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// The statuses of children. The first three are those that the parent reads.
const (
	childComplete = "complete"
	childTimeout  = "timeout"
	ChildFailed   = "failed"
	childWorking  = "working"
)

// A ChildCount counts the children of a task, in JSON.
type ChildCount struct {
	Working int `json:"working"`
	Ended   int `json:"ended"`
}

// A Child is a child of an attempt at a task, in JSON.
type Child struct {
	Session   string                `json:"sessionId"`
	Part      string                `json:"part"`            // of the attempt
	Agent     string                `json:"agent,omitempty"` // empty if the child did not begin
	Attempt   int                   `json:"attempt"`
	Delegated bool                  `json:"delegated,omitempty"` // to another agent
	Status    string                `json:"status"`              // working, complete, timeout, failed, interrupted
	Code      string                `json:"code,omitempty"`      // of the error
	Goal      string                `json:"goal,omitempty"`      // or why it is withheld
	GoalLabel *label.Classification `json:"goalLabel,omitempty"`
	Result    string                `json:"result,omitempty"` // as the parent got it, or why it is withheld; empty before the next turn of the parent
	Label     *label.Classification `json:"label,omitempty"`  // of the result
	Usage     llm.Usage             `json:"tokenUsage"`       // without that of its own children
	Partial   bool                  `json:"partial,omitempty"`
	Started   time.Time             `json:"startedAt,omitzero"`
	Ended     time.Time             `json:"endedAt,omitzero"`
}

// A Holder is an agent that held the conversation of a task, in JSON.
type Holder struct {
	Agent   string `json:"agent"`
	Session string `json:"sessionId"` // of its first prompt
	Attempt int    `json:"attempt"`
	Turn    int    `json:"turn,omitempty"` // in which it transferred the conversation, from 1; zero for the last holder
}

// spawned returns the calls of a task that have children, in their order.
func spawned(t *runstate.Task) (list []*record.CallStart) {
	for _, s := range t.Tools {
		if journals.HasChild(s.Agent) {
			list = append(list, s)
		}
	}
	return list
}

// worksOn reports whether the process that works on the run does what a task began at some time.
func worksOn(k *journals.StoredRun, t *runstate.Task, began time.Time) bool {
	last := len(k.History.Begins) - 1
	return k.Live() && !k.State.Shown(t).Terminal() && (last < 0 || !began.Before(k.History.Begins[last].Time))
}

// newChild returns the child that a call spawned.
func newChild(k *journals.StoredRun, t *runstate.Task, s *record.CallStart) Child {
	start := fmt.Sprintf("%s/%s/%d", k.Run, t.ID, s.Attempt)
	parent, call := placeOfCall(strings.TrimPrefix(s.Session, k.Run+"/"+string(t.ID)))
	c := Child{Attempt: s.Attempt, Started: s.Time, Status: string(runstate.Interrupted), Delegated: s.Agent == gate.ToolReader(plan.DelegateToAgent)}
	for _, id := range []string{call, repeated.ReplaceAllString(call, "")} { // a call of an earlier attempt may have had the same ID
		c.Part, c.Session = parent+record.ChildPrefix+id, start+parent+record.ChildPrefix+id
		if c.Agent = t.AgentIn(c.Session); c.Agent != "" {
			call = id
			break
		}
	}
	if c.Agent == "" {
		c.Part, c.Session = parent+record.ChildPrefix+call, start+parent+record.ChildPrefix+call
	}
	for _, x := range t.Answered() {
		if x.Attempt == s.Attempt && record.ChildOf(x.Part) == c.Part {
			c.Usage, c.Partial = c.Usage.Add(x.Usage()), c.Partial || x.IsPartial()
		}
	}
	c.Goal, c.GoalLabel = textOf(k.Trace, func(session string) bool { return session == c.Session }, gate.Source{Kind: handoff.Plan, Name: string(t.ID) + c.Part}, brief.PartDescription)
	switch x := t.Result(s.Session); {
	case x != nil:
		c.Ended, c.Code, c.Status = x.End, x.Code, statusOfCall(x.Code)
		inTurn := func(session string) bool { return strings.HasPrefix(session, start+parent+record.TurnPrefix) }
		c.Result, c.Label = textOf(k.Trace, inTurn, gate.Source{Kind: handoff.ToolResult, Name: call}, brief.PartPayload)
	case worksOn(k, t, s.Time):
		c.Status = childWorking
	}
	return c
}

// repeated matches what the ID of a call has that an earlier call had in its place.
var repeated = regexp.MustCompile(`-\d+$`)

// placeOfCall splits what the ID of a call has behind the task into the part of the conversation, and the call.
func placeOfCall(id string) (part, call string) {
	at := strings.LastIndexByte(id, '/')
	part, call = id[:max(at, 0)], id[at+1:]
	if turn := strings.LastIndex(part, record.TurnPrefix); turn >= 0 && !strings.Contains(part[turn+len(record.TurnPrefix):], "/") {
		part = part[:turn]
	}
	return part, call
}

// statusOfCall returns the status of a child or a call of a tool that has ended, by the code of its error.
func statusOfCall(code string) string {
	switch code {
	case "":
		return childComplete
	case codes.Timeout:
		return childTimeout
	}
	return ChildFailed
}

// textOf returns the words of a source in the first prompt that has it, of those with some sessions, and its label; nil
// if there is none.
func textOf(from *trace.Trace, is func(session string) bool, of gate.Source, part prompt.Part) (string, *label.Classification) {
	for i := range from.Prompts {
		p := &from.Prompts[i]
		if p.Receipt == nil || !is(p.Receipt.Session) {
			continue
		}
		for n := range p.Receipt.Sources {
			if s := &p.Receipt.Sources[n]; s.Decision != nil && s.Decision.Source == of {
				level := s.Classification.Join(s.Decision.Before)
				return wordsOf(p.Text, int32(n), part, level), &level
			}
		}
	}
	return "", nil
}

// wordsOf returns the words of a source, or why they are withheld.
func wordsOf(pieces []promptview.Piece, source int32, part prompt.Part, level label.Classification) string {
	var words strings.Builder
	for i := range pieces {
		switch p := &pieces[i]; {
		case p.Source != source || p.Part != part:
		case p.Withheld:
			return "[withheld: " + level.String() + "]"
		default:
			words.WriteString(p.Words)
		}
	}
	return words.String()
}

// holdersOf returns the holders of the conversation of the last attempt that transferred it; nil if none did.
func holdersOf(run string, t *runstate.Task) (list []Holder) {
	for _, x := range t.Transfers() {
		attempt := x.Attempt
		start := fmt.Sprintf("%s/%s/%d", run, t.ID, attempt)
		if list == nil {
			list = append(list, Holder{Agent: cmp.Or(t.AgentIn(start), t.Agent), Session: start, Attempt: attempt})
		}
		part, call := placeOfCall(strings.TrimPrefix(x.Session, run+"/"+string(t.ID)))
		session := start + part + record.HolderPart
		if old := start + part + record.ChildPrefix + call; t.AgentIn(old) != "" { // in journals of earlier versions
			session = old
		}
		list[len(list)-1].Turn = record.TurnOf(x.Session)
		list = append(list, Holder{Agent: x.TransferredTo, Session: session, Attempt: attempt})
	}
	return list
}
