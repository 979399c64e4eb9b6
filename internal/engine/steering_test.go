package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A steered run is one that a test steers. Its agents take a minute for each call, unless it is ended.
type steered struct {
	t       *testing.T
	start   time.Time
	monitor record.Monitor
	journal *memory

	mu    sync.Mutex // guards the rest
	asked []string   // who was given which prompt, and when, in minutes
	texts []string
	seen  []event.Event
}

func newSteered(t *testing.T) *steered { return &steered{t: t, start: time.Now(), journal: &memory{}} }

// slow is an agent that answers after a minute.
func (s *steered) slow(name string) engine.Member {
	return member(name, func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		s.note(name, p.Text())
		select {
		case <-time.After(time.Minute):
			return agent.Reply{Text: name + " is done"}, nil
		case <-ctx.Done():
			return agent.Reply{}, context.Cause(ctx)
		}
	})
}

func (s *steered) note(who, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.texts = append(s.asked, fmt.Sprintf("%s at %v", who, time.Since(s.start).Minutes())), append(s.texts, text)
}

// at sends a command when so many minutes have passed, and returns the error.
func (s *steered) at(minutes float64, c steer.Command) <-chan error {
	done := make(chan error, 1)
	go func() {
		time.Sleep(time.Duration(minutes * float64(time.Minute)))
		c.By = "ann"
		done <- s.monitor.Steer(context.Background(), c)
	}()
	return done
}

func (s *steered) options() *engine.RunOptions {
	half := func() float64 { return 0.5 } // of each delay
	return &engine.RunOptions{RunID: "r", Journal: s.journal, Monitor: &s.monitor, Random: half, Subscribers: []func(event.Event){func(e event.Event) {
		if e.Type == event.Steered {
			s.mu.Lock()
			s.seen = append(s.seen, e)
			s.mu.Unlock()
		}
	}}}
}

// requireCommands holds that the journal and the subscribers have these commands.
func (s *steered) requireCommands(want ...string) {
	s.t.Helper()
	var stored, events []string
	for _, e := range s.journal.history(s.journal.len()).Log {
		if c := e.Command; c != nil {
			require.Equal(s.t, "ann", c.By)
			stored = append(stored, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Kind, c.Title, c.Reason)))
		}
	}
	for _, e := range s.seen {
		require.Equal(s.t, "ann", e.From)
		events = append(events, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Code, e.Title, e.Message)))
	}
	require.Equal(s.t, want, stored)
	require.Equal(s.t, want, events)
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		tm := newTeam(t, s.slow("a"), s.slow("b"), s.slow("c"))
		paused := s.at(0.5, steer.Command{Kind: steer.Pause, Reason: "lunch"})
		twice := s.at(0.6, steer.Command{Kind: steer.Pause})
		resumed := s.at(5, steer.Command{Kind: steer.Resume})
		again := s.at(5.1, steer.Command{Kind: steer.Resume})
		res := run(t, tm, s.options(), spec("a"), spec("b", "a"), spec("c", "b"))
		require.NoError(t, res.Err())
		require.Equal(t, []string{"a at 0", "b at 5", "c at 6"}, s.asked, "what runs goes on")
		require.NoError(t, <-paused)
		require.NoError(t, <-resumed)
		require.EqualError(t, <-twice, "the run refuses the command: it is paused already, by ann")
		require.EqualError(t, <-again, "the run refuses the command: it is not paused")
		s.requireCommands("pause  lunch", "resume")
		require.ErrorIs(t, s.monitor.Steer(t.Context(), steer.Command{Kind: steer.Pause, By: "ann"}), steer.ErrNotRunning)
	})
}

