package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// sentIn returns what a journal stores of handoffs, as "SENDER READER".
func sentIn(j *memory) (list []string) {
	for _, e := range j.history(j.len()).Log {
		if s := e.Sent; s != nil && s.Call != "" {
			list = append(list, s.From+" "+s.To)
		}
	}
	return list
}

// TestForgedHandoffs checks arguments with which an agent claims to be another one, names a reader that it does not
// have, or sends too much: it reads what is wrong, and nothing is sent.
//
// Requirement: G37.
func TestForgedHandoffs(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 300<<10)
	for name, tt := range map[string]struct{ arguments, want string }{
		"invisible character":   {`{"to":"b\u200b","message":"x"}`, `/to: found`},
		"full width":            {`{"to":"ｂ","message":"x"}`, `/to: found`},
		"space":                 {`{"to":"b ","message":"x"}`, `/to: found`},
		"case":                  {`{"to":"B","message":"x"}`, `/to: found "B"; expected "b".`},
		"several readers":       {`{"to":["b"],"message":"x"}`, `/to: found`},
		"sender":                {`{"to":"b","message":"x","from":"boss"}`, `from`},
		"run":                   {`{"to":"b","message":"x","runId":"r"}`, `runId`},
		"label":                 {`{"to":"b","message":"x","classification":"public"}`, `classification`},
		"time":                  {`{"to":"b","message":"x","createdAt":"2020-01-01T00:00:00Z"}`, `createdAt`},
		"member in other case":  {`{"to":"b","Message":"x"}`, `message`},
		"member given twice":    {`{"to":"b","to":"boss","message":"x"}`, `found`},
		"large message":         {`{"to":"b","message":"` + big + `"}`, `/message`},
		"large part":            {`{"to":"b","message":"x","structured":{"y":"` + big + `"}}`, `307224 bytes, at most 16384: send less`},
		"large notes":           {`{"to":"b","message":"x","meta":{"y":"` + big + `"}}`, `at most 16384: send less`},
		"large together":        {`{"to":"b","message":"` + big[:9<<10] + `","meta":{"y":"` + big[:8<<10] + `"}}`, `at most 16384: send less`},
		"notes that are text":   {`{"to":"b","message":"x","meta":"y"}`, `/meta`},
		"wide characters":       {`{"to":"b","message":"` + strings.Repeat("🌊", 10<<10) + `"}`, `40960 bytes, at most 16384: send less`},
		"artifact without type": {`{"to":"b","message":"x","artifacts":[{"ref":"y"}]}`, `type`},
		"artifact of a kind":    {`{"to":"b","message":"x","artifacts":[{"type":7,"ref":"y"}]}`, `/artifacts/0/type`},
		"artifact with content": {`{"to":"b","message":"x","artifacts":[{"type":"file","ref":"y","content":"z"}]}`, `content`},
		"expectation":           {`{"to":"b","message":"x","response":{"expectation":"always"}}`, `/response/expectation`},
		"endless wait":          {`{"to":"b","message":"x","response":{"expectation":"required","timeoutMs":86400001}}`, `/response/timeoutMs`},
		"reference to no text":  {`{"to":"b","message":"x","contextRef":7}`, `/contextRef`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, journal := &newsroom{}, &memory{}
				tm := edged(t, edges("a<>b", "boss>b"), n.member(t, "a", step{calls: []llm.ToolCall{call("send_handoff", tt.arguments)}}, done),
					n.member(t, "b", waits, waits, waits, done), n.member(t, "boss", done))
				res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, spec("a"), spec("b"), spec("boss"))
				require.NoError(t, res.Err())
				_, answer, _ := strings.Cut(n.last("a"), "## tool call_1_1\n")
				require.Regexp(t, `Invalid arguments: |Not sent: `, answer)
				require.Contains(t, answer, tt.want)
				require.Less(t, len(answer), 2000)
				require.NotContains(t, n.last("b"), "Message from")
				require.Empty(t, sentIn(journal))
			})
		})
	}
}

// TestHugeHandoffs checks calls beyond what a reply may have: the task fails, and nothing is sent.
func TestHugeHandoffs(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	big := strings.Repeat("x", 10<<20)
	for _, arguments := range []string{`{"to":"b","message":"` + big + `"}`, `{"to":"b","message":"x","structured":{"y":"` + big + `"}}`} {
		n, journal := &newsroom{}, &memory{}
		synctest.Test(t, func(t *testing.T) {
			tm := edged(t, edges("a>b"), n.member(t, "a", step{calls: []llm.ToolCall{call("send_handoff", arguments)}}, done), n.member(t, "b", waits, waits, done))
			res, err := tm.RunTasks(t.Context(), []task.Spec{spec("a"), spec("b")}, &engine.RunOptions{RunID: "r", Journal: journal})
			require.NoError(t, err)
			require.ErrorContains(t, of(t, res, "a").Error, "the calls of tools in one reply have")
			require.Empty(t, sentIn(journal))
		})
	}
}

