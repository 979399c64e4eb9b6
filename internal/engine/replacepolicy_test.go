package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// leak is what agents say in these tests.
const leak = `{"score":7,"ssn":"canary-4711"}`

// says is an agent that answers with a leak after a minute.
func (s *steered) says(name string) engine.Member {
	m := s.slow(name)
	does := m.Agent
	m.Agent = versioned{engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		reply, err := does.Run(ctx, p)
		if err == nil {
			reply.Text = leak
		}
		return reply, err
	})}
	return m
}

// blocking is a policy that keeps a part of what one agent makes from another.
func blocking(from, to string, paths ...task.Path) *handoff.Policy {
	return &handoff.Policy{Rules: []handoff.PairRule{{From: from, To: to, Block: paths}}}
}

// replace sends another policy after so many minutes, for the one of the run at that time.
func (s *steered) replace(minutes float64, p *handoff.Policy) <-chan error {
	done := make(chan error, 1)
	go func() {
		time.Sleep(time.Duration(minutes * float64(time.Minute)))
		now, err := s.monitor.Policy()
		if err == nil {
			err = s.monitor.Steer(context.Background(), steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: p, Replaces: now.Digest})
		}
		done <- err
	}()
	return done
}

// Requirement: G61.
func TestAnotherPolicyHoldsForWhatBeginsAndStopsWhatItDenies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		tm := governed(t, nil, s.says("a"), s.says("b"), s.says("c"), s.says("d"))
		done := s.replace(1.5, &handoff.Policy{Rules: []handoff.PairRule{
			{From: "a", To: "b", Block: []task.Path{"ssn"}}, {From: "a", To: "d", Mode: handoff.Minimal},
		}})
		res := run(t, tm, s.options(), spec("a"), spec("b", "a"), spec("c", "a"), spec("d", "a", "b"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err(), "no retry is used up, and there is none")
		require.Equal(t, []string{"a at 0", "b at 1", "b at 1.5", "c at 1", "d at 2.5"}, slices.Sorted(slices.Values(s.asked)), "c holds nothing that is denied")
		for i, who := range s.asked {
			denied := who == "b at 1.5"
			if strings.HasPrefix(who, "b") || strings.HasPrefix(who, "c") {
				require.Equal(t, !denied, strings.Contains(s.texts[i], "canary-4711"), who)
			}
			if strings.HasPrefix(who, "d") {
				require.Equal(t, 1, strings.Count(s.texts[i], "canary-4711"), "of b, and not of a")
			}
		}
		require.Equal(t, 2, of(t, res, "b").Metrics.Attempts)
		s.requireCommands("policy")
	})
}

// What no entry endorses does not pass into a system prompt, so a policy that recasts it denies it.
func TestAPolicyThatRecastsStopsWhatHoldsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		b := spec("b", "a")
		b.DependsOn[0].Optional = true
		o := s.options()
		o.AllowWidening = true // a place in a system prompt counts as one
		done := s.replace(1.5, &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Translate: &handoff.Translation{Recast: "system"}}}})
		res := run(t, governed(t, nil, s.says("a"), s.says("b")), o, spec("a"), b)
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1", "b at 1.5"}, s.asked)
		require.NotContains(t, s.texts[2], "canary-4711")
	})
}

// What is built and not sent is built again.
func TestPrefetchedPromptsAreBuiltAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		o := s.options()
		o.MaxConcurrency = 1
		done := s.replace(1.5, blocking("a", "c", "ssn"))
		res := run(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c")), o, spec("a"), spec("b", "a"), spec("c", "a"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1", "c at 2"}, s.asked)
		require.Contains(t, s.texts[1], "canary-4711")
		require.NotContains(t, s.texts[2], "canary-4711")
		require.Equal(t, 1, of(t, res, "c").Metrics.Attempts)
	})
}

