// Package sent lists the handoffs of a stored run: what agents sent to each other while they worked, and
// who has read it.
package sent

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Kind is the kind of every [Handoff].
const Kind = "handoff"

// Schema is the JSON Schema of a [Handoff]. Other programs may have more in meta.
//
//go:embed handoff.schema.json
var Schema []byte

// A Handoff is a message from one agent to another, in JSON. Agents are known by their names.
type Handoff struct {
	Kind       string    `json:"kind"`
	ID         string    `json:"id"` // unique in its run
	From       string    `json:"fromNodeId"`
	To         string    `json:"toNodeId"` // an agent, or * for each agent to which an edge leads
	Created    time.Time `json:"createdAt"`
	Payload    Payload   `json:"payload"`
	ContextRef string    `json:"contextRef,omitempty"` // the ID of the handoff that it answers
	Meta       Meta      `json:"meta"`
}

// A Payload is what a handoff says.
type Payload struct {
	Message    string          `json:"message"` // a text, or why it is withheld
	Structured json.RawMessage `json:"structured,omitempty"`
	Artifacts  []Artifact      `json:"artifacts,omitempty"`
	Status     *Status         `json:"status,omitempty"`
	Response   *Response       `json:"response,omitempty"`
	Meta       json.RawMessage `json:"meta,omitempty"` // notes of the sender
}

// An Artifact is something that a handoff refers to.
type Artifact struct {
	Type string `json:"type"`
	Ref  string `json:"ref"`
}

// A Status says whether the work that a handoff is about succeeded.
type Status struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// A Response says whether the sender waits for an answer.
type Response struct {
	Expectation string `json:"expectation"`
	ReplyTo     string `json:"replyTo"` // an agent
}

// Meta says which task sent a handoff, and which tasks have read it.
type Meta struct {
	Task    task.ID               `json:"task,omitempty"` // empty if the program or the spec sent it
	Title   string                `json:"title,omitempty"`
	Attempt int                   `json:"attempt,omitempty"` // from 1
	Turn    int                   `json:"turn,omitempty"`    // from 1
	Label   *label.Classification `json:"classification,omitempty"`
	NoReply bool                  `json:"noReply,omitempty"` // its sender waited for a reply, and got none
	Reply   *Reply                `json:"reply,omitempty"`   // of a handoff whose sender waits for a reply; nil for any other
	Read    []Reading             `json:"read"`              // none if no prompt has it so far
}

// A Reply says what became of the reply for which the sender of a handoff waits.
type Reply struct {
	State string `json:"state"`             // waiting, answered, none, interrupted
	By    string `json:"handoff,omitempty"` // the ID of the reply, if the viewer may see which one it is
	Code  string `json:"code,omitempty"`    // why there is none
}

// The states of replies.
const (
	replyWaiting     = "waiting"
	replyAnswered    = "answered"
	replyNone        = "none"
	replyInterrupted = "interrupted" // the run has no process any more, and did not end
)

// A Reading is a prompt for which the gate decided about a handoff.
type Reading struct {
	Agent   string       `json:"agent"`
	Task    task.ID      `json:"task"`
	Title   string       `json:"title"`
	Attempt int          `json:"attempt"`
	Turn    int          `json:"turn"` // from 1
	Time    time.Time    `json:"time"`
	Verdict gate.Verdict `json:"verdict"`
}

// Of returns the handoffs of a run that a viewer may see, in the order in which they were sent. The text of a handoff
// that the viewer may not see is replaced by the reason.
func Of(k *journals.StoredRun) []Handoff {
	list, index := []Handoff{}, map[string]int{}
	for _, s := range k.State.Sent {
		if s.From == handoff.User {
			continue
		}
		h := newHandoff(k, s)
		if t := k.Find(h.Meta.Task); t != nil && h.Payload.Response != nil {
			x := t.Result(s.Call)
			h.Meta.NoReply = x != nil && x.Code == codes.Tool
		}
		if at, again := index[h.ID]; again { // a resumed process sent it again
			list[at] = h
			continue
		}
		index[h.ID], list = len(list), append(list, h)
	}
	for i := range k.Trace.Handoffs {
		d := &k.Trace.Handoffs[i]
		at, known := index[d.Source.Name]
		if d.Source.Kind != handoff.Message || !known || d.Task == "" {
			continue
		}
		attempt, turn := placeOf(k.Run, d.Task, d.Session)
		m := &list[at].Meta
		m.Read = append(m.Read, Reading{d.To, d.Task, k.Title(d.Task), attempt, turn, d.Time, d.Verdict})
	}
	addReplies(k, list, index)
	return list
}

