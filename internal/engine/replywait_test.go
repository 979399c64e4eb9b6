package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// requiresAll is a step in which an agent waits for several replies: each call is "reader" or "reader minutes".
func requiresAll(calls ...string) step {
	var s step
	for i, c := range calls {
		var minutes int
		to, after, limited := strings.Cut(c, " ")
		if limited {
			_, _ = fmt.Sscan(after, &minutes)
			s.calls = append(s.calls, requires(to, fmt.Sprintf("question %d", i+1), minutes).calls...)
			continue
		}
		s.calls = append(s.calls, requires(to, fmt.Sprintf("question %d", i+1)).calls...)
	}
	return s
}

// TestCallsOfOneTurnWaitTogether checks that all handoffs of a turn are sent before it waits, that each wait has its
// own limit, and that the results are in the order of the calls.
func TestCallsOfOneTurnWaitTogether(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b, c []step
		want    string // of the end of the conversation of a
		minutes float64
	}{
		"both reply": {[]step{requiresAll("b 4", "c 4"), done}, []step{waits, waits, waits, replies("a", "of b"), waits, done}, []step{waits, waits, replies("a", "of c"), waits, waits, waits, done},
			`## tool call_1_1\nReply from b .*\nof b\n.*## tool call_1_2\nReply from c .*\nof c\n`, 5},
		"one is late": {[]step{requiresAll("b 3", "c 6"), done}, []step{waits, waits, waits, waits, waits, waits, waits, done}, []step{waits, waits, waits, waits, replies("a", "of c"), waits, waits, done},
			`## tool call_1_1\n.*No reply within 3m0s\..*## tool call_1_2\nReply from c .*\nof c\n`, 6},
		"one ends": {[]step{requiresAll("b", "c"), done}, []step{waits, waits, done}, []step{waits, waits, waits, replies("a", "of c"), waits, done},
			`## tool call_1_1\n.*No reply: no task of b is left that could reply\..*## tool call_1_2\nReply from c .*\nof c\n`, 5},
		"a cycle through one": {[]step{requiresAll("b 20", "c"), done}, []step{waits, requires("a", "y", 20), replies("a", "of b"), done}, []step{waits, waits, waits, waits, replies("a", "of c"), waits, done},
			`## tool call_1_1\nReply from b .*\nof b\n.*## tool call_1_2\nReply from c .*\nof c\n`, 9},
		"handoffs and a tool": {[]step{{calls: slices.Concat(requiresAll("b").calls, []llm.ToolCall{sendsTo("c", "plain"), call("work", `{}`)}, requiresAll("c").calls)}, done}, []step{waits, waits, replies("a", "of b"), waits, waits, done}, []step{waits, waits, replies("a", "of c"), waits, done},
			`## tool call_1_1\nReply from b .*\nof b\n.*## tool call_1_2\n.*Sent to c.*## tool call_1_3\n.*worked.*## tool call_1_4\nReply from c .*\nof c\n`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, journal, specs := &newsroom{}, &memory{}, []task.Spec{spec("a"), spec("b"), spec("c")}
				tm := edged(t, both("a<>b", "a<>c"), n.member(t, "a", tt.a...), n.member(t, "b", tt.b...), n.member(t, "c", tt.c...))
				whole := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
				require.NoError(t, whole.Err())
				require.Regexp(t, `(?s)`+tt.want, n.last("a"))
				require.InDelta(t, tt.minutes, minutesOf(t, whole, "a"), 0.01)
				if name == "a cycle through one" {
					require.Contains(t, n.last("b"), "No reply: none can come, since nothing else runs or can start.")
				}
				replayed := run(t, tm, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, specs...)
				same(t, document(t, whole), document(t, replayed))
				for commits := range journal.len() + 1 {
					n.forget()
					res := resumed(t, tm, journal.history(commits), specs...)
					require.NoError(t, res.Err(), "after %d commits", commits)
					require.LessOrEqual(t, strings.Count(n.last("b"), "question 1"), 1, "after %d commits", commits)
					for i := range res.Tasks {
						require.Len(t, res.Tasks[i].Metrics.ToolCalls, len(whole.Tasks[i].Metrics.ToolCalls), "%s, after %d commits", res.Tasks[i].Title, commits)
					}
				}
			})
		})
	}
}