// TestHandoffsOfALaterAttempt checks that what a later attempt sends in place of the call of a failed one is not lost,
// and that IDs which a model gives its calls make no difference.
//
// Requirement: G38.
func TestHandoffsOfALaterAttempt(t *testing.T) {
	t.Parallel()
	same := func(to, message string) llm.ToolCall {
		c := sendsTo(to, message)
		c.ID = "same"
		return c
	}
	for name, tt := range map[string]struct{ first, second []llm.ToolCall }{
		"another message": {[]llm.ToolCall{sendsTo("b", "one")}, []llm.ToolCall{sendsTo("b", "two")}},
		"another reader":  {[]llm.ToolCall{sendsTo("c", "one")}, []llm.ToolCall{sendsTo("b", "two")}},
		"one ID":          {[]llm.ToolCall{same("c", "one"), same("b", "two")}, []llm.ToolCall{same("c", "one"), same("b", "two")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				team := func(n *newsroom, first, second []llm.ToolCall) *engine.Team {
					a, tries := n.member(t, "a", done), 0
					a.Agent = agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
						switch began := len(p.Messages()) > 1; {
						case began && tries == 0:
							tries++
							return agent.Reply{}, errBroken
						case began:
							return agent.Reply{Text: "done"}, nil
						case tries == 0:
							return agent.Reply{ToolCalls: first}, nil
						}
						return agent.Reply{ToolCalls: second}, nil
					})
					return edged(t, edges("a>b", "a>c"), a, n.member(t, "b", waits, waits, done), n.member(t, "c", waits, waits, done))
				}
				again := retrying("a", 1)
				again.RetryDelay = task.NoDelay
				specs, n, journal := []task.Spec{again, spec("b"), spec("c")}, &newsroom{}, &memory{}
				check := func(n *newsroom, journal *memory, about string) {
					require.Equal(t, 1, strings.Count(n.last("b"), "two"), about)
					require.Contains(t, n.last("b")+n.last("c"), "one", about)
					require.Len(t, sentIn(journal), 2, about)
				}
				require.NoError(t, run(t, team(n, tt.first, tt.second), &engine.RunOptions{RunID: "r", Journal: journal}, specs...).Err())
				check(n, journal, "")

				// A process that asks the agent anew, behind one that died after any commit.
				for commits := range journal.len() {
					next, again := &newsroom{}, after(journal.history(commits))
					res := run(t, team(next, tt.second, tt.second), &engine.RunOptions{RunID: "r", Journal: again, Fresh: []string{"a"}}, specs...)
					require.NoError(t, res.Err(), "after %d commits", commits)
					if last := next.last("b"); last != "" { // it has not ended before
						require.Equal(t, 1, strings.Count(last, "two"), "after %d commits:\n%s", commits, last)
					}
				}
			})
		})
	}
}

// TestHandoffChainStopsAfterSixteenHops checks that a chain through three agents ends, and that the one which would
// send the next handoff reads why.
//
// Requirement: G17.
func TestHandoffChainStopsAfterSixteenHops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, journal := &newsroom{}, &memory{}
		tm := edged(t, edges("a>b", "b>c", "c>a"), n.member(t, "a", step{calls: []llm.ToolCall{sendsTo("b", "and you")}}, done),
			n.member(t, "b", step{calls: []llm.ToolCall{sendsTo("c", "and you")}}, done), n.member(t, "c", step{calls: []llm.ToolCall{sendsTo("a", "and you")}}, done))
		var specs []task.Spec
		for i := range 17 {
			s := by([]string{"a", "b", "c"}[i%3], spec(fmt.Sprint("t", i)))
			if i > 0 {
				s.DependsOn = []task.Ref{{Task: fmt.Sprint("t", i-1)}}
			}
			specs = append(specs, s)
		}
		res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
		require.NoError(t, res.Err())
		require.Len(t, sentIn(journal), 16)
		require.Regexp(t, `Not sent: .*16`, n.last("b"), "the seventeenth")
	})
}

// TestHandoffsAboveTheCeiling checks a task whose context is above what the edge carries, beside one whose context is
// not.
func TestHandoffsAboveTheCeiling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, journal := &newsroom{}, &memory{}
		a, b := n.member(t, "a", step{calls: []llm.ToolCall{sendsTo("b", "x")}}, done), n.member(t, "b", waits, waits, waits, done)
		a.Accepts, a.Tools, a.AllowUntrusted = label.Confidential, nil, nil
		low, high := by("a", spec("low")), by("a", spec("high", "low"))
		high.Classification = label.Confidential
		tm := edged(t, []handoff.Edge{{From: "a", To: "b", MaxClassification: new(label.Internal)}}, a, b)
		res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: journal}, low, high, spec("b"))
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a b"}, sentIn(journal))
		require.Regexp(t, `Not sent: .*confidential.*internal`, n.last("a"))
	})
}

// TestRepliesToReplies checks that a reply may ask for a reply in turn, also in a run that is resumed after each commit.
func TestRepliesToReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, journal := &newsroom{}, &memory{}
		scripts := func(n *newsroom) *engine.Team {
			return edged(t, both("a<>b"), n.member(t, "a", requires("b", "which wind"), replies("b", "the mean"), waits, done),
				n.member(t, "b", waits, waits, replies("a", "mean or gust", `,"response":{"expectation":"required"}`), done))
		}
		res := run(t, scripts(n), &engine.RunOptions{RunID: "r", Journal: journal}, spec("a"), spec("b"))
		require.NoError(t, res.Err())
		require.Empty(t, res.Warnings)
		require.Regexp(t, `(?s)Reply from b .*mean or gust`, n.last("a"))
		require.Regexp(t, `(?s)Reply from a .*\nthe mean\n`, n.last("b"))
		answered := 0
		for commits := range journal.len() + 1 {
			again := &newsroom{}
			require.NoError(t, resumed(t, scripts(again), journal.history(commits), spec("a"), spec("b")).Err(), "after %d commits", commits)
			if strings.Contains(again.last("a"), "No reply: no task of b is left") {
				continue // b went on before a, which was asked anew, had sent its question
			}
			for who, text := range map[string]string{"a": "mean or gust", "b": "\nthe mean\n"} {
				if last := again.last(who); last != "" {
					answered++
					require.Equal(t, 1, strings.Count(last, text), "%s after %d commits:\n%s", who, commits, last)
				}
			}
		}
		require.Greater(t, answered, journal.len()/2)
	})
}
