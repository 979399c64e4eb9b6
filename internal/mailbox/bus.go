// Package mailbox decides which messages wait for which reader.
//
// A [Bus] knows who sent what to whom, and who has read it. Agents write to
// each other and the caller writes to agents, one to one ([Bus.Send]) or one
// to all ([Bus.Broadcast]). The content of a message is in an envelope that the
// bus makes and never opens. The gate decides whether a reader may see it when the
// message is delivered.
package mailbox

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
)

// The conditions that this package reports. Its errors wrap these.
var (
	ErrUnknown  = errors.New("unknown") // no such agent, or no such message to it
	ErrInvalid  = errors.New("invalid") // a message, a roster or an option that cannot be
	ErrFull     = errors.New("inbox full")
	ErrSnapshot = errors.New("unreadable snapshot")
)

// DefaultMaxUnread is how many unread messages of one sender an agent may have by default.
const DefaultMaxUnread = 1000

// Options tune a bus. The zero value means the defaults.
type Options struct {
	Run       string           // id of the run that the messages belong to; empty means none in particular
	Edges     []handoff.Edge   // along which agents may write to each other; the user may write to all of them
	MaxUnread int              // unread messages that an agent may have of each sender, in a run of each task; zero means [DefaultMaxUnread]
	Now       func() time.Time // when a message is sent; nil means [time.Now]; it must not call the bus
	Logger    *slog.Logger     // learns of subscribers that panic; nil discards

	// Forget removes a message that all of its readers have acknowledged. A snapshot of the bus then lacks
	// it, and cannot be restored.
	Forget bool
}

// A Bus keeps the messages of a team for as long as it lives: reading one marks
// it, and removes nothing, unless [Options].Forget is set. All methods may be called by any number of
// goroutines at once.
type Bus struct {
	agents  roster
	options Options // with the defaults filled in

	mu       sync.Mutex // guards what follows
	messages log
	inboxes  []inbox            // one for each agent, in roster order
	post     *Post              // of the run that uses the bus; nil if none does
	last     *envelope.Envelope // the newest message, whose lists the next one shares; nil for none
}

// New returns a bus without messages for a team. Agents are names as
// [naming.CheckName] wants them, and letter case does not tell them apart. What
// is wrong with the roster or the options is reported all at once and wraps
// [ErrInvalid].
func New(agents []string, o Options) (*Bus, error) {
	names, err := newRoster(agents)
	if err == nil {
		err = names.connect(o.Edges)
	}
	if err = errors.Join(err, o.check()); err != nil {
		return nil, err
	}
	o.MaxUnread = cmp.Or(o.MaxUnread, DefaultMaxUnread)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Bus{agents: names, options: o, inboxes: make([]inbox, len(names.names))}, nil
}

func (o *Options) check() (err error) {
	if o.MaxUnread < 0 {
		err = fmt.Errorf("%w MaxUnread %d: it must not be negative; leave it out for %d", ErrInvalid, o.MaxUnread, DefaultMaxUnread)
	}
	if fault := naming.CheckLine(o.Run); fault != nil {
		err = errors.Join(err, fmt.Errorf("%w run id %.60q: %w", ErrInvalid, o.Run, fault))
	}
	return err
}

// Agents returns the names of the roster, in its order.
func (b *Bus) Agents() []string {
	if b == nil {
		return nil
	}
	return slices.Clone(b.agents.names)
}

// usable returns an error for a bus that [New] did not make.
func (b *Bus) usable() error {
	if b == nil || b.agents.index == nil {
		return fmt.Errorf("%w bus: it is nil or zero; make one with New", ErrInvalid)
	}
	return nil
}

// A log is the messages of a bus. They are numbered in the order of sending, from 0, and the ID of message i is
// message/<i+1>. So the number of messages that were sent is all that is needed to know of those that are gone.
type log struct {
	sent int      // messages so far
	kept []*entry // by number; some may be gone, never most of them
	gone int      // of these
}

// An entry is a message that is kept. What it says does not change.
type entry struct {
	Message
	number  int
	readers int // who have not acknowledged it; 0 if it is gone
}

// byNumber compares an entry with a number.
func byNumber(e *entry, number int) int { return cmp.Compare(e.number, number) }

// nextID returns the ID of the message that is sent next.
func (l *log) nextID() ID { return idOf(l.sent) }

// add appends a message to so many readers.
func (l *log) add(m Message, readers int) *entry {
	e := &entry{m, l.sent, readers}
	l.sent++
	l.kept = append(l.kept, e)
	return e
}

// acknowledge notes that a reader of a message needs it no more. When all have, it is gone.
func (l *log) acknowledge(e *entry) {
	if e.readers--; e.readers > 0 {
		return
	}
	if l.gone++; 2*l.gone > len(l.kept) {
		l.kept, l.gone = slices.DeleteFunc(l.kept, func(e *entry) bool { return e.readers == 0 }), 0
	}
}

// all returns the messages that are kept, in the order of sending.
func (l *log) all() []*entry {
	return slices.DeleteFunc(slices.Clone(l.kept), func(e *entry) bool { return e.readers == 0 })
}

// messagesOf returns copies of some messages.
func messagesOf(entries []*entry) []Message {
	list := make([]Message, len(entries))
	for k, e := range entries {
		list[k] = e.Message
	}
	return list
}

// idOf returns the ID of message i.
func idOf(i int) ID { return ID(Numbered(i + 1)) }

// Numbered returns a name of a message, such as message/3.
func Numbered(n int) string {
	return string(strconv.AppendInt(append(make([]byte, 0, 24), "message/"...), int64(n), 10))
}

// numberOf returns the number of the message with an ID; -1 if it is no ID of a message.
func numberOf(id ID) int {
	digits, ok := strings.CutPrefix(string(id), "message/")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || digits[0] < '1' || digits[0] > '9' {
		return -1
	}
	return n - 1
}
