package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/prompt"
)

// A program may send while a run takes over what waits in its bus. Each message has one name and one entry in the
// journal, so that a run which resumes has it once.
func TestMessagesSentWhileARunBeginsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	const waiting = 900
	for range 3 {
		tm := newTeam(t, member("ada", says("x")), member("bob", says("x")))
		bus, journal := tm.NewBus(), &memory{}
		for k := range waiting {
			_, err := bus.Send(mailbox.Draft{From: "user", To: "ada", Content: fmt.Sprint("before ", k)})
			require.NoError(t, err)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = bus.Send(mailbox.Draft{From: "user", To: "bob", Content: "now"})
					time.Sleep(20 * time.Microsecond)
				}
			}
		}()
		run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal, Bus: bus}, spec("ada"), spec("bob"))
		close(stop)
		<-done
		ids := map[string]int{}
		names := map[string]bool{}
		for _, e := range journal.history(journal.len()).Log {
			if e.Sent != nil {
				require.False(t, names[e.Sent.ID], "%s names two messages", e.Sent.ID)
				names[e.Sent.ID] = true
				ids[string(e.Sent.Message.ID)]++
			}
		}
		for id, n := range ids {
			require.Equal(t, 1, n, "%s is recorded more than once", id)
		}
		require.GreaterOrEqual(t, len(ids), waiting)
	}
}

// A program may also put back what an agent has read, in this run or in an earlier one. The run has a name of its own for
// it, and its journal has it before a prompt does.
func TestMessagesOfEarlierRunsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var bob listens
	var bus *mailbox.Bus
	var old mailbox.ID
	tm := newTeam(t, member("ada", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		if old != "" {
			require.NoError(t, bus.MarkUnread("bob", old))
		}
		return agent.Reply{Text: "x"}, nil
	}), engine.Member{Name: "bob", Agent: &bob})
	bus = tm.NewBus()
	send := func(text string) mailbox.ID {
		id, err := bus.Send(mailbox.Draft{From: "user", To: "bob", Content: text})
		require.NoError(t, err)
		return id
	}
	first := send("one")
	run(t, tm, &engine.RunOptions{RunID: "q", Journal: &memory{}, Bus: bus}, spec("bob"))
	old = first
	send("two")
	journal := &memory{}
	run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal, Bus: bus}, spec("ada"), spec("bob", "ada"))
	require.Contains(t, bob.prompts[1], "- **user**: one\n- **user**: two")
	sent, asked := map[string]string{}, []string(nil)
	for _, e := range journal.history(journal.len()).Log {
		if e.Sent != nil {
			sent[e.Sent.ID] = e.Sent.Message.Text
		}
		if e.Asked != nil && len(e.Asked.Messages) > 0 {
			asked = e.Asked.Messages
		}
	}
	var texts []string
	for _, name := range asked {
		texts = append(texts, sent[name])
	}
	require.Equal(t, []string{"one", "two"}, texts, "%v %v", asked, sent)
}
