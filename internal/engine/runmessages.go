package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// runMessages holds the messages of a run: the bus where they wait, which task got which,
// and the name of each in the journal. Only the goroutine that owns the run uses
// it, except for open and names, since a program may send at any time.
type runMessages struct {
	run      *runScope
	bus      *mailbox.Bus
	post     *mailbox.Post
	given    map[int][]mailbox.Message        // by task, in all of its attempts
	again    map[int][]mailbox.Message        // by task: delivered by an earlier process; the task may get more
	read     map[int]bool                     // by task: an agent was given them
	handoffs map[string]*sentHandoff          // by id: those that somebody can still refer to
	sentBy   map[task.ID][]*sentHandoff       // by the task that sent them, which has not ended
	held     map[string][]*record.SentMessage // by session: sent by an attempt whose answer is not taken again yet

	// Of the user, to one task each, by task:
	directed map[int][]mailbox.Message // for its next prompt
	turns    map[int][]mailbox.Message // that later turns had in an earlier process
	offered  map[mailbox.ID]bool       // of these, those that a turn has again

	holders map[int]*holderInbox // of the agents to which conversations were transferred, by task

	open  atomic.Bool // what the program sends is recorded from now on
	names messageNames
}

// carryBus gives a message bus to a run that resumes or replays one with a bus, so
// that the checks before the run know of the messages in its journal.
func carryBus(t *plan.Roster, o *RunOptions) {
	if o.Bus == nil && slices.ContainsFunc(o.Past.Sent(), func(s *record.SentMessage) bool { return s.Given == 0 }) {
		o.Bus = newMessageBus(t, true)
	}
}

// claim reserves for the run what only one run may use at a time: its entry in the
// journal and the caller's message bus. The caller must release them.
func (r *run) claim(ctx context.Context) error {
	if err := r.openLog(ctx); err != nil {
		return err
	}
	if r.options.Bus == nil || r.plansOnly {
		return nil
	}
	m := r.newRunMessages(r.options.Bus)
	post, err := m.bus.Attach(r.id, m.sent)
	if err != nil {
		_, _ = r.closeLog(ctx) // nothing was recorded
		return task.Problems{{Pointer: "/messages", Message: err.Error(), Hint: "runs at the same time need a bus each", Err: err}}
	}
	m.post, r.messages = post, m
	return nil
}

// releaseClaims releases what claim reserved.
func (r *run) releaseClaims() {
	if r.messages != nil {
		r.messages.post.Detach()
	}
}

func (r *runScope) newRunMessages(b *mailbox.Bus) *runMessages {
	return &runMessages{
		run: r, bus: b, handoffs: map[string]*sentHandoff{}, sentBy: map[task.ID][]*sentHandoff{}, given: map[int][]mailbox.Message{}, again: map[int][]mailbox.Message{}, read: map[int]bool{},
		held: map[string][]*record.SentMessage{}, directed: map[int][]mailbox.Message{}, turns: map[int][]mailbox.Message{},
		holders: map[int]*holderInbox{},
	}
}

// openMessages sends the messages of the options and restores those in the journal of
// the run. A message for which an inbox has no room becomes a warning.
func (r *run) openMessages() {
	o, before := &r.options, r.memo.Sent()
	if o.Bus == nil && len(o.Messages)+len(before)+len(r.team.Config.Edges) == 0 {
		return
	}
	r.mu.Lock()
	r.openInbox()
	r.mu.Unlock()
	m := r.messages
	given := map[int]*record.SentMessage{}
	for _, s := range before {
		m.names.skip(number(s.ID))
		if s.Given > 0 {
			given[s.Given] = s // the newest, if the option was changed meanwhile
		}
	}
	m.begin()
	for i := range o.Messages {
		if err := m.sendGiven(i+1, &o.Messages[i], given[i+1]); err != nil {
			r.warn(fmt.Sprintf("message %d was not sent: %v", i+1, err))
		}
	}
	m.restore(before)
	m.redeliver(r.plan)
}