// TestACycleEndsWhenTheRunIsQuiet checks that of tasks that wait for each other the newest wait ends once nothing else
// runs, with words that name no agent, and that the others then get their replies.
//
// Requirement: G41.
func TestACycleEndsWhenTheRunIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		tm := edged(t, both("ann<>bob", "bob<>cem", "cem<>dee", "dee<>ann"),
			n.member(t, "ann", requires("bob", "x", 60), done),
			n.member(t, "bob", waits, requires("cem", "x", 60), replies("ann", "z"), done),
			n.member(t, "cem", waits, waits, requires("dee", "x", 60), replies("bob", "z"), done),
			n.member(t, "dee", waits, waits, waits, requires("ann", "x", 60), replies("cem", "z"), done),
			n.member(t, "eve", append(slices.Repeat([]step{waits}, 9), done)...))
		res := run(t, tm, nil, spec("ann"), spec("bob"), spec("cem"), spec("dee"), spec("eve"))
		require.NoError(t, res.Err())
		require.Contains(t, n.last("dee"), "No reply: none can come, since nothing else runs or can start.")
		require.NotContains(t, n.last("dee"), "bob")
		require.Contains(t, n.last("ann"), "Reply from bob")
		require.InDelta(t, 10+2, minutesOf(t, res, "dee"), 0.01, "until eve has ended")
	})
}

// TestWaitsGoOnAfterACrash checks that a wait has what is left of its limit in a process that continues a run, as far
// as the journal says how long the process before it worked.
func TestWaitsGoOnAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		idle := slices.Repeat([]step{waits}, 30)
		team := func(n *newsroom) *engine.Team {
			return edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 10), done), n.member(t, "b", append(slices.Clone(idle), done)...))
		}
		n, journal, specs := &newsroom{}, &memory{}, []task.Spec{spec("a"), spec("b")}
		run(t, team(n), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
		past := func(minutes float64) *record.History { // of a process that died then
			for commits := range journal.len() {
				h := journal.history(commits)
				for i := range h.Log {
					if x := h.Log[i].Exchange; x != nil && x.Agent == "b" && x.End.Sub(h.Begins[0].Time).Minutes() >= minutes-0.01 {
						return h
					}
				}
			}
			t.Fatal("no such entry")
			return nil
		}
		for died, want := range map[float64]float64{3: 8, 7: 4} { // it waits from minute 1 on
			time.Sleep(time.Hour)
			again, began := &newsroom{}, time.Now()
			o := &engine.RunOptions{RunID: "r", Journal: after(past(died))}
			res := run(t, team(again), o, specs...)
			require.NoError(t, res.Err())
			require.Contains(t, again.last("a"), "No reply within 10m0s.")
			require.InDelta(t, want+1, of(t, res, "a").Metrics.End.Sub(began).Minutes(), 0.01, "died after %v minutes", died)
		}
		alive := past(3)
		alive.Alive = alive.Begins[0].Time.Add(9 * time.Minute)
		again, began := &newsroom{}, time.Now()
		res := run(t, team(again), &engine.RunOptions{RunID: "r", Journal: after(alive)}, specs...)
		require.NoError(t, res.Err())
		require.InDelta(t, 3, of(t, res, "a").Metrics.End.Sub(began).Minutes(), 0.01, "the lease says that it worked on")
	})
}

// A leaving is a journal in which other processes leave commands, each for a process to take at a moment.
type leaving struct {
	*memory
	left map[time.Time]record.LeftCommand // by when it can be read
}

func (l *leaving) OpenRun(context.Context, record.Opening) (record.Log, error) { return l, nil }

func (l *leaving) Waiting(context.Context) ([]record.Answer, error) { return nil, nil }

func (l *leaving) Refuse(_ context.Context, _ int64, why string) error { panic(why) }