// A run that is paused until its time limit passes ends as any other.
func TestAPauseDoesNotStopTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		o := s.options()
		o.Timeout = time.Hour
		paused := s.at(0.5, steer.Command{Kind: steer.Pause})
		res := run(t, newTeam(t, s.slow("a"), s.slow("b")), o, spec("a"), spec("b", "a"))
		require.NoError(t, <-paused)
		require.Equal(t, engine.StatusTimeout, res.Status)
		require.Equal(t, time.Hour, time.Since(s.start))
	})
}

func TestCancelOfARun(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			if paused {
				s.at(0.5, steer.Command{Kind: steer.Pause})
			}
			done := s.at(1.5, steer.Command{Kind: steer.Cancel, Reason: "wrong file"})
			res := run(t, newTeam(t, s.slow("a"), s.slow("b")), s.options(), spec("a"), spec("b", "a"))
			require.NoError(t, <-done)
			require.Equal(t, engine.StatusCanceled, res.Status)
			require.EqualError(t, res.Cause, "cancelled by ann: wrong file")
			require.Equal(t, 90*time.Second, time.Since(s.start))
			require.Equal(t, task.Completed, res.Tasks[0].Status)
			require.Equal(t, task.Skipped, res.Tasks[1].Status)
		})
	}
}

func TestCancelOfATask(t *testing.T) {
	t.Parallel()
	fails := member("fails", func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errors.New("no") })
	retried := by("fails", spec("retried"))
	retried.MaxRetries, retried.RetryDelay = 3, time.Hour
	for _, tt := range []struct {
		name, title string
		minutes     float64
	}{{"running", "a", 0.5}, {"blocked", "b", 0.5}, {"between two attempts", "retried", 0.05}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSteered(t)
				c := spec("c", "a", "b", "retried")
				for i := range c.DependsOn {
					c.DependsOn[i].Optional = true
				}
				others := s.at(0.75, steer.Command{Kind: steer.Cancel, Task: "retried"})
				done := s.at(tt.minutes, steer.Command{Kind: steer.Cancel, Task: strings.ToUpper(tt.title)})
				var heard audience
				o := s.options()
				o.Subscribers = append(o.Subscribers, heard.take)
				res := run(t, newTeam(t, s.slow("a"), s.slow("b"), s.slow("c"), fails), o, spec("a"), spec("b", "a"), c, retried)
				require.NoError(t, <-done)
				for _, e := range heard.only(event.TaskSkipped) {
					require.Equal(t, e.Root == "", e.Code == "CANCELED", "%+v", e)
				}
				require.True(t, slices.ContainsFunc(heard.only(event.TaskSkipped), func(e event.Event) bool { return e.Title == tt.title && e.Message == "Skipped: cancelled by the user." }))
				require.Equal(t, tt.title == "retried", <-others != nil)
				require.Equal(t, engine.StatusError, res.Status)
				require.Equal(t, task.Skipped, of(t, res, tt.title).Status)
				require.Equal(t, "Skipped: cancelled by the user.", of(t, res, tt.title).Result)
				require.Equal(t, task.Completed, of(t, res, "c").Status, "it can do without")
				if tt.title == "a" {
					require.Equal(t, task.Skipped, of(t, res, "b").Status)
					require.Equal(t, "c at 0.75", s.asked[len(s.asked)-1])
				}
				// A resumed run does not begin it again.
				h := interrupted(s.journal, nil)
				again := newSteered(t)
				res = resumed(t, newTeam(t, again.slow("a"), again.slow("b"), again.slow("c"), fails), h, spec("a"), spec("b", "a"), c, retried)
				require.Equal(t, task.Skipped, of(t, res, tt.title).Status)
			})
		})
	}
}