// openInbox makes a message bus, unless there is one. The lock of the run is held.
func (r *run) openInbox() {
	if r.messages != nil {
		return
	}
	b, err := mailbox.New(r.team.Names(), mailbox.Options{Run: r.id, Edges: r.team.Config.Edges, MaxUnread: max(mailbox.DefaultMaxUnread, len(r.options.Messages)), Logger: r.team.Log, Forget: true})
	must(err)
	m := r.newRunMessages(b)
	m.post, err = b.Attach(r.id, nil)
	must(err)
	r.messages = m
}

// begin records the messages that already wait in the bus, and from then on all
// that the program sends.
func (m *runMessages) begin() {
	m.open.Store(true)
	for _, name := range m.bus.Agents() {
		waiting, err := m.bus.Unread(name)
		must(err)
		for _, w := range waiting {
			m.adopt(w)
		}
	}
}

// adopt names and records a message that was sent before the run. One that the program sends while the run begins has
// its name already.
func (m *runMessages) adopt(msg mailbox.Message) {
	if m.post.NameOf(msg) == "" && m.names.adopt(&msg) {
		m.record(msg, record.SentMessage{})
	}
}

// sent names and records a message of the program.
func (m *runMessages) sent(msg mailbox.Message) (name string) {
	if !m.open.Load() {
		return ""
	}
	msg.Name = m.names.next()
	m.record(msg, record.SentMessage{})
	return msg.Name
}

// record brings a message to the journal, with what is known of where it comes from.
func (m *runMessages) record(msg mailbox.Message, of record.SentMessage) {
	if m.run.ledger == nil {
		return
	}
	s := of // a copy, which is made for a journal only
	s.ID = msg.Name
	s.Shown = m.isShown(msg)
	s.From, s.To, s.Time, s.Bytes, s.Message = msg.From, msg.To, msg.At, m.run.sizeOf(msg.Envelope), gate.RecordOf(msg.Envelope)
	m.run.ledger.note(record.Entry{Sent: &s})
}

// isShown reports whether the caller may see all of a message.
func (m *runMessages) isShown(msg mailbox.Message) bool {
	return m.run.sees(msg.From, gate.Source{Kind: handoff.Message, Name: m.name(msg)}, msg.Envelope.Classification())
}

// name returns what the run calls a message.
func (m *runMessages) name(msg mailbox.Message) string {
	return cmp.Or(m.post.NameOf(msg), m.names.of(msg))
}

// sendGiven sends the message of the options with this number. If the run sent it
// before, it keeps its name and, unless it was changed, its times.
func (m *runMessages) sendGiven(number int, of *plan.Message, before *record.SentMessage) error {
	h := envelope.Header{Classification: of.Classification, Hops: 1}
	d := mailbox.Draft{From: of.From, To: of.To, Content: of.Text, Classification: of.Classification, TTL: of.TTL}
	if isUnchanged(of, before) {
		h.CreatedAt, h.ExpiresAt, d.TTL, d.Name = before.Message.CreatedAt, before.Message.ExpiresAt, 0, before.ID
		_, err := m.post.Restore(d, h)
		return err
	}
	if before != nil {
		d.Name = before.ID
	} else {
		d.Name = m.names.next()
	}
	msg, notify, err := m.post.Send(d, h)
	if err != nil {
		return err
	}
	m.record(msg, record.SentMessage{Given: number})
	m.notifyOnceDurable(notify)
	return nil
}

// isUnchanged reports whether a message of the options is the one that was sent before.
func isUnchanged(m *plan.Message, s *record.SentMessage) bool {
	return s != nil && s.Message != nil && s.From == m.From && s.To == m.To && s.Message.Text == m.Text && s.Message.Classification == m.Classification
}

// restore puts messages of earlier processes back into the inboxes. A message of
// an attempt that no prompt holds yet waits until the attempt's answer is reused:
// if the agent is called again instead, it sends its messages again.
func (m *runMessages) restore(before []*record.SentMessage) {
	for _, s := range before {
		switch {
		case s.Given > 0: // the options have it
		case s.Call != "":
			m.restoreHandoff(s)
		case s.Session == "", m.run.memo.State.IsDelivered(s.ID):
			m.putBack(s)
		default:
			m.held[s.Session] = append(m.held[s.Session], s)
		}
	}
}