func (l *leaving) Mask(key record.Key) record.Key { return key }

func (l *leaving) LeftBefore() bool { return false }

func (l *leaving) Commands(context.Context) (list []record.LeftCommand, err error) {
	for at, c := range l.left {
		if !at.After(time.Now()) {
			list = append(list, c)
			delete(l.left, at)
		}
	}
	return list, nil
}

// TestAPauseCountsFromWhenItTookEffect checks that a wait does not end early in a process that continues a run which
// was paused: a command may have been sent before the process that took it began.
func TestAPauseCountsFromWhenItTookEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		team := func(n *newsroom) *engine.Team {
			return edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 10), done), n.member(t, "b", append(slices.Repeat([]step{waits}, 60), done)...))
		}
		diedAt := func(l *memory, minutes float64) *record.History {
			for commits := range l.len() {
				h := l.history(commits)
				for i := range h.Log {
					if x := h.Log[i].Exchange; x != nil && x.Agent == "b" && x.End.Sub(h.Begins[0].Time).Minutes() >= minutes-0.01 {
						if l.prior != nil {
							h.Begins, h.Log = slices.Concat(l.prior.Begins, h.Begins), slices.Concat(l.prior.Log, h.Log)
						}
						return h
					}
				}
			}
			t.Fatal("no such entry")
			return nil
		}
		specs, first := []task.Spec{spec("a"), spec("b")}, &memory{}
		run(t, team(&newsroom{}), &engine.RunOptions{RunID: "r", Journal: first}, specs...)
		time.Sleep(time.Hour)
		began, sent := time.Now(), time.Now().Add(-time.Second) // while that process opened the journal
		second := &leaving{memory: after(diedAt(first, 3)), left: map[time.Time]record.LeftCommand{
			began.Add(2 * time.Minute):  {Command: steer.Command{Kind: steer.Pause, By: "ann"}, Time: sent, Number: 1},
			began.Add(32 * time.Minute): {Command: steer.Command{Kind: steer.Resume, By: "ann"}, Time: began.Add(31 * time.Minute), Number: 2},
		}}
		run(t, team(&newsroom{}), &engine.RunOptions{RunID: "r", Journal: second}, specs...)
		died := diedAt(second.memory, 36)
		time.Sleep(time.Hour)
		n, resumed := &newsroom{}, time.Now()
		res := run(t, team(n), &engine.RunOptions{RunID: "r", Journal: after(died)}, specs...)
		require.NoError(t, res.Err())
		require.Contains(t, n.last("a"), "No reply within 10m0s.")
		// It waited 2 minutes in the first process, and in the second 2 before and some 4 after the pause.
		require.InDelta(t, 2+1, of(t, res, "a").Metrics.End.Sub(resumed).Minutes(), 0.6)
	})
}

// TestSendersLearnWhereTheyMay checks what the sender of a plain handoff is told of its reader: what the flow table
// lets its reader send back, and otherwise the user alone.
//
// Requirement: G60.
func TestSendersLearnWhereTheyMay(t *testing.T) {
	t.Parallel()
	send := step{calls: []llm.ToolCall{sendsTo("b", "x")}}
	beside, behind := []task.Spec{spec("a"), spec("b")}, []task.Spec{spec("a"), spec("b", "a"), by("a", spec("again", "b"))}
	for name, tt := range map[string]struct {
		edges []handoff.Edge
		specs []task.Spec
		full  bool
		want  string
	}{
		"full, with a way back":  {both("a<>b"), beside, true, "Not sent: the inbox of b is full."},
		"full, one way":          {edges("a>b"), beside, true, "Sent to b as handoff"},
		"full, b begins after a": {both("a<>b"), behind, true, "Sent to b as handoff"},
		"ended, with a way back": {both("a<>b"), beside, false, "No task of b is left that could read it."},
		"ended, one way":         {edges("a>b"), beside, false, "Sent to b as handoff"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &newsroom{}
				before := waits
				if tt.full {
					before = send
				}
				tm := edged(t, tt.edges, n.member(t, "a", waits, before, send, done), n.member(t, "b", done))
				bus, err := mailbox.New([]string{"a", "b"}, mailbox.Options{Edges: tt.edges, MaxUnread: 1})
				require.NoError(t, err)
				res := run(t, tm, &engine.RunOptions{Bus: bus}, tt.specs...)
				require.NoError(t, res.Err())
				_, told, _ := strings.Cut(n.asked["a"][3], "## tool call_3_1")
				require.Contains(t, told, tt.want)
				if strings.HasPrefix(tt.want, "Sent") {
					require.NotRegexp(t, `full|left`, told)
				}
				require.NotEmpty(t, res.Warnings, "the user learns it")
			})
		})
	}
}