// A call that somebody ended says nothing about its endpoint: the run did run.
func TestCommandsSayNothingAboutEndpoints(t *testing.T) {
	t.Parallel()
	for _, kind := range []steer.Kind{steer.Cancel, steer.Interrupt} {
		for name, err := range map[string]error{"an agent that gives up": nil, "a connection that breaks": &llm.Error{Kind: callfault.Unreachable}} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s, calls := newSteered(t), 0
					stuck := engine.Member{Name: "a", Agent: endpointAgent{func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
						if calls++; calls > 1 {
							return agent.Reply{}, errors.New("no")
						}
						<-ctx.Done()
						return agent.Reply{}, cmp.Or(err, ctx.Err())
					}, "http://localhost/v1"}}
					done := s.at(0.5, steer.Command{Kind: kind, Task: "a"})
					res := run(t, newTeam(t, stuck), s.options(), spec("a"))
					require.NoError(t, <-done)
					require.Equal(t, engine.StatusError, res.Status)
					require.Equal(t, kind == steer.Cancel, res.Answered, "the second call was not ended by a command")
				})
			})
		}
	}
}

func TestInterruptOfAPrompt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.at(0.5, steer.Command{Kind: steer.Interrupt, Task: "a", Text: "Be brief.", Reason: "too long"})
		again := s.at(0.75, steer.Command{Kind: steer.Interrupt, Task: "a"})
		res := run(t, newTeam(t, s.slow("a"), s.slow("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, <-done)
		require.NoError(t, <-again)
		require.NoError(t, res.Err(), "no retry is used up, and there is none")
		require.Equal(t, []string{"a at 0", "a at 0.5", "a at 0.75", "b at 1.75"}, s.asked)
		require.NotContains(t, s.texts[0], "Be brief.")
		require.Contains(t, s.texts[1], "## Messages from team members")
		require.Contains(t, s.texts[1], "Be brief.")
		require.Equal(t, s.texts[1], s.texts[2])
		require.NotContains(t, s.texts[3], "Be brief.", "it is for one task")
		s.requireCommands("interrupt a too long", "interrupt a")
	})
}

// An interrupt while the prompt of a task is built, for which a model summarizes, is in the prompt that the task gets.
func TestInterruptOfAPromptThatIsBuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		retell := func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Minute)
			return agent.Reply{Text: "short"}, nil
		}
		done := s.at(0.5, steer.Command{Kind: steer.Interrupt, Task: "reader", Text: "Be brief."})
		reader := s.slow("reader")
		reader.Agent = engine.AgentFunc(retells(retell, reader.Agent.Run))
		res := run(t, governed(t, summarizing(50), member("maker", says("long")), reader), s.options(), spec("maker"), spec("reader", "maker"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Contains(t, s.texts[len(s.texts)-1], "Be brief.")
		require.Len(t, s.asked, 1, "it is not asked without the message")
	})
}

func TestAnInterruptUsesUpNoRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		slow := s.slow("a").Agent
		calls := 0
		a := member("a", func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if calls++; calls == 2 {
				return agent.Reply{}, errors.New("no")
			}
			return slow.Run(ctx, p)
		})
		done := s.at(0.5, steer.Command{Kind: steer.Interrupt, Task: "a"})
		once := spec("a")
		once.MaxRetries, once.RetryDelay = 1, task.NoDelay
		res := run(t, newTeam(t, a), s.options(), once)
		require.NoError(t, <-done)
		require.NoError(t, res.Err(), "the retry is for the failure")
		require.Equal(t, 3, res.Tasks[0].Metrics.Attempts)
	})
}

