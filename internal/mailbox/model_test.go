package mailbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
)

// A letter is a message as the model keeps it.
type letter struct {
	id       mailbox.ID
	from, to string
	text     string
	label    label.Classification
	expires  time.Time
	unread   map[string]bool // for each reader
}

// A model is the bus written as plainly as possible.
type model struct {
	limit   int
	forget  bool
	sent    int
	letters []*letter // that are kept
	ears    []*ear
}

// An ear is a subscriber, with what it has heard and what it should have.
type ear struct {
	agent       string
	heard, want []mailbox.ID
	cancel      func()
	canceled    bool
}

func (m *model) choose(keep func(*letter) bool) []*letter {
	list := []*letter{}
	for _, l := range m.letters {
		if keep(l) {
			list = append(list, l)
		}
	}
	return list
}

func (m *model) to(agent string) []*letter {
	return m.choose(func(l *letter) bool { _, ok := l.unread[agent]; return ok })
}

func (m *model) unread(agent string) []*letter {
	return m.choose(func(l *letter) bool { return l.unread[agent] })
}

func isAgent(name string) bool { return slices.Contains(team, name) }

func isParty(name string) bool { return isAgent(name) || name == user }

// post does what the bus should do with a draft, or says that it should refuse.
func (m *model) post(d mailbox.Draft, broadcast bool) error {
	readers := map[string]bool{}
	for _, name := range team {
		if broadcast && name != d.From || !broadcast && name == d.To {
			readers[name] = true
		}
	}
	if broadcast {
		if d.To != "" && d.To != mailbox.Everyone {
			return mailbox.ErrInvalid
		}
		d.To = mailbox.Everyone
	}
	switch {
	case !isParty(d.From) || !broadcast && !isAgent(d.To):
		return mailbox.ErrUnknown
	case d.From == d.To || d.Content == "" || d.Content == "\xff" || !d.Classification.Valid() || d.TTL < 0:
		return mailbox.ErrInvalid
	}
	for name := range readers {
		if len(m.choose(func(l *letter) bool { return l.unread[name] && l.from == d.From })) >= m.limit {
			return mailbox.ErrFull
		}
	}
	l := &letter{mailbox.ID(fmt.Sprintf("message/%d", m.sent+1)), d.From, d.To, d.Content, d.Classification, time.Time{}, readers}
	if d.TTL > 0 {
		l.expires = at.Add(d.TTL)
	}
	m.letters, m.sent = append(m.letters, l), m.sent+1
	for _, e := range m.ears {
		if readers[e.agent] && !e.canceled {
			e.want = append(e.want, l.id)
		}
	}
	return nil
}

// mark does what the bus should do with ids, or says that it should refuse.
func (m *model) mark(agent string, ids []mailbox.ID, unread bool) error {
	if !isAgent(agent) {
		return mailbox.ErrUnknown
	}
	var marked []*letter
	for _, id := range ids {
		found := slices.IndexFunc(m.to(agent), func(l *letter) bool { return l.id == id })
		if found < 0 {
			return mailbox.ErrUnknown
		}
		marked = append(marked, m.to(agent)[found])
	}
	for _, l := range marked {
		l.unread[agent] = unread
	}
	return nil
}

// acknowledge does what the bus should do with ids, or says that it should refuse.
func (m *model) acknowledge(agent string, ids []mailbox.ID) error {
	if err := m.mark(agent, ids, false); err != nil || !m.forget {
		return err
	}
	for _, l := range m.letters {
		if slices.Contains(ids, l.id) {
			delete(l.unread, agent)
		}
	}
	m.letters = m.choose(func(l *letter) bool { return len(l.unread) > 0 })
	return nil
}

func TestBusAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	anybody := rapid.SampledFrom([]string{"analyst", "scorer", "writer", "analyst", "scorer", "writer", user, mailbox.Everyone, "", "Writer"})
	drafts := rapid.Custom(func(t *rapid.T) mailbox.Draft {
		return mailbox.Draft{
			From: anybody.Draw(t, "from"), To: anybody.Draw(t, "to"),
			Content:        rapid.SampledFrom([]string{"one", "two\nlines", "\u2028<&>", "", "\xff"}).Draw(t, "content"),
			Classification: rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret, label.Secret + 1}).Draw(t, "label"),
			TTL:            rapid.SampledFrom([]time.Duration{0, 0, time.Nanosecond, time.Hour, -1}).Draw(t, "ttl"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		m := &model{limit: rapid.IntRange(1, 4).Draw(t, "limit"), forget: rapid.Bool().Draw(t, "forget")}
		o := mailbox.Options{MaxUnread: m.limit, Run: "run-1", Forget: m.forget}
		b := newBus(t, o)
		requireSame := func(t *rapid.T, want, got error) {
			if want == nil {
				require.NoError(t, got)
				return
			}
			require.True(t, errors.Is(got, mailbox.ErrUnknown) || errors.Is(got, mailbox.ErrInvalid) || errors.Is(got, mailbox.ErrFull), "%v", got)
			require.ErrorIs(t, got, want)
		}
		marked := func(t *rapid.T) []mailbox.ID {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mailbox.ID {
				return mailbox.ID(fmt.Sprintf("message/%d", rapid.IntRange(1, m.sent+1).Draw(t, "n")))
			}), 0, 3).Draw(t, "ids")
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				d := drafts.Draw(t, "draft")
				want := m.post(d, false)
				id, got := b.Send(d)
				requireSame(t, want, got)
				if got == nil {
					require.Equal(t, m.letters[len(m.letters)-1].id, id)
				}
			},
			"broadcast": func(t *rapid.T) {
				d := drafts.Draw(t, "draft")
				want := m.post(d, true)
				_, got := b.Broadcast(d)
				requireSame(t, want, got)
			},
			"take": func(t *rapid.T) {
				agent, most := rapid.SampledFrom(team).Draw(t, "agent"), rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Secret}).Draw(t, "clearance")
				var want []mailbox.ID
				for _, l := range m.unread(agent) {
					if l.label <= most {
						want = append(want, l.id)
						l.unread[agent] = false
					}
				}
				require.Equal(t, append([]mailbox.ID{}, want...), ids(take(t, b, agent, func(m mailbox.Message) bool { return m.Envelope.Classification() <= most })))
			},
			"mark read": func(t *rapid.T) {
				agent, list := anybody.Draw(t, "agent"), marked(t)
				requireSame(t, m.mark(agent, list, false), b.MarkRead(agent, list...))
			},
			"mark unread": func(t *rapid.T) {
				agent, list := anybody.Draw(t, "agent"), marked(t)
				requireSame(t, m.mark(agent, list, true), b.MarkUnread(agent, list...))
			},
			"acknowledge": func(t *rapid.T) {
				agent, list := anybody.Draw(t, "agent"), marked(t)
				want := m.acknowledge(agent, list)
				p, err := b.Attach("run-1", nil)
				require.NoError(t, err)
				got := p.Acknowledge(agent, list...)
				require.Equal(t, len(m.letters), p.Len())
				p.Detach()
				requireSame(t, want, got)
			},
			"subscribe": func(t *rapid.T) {
				e := &ear{agent: rapid.SampledFrom(team).Draw(t, "agent")}
				e.cancel = subscribe(t, b, e.agent, func(m mailbox.Message) { e.heard = append(e.heard, m.ID) })
				m.ears = append(m.ears, e)
			},
			"cancel": func(t *rapid.T) {
				if len(m.ears) == 0 {
					t.Skip("nobody listens")
				}
				e := m.ears[rapid.IntRange(0, len(m.ears)-1).Draw(t, "ear")]
				e.cancel()
				e.canceled = true
			},
			"restore": func(t *rapid.T) {
				if len(m.letters) < m.sent {
					t.Skip("a snapshot lacks what is forgotten")
				}
				before := b.Snapshot()
				b = restored(t, b, o)
				require.Equal(t, before, b.Snapshot())
				for _, e := range m.ears { // they listen to the old one
					e.canceled = true
				}
			},
			"": func(t *rapid.T) { requireModel(t, m, b) },
		})
	})
}

// requireModel requires every answer of the bus to be that of the model.
func requireModel(t *rapid.T, m *model, b *mailbox.Bus) {
	for _, agent := range team {
		requireLetters(t, m.unread(agent), unread(t, b, agent))
		requireLetters(t, m.to(agent), all(t, b, agent))
	}
	parties := append(slices.Clone(team), user)
	for _, one := range parties {
		for _, other := range parties {
			list, err := b.Conversation(one, other)
			if one == other {
				require.ErrorIs(t, err, mailbox.ErrInvalid)
				continue
			}
			require.NoError(t, err)
			requireLetters(t, m.choose(func(l *letter) bool {
				return l.from == one && l.to == other || l.from == other && l.to == one
			}), list)
		}
	}
	for _, e := range m.ears {
		require.Equal(t, e.want, e.heard)
	}
}

func requireLetters(t *rapid.T, want []*letter, got []mailbox.Message) {
	require.Len(t, got, len(want))
	for i, l := range want {
		m := got[i]
		require.NoError(t, m.Envelope.Genuine())
		require.Equal(t, envelope.Text(l.text), m.Envelope.Open())
		require.Equal(t, []any{l.id, l.from, l.to, at, len(l.text)}, []any{m.ID, m.From, m.To, m.At, m.Bytes})
		require.Equal(t, envelope.Header{
			ID: l.id, Producer: l.from, Run: "run-1", Classification: l.label, CreatedAt: at, ExpiresAt: l.expires, Hops: 1,
		}, m.Envelope.Header())
	}
}