// TestUnreadQuestions checks that a sender that gets no reply learns that its question is unread, if it may.
func TestUnreadQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		late := spec("b", "c")
		tm := edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 2), done), n.member(t, "b", done), n.member(t, "c", waits, waits, waits, waits, done))
		res := run(t, tm, nil, spec("a"), late, spec("c"))
		require.NoError(t, res.Err())
		require.Contains(t, n.last("a"), "No reply within 2m0s: b has not read it.")
	})
}

// TestNothingCanReachTheSender checks that a wait ends at once, with words that depend on the spec alone, if nothing
// that the reader sends can be delivered to the task.
func TestNothingCanReachTheSender(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		tm := edged(t, both("a<>b"), n.member(t, "a", requires("b", "x"), done), n.member(t, "b", done))
		res := run(t, tm, nil, spec("a"), spec("b", "a"), by("a", spec("again", "b")))
		require.NoError(t, res.Err())
		require.Contains(t, n.asked["a"][1], "No reply: nothing that b sends can reach you in this task.")
		require.Contains(t, n.last("b"), "\nx\n", "the handoff itself is delivered")
		require.InDelta(t, 2, minutesOf(t, res, "a"), 0.01)
	})
}

// TestWaitsAreEvents checks that a run says of each wait for a reply that it begins and how it ends.
func TestWaitsAreEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b    []step
		code    string
		minutes float64
	}{
		"reply":       {[]step{requires("b", "x", 9), done}, []step{waits, waits, replies("a", "y"), done}, "", 2},
		"timeout":     {[]step{requires("b", "x", 2), done}, []step{waits, waits, waits, waits, done}, "TIMEOUT", 2},
		"nobody left": {[]step{requires("b", "x", 9), done}, []step{waits, waits, done}, "NO_REPLY", 2},
		"interrupt":   {[]step{requires("b", "x", 9), done}, []step{waits, waits, waits, waits, done}, "INTERRUPTED", 1.5},
		"cancel":      {[]step{requires("b", "x", 9), done}, []step{waits, waits, waits, waits, done}, "CANCELED", 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, n := newSteered(t), &newsroom{}
				switch name {
				case "interrupt":
					s.at(2.5, steer.Command{Kind: steer.Interrupt, Task: "a"})
				case "cancel":
					s.at(2.5, steer.Command{Kind: steer.Cancel, Task: "a"})
				}
				var l audience
				o := s.options()
				o.Subscribers = append(o.Subscribers, l.options().Subscribers...)
				run(t, edged(t, both("a<>b"), n.member(t, "a", tt.a...), n.member(t, "b", tt.b...)), o, spec("a"), spec("b"))
				began, ended := l.only("reply_wait"), l.only("reply_end")
				require.Len(t, began, 1)
				require.Len(t, ended, 1)
				require.Equal(t, "b", began[0].From)
				require.Equal(t, "a", began[0].Title)
				require.Equal(t, began[0].ID, ended[0].ID)
				require.Regexp(t, regexp.MustCompile(`^[0-9a-f-]{36}$`), began[0].ID)
				require.Positive(t, began[0].Wait)
				require.Equal(t, tt.code, ended[0].Code)
				require.InDelta(t, tt.minutes, ended[0].Duration.Minutes(), 0.01)
			})
		})
	}
}