// conversation is a team whose clerk calls the tool wait in each of two turns, and then answers with
// the last message. Its model and its tool take a minute.
func (s *steered) conversation(o tool.Options) *engine.Team {
	minute := func(ctx context.Context) error {
		select {
		case <-time.After(time.Minute):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	o.Timeout = time.Hour
	wait := newTool(s.t, "wait", o, func(ctx context.Context, _ struct{}) (string, error) {
		s.note("tool", "")
		return "waited", minute(ctx)
	})
	model := namedModel{func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		turn := turnOf(r)
		var all []string
		for _, m := range r.Messages {
			all = append(all, string(m.Role)+": "+m.Text)
		}
		s.note(fmt.Sprintf("turn %d", turn), strings.Join(all, "\n"))
		if err := minute(ctx); err != nil {
			return llm.Response{}, err
		}
		if turn < 3 {
			return llm.Response{ToolCalls: []llm.ToolCall{call("wait", `{}`), {ID: "2", Name: "wait", Arguments: `{}`}}}, nil
		}
		return llm.Response{Text: "answered"}, nil
	}}
	return newTeam(s.t, clerk(model, wait))
}

func TestInterruptOfATurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		minutes float64
		options tool.Options
		asked   []string
		told    []string // what the turn after the interrupt has, in this order
	}{
		{"first model call", 0.5, noEffect, []string{"turn 1 at 0", "turn 1 at 0.5", "tool at 1.5", "tool at 1.5", "turn 2 at 2.5"}, []string{"Be brief."}},
		{"tool", 1.5, noEffect, []string{"turn 1 at 0", "tool at 1", "tool at 1", "turn 2 at 1.5"}, []string{"The user interrupted the call.", "The user interrupted the call.", "user: Message from user:", "Be brief."}},
		{"tool with an effect", 1.5, tool.Options{}, []string{"turn 1 at 0", "tool at 1", "turn 2 at 1.5"}, []string{"It may have taken effect.", "Call not made: the user interrupted the task before.", "Be brief."}},
		{"later model call", 2.5, noEffect, []string{"turn 1 at 0", "tool at 1", "tool at 1", "turn 2 at 2", "turn 2 at 2.5"}, []string{"waited", "waited", "user: Message from user:", "Be brief."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSteered(t)
				done := s.at(tt.minutes, steer.Command{Kind: steer.Interrupt, Task: "errand", Text: "Be brief."})
				res := run(t, s.conversation(tt.options), s.options(), errand())
				require.NoError(t, <-done)
				require.NoError(t, res.Err())
				require.Equal(t, "answered", res.Tasks[0].Result)
				require.Equal(t, tt.asked, s.asked[:len(tt.asked)])
				rest := s.texts[len(tt.asked)-1]
				if tt.name == "first model call" {
					rest = s.texts[1]
				}
				for _, part := range tt.told {
					_, after, found := strings.Cut(rest, part)
					require.True(t, found, "%q in %q", part, s.texts[len(tt.asked)-1])
					rest = after
				}

				// After a crash at any commit, the same is asked, and what was answered is not asked again.
				last := s.texts[len(s.texts)-1]
				for n := range s.journal.len() + 1 {
					h := s.journal.history(n)
					if n < commandAt(s.journal) {
						continue // the interrupt is not known
					}
					again := newSteered(t)
					res := resumed(t, again.conversation(tt.options), h, errand())
					if tt.name == "tool with an effect" && res.Err() != nil {
						require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
						continue
					}
					require.NoError(t, res.Err(), "after %d commits", n)
					for _, e := range h.Log {
						if x := e.Exchange; x != nil && x.Completed() && x.Part != "" {
							turn, _, _ := strings.Cut(strings.Join(again.asked, ","), strings.Replace(x.Part[1:], "/", " ", 1)+" at")
							require.Equal(t, strings.Join(again.asked, ","), turn, "%s was asked again after %d commits", x.Part, n)
						}
					}
					switch texts := again.texts; {
					case len(texts) == 0:
					case strings.HasPrefix(tt.name, "tool"): // which may have been called again
						require.Equal(t, 1, strings.Count(texts[len(texts)-1], "Be brief."), "after %d commits", n)
					default:
						require.Equal(t, last, texts[len(texts)-1], "after %d commits", n)
					}
				}
			})
		})
	}
}

// commandAt returns how many commits there are before the first command.
func commandAt(j *memory) int {
	for n := range j.len() + 1 {
		for _, e := range j.history(n).Log {
			if e.Command != nil {
				return n
			}
		}
	}
	return 0
}

func TestMessageOfTheUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.at(1.5, steer.Command{Kind: steer.Message, Agent: "clerk", Text: "Be brief."})
		res := run(t, s.conversation(noEffect), s.options(), errand())
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Equal(t, []string{"turn 1 at 0", "tool at 1", "tool at 1", "turn 2 at 2", "tool at 3", "tool at 3", "turn 3 at 4"}, s.asked)
		require.Contains(t, s.texts[3], "Be brief.", "the next turn has it")
		require.Equal(t, 1, strings.Count(s.texts[6], "Be brief."))
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		done := s.at(0.5, steer.Command{Kind: steer.Message, Agent: "b", Text: "Be brief."})
		res := run(t, newTeam(t, s.slow("a"), s.slow("b")), s.options(), spec("a"), spec("b", "a"))
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Contains(t, s.texts[1], "Be brief.")
	})
}

func TestRerunOfATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		var works atomic.Bool
		flaky := member("flaky", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			if s.note("flaky", ""); !works.Load() {
				return agent.Reply{}, errors.New("no")
			}
			return agent.Reply{Text: "better"}, nil
		})
		go func() {
			time.Sleep(20 * time.Second)
			works.Store(true)
		}()
		after := s.at(0.4, steer.Command{Kind: steer.Rerun, Task: "after"})
		done := s.at(0.5, steer.Command{Kind: steer.Rerun, Task: "flaky"})
		late := s.at(1.5, steer.Command{Kind: steer.Rerun, Task: "flaky"})
		end := spec("end", "flaky", "a")
		end.DependsOn[0].Optional = true
		res := run(t, newTeam(t, flaky, s.slow("a"), s.slow("after"), s.slow("end")), s.options(), spec("flaky"), spec("a"), spec("after", "flaky"), end)
		require.NoError(t, <-done)
		require.EqualError(t, <-after, `the run refuses the command: task "after" ended because of "flaky"; run that one again`)
		require.EqualError(t, <-late, `the run refuses the command: task "flaky" has completed; cancel the run, and resume it with --fresh`)
		require.NoError(t, res.Err())
		require.Equal(t, "better", of(t, res, "flaky").Result)
		require.Equal(t, 2, of(t, res, "flaky").Metrics.Attempts)
		require.Equal(t, task.Completed, of(t, res, "after").Status)
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		broken := member("broken", func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errors.New("no") })
		end := spec("end", "broken")
		end.DependsOn[0].Optional = true
		done := s.at(0.5, steer.Command{Kind: steer.Rerun, Task: "broken"})
		run(t, newTeam(t, broken, s.slow("end")), s.options(), spec("broken"), end)
		require.ErrorContains(t, <-done, `"end" has begun without its result`)
		require.ErrorContains(t, s.monitor.Steer(t.Context(), steer.Command{Kind: steer.Rerun, Task: "broken", By: "ann"}), "not running")
	})
}

// A goal has no tasks while the coordinator plans.
func TestMessageWhileTheTasksArePlanned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		plans := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Minute)
			return agent.Reply{Text: twoTasks}, nil
		})
		done := s.at(0.5, steer.Command{Kind: steer.Message, Agent: "ada", Text: "Be brief."})
		early := s.at(0.5, steer.Command{Kind: steer.Cancel, Task: "Find"})
		late := s.at(3.5, steer.Command{Kind: steer.Rerun, Task: "Find"})
		res, err := startGoal(t.Context(), led(t, plans, s.slow("ada"), s.slow("bob")), engine.Goal{Text: "Find and tell the facts."}, s.options())
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.NoError(t, <-done)
		require.ErrorContains(t, <-early, "no task runs")
		require.ErrorContains(t, <-late, "no task runs", "the coordinator answers")
		require.Contains(t, s.texts[0], "Be brief.")
	})
}