// addReplies adds what became of the replies for which senders wait.
func addReplies(k *journals.StoredRun, list []Handoff, index map[string]int) {
	for i := range list {
		h := &list[i]
		r := h.Payload.Response
		switch wait := waitFor(k, h); {
		case wait != nil && wait.Ended && wait.Code == "":
			h.Meta.Reply = &Reply{State: replyAnswered}
		case wait != nil && wait.Ended && wait.Code != codes.ReplyPending:
			h.Meta.Reply = &Reply{State: replyNone, Code: wait.Code}
		case wait != nil, r != nil && r.Expectation == plan.RequiredReply:
			h.Meta.Reply = &Reply{State: replyWaiting}
		}
	}
	for i := range list {
		if at, known := index[list[i].ContextRef]; known && list[at].Meta.Reply != nil && list[at].Meta.Reply.State != replyNone {
			list[at].Meta.Reply = &Reply{State: replyAnswered, By: list[i].ID}
		}
	}
	for i := range list {
		m := &list[i].Meta
		if m.Reply == nil || m.Reply.State != replyWaiting {
			continue
		}
		switch t := k.Find(m.Task); {
		case m.NoReply, t == nil, k.State.Shown(t).Terminal(), !k.Ended.IsZero() && k.Status != string(engine.StatusSuspended):
			m.Reply.State = replyNone
		case k.Ended.IsZero() && !k.Live():
			m.Reply.State = replyInterrupted
		}
	}
}

// waitFor returns the wait for the reply to a handoff, which is known even if the viewer may not see the handoff; nil if
// there was none.
func waitFor(k *journals.StoredRun, h *Handoff) *runstate.Wait {
	if t := k.Find(h.Meta.Task); t != nil {
		return t.WaitFor(h.ID)
	}
	return nil
}

// Delivered reports whether the prompt has the handoff.
func (r *Reading) Delivered() bool { return r.Verdict == gate.Passed }

// Unread reports whether no prompt has the handoff.
func (h *Handoff) Unread() bool {
	for i := range h.Meta.Read {
		if h.Meta.Read[i].Delivered() {
			return false
		}
	}
	return true
}

// About reports whether a task sent a handoff, or may read it or has: its agent is the reader.
func (h *Handoff) About(id task.ID, agent string) bool {
	if h.Meta.Task == id || h.To == agent && h.Unread() {
		return true
	}
	for i := range h.Meta.Read {
		if h.Meta.Read[i].Task == id {
			return true
		}
	}
	return false
}

// AboutTask returns the handoffs that are about a task.
func AboutTask(all []Handoff, id task.ID, agent string) []Handoff {
	list := []Handoff{}
	for i := range all {
		if all[i].About(id, agent) {
			list = append(list, all[i])
		}
	}
	return list
}

// newHandoff returns the document of a message, which nothing has read so far.
func newHandoff(k *journals.StoredRun, s *record.SentMessage) Handoff {
	h := Handoff{Kind: Kind, ID: s.ID, From: s.From, To: s.To, Created: s.Time.UTC(), Meta: Meta{Read: []Reading{}}}
	name, _, _ := strings.Cut(strings.TrimPrefix(s.Session, k.Run+"/"), "/")
	if id := task.ID(name); k.Find(id) != nil {
		h.Meta.Task, h.Meta.Title = id, k.Title(id)
		h.Meta.Attempt, h.Meta.Turn = placeOf(k.Run, id, s.Session)
	}
	var structured string
	if h.Payload.Message, structured, h.Meta.Label = messageOf(k, s); structured == "" {
		return h
	}
	var more struct {
		Payload
		Response   json.RawMessage `json:"response"`
		ContextRef string          `json:"contextRef"`
	}
	if json.Unmarshal([]byte(structured), &more) != nil {
		h.Payload.Structured = json.RawMessage(structured) // of a program, which may send any value
		return h
	}
	more.Message = h.Payload.Message
	h.Payload, h.ContextRef = more.Payload, more.ContextRef
	h.Payload.Response = responseOf(more.Response, s.From)
	return h
}

// messageOf returns a message as the user of the run may read it now: its text and its canonical JSON, and its label if
// that is known. The text says why it is withheld above the user's clearance, and if the policy does not let the user
// have all of it, it cannot be decrypted, has expired or was altered.
func messageOf(k *journals.StoredRun, s *record.SentMessage) (text, structured string, level *label.Classification) {
	if s.Message == nil {
		return "[withheld: secret]", "", nil
	}
	level = &s.Message.Classification
	e, err := s.Message.Envelope()
	switch {
	case !s.Shown:
		return "[withheld: " + level.String() + "]", "", level
	case err != nil || e.Genuine() != nil:
		return "[withheld: it is not what was stored]", "", level
	case !e.ExpiresAt().IsZero() && !k.Now.Before(e.ExpiresAt()):
		return "[withheld: expired]", "", level
	}
	return s.Message.Text, string(s.Message.JSON), level
}

// responseOf returns which answer a handoff asks for; nil if it asks for none. The sender gets the answer.
func responseOf(asked json.RawMessage, sender string) *Response {
	r := Response{ReplyTo: sender}
	if len(asked) == 0 || json.Unmarshal(asked, &r.Expectation) != nil && json.Unmarshal(asked, &r) != nil {
		return nil
	}
	return &r
}

// placeOf returns the attempt and the turn of a session: the run, the task and the attempt, and from the second turn on
// its number.
func placeOf(run string, id task.ID, session string) (attempt, turn int) {
	rest, ok := strings.CutPrefix(session, run+"/"+string(id)+"/")
	if !ok {
		return 0, 0
	}
	number, rest, _ := strings.Cut(rest, "/")
	attempt, _ = strconv.Atoi(number) // a session without a number is no attempt
	turn = 1
	if last, ok := strings.CutPrefix("/"+rest, record.TurnPrefix); ok {
		if n, err := strconv.Atoi(last); err == nil {
			turn = n
		}
	}
	return attempt, turn
}
