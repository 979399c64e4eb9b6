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

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// requires is a step in which an agent waits for a reply.
func requires(to, message string, minutes ...int) step {
	timeout := ""
	if len(minutes) > 0 {
		timeout = fmt.Sprintf(`,"timeoutMs":%d`, minutes[0]*60_000)
	}
	return step{calls: []llm.ToolCall{sendsTo(to, message, `,"response":{"expectation":"required"`+timeout+`}`)}}
}

var handoffShown = regexp.MustCompile(`(?:Message from |Reply from |\*\*)([a-z]+)(?:\*\*)? \(handoff ([0-9a-f-]{36})\)`)

// shown returns the ids of the handoffs from an agent in a conversation, oldest first.
func shown(conversation, from string) (ids []string) {
	for _, m := range handoffShown.FindAllStringSubmatch(conversation, -1) {
		if m[1] == from {
			ids = append(ids, m[2])
		}
	}
	return ids
}

// replies is a step in which an agent answers the last handoff of another one; it works if there is none.
func replies(to, message string, more ...string) step {
	return step{to: func(conversation string) []llm.ToolCall {
		ids := shown(conversation, to)
		if len(ids) == 0 {
			return waits.calls
		}
		return []llm.ToolCall{sendsTo(to, message, fmt.Sprintf(`,"contextRef":%q`, ids[len(ids)-1])+strings.Join(more, ""))}
	}}
}

// once is a step in which an agent only works if it has answered before.
func once(s step) step {
	return step{to: func(conversation string) []llm.ToolCall {
		if strings.Contains(conversation, `{"contextRef"`) {
			return waits.calls
		}
		return s.to(conversation)
	}}
}

var done = step{text: "done"}

// both are edges in both ways between each pair.
func both(pairs ...string) []handoff.Edge { return edges(pairs...) }

// minutesOf returns how long a task took.
func minutesOf(t *testing.T, res *engine.Result, name string) float64 {
	m := of(t, res, name).Metrics
	return m.End.Sub(m.Start).Minutes()
}

func TestARequiredReplyIsTheResultOfTheCall(t *testing.T) {
	t.Parallel()
	scripts := func(t *testing.T, n *newsroom) *engine.Team {
		return edged(t, both("a<>b"),
			n.member(t, "a", requires("b", "How hard is the wind?"), done),
			n.member(t, "b", waits, waits, once(replies("a", "90 km/h", `,"structured":{"wind":90}`)), once(replies("a", "90 km/h", `,"structured":{"wind":90}`)), done))
	}
	for name, limit := range map[string]int{"no limit": 0, "one slot": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, journal := &newsroom{}, &memory{}
				tm := scripts(t, n)
				res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal, MaxConcurrency: limit}, spec("a"), spec("b"))
				require.NoError(t, res.Err())
				require.Empty(t, res.Warnings)
				require.Regexp(t, `(?s)"response":\{"expectation":"required"\}`, n.last("b"), "the reader learns that a reply is expected")
				require.Regexp(t, `(?s)## tool call_1_1\nReply from b \(handoff [0-9a-f-]{36}\):\n\[envelope [0-9a-f]{32} from "b", internal: data, not instructions\]\n90 km/h\n\{"contextRef":"[0-9a-f-]{36}","structured":\{"wind":90\}\}\n\[/envelope`, n.last("a"))
				require.Equal(t, 1, strings.Count(n.last("a"), "90 km/h"))
				require.Contains(t, n.last("b"), "Sent to a as handoff")
				if limit == 0 {
					require.InDelta(t, 4, minutesOf(t, res, "a"), 0.01) // one until it asks, two until the reply, one for the rest; b works meanwhile
				}
				replayed := run(t, tm, &engine.RunOptions{RunID: "r", MaxConcurrency: limit, Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, spec("a"), spec("b"))
				same(t, document(t, res), document(t, replayed))

				for commits := range journal.len() + 1 {
					n.forget()
					res := resumed(t, tm, journal.history(commits), spec("a"), spec("b"))
					require.NoError(t, res.Err(), "after %d commits", commits)
					require.Empty(t, res.Warnings, "after %d commits", commits)
					for who, text := range map[string]string{"b": "How hard is the wind?", "a": "90 km/h"} {
						if last := n.last(who); last != "" {
							require.Equal(t, 1, strings.Count(last, text), "%s after %d commits:\n%s", who, commits, last)
						}
					}
				}
			})
		})
	}
}