// Each decision names the policy that made it.
func TestDecisionsNameTheirPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, a := newSteered(t), &audience{}
		o := s.options()
		o.Subscribers = append(o.Subscribers, a.take)
		done := s.replace(1.5, blocking("a", "c", "ssn"))
		res := run(t, governed(t, blocking("x", "b", "y"), s.says("a"), s.says("b"), s.says("c"), s.says("x")), o, spec("a"), spec("b", "a"), spec("c", "a", "b"))
		require.NoError(t, res.Err())
		err := <-done
		require.ErrorIs(t, err, steer.ErrWidens, "it lets b have what x makes")
		require.ErrorIs(t, err, steer.ErrRefused)
		require.ErrorContains(t, err, "x→b: everything in place of everything except y")
		require.Equal(t, a.handed("b")[0].Policy, a.handed("c")[0].Policy)
	})
	synctest.Test(t, func(t *testing.T) {
		s, a := newSteered(t), &audience{}
		o := s.options()
		o.Subscribers = append(o.Subscribers, a.take)
		done := s.replace(1.5, blocking("a", "c", "ssn"))
		res := run(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c")), o, spec("a"), spec("b", "a"), spec("c", "a", "b"))
		require.NoError(t, res.Err())
		require.NoError(t, <-done)
		require.NotEqual(t, a.handed("b")[0].Policy, a.handed("c")[0].Policy)
		require.Equal(t, a.handed("c")[0].Policy, a.handed("c")[1].Policy)
	})
}

// Requirement: G61.
func TestWideningNeedsConsent(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			o := s.options()
			o.AllowWidening = allowed
			narrow := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Block: []task.Path{"ssn"}}, {From: "a", To: "c", Block: []task.Path{"ssn"}}}}
			done := s.replace(1.5, &handoff.Policy{})
			res := run(t, governed(t, narrow, s.says("a"), s.says("b"), s.says("c")), o, spec("a"), spec("b", "a"), spec("c", "a", "b"))
			require.NoError(t, res.Err())
			require.NotContains(t, s.texts[1], "canary-4711")
			if err := <-done; !allowed {
				require.Equal(t, []string{"a at 0", "b at 1", "c at 2"}, s.asked)
				require.ErrorIs(t, err, steer.ErrWidens)
				found, ok := errors.AsType[task.Problems](err)
				require.True(t, ok)
				require.Len(t, found, 2, "each pair is named")
				require.Equal(t, "a→b: everything in place of everything except ssn", found[0].Message)
				require.Equal(t, "/policy", found[0].Pointer)
				require.Equal(t, 1, strings.Count(s.texts[2], "canary-4711"), "of b alone")
			} else {
				require.NoError(t, err)
				require.Equal(t, []string{"a at 0", "b at 1", "b at 1.5", "c at 2.5"}, s.asked, "b gets more, so it begins again")
				require.Equal(t, 1, strings.Count(s.texts[2], "canary-4711"))
				require.Equal(t, 2, strings.Count(s.texts[3], "canary-4711"))
			}
		})
	}
}

// Of two policies for one, the second is stale.
func TestAStalePolicyIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		first, second := s.replace(0.5, blocking("a", "b", "ssn")), make(chan error, 1)
		go func() {
			now, err := s.monitor.Policy()
			for err != nil { // the run begins
				time.Sleep(time.Millisecond)
				now, err = s.monitor.Policy()
			}
			time.Sleep(time.Minute)
			second <- s.monitor.Steer(context.Background(), steer.Command{Kind: steer.ReplacePolicy, By: "bob", Policy: blocking("a", "b", "score"), Replaces: now.Digest})
		}()
		res := run(t, governed(t, nil, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, res.Err())
		require.NoError(t, <-first)
		err := <-second
		require.ErrorIs(t, err, steer.ErrStale)
		require.ErrorIs(t, err, steer.ErrRefused)
		require.Contains(t, s.texts[1], `"score":7`)
		_, err = s.monitor.Policy()
		require.ErrorIs(t, err, steer.ErrNotRunning)
	})
}

