package journals

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// The statuses of children. The first three are those that the parent reads.
const (
	ChildComplete    = "complete"
	ChildTimeout     = "timeout"
	ChildFailed      = "failed"
	ChildWorking     = "working"
	ChildInterrupted = "interrupted"
)

// A StoredChild is a child of an attempt at a task, as a viewer may see it.
type StoredChild struct {
	Session   string
	Part      string // of the attempt
	Agent     string // empty if the child did not begin
	Attempt   int
	Delegated bool // to another agent
	Status    string
	Code      string // of the error
	Goal      ShownText
	Result    ShownText // what its parent got; empty before the next turn of its parent
	Usage     llm.Usage // without that of its own children
	Partial   bool
	Started   time.Time
	Ended     time.Time
}

// A ShownText is a text of a prompt as a viewer may see it.
type ShownText struct {
	Text  string
	Label *label.Classification // nil if there is no text
}

// spawned returns the calls of a task that have children, in their order.
func spawned(t *runstate.Task) (list []*record.CallStart) {
	for _, s := range t.Tools {
		if hasChild(s.Agent) {
			list = append(list, s)
		}
	}
	return list
}

// hasChild reports whether calls of a tool have children.
func hasChild(reader string) bool {
	return reader == gate.ToolReader(plan.SpawnAgent) || reader == gate.ToolReader(plan.DelegateToAgent)
}

// ChildCounts returns how many children of a task work, and how many have ended.
func (k *StoredRun) ChildCounts(t *runstate.Task) (working, ended int) {
	for _, s := range spawned(t) {
		if t.Result(s.Session) == nil && k.worksOn(t, s.Time) {
			working++
		} else {
			ended++
		}
	}
	return working, ended
}

// worksOn reports whether the process that works on the run does what a task began at some time.
func (k *StoredRun) worksOn(t *runstate.Task, began time.Time) bool {
	last := len(k.History.Begins) - 1
	return k.Live() && !k.State.Shown(t).Terminal() && (last < 0 || !began.Before(k.History.Begins[last].Time))
}

// Children returns the children of a task, in the order in which they were spawned.
func (k *StoredRun) Children(t *runstate.Task) []StoredChild {
	list := []StoredChild{}
	for _, s := range spawned(t) {
		list = append(list, k.child(t, s))
	}
	return list
}

// child returns the child that a call spawned.
func (k *StoredRun) child(t *runstate.Task, s *record.CallStart) StoredChild {
	start := fmt.Sprintf("%s/%s/%d", k.Run, t.ID, s.Attempt)
	parent, call := placeOfCall(strings.TrimPrefix(s.Session, k.Run+"/"+string(t.ID)))
	c := StoredChild{Attempt: s.Attempt, Started: s.Time, Status: ChildInterrupted, Delegated: s.Agent == gate.ToolReader(plan.DelegateToAgent)}
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
			c.Usage, c.Partial = c.Usage.Add(x.Usage()), c.Partial || x.Partial
		}
	}
	c.Goal = k.textOf(func(session string) bool { return session == c.Session }, gate.Source{Kind: handoff.Plan, Name: string(t.ID) + c.Part}, brief.PartDescription)
	switch x := t.Result(s.Session); {
	case x != nil:
		c.Ended, c.Code, c.Status = x.End, x.Code, statusOfChild(x.Code)
		inTurn := func(session string) bool { return strings.HasPrefix(session, start+parent+record.TurnPrefix) }
		c.Result = k.textOf(inTurn, gate.Source{Kind: handoff.ToolResult, Name: call}, brief.PartPayload)
	case k.worksOn(t, s.Time):
		c.Status = ChildWorking
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

// statusOfChild returns the status of a child that has ended, by the code of its error.
func statusOfChild(code string) string {
	switch code {
	case "":
		return ChildComplete
	case codes.Timeout:
		return ChildTimeout
	}
	return ChildFailed
}

// textOf returns the words of a source in the first prompt that has it, of those with some sessions.
func (k *StoredRun) textOf(is func(session string) bool, of gate.Source, part prompt.Part) ShownText {
	for i := range k.Trace.Prompts {
		p := &k.Trace.Prompts[i]
		if p.Receipt == nil || !is(p.Receipt.Session) {
			continue
		}
		for n := range p.Receipt.Sources {
			if s := &p.Receipt.Sources[n]; s.Decision != nil && s.Decision.Source == of {
				level := s.Classification.Join(s.Decision.Before)
				return ShownText{wordsOf(p.Text, int32(n), part, level), &level}
			}
		}
	}
	return ShownText{}
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

// A StoredHolder is an agent that held the conversation of a task.
type StoredHolder struct {
	Agent   string
	Session string
	Attempt int
	Turn    int // in which it transferred the conversation, from 1; zero for the last holder
}

// Holders returns the holders of the conversation of the last attempt that transferred it; nil if none did.
func (k *StoredRun) Holders(t *runstate.Task) (list []StoredHolder) {
	for _, x := range t.Transfers() {
		attempt := x.Attempt
		start := fmt.Sprintf("%s/%s/%d", k.Run, t.ID, attempt)
		if list == nil {
			list = append(list, StoredHolder{Agent: cmp.Or(t.AgentIn(start), t.Agent), Session: start, Attempt: attempt})
		}
		id := strings.TrimPrefix(x.Session, k.Run+"/"+string(t.ID))
		part, call := placeOfCall(id)
		turn := 1
		_, _ = fmt.Sscanf(strings.TrimPrefix(id, part), record.TurnPrefix+"%d", &turn) // the first turn has no number
		list[len(list)-1].Turn = turn
		session := start + part + record.ChildPrefix + call
		if short := repeated.ReplaceAllString(session, ""); t.AgentIn(session) == "" && t.AgentIn(short) != "" {
			session = short
		}
		list = append(list, StoredHolder{Agent: x.TransferredTo, Session: session, Attempt: attempt})
	}
	return list
}

// A StoredWait is a handoff to whose reply a task waits.
type StoredWait struct {
	ID    string `json:"id"`
	Agent string `json:"agent"` // who is to reply
}

// Waits returns the handoffs for whose replies a task waits now.
func (k *StoredRun) Waits(id task.ID) (list []StoredWait) {
	if t := k.State.Find(id); t != nil && k.Live() {
		for _, w := range k.State.Replies(t) {
			list = append(list, StoredWait(w))
		}
	}
	return list
}