// Whoever cancels a task that waits for a retry, and has it performed again, gets one attempt at a time.
func TestRerunOfATaskThatWaitedForARetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		calls := 0
		flaky := member("flaky", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			if calls++; calls == 1 {
				return agent.Reply{}, errors.New("no")
			}
			time.Sleep(time.Hour)
			return agent.Reply{Text: "better"}, nil
		})
		again := spec("flaky")
		again.MaxRetries, again.RetryDelay = 3, 10*time.Minute
		canceled, done := s.at(0.05, steer.Command{Kind: steer.Cancel, Task: "flaky"}), s.at(0.1, steer.Command{Kind: steer.Rerun, Task: "flaky"})
		res := run(t, newTeam(t, flaky, s.slow("a")), s.options(), again, spec("a"))
		require.NoError(t, res.Err())
		require.NoError(t, <-canceled)
		require.NoError(t, <-done)
		require.Equal(t, 2, calls)
	})
}

// What a person approves after somebody interrupted the task is not called.
func TestInterruptBeforeAnApproval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		pay := newCountedTool(t, "pay", tool.Options{Approve: "ann"})
		ann := engine.Member{Name: "ann", Agent: person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Minute)
			return agent.Reply{Text: saysYes}, nil
		})}
		done := s.at(0.5, steer.Command{Kind: steer.Interrupt, Task: "errand", Text: "Do not pay!"})
		res := run(t, newTeam(t, clerk(callsFirst(call("pay", `{"amount": 5}`)), pay.Tool), ann), s.options(), errand())
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		require.Zero(t, pay.calls.Load())
	})
}

// A task that ended in spite of its cancellation keeps its result in a resumed run.
func TestCanceledTaskThatCompletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		deaf := member("deaf", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(time.Minute)
			return agent.Reply{Text: "deaf is done"}, nil
		})
		done := s.at(0.5, steer.Command{Kind: steer.Cancel, Task: "deaf"})
		specs := []task.Spec{spec("deaf"), spec("b", "deaf")}
		res := run(t, newTeam(t, deaf, s.slow("b")), s.options(), specs...)
		require.NoError(t, <-done)
		require.NoError(t, res.Err())
		res = resumed(t, newTeam(t, deaf, s.slow("b")), interrupted(s.journal, nil), specs...)
		require.NoError(t, res.Err())
		require.Len(t, s.asked, 1, "b is not asked again")
	})
}

func TestCommandsThatARunRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c    steer.Command
		want string
	}{
		{steer.Command{Kind: "stop"}, `invalid command: unknown kind "stop"; use pause, resume, cancel, interrupt, message, rerun or policy`},
		{steer.Command{Kind: steer.Interrupt}, "invalid command: interrupt needs Task"},
		{steer.Command{Kind: steer.Pause, Task: "a"}, "invalid command: pause takes no Task"},
		{steer.Command{Kind: steer.Message, Agent: "a"}, "invalid command: message needs Text"},
		{steer.Command{Kind: steer.Message, Agent: "a", Text: "\xff"}, "invalid command: Text is not UTF-8"},
		{steer.Command{Kind: steer.Cancel, Task: "aa"}, `the run refuses the command: unknown task "aa"`},
		{steer.Command{Kind: steer.Interrupt, Task: "b"}, `the run refuses the command: task "b" does not run; to tell its agent something, use message`},
		{steer.Command{Kind: steer.Rerun, Task: "a"}, `the run refuses the command: task "a" runs; interrupt it, or cancel it first`},
		{steer.Command{Kind: steer.Rerun, Task: "b"}, `the run refuses the command: task "b" has not run yet`},
		{steer.Command{Kind: steer.Message, Agent: "nobody", Text: "x"}, `the run refuses the command: unknown agent "nobody"`},
		{steer.Command{Kind: steer.Message, Agent: "a", Text: "x", Classification: label.Secret}, `the run refuses the command: the text is secret, and the gate withholds it from "a"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSteered(t)
			done := s.at(0.5, tt.c)
			res := run(t, newTeam(t, s.slow("a"), s.slow("b")), s.options(), spec("a"), spec("b", "a"))
			require.NoError(t, res.Err())
			require.ErrorContains(t, <-done, tt.want)
			s.requireCommands([]string(nil)...)
			require.Len(t, s.asked, 2)
		})
	}
	var none *record.Monitor
	require.ErrorIs(t, none.Steer(t.Context(), steer.Command{Kind: steer.Pause, By: "ann"}), steer.ErrNotRunning)
}

// A command that cannot be stored does nothing.
func TestACommandIsDurableBeforeItTakesEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		go func() {
			time.Sleep(29 * time.Second)
			s.journal.mu.Lock()
			s.journal.fail = len(s.journal.batches)
			s.journal.mu.Unlock()
		}()
		done := s.at(0.5, steer.Command{Kind: steer.Cancel, Task: "a"})
		res := run(t, newTeam(t, s.slow("a")), s.options(), spec("a"))
		require.ErrorIs(t, <-done, errDisk)
		require.NotEqual(t, "Skipped: cancelled by the user.", res.Tasks[0].Result)
	})
}

// BenchmarkSteer pauses and continues a run that works.
func BenchmarkSteer(b *testing.B) {
	var m record.Monitor
	began, stop := make(chan struct{}), make(chan struct{})
	waits := member("a", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		close(began)
		<-stop
		return agent.Reply{Text: "done"}, nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(b, newTeam(b, waits), &engine.RunOptions{Monitor: &m}, spec("a"))
	}()
	<-began
	for b.Loop() {
		for _, kind := range []steer.Kind{steer.Pause, steer.Resume} {
			if err := m.Steer(b.Context(), steer.Command{Kind: kind, By: "ann"}); err != nil {
				b.Fatal(err)
			}
		}
	}
	close(stop)
	<-done
}

// Any commands at any time leave a run that ends, with every task in one status.
func TestCommandsAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := newSteered(t)
	quick := func(name string) engine.Member {
		return member(name, func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			select {
			case <-time.After(time.Millisecond):
				return agent.Reply{Text: "done"}, nil
			case <-ctx.Done():
				return agent.Reply{}, ctx.Err()
			}
		})
	}
	var specs []task.Spec
	for i := range 60 {
		one := by("a", spec(fmt.Sprint("t", i)))
		if i > 0 {
			one.DependsOn = task.On(fmt.Sprint("t", i/2))
			one.DependsOn[0].Optional = i%3 == 0
		}
		specs = append(specs, one)
	}
	ctx, stop := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	for k := range 4 {
		senders.Go(func() {
			for i := k; ctx.Err() == nil; i += 7 {
				c := steer.Command{By: "ann", Task: fmt.Sprint("t", i%60)}
				switch i % 6 {
				case 0:
					c.Kind, c.Task = steer.Pause, ""
				case 1:
					c.Kind = steer.Interrupt
				case 2:
					c.Kind, c.Text = steer.Interrupt, "Hurry."
				case 3:
					c.Kind, c.Task, c.Agent, c.Text = steer.Message, "", "a", "Hello."
				case 4:
					c.Kind = steer.Rerun
				case 5:
					if i%5 == 0 {
						c.Kind = steer.Cancel
						break
					}
					c.Kind, c.Task = steer.Resume, ""
				}
				_ = s.monitor.Steer(ctx, c)
				_ = s.monitor.Steer(ctx, steer.Command{Kind: steer.Resume, By: "ann"})
			}
		})
	}
	res := run(t, newTeam(t, quick("a")), s.options(), specs...)
	stop()
	senders.Wait()
	for i := range res.Tasks {
		require.True(t, res.Tasks[i].Status.Terminal(), "%s: %s", res.Tasks[i].Title, res.Tasks[i].Status)
	}
}
