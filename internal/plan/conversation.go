package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A ConversationText is a text of an earlier turn of a session: what the person said, or the answer.
type ConversationText struct {
	Turn     int                // from 1
	From     string             // user, or who answered
	Envelope *envelope.Envelope // of the run of that turn; nil if it is not readable any more
	Reads    []record.Read      // what agents were delivered in that turn, if the text is the answer
}

// MadeBy returns the producer of the text for a reader: who wrote it and, of what others than the reader were
// delivered in its turn, who made that. The rules for all of them apply. What was delivered to the reader
// itself passed under the rules for the reader.
func (c *ConversationText) MadeBy(reader string) string {
	if c.Envelope == nil {
		return c.From
	}
	made := c.Envelope.Producer()
	var others []string
	for _, r := range c.Reads {
		if r.Reader != reader {
			others = append(others, naming.Links(r.From)...)
		}
	}
	slices.Sort(others) // the order in which they were delivered depends on the run
	for _, from := range slices.Compact(others) {
		if from != gate.Runtime && !slices.Contains(naming.Links(made), from) {
			made = naming.Chain(made, from)
		}
	}
	return made
}

// IsAnswer reports whether the text is the answer of its turn.
func (c *ConversationText) IsAnswer() bool { return c.From != handoff.User }

// Name names the text among those of its session, such as turn 2 or answer 2.
func (c *ConversationText) Name() string {
	if c.IsAnswer() {
		return fmt.Sprintf("answer %d", c.Turn)
	}
	return fmt.Sprintf("turn %d", c.Turn)
}

// Offer offers the text to a reader in a later turn, who does without it if it is withheld.
func (c *ConversationText) Offer(reader string) gate.Offer {
	o := gate.Offer{Source: gate.Source{Kind: handoff.Conversation, Name: c.Name()}, Title: c.Name(), Assignee: c.From, Envelope: c.Envelope, Optional: true}
	if made := c.MadeBy(reader); c.Envelope != nil && made != c.Envelope.Producer() {
		o.Envelope = gate.MadeBy(c.Envelope, made)
	}
	return o
}

// TurnTask returns the task of a turn that an agent answers: what the person said reaches the agent
// through the gate, followed by the inputs.
func TurnTask(t *record.SessionTurn, inputs []Input) task.Spec {
	uses := make([]task.Use, len(inputs))
	for i := range inputs {
		uses[i].Name = inputs[i].Name
	}
	return task.Spec{
		Title: fmt.Sprintf("Turn %d", t.Turn), Description: t.Text, Classification: t.Label, Assignee: t.Agent, Uses: uses,
		Source: provenance.Source{Record: &provenance.Record{From: handoff.User}},
	}
}

// EarlierTurn returns the texts of an earlier turn of a session for the plan of a later one: what the
// person said, and the answer, at their labels.
func EarlierTurn(agent string, said, answer label.Classification, at time.Time) ([]ConversationText, error) {
	texts := []ConversationText{{Turn: 1, From: handoff.User}, {Turn: 1, From: agent}}
	for i, level := range []label.Classification{said, answer} {
		h := envelope.Header{ID: "message", Producer: texts[i].From, Classification: level, CreatedAt: at}
		e, err := envelope.New(h, envelope.Text("an earlier turn"))
		if err != nil {
			return nil, err
		}
		texts[i].Envelope = e
	}
	return texts, nil
}

// CheckTurn reports what is wrong with a turn of a session.
func CheckTurn(t *Roster, turn *record.SessionTurn) (found task.Problems) {
	about := subject{found: &found, pointer: "/message", name: "the message"}
	switch text := turn.Text; {
	case strings.TrimSpace(text) == "":
		about.report("it is empty", "write what you want to say", task.ErrInvalid)
	case !utf8.ValidString(text):
		about.report("it is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
	case len(text) > gate.DefaultContextBytes:
		about.report(fmt.Sprintf("it has %d bytes, at most %d are delivered", len(text), gate.DefaultContextBytes), "shorten it, and move long texts to inputs", brief.ErrTooLarge)
	default:
		if line, opener := brief.GoalOpener(text); line > 0 {
			found = append(found, task.Problem{
				Pointer: "/message", Line: line, Subject: "the message", Message: fmt.Sprintf("a line of it begins with %q, which is reserved for the prompt's own lines", opener),
				Hint: "reword it, or begin the line with >", Err: task.ErrInvalid,
			})
		}
	}
	about.checkLabel(turn.Label)
	return append(found, CheckAnswerer(t, turn.Agent)...)
}

// CheckAnswerer reports that nobody of this name can answer the turns of a session. An empty name and
// coordinator are the coordinator.
func CheckAnswerer(t *Roster, name string) (found task.Problems) {
	about := subject{found: &found, pointer: "/agent"}
	if name == "" || name == handoff.Coordinator {
		if c := t.Config.Coordinator; c == nil || c.Agent == nil {
			about.report("a session needs an agent that answers, and this team has no coordinator", "name one of its agents: "+strings.Join(t.Names(), ", "), ErrNoCoordinator)
		}
		return found
	}
	i, known := t.Index(name)
	switch {
	case !known || i >= agentsOf(t):
		about.report(fmt.Sprintf("unknown agent %q", name), cmp.Or(naming.Suggest(name, t.Names()), "the team has "+strings.Join(t.Names(), ", ")), ErrUnknownAgent)
	case t.Config.Agents[i].IsPerson():
		about.report(fmt.Sprintf("%q is a person, and a session is with a model", name), "name another agent; it may ask the person", task.ErrInvalid)
	}
	return found
}

// checkConversation reports a conversation of which it is not clear who continues it.
func checkConversation(c *checker) {
	if o := &c.options; len(o.Conversation) > 0 && o.Answer == nil && len(c.specs) > 1 {
		c.at("tasks").report(fmt.Sprintf("a turn of a session has one task or a goal, and there are %d tasks", len(c.specs)), "send the turn through the session", task.ErrInvalid)
	}
}
