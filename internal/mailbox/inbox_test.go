package mailbox_test

import (
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestTakeDeliversWhatIsAccepted(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	for i, level := range []label.Classification{label.Internal, label.Secret, label.Public, label.Secret} {
		_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: strconv.Itoa(i), Classification: level})
		require.NoError(t, err)
	}
	asked := []string{}
	cleared := func(m mailbox.Message) bool {
		asked = append(asked, texts([]mailbox.Message{m})...)
		return m.Envelope.Classification() <= label.Confidential
	}
	require.Equal(t, []string{"0", "2"}, texts(take(t, b, "writer", cleared)))
	require.Equal(t, []string{"0", "1", "2", "3"}, asked, "in the order of sending")
	require.Equal(t, []string{"1", "3"}, texts(unread(t, b, "writer")), "the others wait")
	require.Empty(t, take(t, b, "writer", cleared), "each is delivered once")
	require.Equal(t, []string{"1", "3"}, texts(take(t, b, "writer", nil)))
	require.Empty(t, take(t, b, "writer", nil))
	require.Len(t, all(t, b, "writer"), 4)
}

func TestAcceptMayCallTheBus(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", "one")
	send(t, b, user, "writer", "two")
	var inner []mailbox.Message
	outer := take(t, b, "writer", func(m mailbox.Message) bool {
		if m.ID == "message/1" {
			inner = take(t, b, "writer", func(m mailbox.Message) bool { return m.ID == "message/2" })
			send(t, b, "analyst", "writer", "three")
		}
		return true
	})
	require.Equal(t, []string{"two"}, texts(inner))
	require.Equal(t, []string{"one"}, texts(outer), "what another call took is not returned again")
	require.Equal(t, []string{"three"}, texts(unread(t, b, "writer")))
}

func TestAcceptThatPanicsTakesNothing(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", "one")
	send(t, b, user, "writer", "two")
	require.Panics(t, func() {
		_, _ = b.Take("writer", func(m mailbox.Message) bool {
			if m.ID == "message/2" {
				panic("no answer")
			}
			return true
		})
	})
	require.Len(t, unread(t, b, "writer"), 2)
}

// A turn that fails before its agent saw the messages puts them back.
//
// Requirement: G38.
func TestFailedTurnDeliversAgain(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{MaxUnread: 2})
	send(t, b, user, "writer", "one")
	send(t, b, user, "writer", "two")
	taken := take(t, b, "writer", nil)
	send(t, b, user, "writer", "three")
	send(t, b, user, "writer", "four")
	require.NoError(t, b.MarkUnread("writer", ids(taken)[1], ids(taken)[0], ids(taken)[1]))
	require.NoError(t, b.MarkUnread("writer", ids(taken)...), "twice is fine")
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(unread(t, b, "writer")), "each at its old place")
	_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: "five"})
	require.ErrorIs(t, err, mailbox.ErrFull)
	require.Equal(t, []string{"one", "two", "three", "four"}, texts(take(t, b, "writer", nil)))
}

// Requirement: G38.
func TestInboxIsBounded(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{MaxUnread: 2})
	send(t, b, user, "scorer", "one")
	send(t, b, user, "scorer", "two")
	_, err := b.Send(mailbox.Draft{From: user, To: "scorer", Content: "three"})
	require.ErrorIs(t, err, mailbox.ErrFull)
	require.EqualError(t, err, `send: inbox full: "scorer": 2 messages of this sender are unread: send when some are read`)

	_, err = b.Broadcast(mailbox.Draft{From: user, Content: "all or nothing"})
	require.ErrorIs(t, err, mailbox.ErrFull)
	require.ErrorContains(t, err, `broadcast: inbox full: "scorer": 2`)
	require.Empty(t, unread(t, b, "writer"))
	require.Len(t, b.Snapshot().Messages, 2)

	broadcast(t, b, "scorer", "a sender's own inbox does not count")
	require.NoError(t, b.MarkRead("scorer", "message/1"))
	require.Equal(t, mailbox.ID("message/4"), send(t, b, user, "scorer", "four"), "refused messages leave no gap")
	send(t, b, user, "writer", "five")
	send(t, b, user, "writer", "six")
	_, err = b.Broadcast(mailbox.Draft{From: user, Content: "x"})
	require.ErrorContains(t, err, `"scorer", "writer"`, "all that are full")
}

