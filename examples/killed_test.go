package examples_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

var errKilled = errors.New("the process is killed")

// A killedStore stores what is appended until it has so many batches: then the process is killed.
type killedStore struct {
	*journal.Journal
	mu       sync.Mutex // guards the fields below
	left     int
	stored   int              // batches
	answered map[task.ID]bool // tasks with a durable answer
	steered  bool             // a command is durable
}

// A killedLog is the log of a run in it.
type killedLog struct {
	record.Log
	record.AnswerLog // the same
	store            *killedStore
}

func (s *killedStore) OpenRun(ctx context.Context, o record.Opening) (record.Log, error) {
	log, err := s.Journal.OpenRun(ctx, o)
	if err != nil {
		return nil, err
	}
	return &killedLog{log, log.(record.AnswerLog), s}, nil
}

func (l *killedLog) Append(entries []record.Entry, done func(error)) {
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left < 0 {
		go done(errKilled)
		return
	}
	s.stored++
	for i := range entries {
		s.steered = s.steered || entries[i].Command != nil
		if x := entries[i].Exchange; x != nil && x.Result != nil && x.Part == "" { // that of a turn comes before the answer
			s.answered[x.Task] = true
		}
	}
	l.Log.Append(entries, done)
}

// A story is a run of an example over several processes.
type story struct {
	t     *testing.T
	file  *spec.File
	team  *team.Team
	store *killedStore
	says  []string // the answers of the person, in the order of the questions

	interrupts string        // the title of the task whose first call is interrupted, with a message; empty for none
	monitor    *team.Monitor // of the process

	mu   sync.Mutex         // guards read
	read map[task.ID]string // what a task was given in the conversation that it ended with, if it has ended
}

// begin loads an example, whose agents answer with its script. No task is asked again once its answer
// is durable; people answer later.
func begin(t *testing.T, dir string) *story {
	s := &story{t: t, read: map[task.ID]string{}, store: &killedStore{Journal: journal.InMemory(journal.Options{}), answered: map[task.ID]bool{}}}
	t.Cleanup(func() { _ = s.store.Journal.Close() })
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	for i := range script.Replies {
		script.Replies[i].Delay /= 100 // the order stays the same
	}
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s.file, err = spec.Load(spec.Options{Path: dir, Lookup: os.LookupEnv})
	require.NoError(t, err)
	s.team, err = s.file.Build(func(a spec.Agent) (team.Agent, error) {
		if a.Person {
			return person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater }), nil
		}
		model, err := openai.New(openai.Config{Model: "scripted", BaseURL: server.URL()})
		if err != nil {
			return nil, err
		}
		asked := agent.New(model, a.Options)
		return versioned{agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			s.store.mu.Lock()
			again := s.store.answered[p.Receipt().Task]
			s.store.mu.Unlock()
			if again {
				t.Errorf("a task is asked again: %s", p.Text())
			}
			s.note(p)
			if interrupted, err := s.interrupt(ctx, p); interrupted {
				return agent.Reply{}, err
			}
			return asked.Run(ctx, p)
		})}, nil
	})
	require.NoError(t, err)
	return s
}

// steering is what the user says to a task that is interrupted.
const steering = "Mention no names."

// interrupt interrupts a call of the task that is to be interrupted, if no process has done so, and reports whether
// the call is over.
func (s *story) interrupt(ctx context.Context, p prompt.Prompt) (bool, error) {
	s.store.mu.Lock()
	steered := s.store.steered
	s.store.mu.Unlock()
	if s.interrupts == "" || steered || !strings.HasPrefix(p.Text(), "# Task: "+s.interrupts) {
		return false, nil
	}
	if err := s.monitor.Steer(ctx, steer.Command{Kind: steer.Interrupt, Task: s.interrupts, Text: steering, By: "ann"}); err != nil {
		return true, err
	}
	<-ctx.Done()
	return true, context.Cause(ctx)
}

