package mailbox_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mailbox"
)

func subscribe(t require.TestingT, b *mailbox.Bus, agent string, fn func(mailbox.Message)) (cancel func()) {
	cancel, err := b.Subscribe(agent, fn)
	require.NoError(t, err)
	return cancel
}

func TestSubscriberReceivesMessagesToItsAgent(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	send(t, b, user, "writer", "before")
	var heard, other []mailbox.Message
	cancel := subscribe(t, b, "writer", func(m mailbox.Message) { heard = append(heard, m) })
	subscribe(t, b, "writer", func(m mailbox.Message) { other = append(other, m) })
	send(t, b, user, "writer", "one")
	require.Equal(t, []string{"one"}, texts(heard), "when Send returns")
	send(t, b, user, "scorer", "not for it")
	broadcast(t, b, "writer", "nor its own")
	broadcast(t, b, "analyst", "two")
	require.NoError(t, b.MarkRead("writer", heard[0].ID))
	require.NoError(t, b.MarkUnread("writer", heard[0].ID))
	cancel()
	cancel()
	send(t, b, user, "writer", "three")
	require.Equal(t, []string{"one", "two"}, texts(heard))
	require.Equal(t, []string{"one", "two", "three"}, texts(other))
	require.Equal(t, []string{"before", "one", "two", "three"}, texts(unread(t, b, "writer")), "hearing is not reading")
}

func TestMessageIsInTheInboxWhenASubscriberIsCalled(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var found []mailbox.Message
	subscribe(t, b, "writer", func(m mailbox.Message) {
		found = append(found, take(t, b, "writer", func(other mailbox.Message) bool { return other.ID == m.ID })...)
	})
	send(t, b, user, "writer", "one")
	send(t, b, user, "writer", "two")
	require.Equal(t, []string{"one", "two"}, texts(found))
	require.Empty(t, unread(t, b, "writer"))
}

// Two agents that answer each other: each call returns before the next begins.
func TestSubscribersMaySend(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var log []string
	answer := func(me, other string) {
		inside := false
		subscribe(t, b, me, func(m mailbox.Message) {
			require.False(t, inside, "one at a time")
			inside = true
			defer func() { inside = false }()
			log = append(log, me+" "+string(m.ID))
			if len(m.ID) < len("message/10") {
				send(t, b, me, other, "and you?")
			}
		})
	}
	answer("scorer", "writer")
	answer("writer", "scorer")
	send(t, b, user, "scorer", "hello")
	require.Len(t, log, 10)
	require.Equal(t, "scorer message/1", log[0])
	require.Equal(t, "writer message/10", log[9])
}

func TestSubscriberMayWriteToItsOwnAgent(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var log []string
	subscribe(t, b, "writer", func(m mailbox.Message) {
		log = append(log, "begin "+string(m.ID))
		if m.ID == "message/1" {
			send(t, b, "scorer", "writer", "more")
		}
		log = append(log, "end "+string(m.ID))
	})
	send(t, b, user, "writer", "hello")
	require.Equal(t, []string{"begin message/1", "end message/1", "begin message/2", "end message/2"}, log)
}

func TestSubscribersReceiveMessagesInOrder(t *testing.T) {
	t.Parallel()
	const senders, each = 4, 200
	b := newBus(t, mailbox.Options{MaxUnread: senders * each})
	heard := make([][]mailbox.ID, 3)
	for i := range heard {
		subscribe(t, b, "writer", func(m mailbox.Message) { heard[i] = append(heard[i], m.ID) }) // one at a time: no lock
	}
	var work sync.WaitGroup
	for range senders {
		work.Go(func() {
			for range each {
				send(t, b, user, "writer", "x")
			}
		})
	}
	work.Wait()
	want := ids(all(t, b, "writer"))
	require.Len(t, want, senders*each)
	for i := range heard {
		require.Equal(t, want, heard[i])
	}
}

// A second sender does not wait for a function that is busy with the first.
func TestSlowSubscriberDelaysOnlyItsSender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, mailbox.Options{})
		var heard []mailbox.ID
		subscribe(t, b, "writer", func(m mailbox.Message) {
			time.Sleep(time.Hour)
			heard = append(heard, m.ID)
		})
		start := time.Now()
		var work sync.WaitGroup
		var took time.Duration
		work.Go(func() {
			send(t, b, user, "writer", "one")
			took = time.Since(start)
		})
		synctest.Wait()
		send(t, b, user, "writer", "two")
		require.Zero(t, time.Since(start))
		require.Len(t, unread(t, b, "writer"), 2)
		work.Wait()
		require.Equal(t, 2*time.Hour, took, "the first goes on with the other's")
		require.Equal(t, []mailbox.ID{"message/1", "message/2"}, heard)
	})
}

// Requirement: G42.
func TestPanicEndsOnlyItsSubscriber(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	b := newBus(t, mailbox.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	calls := 0
	subscribe(t, b, "writer", func(m mailbox.Message) {
		calls++
		panic("about " + m.Envelope.Open().Text())
	})
	var heard []mailbox.Message
	subscribe(t, b, "writer", func(m mailbox.Message) { heard = append(heard, m) })
	send(t, b, user, "writer", canary)
	send(t, b, user, "writer", canary)
	require.Equal(t, 2, calls, "it is called on")
	require.Len(t, heard, 2, "so are others")
	require.Len(t, unread(t, b, "writer"), 2, "nothing is lost")
	requireNoCanary(t, log.String())
	require.Equal(t, 1, strings.Count(log.String(), "a subscriber of messages panicked"), "the first is reported")
	for _, word := range []string{"level=ERROR", "agent=writer", "message.id=message/1", "TestPanicEndsOnlyItsSubscriber"} {
		require.Contains(t, log.String(), word)
	}
}

func TestPanicNeedsNoLogger(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	subscribe(t, b, "writer", func(mailbox.Message) { panic("x") })
	send(t, b, user, "writer", "x")
	require.Len(t, unread(t, b, "writer"), 1)
}

// A failed assertion in a subscriber ends the goroutine of the sender.
func TestSubscriberMayEndTheGoroutine(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var heard []mailbox.ID
	cancel := subscribe(t, b, "writer", func(m mailbox.Message) {
		heard = append(heard, m.ID)
		if m.ID == "message/1" {
			send(t, b, "scorer", "writer", "waits")
			runtime.Goexit()
		}
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		send(t, b, user, "writer", "x")
	}()
	<-done
	send(t, b, user, "writer", "x")
	require.Equal(t, []mailbox.ID{"message/1", "message/2", "message/3"}, heard)
	cancel()
}