// TestASenderDisplacesNobody checks that each sender, and each task of a run, has a limit of its own in an inbox.
//
// Requirement: G60.
func TestASenderDisplacesNobody(t *testing.T) {
	t.Parallel()
	const limit = 3
	b := newBus(t, mailbox.Options{MaxUnread: limit})
	p, err := b.Attach("run-1", nil)
	require.NoError(t, err)
	post := func(from string, of task.ID) error {
		_, _, err := p.Send(mailbox.Draft{From: from, To: "writer", Content: "x", Task: of}, envelope.Header{Classification: label.Secret})
		return err
	}
	for _, one := range []struct {
		from string
		of   task.ID
	}{{"analyst", "one"}, {"analyst", "two"}, {"scorer", "one"}, {user, ""}} {
		for range limit {
			require.NoError(t, post(one.from, one.of))
		}
		require.ErrorIs(t, post(one.from, one.of), mailbox.ErrFull)
	}
	require.Len(t, unread(t, b, "writer"), 4*limit)
	require.NoError(t, b.MarkRead("writer", "message/2")) // of analyst in task one
	require.ErrorIs(t, post("scorer", "one"), mailbox.ErrFull)
	require.NoError(t, post("analyst", "one"))
	require.ErrorIs(t, post("analyst", "one"), mailbox.ErrFull)
}

// Requirement: G38.
func TestDefaultLimit(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	for range mailbox.DefaultMaxUnread {
		send(t, b, user, "writer", "x")
	}
	_, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: "x"})
	require.ErrorIs(t, err, mailbox.ErrFull)
	take(t, b, "writer", nil)
	send(t, b, user, "writer", "x")
}

// post sends until there is room.
func post(b *mailbox.Bus, d mailbox.Draft) error {
	for {
		_, err := b.Send(d)
		if !errors.Is(err, mailbox.ErrFull) {
			return err
		}
		runtime.Gosched()
	}
}

// A delivery is a message in the hands of one who took it.
type delivery struct {
	agent, text string
}

// TestEachMessageIsTakenOnce has senders and takers at work at the same time, each
// taker with its own filter, over small inboxes.
//
// Requirement: G38.
func TestEachMessageIsTakenOnce(t *testing.T) {
	t.Parallel()
	const senders, each, takers, limit = 4, 150, 3, 20
	b := newBus(t, mailbox.Options{MaxUnread: limit})
	var sending, taking sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			for i := range each {
				d := mailbox.Draft{From: user, To: team[i%len(team)], Content: strconv.Itoa(s) + "/" + strconv.Itoa(i)}
				if err := post(b, d); err != nil {
					t.Error(err)
				}
			}
		})
	}
	over := make(chan struct{})
	got := make(chan []delivery, takers*len(team))
	for _, agent := range team {
		for k := range takers {
			taking.Go(func() {
				var mine []delivery
				for last := false; !last; {
					select {
					case <-over:
						last = true // one look more: all is sent
					default:
					}
					list, err := b.Take(agent, func(m mailbox.Message) bool { return last || len(m.ID)%2 == k%2 })
					if err != nil {
						t.Error(err)
					}
					for _, text := range texts(list) {
						mine = append(mine, delivery{agent, text})
					}
					if n, _ := b.Unread(agent); len(n) > limit {
						t.Errorf("%d messages are unread, the limit is %d", len(n), limit)
					}
					if k == 0 {
						_ = b.Snapshot()
					}
					runtime.Gosched()
				}
				got <- mine
			})
		}
	}
	sending.Wait()
	close(over)
	taking.Wait()
	close(got)
	times := map[delivery]int{}
	for mine := range got {
		requireInOrder(t, mine)
		for _, d := range mine {
			times[d]++
		}
	}
	require.Len(t, times, senders*each, "none is lost")
	for d, n := range times {
		require.Equal(t, 1, n, d)
	}
}

// requireInOrder requires that what one taker got of one sender is in the order in which it was sent.
func requireInOrder(t *testing.T, got []delivery) {
	last := map[byte]int{}
	for _, d := range got {
		n, err := strconv.Atoi(d.text[2:])
		require.NoError(t, err)
		if before, ok := last[d.text[0]]; ok {
			require.Less(t, before, n)
		}
		last[d.text[0]] = n
	}
}

// TestBroadcastsRaceWithReaders takes broadcasts while they are sent.
//
// Requirement: G38.
func TestBroadcastsRaceWithReaders(t *testing.T) {
	t.Parallel()
	const each = 100
	b := newBus(t, mailbox.Options{})
	var work sync.WaitGroup
	read := make(chan mailbox.ID, 3*len(team)*each)
	for _, agent := range team {
		work.Go(func() {
			for range each {
				broadcast(t, b, agent, "x")
			}
		})
		work.Go(func() {
			for n := 0; n < 2*each; runtime.Gosched() {
				list, _ := b.Take(agent, nil)
				for _, m := range list {
					read <- m.ID
				}
				n += len(list)
			}
		})
	}
	work.Wait()
	close(read)
	times := map[mailbox.ID]int{}
	for id := range read {
		times[id]++
	}
	require.Len(t, times, len(team)*each)
	for id, n := range times {
		require.Equal(t, len(team)-1, n, id)
	}
}