// note notes what a task is given, without what its agent says in the conversation.
func (s *story) note(p prompt.Prompt) {
	var given strings.Builder
	for _, m := range p.Messages() {
		if m.Role != "assistant" {
			given.WriteString(m.Text + "\n")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[p.Receipt().Task] = given.String()
}

// requireReadOnce checks that each message is in the conversation of one task, once.
func (s *story) requireReadOnce(messages []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range messages {
		n := 0
		for _, given := range s.read {
			n += strings.Count(given, text)
		}
		require.Equal(s.t, 1, n, text)
	}
}

// versioned is an agent that answers equal prompts equally.
type versioned struct{ agent.Agent }

func (versioned) Version() string { return "1" }

// options are those of each process.
func (s *story) options() *team.RunOptions {
	o := s.file.Run
	s.monitor = new(team.Monitor)
	o.RunID, o.Journal, o.Tasks, o.Monitor = "r", s.store, s.file.Tasks, s.monitor
	return &o
}

// process begins or resumes the run in a process that is killed after so many batches.
func (s *story) process(batches int) (*team.Result, bool) {
	s.store.mu.Lock()
	s.store.left = batches
	s.store.mu.Unlock()
	var res *team.Result
	var err error
	if _, known := s.store.Find(s.t.Context(), "r"); known != nil {
		o := s.options()
		o.Tasks = nil
		res, err = s.team.RunTasks(s.t.Context(), s.file.Tasks, o)
	} else {
		res, err = s.team.Resume(s.t.Context(), "r", s.options())
	}
	s.store.mu.Lock()
	killed := s.store.left < 0
	s.store.mu.Unlock()
	if !killed {
		require.NoError(s.t, err)
	}
	return res, killed
}

// unlimited is more batches than a run has.
const unlimited = 1 << 30

// run runs the example to its end. The first process is killed after so many batches, and so are the
// one that resumes it and the one that finds an answer.
func (s *story) run(batches int) *team.Result {
	res, killed := s.process(batches)
	for _, most := range []int{batches, unlimited} {
		if killed {
			res, killed = s.process(most)
		}
	}
	for _, says := range s.says {
		if res.Status != team.StatusSuspended {
			break // it is refused below
		}
		s.answer(says)
		if res, killed = s.process(batches); killed {
			res, _ = s.process(unlimited)
		}
	}
	require.Equal(s.t, team.StatusOK, res.Status)
	return res
}

// answer answers the one open question of the run.
func (s *story) answer(says string) {
	list, err := s.store.Questions(s.t.Context(), "r")
	require.NoError(s.t, err)
	open := slices.DeleteFunc(list, func(q *runstate.Question) bool { return !q.Open() })
	require.Len(s.t, open, 1, "an answer was not used, or more is asked")
	_, err = s.store.Answer(s.t.Context(), "r", open[0].Task, func(*runstate.Question) (record.Answer, error) {
		return record.Answer{By: "ann", Text: says, Time: time.Now()}, nil
	})
	require.NoError(s.t, err)
}

// resultsOf returns what a run made, as its user reads it.
func resultsOf(t *testing.T, res *team.Result) string {
	var all []any
	for i := range res.Tasks {
		r := &res.Tasks[i]
		all = append(all, r.ID, r.Title, r.Status, r.Result, r.Structured)
	}
	raw, err := json.Marshal(append(all, res.Output))
	require.NoError(t, err)
	return string(raw)
}

// TestExamplesSurviveKills kills a process of an example after a batch that it stores, and the
// process that follows, too: the result is the same, nothing durable is asked again, and each answer of
// a person is used once. A message of an agent or of the user is read once: one task has it, in one prompt of the
// attempt that ended it. This holds for a reply that a task waits for, and for what interrupts a task. A replay has the same result, and calls nobody.
//
// Requirement: G38.
func TestExamplesSurviveKills(t *testing.T) {
	t.Parallel()
	messages := map[string][]string{
		"newsroom": {"May I print a wind of 34 m/s?", "The harbor office says:", "You asked about 34 m/s.", "Checked: the wind, and the ferries until Sunday.", steering},
	}
	interrupts := map[string]string{"newsroom": "Check the claims"}
	for dir, says := range map[string][]string{
		"patterns/map-reduce":   nil,
		"coding-team":           nil,
		"newsroom":              nil,
		"human-approval":        {`{"choice": "send", "note": "Fine."}`},
		"patterns/lead-scoring": {`{"choice": "rewrite", "note": "Write: we call on Friday."}`, `{"choice": "send"}`},
	} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			whole := begin(t, dir)
			whole.says, whole.interrupts = says, interrupts[dir]
			want := resultsOf(t, whole.run(unlimited))
			require.Greater(t, whole.store.stored, 5)
			every := 8
			if slowtest.Enabled() { // each batch of a short run
				every = 1 + whole.store.stored/20
			}
			for n := 1; n <= whole.store.stored; n++ {
				if n%every != len(dir)%every {
					continue
				}
				s := begin(t, dir)
				s.says, s.interrupts = says, interrupts[dir]
				require.Equal(t, want, resultsOf(t, s.run(n)), "killed after %d batches", n)
				s.requireReadOnce(messages[dir])
				again, err := s.team.Replay(t.Context(), "r", s.options())
				require.NoError(t, err)
				require.Equal(t, want, resultsOf(t, again))
				list, err := s.store.Questions(t.Context(), "r")
				require.NoError(t, err)
				require.Len(t, list, len(says))
				for i := range list {
					require.NotNil(t, list[i].Answer)
				}
			}
		})
	}
}