// putBack puts one message of the journal into the inboxes of its readers, and reports whether it did.
func (m *runMessages) putBack(s *record.SentMessage) (msg mailbox.Message, ok bool) {
	err := error(nil)
	if s.Message == nil {
		err = fmt.Errorf("it cannot be read: %s", s.Missing)
	} else if e, invalid := s.Message.Envelope(); invalid != nil {
		err = invalid
	} else if err = e.Genuine(); err == nil {
		structured, _ := jsonvalue.Parse(string(s.Message.JSON))
		if msg, err = m.post.Restore(mailbox.Draft{From: s.From, To: s.To, Content: s.Message.Text, Structured: structured, Name: s.ID, Task: taskOfCall(s.Session)}, s.Message.Header); err == nil {
			return msg, true
		}
	}
	m.run.warn(fmt.Sprintf("a message from %q to %q, which was sent before, is lost: %v", s.From, s.To, err))
	return msg, false
}

// send sends what an attempt sent that has succeeded: anew, or as the journal
// has it if its answer was taken from there.
func (m *runMessages) send(a *attempt) {
	if m == nil {
		return
	}
	if a.recalled != nil {
		for _, s := range m.held[a.recalled.Session] {
			m.putBack(s)
		}
		delete(m.held, a.recalled.Session)
	}
	for _, l := range a.outbox.end() {
		d := a.outbox.draft(l)
		d.Name = m.names.next()
		msg, notify, err := m.post.Send(d, *l.header)
		if err != nil {
			m.run.warn(fmt.Sprintf("a message from %q to %q was not sent: %v", d.From, d.To, err))
			continue
		}
		m.record(msg, record.SentMessage{Session: a.contract.Session})
		m.notifyOnceDurable(notify)
	}
}

// notifyOnceDurable calls the subscribers of the bus once a message is durable.
// It does not wait for them: they are the caller's code and may be slow.
func (m *runMessages) notifyOnceDurable(notify func()) {
	if notify == nil {
		return
	}
	var b *batch
	if m.run.ledger != nil {
		b = m.run.ledger.tail()
	}
	m.run.pending.Go(func() {
		if b != nil {
			<-b.done
		}
		notify()
	})
}

// redeliver reserves messages that a task got in an earlier process for the same
// task. A task whose answer may be reused gets exactly these.
func (m *runMessages) redeliver(p *plan.Plan) {
	if m == nil || m.run.memo == nil || p == nil {
		return
	}
	for i := range p.Graph.Len() {
		t := p.Graph.Task(i)
		m.directed[i] = append(m.directed[i], m.takeNamed(t.Assignee, m.run.memo.Undelivered(t.ID))...)
		b := m.run.memo.Task(t.ID)
		m.reserveForHolders(p, i, b)
		if b == nil {
			continue
		}
		given := m.takeNamed(t.Assignee, b.Prompt("").Messages)
		for k := range b.Prompts {
			if b.Prompts[k].IsTurn() {
				m.turns[i] = append(m.turns[i], m.takeNamed(t.Assignee, b.Prompts[k].Messages)...)
			}
		}
		if b.Accepted() != nil || m.run.repeats() {
			m.given[i] = given
		} else if len(given) > 0 {
			m.again[i] = given
		}
	}
}

// takeNamed takes messages out of the inbox of an agent, in the order of their ids.
func (m *runMessages) takeNamed(agent string, ids []string) []mailbox.Message {
	if len(ids) == 0 {
		return nil
	}
	list, err := m.bus.Take(agent, func(msg mailbox.Message) bool { return slices.Contains(ids, m.name(msg)) })
	must(err) // the bus is one of this roster
	slices.SortStableFunc(list, func(a, b mailbox.Message) int {
		return slices.Index(ids, m.name(a)) - slices.Index(ids, m.name(b))
	})
	return list
}

// number returns the number in the id of a message; zero if there is none.
func number(id string) int {
	digits, _ := strings.CutPrefix(id, "message/")
	n, _ := strconv.Atoi(digits)
	return n
}