// If anything is wrong, nothing changes, and everything that is wrong is said.
func TestAWrongPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	rule := func(r handoff.PairRule) *handoff.Policy { return &handoff.Policy{Rules: []handoff.PairRule{r}} }
	for name, tt := range map[string]struct {
		policy *handoff.Policy
		want   map[string]string
	}{
		"names and a pattern": {&handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "bb", Block: []task.Path{"x"}}, {From: "a", To: "b", Mode: "no"}},
			Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "p", Regexp: "("}}}},
			map[string]string{"/policy/rules/0/to": `unknown agent "bb"`, "/policy/rules/1/mode": `unknown mode "no"`, "/policy/redact/patterns/0": "pattern"}},
		"what a task cannot do without": {rule(handoff.PairRule{From: "a", To: "b", Ceiling: new(label.Public)}),
			map[string]string{"/tasks/1/dependsOn/0": "lets public through at most"}},
		"what would be nothing": {rule(handoff.PairRule{From: "a", To: "b", Mode: handoff.Scoped}),
			map[string]string{"/tasks/1/dependsOn/0": "scoped without a list"}},
		"the answer": {rule(handoff.PairRule{From: "b", To: handoff.User, Ceiling: new(label.Public)}),
			map[string]string{"/tasks/1": "would be withheld"}},
		"an approver": {&handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "a", To: "b", Reason: "r"}, Paths: []task.Path{"/score"}, Approve: "nobody"}}},
			map[string]string{"/policy/declassify/0/approve": `unknown approver "nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSteered(t)
				o := s.options()
				o.AllowWidening = true
				done := s.replace(0.5, tt.policy)
				res := run(t, governed(t, nil, s.says("a"), s.says("b")), o, spec("a"), spec("b", "a"))
				err := <-done
				require.ErrorIs(t, err, steer.ErrRefused)
				found, ok := errors.AsType[task.Problems](err)
				require.True(t, ok, "%v", err)
				got := map[string]string{}
				for _, p := range found {
					got[p.Pointer] = p.Message
				}
				require.Len(t, got, len(tt.want), "%v", found)
				for pointer, message := range tt.want {
					require.Contains(t, got[pointer], message, pointer)
				}
				require.NoError(t, res.Err())
				require.Equal(t, []string{"a at 0", "b at 1"}, s.asked)
				require.Contains(t, s.texts[1], "canary-4711")
				for _, e := range s.journal.history(s.journal.len()).Log {
					require.Nil(t, e.Command)
				}
			})
		})
	}
}

// What has completed need not be allowed any more, and counts with the label that it has.
func TestWhatHasCompletedIsNotCheckedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.replace(2.5, &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Ceiling: new(label.Public)}}})
		res := run(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c")), s.options(), spec("a"), spec("b", "a"), spec("c", "b"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1", "c at 2"}, s.asked)
	})
}

// An assertion counts what a reader has got before.
func TestAssertionsCountWhatReadersHold(t *testing.T) {
	t.Parallel()
	parse := func(text string) flow.Assertion {
		a, err := flow.ParseAssertion(text)
		require.NoError(t, err)
		return a
	}
	// A block keeps the number of a from d. Then b may not read a, and d may read b: but b has read it.
	before := &handoff.Policy{Rules: []handoff.PairRule{{From: "b", To: "d", Mode: handoff.Minimal}}}
	after := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Mode: handoff.Minimal}}}
	for _, minutes := range []float64{0.5, 1.5, 2.5} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			o := s.options()
			o.AllowWidening, o.Assert = true, []flow.Assertion{parse("task a never derives into d")}
			done := s.replace(minutes, after)
			res := run(t, governed(t, before, s.says("a"), s.says("b"), s.says("d")), o, spec("a"), spec("b", "a"), spec("d", "b"))
			err := <-done
			if minutes < 1 {
				require.NoError(t, err)
				require.NotContains(t, s.texts[1], "canary-4711")
				return
			}
			require.ErrorIs(t, err, engine.ErrAssertion)
			found, _ := errors.AsType[task.Problems](err)
			require.Equal(t, "/assert/0", found[0].Pointer)
			require.NoError(t, res.Err())
		})
	}
}

// A task that has done something outside is not performed again.
func TestARevocationAfterAnEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		paid := 0
		pay := newTool(t, "pay", tool.Options{}, func(context.Context, map[string]any) (string, error) { paid++; return "paid", nil })
		clerk := s.slow("b")
		clerk.Tools, clerk.AllowUntrusted = []*tool.Tool{pay}, []string{"pay"}
		calls := 0
		does := clerk.Agent
		clerk.Agent = engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if calls++; calls == 1 {
				return agent.Reply{ToolCalls: []llm.ToolCall{call("pay", "{}")}}, nil
			}
			return does.Run(ctx, p)
		})
		done := s.replace(1.5, blocking("a", "b", "ssn"))
		res := run(t, governed(t, nil, s.says("a"), clerk), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, <-done)
		require.Equal(t, 1, paid)
		require.ErrorIs(t, res.Err(), engine.ErrEffectsUncertain)
		require.Equal(t, "EFFECTS_UNCERTAIN", of(t, res, "b").Error.Code)
	})
}

// TestExternalCallsAreAwaited checks that a new policy does not cancel a call with an external effect, that nothing
// else of its attempt is called any more, and that the run can still be canceled meanwhile.
func TestExternalCallsAreAwaited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of       tool.Options
		cancel   float64 // minutes after which the run is canceled; zero if it is not
		ended    float64 // minutes after which the call ends
		attempts int
		code     string
	}{
		"it cannot be repeated":   {ended: 6, attempts: 1, code: "EFFECTS_UNCERTAIN"},
		"it can be repeated":      {of: tool.Options{Repeatable: true}, ended: 6, attempts: 2},
		"it has no effect":        {of: noEffect, ended: 1.5, attempts: 2},
		"the run is canceled":     {cancel: 3, ended: 3, attempts: 1},
		"its own time limit ends": {of: tool.Options{Timeout: 2 * time.Minute}, ended: 3, attempts: 1, code: "EFFECTS_UNCERTAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSteered(t)
				began := time.Now()
				ended := make(chan float64, 3)
				of := tt.of
				of.Timeout = cmp.Or(of.Timeout, time.Hour)
				pay := newTool(t, "pay", of, func(ctx context.Context, _ map[string]any) (string, error) {
					select {
					case <-time.After(5 * time.Minute):
					case <-ctx.Done():
					}
					ended <- time.Since(began).Minutes()
					return "paid", ctx.Err()
				})
				asked := 0
				clerk := engine.Member{Name: "b", Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}, Agent: engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					if asked++; asked == 1 {
						return agent.Reply{ToolCalls: []llm.ToolCall{call("pay", "{}")}}, nil
					}
					require.NotContains(t, p.Text(), "canary-4711")
					return agent.Reply{Text: "done"}, nil
				})}
				done := s.replace(1.5, blocking("a", "b", "ssn"))
				if tt.cancel > 0 {
					s.at(tt.cancel, steer.Command{Kind: steer.Cancel})
				}
				res := run(t, governed(t, nil, s.says("a"), clerk), s.options(), spec("a"), spec("b", "a"))
				require.NoError(t, <-done)
				require.InDelta(t, tt.ended, <-ended, 0.001)
				require.Empty(t, ended)
				require.Equal(t, tt.attempts, asked)
				if tt.code != "" {
					require.Equal(t, tt.code, res.Tasks[1].Error.Code)
				}
			})
		})
	}
}

// The question to a person who waits is asked again, with what the person may see now.
func TestQuestionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		ann := engine.Member{Name: "ann", Agent: person.New(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			s.note("ann", p.Text())
			select {
			case <-time.After(time.Minute):
				return agent.Reply{Text: "yes"}, nil
			case <-ctx.Done():
				return agent.Reply{}, ctx.Err()
			}
		})}
		done := s.replace(1.5, blocking("a", "ann", "ssn"))
		res := run(t, governed(t, nil, s.says("a"), ann), s.options(), spec("a"), by("ann", spec("b", "a")))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "ann at 1", "ann at 1.5"}, s.asked)
		require.NotContains(t, s.texts[2], "canary-4711")
		require.Equal(t, "yes", of(t, res, "b").Result)
	})
}

// The result of a run whose policy was replaced, at each commit, is resumed with the newest policy:
// what completed before stands, and what follows obeys it.
//
// Requirement: G61.
func TestAResumedRunHasTheNewestPolicy(t *testing.T) {
	t.Parallel()
	var whole *memory
	specs := []task.Spec{spec("a"), spec("b", "a"), spec("c", "a"), spec("d", "a", "b", "c")}
	specs[2].DependsOn = append(specs[2].DependsOn, task.Ref{Task: "b", Optional: true})
	denies := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "*", Block: []task.Path{"ssn"}}}}
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.replace(2.5, denies)
		res := run(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c"), s.says("d")), s.options(), specs...)
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1", "c at 2", "c at 2.5", "d at 3.5"}, s.asked)
		whole = s.journal
	})
	for n := range whole.len() + 1 {
		h := whole.history(n)
		h.End = nil
		replaced, completed := false, map[string]bool{}
		for _, e := range h.Log {
			replaced = replaced || e.Command != nil
			if e.Exchange != nil && e.Exchange.Completed() {
				completed[e.Exchange.Title] = true
			}
		}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			s := newSteered(t)
			res := resumed(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c"), s.says("d")), h, specs...)
			require.NoError(t, res.Err())
			for i, who := range s.asked {
				title, _, _ := strings.Cut(who, " ")
				require.False(t, completed[title], "%s after %d commits", who, n)
				if title == "c" || title == "d" {
					own := strings.Count(s.texts[i], "canary-4711")
					require.Equal(t, replaced, own == len(specs[int(title[0]-'a')].DependsOn)-1, "%s after %d commits: %s", who, n, s.texts[i])
				}
			}
		})
	}
}

// TestAResumedRunKeepsWhatEachPolicyDelivered checks that a result counts in a resumed run with the policy of its prompt,
// which is neither the first nor the newest one and delivered more than both.
func TestAResumedRunKeepsWhatEachPolicyDelivered(t *testing.T) {
	t.Parallel()
	narrow := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Ceiling: new(label.Internal)}, {From: "b", To: "c", Ceiling: new(label.Internal)}}}
	specs := []task.Spec{spec("a"), spec("b", "a"), spec("c", "b"), spec("d", "c")}
	specs[0].Classification = label.Confidential
	specs[1].DependsOn[0].Optional, specs[2].DependsOn[0].Optional = true, true
	team := func(s *steered) *engine.Team {
		var members []engine.Member
		for _, name := range []string{"a", "b", "c", "d"} {
			m := s.says(name)
			m.Accepts = label.Confidential
			members = append(members, m)
		}
		return governed(t, narrow, members...)
	}
	var whole *memory
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		o := s.options()
		o.AllowWidening = true
		first, second := s.replace(0.5, &handoff.Policy{}), s.replace(3.5, narrow)
		res := run(t, team(s), o, specs...)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1", "c at 2", "d at 3"}, s.asked)
		require.Equal(t, label.Confidential, of(t, res, "c").Label)
		whole = s.journal
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s := newSteered(t)
		h := interrupted(whole, func(e *record.Entry) bool { return e.Exchange != nil && e.Exchange.Title == "d" })
		res := resumed(t, team(s), h, specs...)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"d at 0"}, s.asked)
		require.Equal(t, label.Confidential, of(t, res, "c").Label)
	})
}

// A replay uses, for each decision, the policy that made it.
func TestAReplayHasThePolicyOfEachPrompt(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{spec("a"), spec("b", "a"), spec("c", "a", "b"), spec("d", "c")}
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		o := s.options()
		o.AllowWidening = true
		first := s.replace(1.5, &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "*", Block: []task.Path{"ssn"}}, {From: "b", To: handoff.User, Block: []task.Path{"ssn"}}}})
		second := s.replace(2.7, &handoff.Policy{Rules: []handoff.PairRule{{From: "*", To: "d", Mode: handoff.Minimal}}})
		start := blocking("a", "b", "ssn")
		res := run(t, governed(t, start, s.says("a"), s.says("b"), s.says("c"), s.says("d")), o, specs...)
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.NoError(t, res.Err())
		h := s.journal.history(s.journal.len())
		var silent []engine.Member
		for _, name := range []string{"a", "b", "c", "d"} {
			silent = append(silent, engine.Member{Name: name, Agent: nobody(t)})
		}
		again := &memory{prior: h}
		replay, err := governed(t, start, silent...).Replay(context.Background(), "r", &engine.RunOptions{Journal: again, Tasks: specs})
		require.NoError(t, err)
		require.NoError(t, replay.Err())
		for i := range res.Tasks {
			require.Equal(t, res.Tasks[i].Result, replay.Tasks[i].Result, res.Tasks[i].Title)
			was, is := res.Tasks[i].Receipts, replay.Tasks[i].Receipts
			require.Equal(t, was[len(was)-1].Classification, is[len(is)-1].Classification)
		}
	})
}

// A stream of what the policy keeps from the user now ends, and what was shown is taken back.
func TestAStreamStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.replace(0.5, blocking("a", handoff.User, "ssn"))
		res := run(t, governed(t, nil, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 1"}, s.asked)
		require.Equal(t, `{"score":7}`, of(t, res, "a").Result, "the caller reads by the newest policy")
	})
}

func TestAPolicyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		p := blocking("a", "b", "ssn")
		p.Rules[0].ID = handoff.Rule(strings.Repeat("x", 10<<20))
		done := s.replace(0.5, p)
		res := run(t, governed(t, nil, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, res.Err())
		err := <-done
		require.ErrorIs(t, err, steer.ErrInvalid)
		require.ErrorIs(t, err, policytext.ErrTooLarge)
	})
}

// A run whose journal fails keeps the command from its sender, and sends nothing under the policy.
func TestAPolicyThatCannotBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		go func() {
			time.Sleep(20 * time.Second)
			s.journal.mu.Lock()
			s.journal.fail = len(s.journal.batches)
			s.journal.mu.Unlock()
		}()
		done := s.replace(0.5, blocking("a", "b", "ssn"))
		_ = run(t, governed(t, nil, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
		require.ErrorIs(t, <-done, errDisk)
		require.Equal(t, []string{"a at 0"}, s.asked)
	})
}

// BenchmarkReplacePolicy replaces the policy of a run that works.
func BenchmarkReplacePolicy(b *testing.B) {
	for _, tasks := range []int{1, 100, 1_000, 10_000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			var m record.Monitor
			began, stop := make(chan struct{}), make(chan struct{})
			waits := member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
				began <- struct{}{}
				<-stop
				return agent.Reply{Text: "done"}, nil
			})
			specs := []task.Spec{spec("a")}
			for i := range tasks - 1 {
				specs = append(specs, by(fmt.Sprint("w", i%8), spec(fmt.Sprint("t", i), "a")))
			}
			members := []engine.Member{waits}
			for i := range 8 {
				members = append(members, member(fmt.Sprint("w", i), says("done")))
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				run(b, governed(b, nil, members...), &engine.RunOptions{Monitor: &m, AllowWidening: true}, specs...)
			}()
			<-began
			policies := []*handoff.Policy{blocking("a", "w1", "x"), blocking("w1", "w2", "x", "y")}
			for i := 0; b.Loop(); i++ {
				now, err := m.Policy()
				if err == nil {
					err = m.Steer(b.Context(), steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: policies[i%2], Replaces: now.Digest})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			<-done
		})
	}
}

// While the coordinator plans, the policy is checked against the team alone; its plan is then checked
// by the newest one. What the coordinator holds and may not any more is taken back as from any agent.
func TestAnotherPolicyForAGoal(t *testing.T) {
	t.Parallel()
	for _, minutes := range []float64{0.5, 1.5, 2.5} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			chief := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				kind := "plan"
				if strings.Contains(p.Text(), "canary-4711") || strings.Contains(p.Text(), "Task Results") {
					kind = "answer"
				}
				s.note(kind, p.Text())
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
					return agent.Reply{}, ctx.Err()
				}
				if kind == "plan" {
					return agent.Reply{Text: `[{"title":"A","description":"Do it.","assignee":"a"}]`}, nil
				}
				return agent.Reply{Text: "the answer"}, nil
			})
			tm, err := engine.New(engine.Config{Agents: []engine.Member{s.says("a")}, Coordinator: &engine.Coordinator{Agent: versioned{chief}}})
			require.NoError(t, err)
			o := s.options()
			wrong := s.replace(minutes-0.1, &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Coordinator, To: handoff.User, Ceiling: new(label.Public)}, {From: "b", To: "*", Block: []task.Path{"x"}}}})
			done := s.replace(minutes, blocking("a", handoff.Coordinator, "ssn"))
			res, err := tm.RunTeam(context.Background(), engine.Goal{Text: "Do the first thing, and then compare it with the second."}, o)
			require.NoError(t, err)
			require.ErrorContains(t, <-wrong, `unknown agent "b"`)
			require.NoError(t, <-done)
			require.NoError(t, res.Err())
			require.Equal(t, "the answer", res.Output)
			last := s.texts[len(s.texts)-1]
			require.NotContains(t, last, "canary-4711")
			require.Contains(t, last, `"score":7`)
			require.Equal(t, minutes > 2, len(s.asked) == 4, "%v", s.asked)

			h := s.journal.history(s.journal.len())
			silent, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: nobody(t)}}, Coordinator: &engine.Coordinator{Agent: nobody(t)}})
			require.NoError(t, err)
			time.Sleep(time.Hour)
			replay, err := silent.Replay(context.Background(), "r", &engine.RunOptions{Journal: &memory{prior: h}, Answer: &engine.Goal{Text: "Do the first thing, and then compare it with the second."}})
			require.NoError(t, err)
			require.NoError(t, replay.Err())
			require.Equal(t, res.Output, replay.Output)
		})
	}
}

// TestAnAnswerIsMadeAgainWithoutNames checks that a policy that hides names hides them in all of the prompt with which the
// coordinator answers again.
func TestAnAnswerIsMadeAgainWithoutNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		chief := engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			s.note("chief", p.System()+p.Text())
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return agent.Reply{}, ctx.Err()
			}
			if len(s.asked) == 1 {
				return agent.Reply{Text: `[{"title":"A","description":"Do it.","assignee":"harriet","verify":{"judges":["roderick"]}}]`}, nil
			}
			return agent.Reply{Text: "the answer"}, nil
		})
		judge := member("roderick", fails(errBroken)) // so its task is listed by its title
		tm, err := engine.New(engine.Config{Agents: []engine.Member{s.says("harriet"), judge}, Coordinator: &engine.Coordinator{Agent: versioned{chief}, MayPlan: synth.Constructs{Verify: true}}})
		require.NoError(t, err)
		done := s.replace(2.5, &handoff.Policy{HideIdentity: true})
		res, err := tm.RunTeam(context.Background(), engine.Goal{Text: "Do the first thing, and then compare it with the second."}, s.options())
		require.NoError(t, err)
		require.NoError(t, <-done)
		require.Equal(t, "the answer", res.Output)
		require.Len(t, s.texts, 4)
		require.Regexp(t, "harriet|roderick", s.texts[2])
		require.NotRegexp(t, "harriet|roderick", s.texts[3])
	})
}

// A task whose stored result is of no use any more begins by the newest policy, and not by that of then.
//
// Requirement: G61.
func TestATaskThatIsPerformedAgainHasTheNewestPolicy(t *testing.T) {
	t.Parallel()
	var h *record.History
	specs := []task.Spec{spec("a"), spec("b", "a"), spec("c", "b")}
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.replace(2.5, blocking("a", "b", "ssn"))
		res := run(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c")), s.options(), specs...)
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		h = interrupted(s.journal, nil)
	})
	specs = slices.Clone(specs)
	specs[1].Description = "Do b anew."
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s := newSteered(t)
		res := resumed(t, governed(t, nil, s.says("a"), s.says("b"), s.says("c")), h, specs...)
		require.NoError(t, res.Err())
		require.NotEmpty(t, s.asked)
		require.Equal(t, "b at 0", s.asked[0])
		require.Contains(t, s.texts[0], "Do b anew.")
		require.NotContains(t, s.texts[0], "canary-4711")
	})
}

// A result counts with the label that it has, and not with the highest that it could have had.
func TestResultsCountWithTheirLabels(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			x := cleared("x", label.Confidential, func(context.Context, prompt.Prompt) (agent.Reply, error) {
				if fails {
					return agent.Reply{}, errBroken
				}
				return agent.Reply{Text: "done"}, nil
			})
			var team []engine.Member
			for _, name := range []string{"a", "b", "c"} {
				m := s.says(name)
				m.Accepts = label.Confidential
				team = append(team, m)
			}
			hidden := spec("x")
			hidden.Classification = label.Confidential
			a := spec("a", "x")
			a.DependsOn[0].Optional = true
			done := s.replace(1.5, &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Ceiling: new(label.Internal)}}})
			_ = run(t, governed(t, nil, append(team, x)...), s.options(), hidden, a, spec("c", "a"), spec("b", "a", "c"))
			if err := <-done; fails {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "it is confidential, and the rule lets internal through at most")
			}
		})
	}
}

// A policy that equals the current one changes nothing, and nothing is stored.
func TestAnEqualPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.replace(1.5, blocking("a", "b", "ssn"))
		res := run(t, governed(t, blocking("a", "b", "ssn"), s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, res.Err())
		err := <-done
		require.ErrorIs(t, err, steer.ErrUnchanged)
		require.ErrorIs(t, record.RefusalError(record.Refusal(err)), steer.ErrUnchanged, "from another process")
		require.Empty(t, s.seen)
		for _, e := range s.journal.history(s.journal.len()).Log {
			require.Nil(t, e.Command)
		}
	})
}

// The assertions of a command must hold under its policy, with what readers have already got. They are not
// those of the run.
func TestAssertionsOfACommand(t *testing.T) {
	t.Parallel()
	nothingOfA := &handoff.Policy{Rules: []handoff.PairRule{{From: "a", To: "b", Mode: handoff.Minimal}}}
	for name, tt := range map[string]struct {
		minutes float64
		policy  *handoff.Policy
		assert  []string
		want    string
	}{
		"they hold":               {0.5, nothingOfA, []string{"task a never reaches b", "task b never reaches a"}, ""},
		"one fails":               {0.5, blocking("a", "b", "ssn"), []string{"task b never reaches a", "task a never reaches b"}, "/policy/assert/1"},
		"a reader has it already": {1.5, nothingOfA, []string{"task a never reaches b"}, "/policy/assert/0"},
		"no assertion":            {0.5, blocking("a", "b", "ssn"), []string{"a and b"}, "/policy/assert/0"},
		"no task":                 {0.5, blocking("a", "b", "ssn"), []string{"task x never reaches b"}, "/policy/assert/0"},
		"of an equal policy":      {0.5, &handoff.Policy{}, []string{"task a never reaches b"}, "/policy/assert/0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, done := newSteered(t), make(chan error, 1)
				go func() {
					time.Sleep(time.Duration(tt.minutes * float64(time.Minute)))
					now, err := s.monitor.Policy()
					if err == nil {
						err = s.monitor.Steer(context.Background(), steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: tt.policy, Replaces: now.Digest, Assert: tt.assert})
					}
					done <- err
				}()
				res := run(t, governed(t, nil, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b", "a"))
				require.NoError(t, res.Err())
				err := <-done
				if tt.want == "" {
					require.NoError(t, err)
					return
				}
				found, is := errors.AsType[task.Problems](err)
				require.True(t, is, "%v", err)
				require.Len(t, found, 1, "%v", found)
				require.Equal(t, tt.want, found[0].Pointer)
				require.Empty(t, s.seen)
			})
		})
	}
}

// A policy that no file can have is stored as its digest, with the reason.
func TestAPolicyThatNoFileCanHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		own := &handoff.Policy{Renew: []handoff.Renewal{{Entry: handoff.Entry{Name: "r", From: "a", To: "b", Reason: "r"}, TTL: time.Microsecond}}}
		res := run(t, governed(t, own, s.says("a"), s.says("b")), s.options(), spec("a"), spec("b"))
		require.NoError(t, res.Err())
		stored := s.journal.history(s.journal.len()).Begins[0].Policy
		require.Len(t, stored.Digest, 64)
		_, err := stored.Compile()
		require.ErrorIs(t, err, record.ErrPolicyUnwritten)
		require.ErrorContains(t, err, `renewal "r": its TTL is no whole number of milliseconds`)
	})
}
