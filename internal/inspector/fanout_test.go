package inspector_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/task"
)

// A screen is what a subscriber has of each text.
type screen map[task.ID]*strings.Builder

// show adds pieces to what there is.
func (s screen) show(list []event.Delta) {
	for _, d := range list {
		if s[d.Task] == nil || d.Reset {
			s[d.Task] = &strings.Builder{}
		}
		s[d.Task].WriteString(d.Text)
	}
}

// A thousand models write at once, and a subscriber who reads loses no byte of what counts, however
// seldom it reads and whenever it came.
func TestAThousandStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f inspector.Fanout
		push, end := f.Begin("r")
		const streams, pieces = 1000, 20
		read := func(pause time.Duration) screen {
			sub := f.Subscribe("r")
			defer sub.Close()
			got := screen{}
			for {
				list, err := sub.Next(t.Context())
				require.NoError(t, err)
				if len(list) == 0 {
					return got
				}
				got.show(list)
				time.Sleep(pause)
			}
		}
		screens := make([]screen, 5)
		var readers sync.WaitGroup
		for i := range screens {
			readers.Go(func() { screens[i] = read(time.Duration(i) * 7 * time.Millisecond) })
		}
		synctest.Wait()
		want := screen{}
		for n := range pieces {
			for i := range streams {
				d := event.Delta{Task: task.ID(fmt.Sprint("t", i)), Text: fmt.Sprintf("%d-%d ", i, n), Reset: n == 10 && i%3 == 0, Done: n == pieces-1}
				want.show([]event.Delta{d})
				push(d)
			}
			time.Sleep(time.Millisecond)
		}
		end()
		readers.Wait()
		for i, got := range screens {
			require.Len(t, got, streams)
			for id, text := range want {
				require.Equal(t, text.String(), got[id].String(), "%d %s", i, id)
			}
		}
		require.Empty(t, read(0), "the run has ended")
	})
}

// Whatever is written and whenever a subscriber comes and reads, it has the text at the end, or the
// beginning of one that is not complete.
func TestASubscriberHasTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f inspector.Fanout
		push, end := f.Begin("r")
		want, got := screen{}, screen{}
		var sub inspector.Subscription
		read := func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if list, err := sub.Next(ctx); err == nil {
				got.show(list)
			}
		}
		seen := map[task.ID]bool{} // texts that were complete before the subscriber came
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				if sub == nil {
					sub = f.Subscribe("r")
				}
			case 1:
				if sub != nil {
					read()
				}
			default:
				id := task.ID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "task"))
				d := event.Delta{Task: id, Text: rapid.StringN(0, 3, -1).Draw(t, "text"), Reset: rapid.IntRange(0, 4).Draw(t, "reset") == 0, Done: rapid.IntRange(0, 6).Draw(t, "done") == 0}
				if seen[id] { // an attempt that follows one that is complete begins with a reset
					d.Reset = true
				}
				seen[id] = d.Done
				want.show([]event.Delta{d})
				push(d)
				if d.Done && sub == nil {
					delete(want, id) // it is in the documents
				}
			}
		}
		end()
		if sub == nil {
			return
		}
		read()
		for id, text := range want {
			if text.Len() == 0 {
				continue
			}
			if got[id] == nil || got[id].String() != text.String() {
				t.Fatalf("%s: want %q, got %v", id, text.String(), got[id])
			}
		}
		sub.Close()
	})
}

func TestFanoutOfOtherRuns(t *testing.T) {
	t.Parallel()
	var f inspector.Fanout
	push, end := f.Begin("r")
	push(event.Delta{Task: "t", Text: "nobody reads it"})
	_, endOther := f.Begin("r") // another one under this ID
	end()
	sub := f.Subscribe("r")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sub.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	endOther()
	list, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// From a piece to its subscriber.
func BenchmarkFanout(b *testing.B) {
	var f inspector.Fanout
	push, end := f.Begin("r")
	defer end()
	var subs []inspector.Subscription
	for range 5 {
		subs = append(subs, f.Subscribe("r"))
	}
	b.ReportAllocs()
	for b.Loop() {
		push(event.Delta{Task: "t", Text: "some words ", Reset: true})
		for _, sub := range subs {
			if list, err := sub.Next(b.Context()); err != nil || len(list) != 1 {
				b.Fatal(list, err)
			}
		}
	}
}

// A text that was complete and is then taken back, as when a policy denies it, does not reach a subscriber that
// reads later.
func TestWhatIsTakenBackIsNotSent(t *testing.T) {
	t.Parallel()
	var f inspector.Fanout
	push, end := f.Begin("r")
	defer end()
	sub := f.Subscribe("r")
	defer sub.Close()
	push(event.Delta{Task: "u", Text: "other"})
	push(event.Delta{Task: "t", Text: "denied", Done: true})
	push(event.Delta{Task: "t", Reset: true})
	push(event.Delta{Task: "t", Text: "again"})
	got, err := sub.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, []event.Delta{{Task: "u", Text: "other"}, {Task: "t", Text: "again", Reset: true}}, got)
}
