package mailbox

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An ID names a message within its bus, such as message/3, and is the id of
// its envelope. Ids count up in the order of sending.
type ID = envelope.ID

// Everyone is the reader of a broadcast: the whole roster but its sender.
const Everyone = "*"

// MaxContent is the largest size of a message, in bytes. The gate withholds larger ones.
const MaxContent = 1 << 20

// A Draft is a message as its sender writes it. It prints without its content.
type Draft struct {
	From           string               // an agent, or the user (handoff.User)
	To             string               // an agent; empty for a broadcast
	Content        string               // text of 1 to [MaxContent] bytes, valid UTF-8
	Structured     jsonvalue.Value      // what else it says, as data; the zero value for nothing
	Classification label.Classification // how sensitive it is; zero means internal
	TTL            time.Duration        // how long it may be read; zero means without end
	ExpiresAt      time.Time            // when it ends, if that is earlier; zero means never
	Name           string               // what its run calls it; empty for no name
	Task           task.ID              // of the run, whose agent sends it; empty if the program does
}

// A Message is what was sent. It is a value whose envelope cannot change. Only
// the gate opens the envelope; the message prints without its content.
type Message struct {
	ID       ID
	From     string             // an agent, or the user (handoff.User)
	To       string             // an agent, or [Everyone]
	At       time.Time          // when it was sent, in UTC
	Bytes    int                // length of its content
	Envelope *envelope.Envelope // its content, label and expiry
	Name     string             // what its run calls it; empty for one that was sent outside of a run
	Task     task.ID            // whose agent sent it; empty if the program did
}

// classification is that of the envelope; a Message that was not sent has none.
func (m Message) classification() label.Classification {
	if m.Envelope == nil {
		return label.Internal
	}
	return m.Envelope.Classification()
}

// String returns sender, receiver, and label, without the content.
func (m Message) String() string {
	return fmt.Sprintf("message %q from %q to %q, %v", m.ID, m.From, m.To, m.classification())
}

// Format writes [Message.String] for every verb, so that no verb prints the content.
func (m Message) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// LogValue returns for a structured log what [Message.String] says.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", string(m.ID)), slog.String("from", m.From), slog.String("to", m.To),
		slog.String("classification", m.classification().String()))
}

// outline is the JSON form of what may be shown of a message.
type outline struct {
	ID             ID                   `json:"id,omitempty"`
	From           string               `json:"from"`
	To             string               `json:"to,omitempty"`
	Classification label.Classification `json:"classification"`
}

// MarshalJSON writes what [Message.String] says. To keep messages, take a [Bus.Snapshot].
func (m Message) MarshalJSON() ([]byte, error) {
	return json.Marshal(outline{m.ID, m.From, m.To, m.classification()})
}

// String returns sender, receiver, and label, without the content.
func (d Draft) String() string {
	return fmt.Sprintf("draft from %.60q to %.60q, %v", d.From, d.To, d.Classification)
}

// Format writes [Draft.String] for every verb, so that no verb prints the content.
func (d Draft) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// LogValue returns for a structured log what [Draft.String] says.
func (d Draft) LogValue() slog.Value {
	return slog.GroupValue(slog.String("from", d.From), slog.String("to", d.To),
		slog.String("classification", d.Classification.String()))
}

// MarshalJSON writes what [Draft.String] says.
func (d Draft) MarshalJSON() ([]byte, error) {
	return json.Marshal(outline{From: d.From, To: d.To, Classification: d.Classification})
}