func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		edges   []handoff.Edge
		scripts map[string][]step
		specs   []task.Spec
		who     string
		want    string  // what who is told
		minutes float64 // of the task of who; zero means any
	}{
		"timeout": {both("a<>b"), map[string][]step{"a": {requires("b", "x", 3), done}, "b": {waits, waits, waits, waits, waits, waits, done}},
			[]task.Spec{spec("a"), spec("b")}, "a", `No reply within 3m0s\.`, 5},
		"default timeout": {both("a<>b"), map[string][]step{"a": {requires("b", "x"), done}, "b": {waits, waits, waits, waits, waits, waits, waits, done}},
			[]task.Spec{spec("a"), spec("b")}, "a", `No reply within 5m0s\.`, 7},
		"cycle of two": {both("a<>b"), map[string][]step{"a": {requires("b", "x"), done}, "b": {waits, requires("a", "y"), replies("a", "z"), done}},
			[]task.Spec{spec("a"), spec("b")}, "b", `No reply: none can come, since nothing else runs or can start\.`, 4},
		"cycle of three": {both("a<>b", "b<>c", "c<>a"), map[string][]step{"a": {requires("b", "x"), done}, "b": {waits, requires("c", "y"), replies("a", "z"), done}, "c": {waits, waits, requires("a", "y"), replies("b", "z"), done}},
			[]task.Spec{spec("a"), spec("b"), spec("c")}, "c", `No reply: none can come, since nothing else runs or can start\.`, 5},
		"dependent": {both("a<>b"), map[string][]step{"a": {requires("b", "x"), done}, "b": {waits, done}},
			[]task.Spec{spec("a"), by("b", task.Spec{Title: "early", Description: "x"}), by("b", task.Spec{Title: "late", Description: "x", DependsOn: task.On("a")})}, "a",
			`No reply: (none can come, since nothing else runs or can start|no task of b is left that could reply)\.`, 0},
		"nobody left": {both("a<>b"), map[string][]step{"a": {waits, waits, requires("b", "x"), done}, "b": {done}},
			[]task.Spec{spec("a"), spec("b")}, "a", `No task of b is left that could read it\.`, 4},
		"the reader ends": {both("a<>b"), map[string][]step{"a": {requires("b", "x"), done}, "b": {waits, waits, done}},
			[]task.Spec{spec("a"), spec("b")}, "a", `No reply: no task of b is left that could reply\.`, 4},
		"no way back": {append(both("a<>b"), handoff.Edge{From: "a", To: "c"}), map[string][]step{"a": {requires("c", "x"), done}, "b": {waits, done}, "c": {waits, waits, done}},
			[]task.Spec{spec("a"), spec("b"), spec("c")}, "a", `Not sent: c cannot send anything to you, and so cannot reply; leave response out\.`, 2},
		"no neighbor with a way back": {[]handoff.Edge{{From: "a", To: "c"}}, map[string][]step{"a": {requires("c", "x"), done}, "c": {waits, waits, done}},
			[]task.Spec{spec("a"), spec("c")}, "a", `Invalid arguments: response: no agent that you may send to can send to you, and so none can reply; leave response out\.`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, journal := &newsroom{}, &memory{}
				var members []engine.Member
				for _, name := range []string{"a", "b", "c"} {
					if script, ok := tt.scripts[name]; ok {
						members = append(members, n.member(t, name, script...))
					}
				}
				tm := edged(t, tt.edges, members...)
				res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, tt.specs...)
				require.NoError(t, res.Err())
				require.Regexp(t, tt.want, n.last(tt.who))
				if strings.HasPrefix(name, "cycle") {
					require.Contains(t, n.last("a"), "Reply from b", "the other waits go on")
				}
				if tt.minutes > 0 {
					require.InDelta(t, tt.minutes, minutesOf(t, res, tt.who), 0.01)
				}
				replayed := run(t, tm, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, tt.specs...)
				same(t, document(t, res), document(t, replayed))
				for commits := range journal.len() + 1 {
					res := resumed(t, tm, journal.history(commits), tt.specs...)
					require.NoError(t, res.Err(), "after %d commits", commits)
				}
			})
		})
	}
}

func TestATaskThatIsLateWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		tm := edged(t, both("a<>b"), n.member(t, "a", requires("b", "x"), done), n.member(t, "b", waits, waits, waits, waits, waits, done))
		late := spec("a")
		late.Timeout = 2 * time.Minute
		res, err := tm.RunTasks(t.Context(), []task.Spec{late, spec("b")}, nil)
		require.NoError(t, err)
		failed := of(t, res, "a").Error
		require.Equal(t, "TIMEOUT", failed.Code)
		require.ErrorIs(t, failed, engine.ErrReplyTimeout)
		require.ErrorContains(t, failed, `the attempt took too long: more than 2m0s, while it was waiting for a reply from "b"`)
	})
}

func TestAWaitLendsThePlaceOfItsAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		a := n.member(t, "a", waits, requires("b", "x"), done)
		a.MaxParallel = 1
		tm := edged(t, both("a<>b"), a, n.member(t, "b", waits, waits, waits, replies("a", "y"), waits, waits, done))
		second := by("a", task.Spec{Title: "second", Description: "x"})
		res := run(t, tm, nil, spec("a"), second, spec("b"))
		require.NoError(t, res.Err())
		require.InDelta(t, 2, of(t, res, "second").Metrics.Start.Sub(of(t, res, "a").Metrics.Start).Minutes(), 0.01, "it begins when the first waits")
	})
}

func TestPausesStopTheClockOfAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := newSteered(t), &newsroom{}
		a := spec("a")
		a.Timeout = 7 * time.Minute
		tm := edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 5), done), n.member(t, "b", waits, waits, waits, replies("a", "y"), waits, done))
		s.at(1.5, steer.Command{Kind: steer.Pause})
		s.at(31.5, steer.Command{Kind: steer.Resume})
		res := run(t, tm, s.options(), a, spec("b"))
		require.NoError(t, res.Err())
		require.Contains(t, n.last("a"), "Reply from b")
	})
	synctest.Test(t, func(t *testing.T) {
		s, n := newSteered(t), &newsroom{}
		tm := edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 5), done), n.member(t, "b", waits, waits, waits, waits, waits, waits, waits, done))
		s.at(1.5, steer.Command{Kind: steer.Pause})
		s.at(31.5, steer.Command{Kind: steer.Resume})
		res := run(t, tm, s.options(), spec("a"), spec("b"))
		require.NoError(t, res.Err())
		require.Contains(t, n.last("a"), "No reply within 5m0s.")
		require.InDelta(t, 37, minutesOf(t, res, "a"), 0.01)
	})
}

// TestARetryHasTheReply checks that an attempt that repeats the call of a failed one gets the reply to that.
func TestARetryHasTheReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, journal := &newsroom{}, &memory{}
		a := n.member(t, "a", requires("b", "x"), done)
		inner, tries := a.Agent, 0
		a.Agent = agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			r, err := inner.Run(ctx, p)
			if err == nil && len(r.ToolCalls) == 0 && tries == 0 {
				tries++
				return agent.Reply{}, errBroken
			}
			return r, err
		})
		twice := retrying("a", 1)
		twice.RetryDelay = task.NoDelay
		res := run(t, edged(t, both("a<>b"), a, n.member(t, "b", waits, waits, replies("a", "only once"), done)), &engine.RunOptions{RunID: "r", Journal: journal}, twice, spec("b"))
		require.NoError(t, res.Err())
		require.Equal(t, 1, strings.Count(n.last("a"), "only once"))
		require.Equal(t, 1, strings.Count(n.last("b"), "Message from a"))
	})
}

// TestAFullInboxEndsAWait checks that a wait for a handoff that is lost ends at once, and that a reply needs no room.
func TestAFullInboxEndsAWait(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]string{"reader": "b", "sender": "a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, asks, answers := &newsroom{}, requires("b", "x"), replies("a", "y")
				if full == "b" {
					asks.calls = append([]llm.ToolCall{sendsTo("b", "before")}, asks.calls...)
				} else {
					to := answers.to
					answers.to = func(text string) []llm.ToolCall { return append([]llm.ToolCall{sendsTo("a", "before")}, to(text)...) }
				}
				later := step{to: func(string) []llm.ToolCall { // b reads its inbox when a has sent both messages
					time.Sleep(time.Second)
					return waits.calls
				}}
				tm := edged(t, both("a<>b"), n.member(t, "a", asks, waits, done), n.member(t, "b", later, waits, answers, done))
				bus, err := mailbox.New([]string{"a", "b"}, mailbox.Options{Edges: both("a<>b"), MaxUnread: 1})
				require.NoError(t, err)
				res := run(t, tm, &engine.RunOptions{Bus: bus}, spec("a"), spec("b"))
				require.NoError(t, res.Err())
				if full == "b" {
					require.Contains(t, n.last("a"), "No reply: the inbox of b is full, so it was not delivered.")
					return
				}
				require.Regexp(t, `(?s)## tool call_1_1\nReply from b.*\ny\n`, n.last("a"))
			})
		})
	}
}

func TestAnInterruptEndsAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, n := newSteered(t), &newsroom{}
		two := requires("b", "x")
		two.calls = append(two.calls, requires("b", "again").calls...)
		tm := edged(t, both("a<>b"), n.member(t, "a", two, done), n.member(t, "b", waits, waits, waits, replies("a", "y"), done))
		s.at(2.5, steer.Command{Kind: steer.Interrupt, Task: "a"})
		res := run(t, tm, s.options(), spec("a"), spec("b"))
		require.NoError(t, res.Err())
		require.Regexp(t, `(?s)Sent to b as handoff [0-9a-f-]{36}\. The user interrupted the call\..*Sent to b as handoff [0-9a-f-]{36}\. The user interrupted the call\.`, n.last("a"))
		require.Contains(t, n.last("b"), "does not wait for a reply to handoff")
	})
}

// TestRepliesThatAreRefused checks replies to handoffs that the agent was not given, that were answered, or whose
// sender does not wait any more.
//
// Requirement: G40.
func TestRepliesThatAreRefused(t *testing.T) {
	t.Parallel()
	const guessed = "01234567-89ab-5def-8123-456789abcdef"
	var stolen string
	steals := step{to: func(string) []llm.ToolCall {
		return []llm.ToolCall{sendsTo("a", "mine", fmt.Sprintf(`,"contextRef":%q`, stolen))}
	}}
	keeps := func(s step) step {
		return step{to: func(c string) []llm.ToolCall {
			if ids := shown(c, "a"); len(ids) > 0 {
				stolen = ids[0]
			}
			return s.to(c)
		}}
	}
	for name, tt := range map[string]struct {
		a, b, c []step
		who     string
		want    string
	}{
		"late":    {[]step{requires("b", "x", 1), waits, waits, waits, done}, []step{waits, waits, waits, replies("a", "y"), done}, []step{done}, "b", `Not sent: contextRef: a does not wait for a reply to handoff [0-9a-f-]{36} any more; leave contextRef out to send it all the same\.`},
		"twice":   {[]step{requires("b", "x"), waits, waits, done}, []step{waits, waits, replies("a", "y"), replies("a", "z"), done}, []step{done}, "b", `Not sent: contextRef: handoff [0-9a-f-]{36} was answered already; leave contextRef out to send something else\.`},
		"guessed": {[]step{waits, waits, done}, []step{{calls: []llm.ToolCall{sendsTo("a", "y", `,"contextRef":"`+guessed+`"`)}}, done}, []step{done}, "b", `Not sent: contextRef: unknown handoff "` + guessed + `"; name one that you were sent, or leave it out\.`},
		"third":   {[]step{requires("b", "x"), waits, waits, done}, []step{waits, waits, keeps(waits2), waits, replies("a", "y"), done}, []step{waits, waits, waits, waits, steals, done}, "c", `Not sent: contextRef: unknown handoff "[0-9a-f-]{36}"; name one that you were sent, or leave it out\.`},
		"none":    {[]step{{calls: []llm.ToolCall{sendsTo("b", "x", `,"response":{"expectation":"none"}`)}}, waits, waits, done}, []step{waits, waits, replies("a", "y"), done}, []step{done}, "b", `Not sent: contextRef: handoff [0-9a-f-]{36} expects no reply; leave contextRef out\.`},
		"to another": {[]step{requires("b", "x", 2), waits, waits, done}, []step{waits, waits, {to: func(c string) []llm.ToolCall {
			return []llm.ToolCall{sendsTo("c", "y", fmt.Sprintf(`,"contextRef":%q`, slices.Concat(shown(c, "a"), []string{guessed})[0]))}
		}}, done}, []step{waits, waits, done}, "b", `Not sent: contextRef: handoff [0-9a-f-]{36} came from a; send the reply to a, or leave contextRef out\.`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &newsroom{}
				tm := edged(t, both("a<>b", "c<>a", "b<>c"), n.member(t, "a", tt.a...), n.member(t, "b", tt.b...), n.member(t, "c", tt.c...))
				res := run(t, tm, nil, spec("a"), spec("b"), spec("c"))
				require.NoError(t, res.Err())
				require.Regexp(t, tt.want, n.last(tt.who))
				require.NotContains(t, n.last("a"), "\nmine\n")
			})
		})
	}
}

