package mailbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// SnapshotVersion is the version that [Bus.Snapshot] makes and [FromSnapshot] reads.
const SnapshotVersion = 1

// A Snapshot is the messages of a bus as data, in the order of sending. It
// holds what they say, so it is data to keep, not a log: its JSON is complete,
// while fmt and slog show its size only.
type Snapshot struct {
	Version  int      `json:"version"`
	Messages []Stored `json:"messages"`
}

// A Stored is a message with its readers: each of them, in roster order, is in one
// of the two lists.
type Stored struct {
	From     string          `json:"from"`
	To       string          `json:"to"` // an agent, or [Everyone]
	Unread   []string        `json:"unread,omitempty"`
	Read     []string        `json:"read,omitempty"`
	Envelope envelope.Record `json:"envelope"`
}

// String returns the version and the number of messages.
func (s Snapshot) String() string {
	return fmt.Sprintf("snapshot version %d, %d messages", s.Version, len(s.Messages))
}

// Format writes [Snapshot.String] for every verb, so that no verb prints what messages say.
func (s Snapshot) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue returns [Snapshot.String].
func (s Snapshot) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String returns who wrote to whom, and the label, without the content.
func (s Stored) String() string {
	return fmt.Sprintf("stored message %q from %q to %q, %v", s.Envelope.ID, s.From, s.To, s.Envelope.Classification)
}

// Format writes [Stored.String] for every verb, so that no verb prints the content.
func (s Stored) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue returns [Stored.String].
func (s Stored) LogValue() slog.Value { return slog.StringValue(s.String()) }

// UnmarshalJSON reads what a Snapshot was written as. Another version and keys
// that this one does not have are refused with [ErrSnapshot].
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	var about struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &about); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if err := checkVersion(about.Version); err != nil {
		return err
	}
	type plain Snapshot
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(s)); err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return nil
}

func checkVersion(version int) error {
	if version != SnapshotVersion {
		return fmt.Errorf("%w: version %d: this program reads %d", ErrSnapshot, version, SnapshotVersion)
	}
	return nil
}

// Snapshot returns all messages as data, from which [FromSnapshot] makes an equal bus.
// Subscribers are not part of it. A message that was taken counts as read, even while
// the turn that took it is still in progress.
func (b *Bus) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.messages.all()
	s := Snapshot{Version: SnapshotVersion, Messages: make([]Stored, len(kept))}
	for k, e := range kept {
		s.Messages[k] = Stored{From: e.From, To: e.To, Envelope: e.Envelope.Record()}
	}
	for r, name := range b.agents.names {
		box := &b.inboxes[r]
		for _, e := range box.all {
			k, _ := slices.BinarySearchFunc(kept, e.number, byNumber)
			list := &s.Messages[k].Read
			if _, unread := slices.BinarySearchFunc(box.unread, e.number, byNumber); unread {
				list = &s.Messages[k].Unread
			}
			*list = append(*list, name)
		}
	}
	return s
}

// FromSnapshot returns a bus that continues where the snapshot was taken: with
// the same messages, unread by the same agents, even if they are more than the
// limit. Agents that are new in the roster have empty inboxes.
//
// Another version, a name that is not in the roster, ids that do not count up from
// message/1, a producer who is not the sender, another run, and anything else that
// no bus can have made are refused with [ErrSnapshot]. The gate checks whether an
// envelope is genuine, as at every other read. Its digest covers the sender, the
// text, the label and the times, but not the readers: a person who can write to the
// store can give a message to another agent.
func FromSnapshot(s Snapshot, agents []string, o Options) (*Bus, error) {
	b, err := New(agents, o)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(s.Version); err != nil {
		return nil, err
	}
	for i := range s.Messages {
		if err := b.restore(&s.Messages[i]); err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", ErrSnapshot, i+1, err)
		}
	}
	return b, nil
}

// restore appends a stored message. No other goroutine knows the bus yet.
func (b *Bus) restore(s *Stored) error {
	if err := errors.Join(b.checkHeader(s), b.agents.checkReaders(s), b.checkWay(s)); err != nil {
		return err
	}
	e, err := s.Envelope.Envelope()
	if err != nil {
		return err
	}
	if s.Envelope.Text == "" {
		return fmt.Errorf("%w message: it has no text", ErrInvalid)
	}
	added := b.messages.add(Message{
		ID: e.ID(), From: s.From, To: s.To, At: e.CreatedAt().UTC(), Bytes: len(s.Envelope.Text) + len(s.Envelope.JSON), Envelope: e,
	}, len(s.Read)+len(s.Unread))
	for _, name := range s.Read {
		box := &b.inboxes[b.agents.index[name]]
		box.all = append(box.all, added)
	}
	for _, name := range s.Unread {
		box := &b.inboxes[b.agents.index[name]]
		box.all, box.unread = append(box.all, added), append(box.unread, added)
	}
	return nil
}

// checkWay requires that the sender may write to each reader.
func (b *Bus) checkWay(s *Stored) error {
	var readers []int
	for _, name := range slices.Concat(s.Unread, s.Read) {
		if i, ok := b.agents.index[name]; ok {
			readers = append(readers, i)
		}
	}
	return b.agents.sends(s.From, s.Envelope.Classification, readers)
}

// checkHeader holds an envelope's header to what the bus would have written.
func (b *Bus) checkHeader(s *Stored) error {
	h := &s.Envelope.Header
	if n := numberOf(h.ID); n >= 0 && n < b.messages.sent {
		return fmt.Errorf("%w id %q", task.ErrDuplicate, h.ID)
	}
	switch {
	case h.ID != b.messages.nextID():
		return fmt.Errorf("%w id %.60q: ids count up, and this one is %q", ErrInvalid, h.ID, b.messages.nextID())
	case h.Producer != s.From:
		return fmt.Errorf("%w producer %.60q: the sender is %.60q", ErrInvalid, h.Producer, s.From)
	case b.options.Run != "" && h.Run != b.options.Run:
		return fmt.Errorf("%w run %.60q: the bus is of run %q", ErrInvalid, h.Run, b.options.Run)
	case h.Task != "":
		return fmt.Errorf("%w task %.60q: a message is no task's result", ErrInvalid, h.Task)
	}
	return nil
}

// checkReaders requires that each reader is an agent that can have been sent the
// message, and is in one list once.
func (r *roster) checkReaders(s *Stored) error {
	if err := r.party(s.From); err != nil {
		return err
	}
	if s.To != Everyone {
		if _, err := r.reader(s.To); err != nil {
			return err
		}
	}
	readers := slices.Concat(s.Unread, s.Read)
	if len(readers) == 0 {
		return fmt.Errorf("%w message: nobody has read it or has it unread", ErrInvalid)
	}
	seen := make(map[string]bool, len(readers))
	for _, name := range readers {
		if _, err := r.reader(name); err != nil {
			return err
		}
		switch {
		case seen[name]:
			return fmt.Errorf("%w reader %q", task.ErrDuplicate, name)
		case name == s.From, s.To != Everyone && name != s.To:
			return fmt.Errorf("%w reader %q: the message is from %q to %q", ErrInvalid, name, s.From, s.To)
		}
		seen[name] = true
	}
	return nil
}
