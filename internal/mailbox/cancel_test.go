package mailbox_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/mailbox"
)

func TestCancelFromASubscriber(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var heard []mailbox.ID
	var cancel func()
	cancel = subscribe(t, b, "writer", func(m mailbox.Message) {
		heard = append(heard, m.ID)
		send(t, b, "scorer", "writer", "waits in the queue")
		cancel()
		cancel()
	})
	send(t, b, user, "writer", "x")
	send(t, b, user, "writer", "x")
	require.Equal(t, []mailbox.ID{"message/1"}, heard)
}

// The stack that cancel looks at may be long.
func TestCancelFromANestedCall(t *testing.T) {
	t.Parallel()
	b := newBus(t, mailbox.Options{})
	var cancel func()
	var down func(n int)
	down = func(n int) {
		if n == 0 {
			cancel()
			return
		}
		down(n - 1)
	}
	heard := 0
	cancel = subscribe(t, b, "writer", func(mailbox.Message) { heard++; down(1000) })
	send(t, b, user, "writer", "x")
	send(t, b, user, "writer", "x")
	require.Equal(t, 1, heard)
}

func TestCancelWaitsForACallInProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, mailbox.Options{})
		var over atomic.Bool
		calls := 0
		cancel := subscribe(t, b, "writer", func(mailbox.Message) {
			calls++
			time.Sleep(time.Hour)
			over.Store(true)
		})
		go func() { _, _ = b.Send(mailbox.Draft{From: user, To: "writer", Content: "x"}) }()
		synctest.Wait()
		send(t, b, user, "writer", "waits in the queue")
		var cancelers sync.WaitGroup
		for range 3 {
			cancelers.Go(func() {
				cancel()
				if !over.Load() {
					t.Error("cancel returned during a call")
				}
			})
		}
		cancelers.Wait()
		require.Equal(t, 1, calls)
	})
}

// Two subscribers that cancel each other at the same time do not wait for each other.
func TestSubscribersCancelEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, mailbox.Options{})
		cancels := make([]func(), 2)
		agents := []string{"scorer", "writer"}
		calls := make([]int, 2)
		for i := range agents {
			cancels[i] = subscribe(t, b, agents[i], func(mailbox.Message) {
				calls[i]++
				time.Sleep(time.Second) // until the other one is here too
				cancels[1-i]()
			})
		}
		var work sync.WaitGroup
		for _, agent := range agents {
			work.Go(func() { send(t, b, user, agent, "x") })
		}
		work.Wait()
		broadcast(t, b, user, "x")
		require.Equal(t, []int{1, 1}, calls)
	})
}

// After cancel has returned there is no call, however many send.
func TestCanceledSubscriberIsNotCalled(t *testing.T) {
	t.Parallel()
	const senders, each = 3, 1000
	b := newBus(t, mailbox.Options{MaxUnread: senders * each})
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			for range each {
				if _, err := b.Send(mailbox.Draft{From: user, To: "writer", Content: "x"}); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		})
	}
	sent := make(chan struct{})
	go func() {
		sending.Wait()
		close(sent)
	}()
	for over := false; !over; {
		var canceled atomic.Bool
		cancel := subscribe(t, b, "writer", func(mailbox.Message) {
			runtime.Gosched()
			if canceled.Load() {
				t.Error("called after cancel returned")
			}
		})
		runtime.Gosched()
		cancel()
		canceled.Store(true)
		select {
		case <-sent:
			over = true
		default:
		}
	}
	require.Len(t, unread(t, b, "writer"), senders*each)
}