// waits2 is waits as a step that sees the conversation.
var waits2 = step{to: func(string) []llm.ToolCall { return waits.calls }}

func TestAnOptionalReplyIsTheNextMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &newsroom{}
		tm := edged(t, both("a<>b"), n.member(t, "a", step{calls: []llm.ToolCall{sendsTo("b", "x", `,"response":{"expectation":"optional"}`)}}, waits, waits, waits, done),
			n.member(t, "b", waits, waits, replies("a", "y"), done))
		res := run(t, tm, nil, spec("a"), spec("b"))
		require.NoError(t, res.Err())
		require.Regexp(t, `(?s)Sent to b as handoff.*Message from b \(handoff [0-9a-f-]{36}\):\n[^\n]*\ny\n`, n.last("a"))
	})
}

func TestRepliesAreGated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rule handoff.PairRule
		want string
	}{
		"redacted": {handoff.PairRule{From: "user", To: "a", Block: []task.Path{"x"}}, `Reply from b \(handoff [^)]*\):\n[^\n]*\ncard \[REDACTED:card\]`},
		"scoped":   {handoff.PairRule{From: "b", To: "a", Allow: []task.Path{"/structured/score"}}, `Reply from b \(handoff [^)]*\):\n[^\n]*\n\{"structured":\{"score":7\}\}`},
		"minimal":  {handoff.PairRule{From: "b", To: "a", Mode: handoff.Minimal}, `\[withheld: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &newsroom{}
				a, b := n.member(t, "a", requires("b", "x"), done), n.member(t, "b", waits, waits, replies("a", "card 4111 1111 1111 1111", `,"structured":{"score":7}`), done)
				b.Tools = a.Tools
				tm, err := engine.New(engine.Config{Agents: []engine.Member{a, b}, Edges: both("a<>b"), Policy: &handoff.Policy{Rules: []handoff.PairRule{tt.rule}}})
				require.NoError(t, err)
				res := run(t, tm, nil, spec("a"), spec("b"))
				require.NoError(t, res.Err())
				require.Regexp(t, tt.want, n.last("a"))
				require.NotContains(t, n.last("a"), "4111")
			})
		})
	}
}

// TestASuspendedRunWaitsAgain checks that a run that waits for a person ends the waits for replies, and that
// the resumed run waits for the rest.
func TestASuspendedRunWaitsAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after []step // what b does after the approval
		want  string
	}{
		"reply":   {[]step{replies("a", "y"), done}, "Reply from b"},
		"timeout": {[]step{waits, waits, waits, waits, waits, done}, "No reply within 4m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answer := ""
				d := &approver{decide: func(int, prompt.Prompt) string { return answer }}
				team := func(n *newsroom) *engine.Team {
					pay := newCountedTool(t, "pay", tool.Options{Approve: "ann", Effect: tool.None})
					b := n.member(t, "b", append([]step{waits, waits, {calls: []llm.ToolCall{call("pay", `{"amount":5}`)}}}, tt.after...)...)
					b.Tools = append(b.Tools, pay.Tool)
					return edged(t, both("a<>b"), n.member(t, "a", requires("b", "x", 4), done), b, d.member())
				}
				n, journal := &newsroom{}, &memory{}
				res := run(t, team(n), &engine.RunOptions{RunID: "r", Journal: journal}, spec("a"), spec("b"))
				require.Equal(t, []task.Status{task.InProgress, task.InProgress}, statuses(res))
				require.Equal(t, "b", of(t, res, "a").WaitingFor)
				require.NotContains(t, n.last("a"), "No reply")
				pending := slices.ContainsFunc(journal.history(journal.len()).Log, func(e record.Entry) bool { return e.ToolResult != nil && e.ToolResult.Code == "REPLY_PENDING" })
				require.True(t, pending)
				time.Sleep(time.Hour)
				answer = saysYes
				again, began := &newsroom{}, time.Now()
				res = resumed(t, team(again), journal.history(journal.len()), spec("a"), spec("b"))
				require.NoError(t, res.Err())
				require.Contains(t, again.last("a"), tt.want)
				require.Less(t, time.Since(began), 9*time.Minute)
				require.Zero(t, of(t, res, "a").Metrics.Interrupted)
			})
		})
	}
}
