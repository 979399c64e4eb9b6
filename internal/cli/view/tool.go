package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

// A ToolCount counts the calls of a tool by a task, in JSON.
type ToolCount struct {
	Tool  string `json:"tool"`
	Calls int    `json:"calls"`
}

// A ToolCall is a call of a tool by a task, in JSON. Calls that spawn a child are not among them: see [Child].
type ToolCall struct {
	Session    string                `json:"sessionId"`
	Tool       string                `json:"tool"`
	Agent      string                `json:"agent"` // who called it
	Attempt    int                   `json:"attempt"`
	Part       string                `json:"part,omitempty"` // the conversation, if it is that of a child or a later holder
	Status     string                `json:"status"`         // working, complete, failed, timeout, interrupted
	Effect     string                `json:"effect,omitempty"`
	ApprovedBy string                `json:"approvedBy,omitempty"` // a person
	Arguments  string                `json:"arguments,omitempty"`  // as the agent wrote them, or why they are withheld; empty before its next turn
	Result     string                `json:"result,omitempty"`     // as the agent got it, or why it is withheld; empty before its next turn
	Label      *label.Classification `json:"label,omitempty"`      // of the result
	Started    time.Time             `json:"startedAt,omitzero"`
	Ended      time.Time             `json:"endedAt,omitzero"`
}

// called returns the calls of tools of a task that spawned no child, in their order.
func called(t *runstate.Task) (list []*record.CallStart) {
	for _, s := range t.Tools {
		if !journals.HasChild(s.Agent) {
			list = append(list, s)
		}
	}
	return list
}

// toolCounts says how often a task called which tool.
func toolCounts(t *runstate.Task) (list []ToolCount) {
	for _, c := range called(t) {
		name := toolOf(c)
		i := slices.IndexFunc(list, func(of ToolCount) bool { return of.Tool == name })
		if i < 0 {
			i, list = len(list), append(list, ToolCount{Tool: name})
		}
		list[i].Calls++
	}
	return list
}

func toolOf(c *record.CallStart) string { return strings.TrimPrefix(c.Agent, gate.ToolReader("")) }

// newToolCall returns the call of a tool. Its arguments and its result are what the prompt of the next turn has of
// them, in the form of the viewer; before it, a person who is asked about the call has the arguments.
func newToolCall(k *journals.StoredRun, t *runstate.Task, s *record.CallStart) ToolCall {
	start := fmt.Sprintf("%s/%s/%d", k.Run, t.ID, s.Attempt)
	part, call := placeOfCall(strings.TrimPrefix(s.Session, k.Run+"/"+string(t.ID)))
	c := ToolCall{
		Session: s.Session, Tool: toolOf(s), Agent: cmp.Or(t.AgentIn(start+part), t.Agent), Attempt: s.Attempt, Part: part,
		Status: string(runstate.Interrupted), Effect: s.Effect, ApprovedBy: s.ApprovedBy, Started: s.Time,
	}
	inTurn := func(session string) bool { return strings.HasPrefix(session, start+part+record.TurnPrefix) }
	for _, id := range []string{call, repeated.ReplaceAllString(call, "")} { // a call of an earlier attempt may have had the same ID
		if c.Result == "" {
			c.Arguments = argumentsIn(k.Trace, inTurn, id)
			c.Result, c.Label = textOf(k.Trace, inTurn, gate.Source{Kind: handoff.ToolResult, Name: id}, brief.PartPayload)
		}
	}
	if c.Arguments == "" {
		c.Arguments, _ = textOf(k.Trace, func(string) bool { return true }, gate.Source{Kind: handoff.Arguments, Name: s.Session}, brief.PartPayload)
	}
	switch x := t.Result(s.Session); {
	case x != nil:
		c.Ended, c.Status = x.End, statusOfCall(x.Code)
	case worksOn(k, t, s.Time):
		c.Status = childWorking
	}
	return c
}

// argumentsIn returns the arguments of a call in the first prompt that repeats it to its agent, or why they are withheld.
func argumentsIn(from *trace.Trace, is func(session string) bool, call string) string {
	for i := range from.Prompts {
		p := &from.Prompts[i]
		if p.Receipt == nil || !is(p.Receipt.Session) {
			continue
		}
		for n := range p.Text {
			if p.Text[n].Part == brief.PartFrame && strings.HasSuffix(p.Text[n].Words, brief.CallHeading(call)) {
				_, behind := payload(p.Text[n+1:]) // the name of the tool
				arguments, _ := payload(behind)
				return saidIn(p, arguments)
			}
		}
	}
	return ""
}

// payload splits pieces at the next frame.
func payload(pieces []promptview.Piece) (before, behind []promptview.Piece) {
	for i := range pieces {
		if pieces[i].Part == brief.PartFrame {
			return pieces[:i], pieces[i+1:]
		}
	}
	return pieces, nil
}

// saidIn returns the words of pieces of one source, or why they are withheld.
func saidIn(p *trace.Prompt, pieces []promptview.Piece) string {
	if len(pieces) == 0 {
		return ""
	}
	of := pieces[0].Source
	s := &p.Receipt.Sources[of]
	level := s.Classification
	if s.Decision != nil {
		level = level.Join(s.Decision.Before)
	}
	return wordsOf(pieces, of, brief.PartPayload, level)
}
