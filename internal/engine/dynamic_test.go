package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// A scene is a random run made from a seed: three agents, inputs, messages of the options and some
// that wait on the bus, a memory with notes in it, and tasks of which some fail, some read the
// memory and some have no assignee. Each piece carries a canary of its label, and each agent
// repeats everything that it read.
type scene struct {
	r       *rand.Rand
	levels  []label.Classification
	accepts map[string]label.Classification
	team    *engine.Team
	options *engine.RunOptions
	specs   []task.Spec

	mu   sync.Mutex // guards seen
	seen map[string]string
}

func newScene(t *testing.T, seed uint64) *scene {
	s := &scene{
		r: rand.New(rand.NewPCG(seed, 7)), levels: []label.Classification{label.Public, label.Internal, label.Confidential},
		accepts: map[string]label.Classification{}, seen: map[string]string{},
	}
	if seed%3 == 0 {
		s.levels = append(s.levels, label.Secret)
	}
	var members []engine.Member
	for i := range 3 {
		m := cleared(fmt.Sprint("a", i), s.level(), s.retell)
		s.accepts[m.Name] = m.Accepts
		members = append(members, m)
	}
	s.team = newTeam(t, members...)
	s.options = &engine.RunOptions{MaxConcurrency: 1 + s.r.IntN(3), Bus: s.team.NewBus(), Memory: teammemory.NewMapStore(), UserAccepts: new(label.Secret)}
	for i := range 2 {
		in, sent, waits := s.level(), s.level(), s.level()
		s.options.Inputs = append(s.options.Inputs, engine.Input{Name: fmt.Sprint("in", i), Text: marked(in), Classification: in})
		if s.one(2) {
			s.options.Messages = append(s.options.Messages, engine.Message{From: "user", To: s.agent(), Text: marked(sent), Classification: sent})
		}
		if s.one(2) {
			note(t, s.options.Memory, fmt.Sprintf("before %s (%d)", marked(waits), i), waits)
		}
		_, _ = s.options.Bus.Send(mailbox.Draft{From: "user", To: s.agent(), Content: marked(waits), Classification: waits}) // not what is secret
	}
	for i := range 2 + s.r.IntN(6) {
		s.specs = append(s.specs, s.spec(i))
	}
	return s
}

func (s *scene) spec(i int) task.Spec {
	own := min(s.level(), label.Confidential)
	out := task.Spec{Title: fmt.Sprint("t", i), Description: "Go on. " + marked(own), Assignee: s.agent(), Classification: own}
	if s.one(5) {
		out.Title = fmt.Sprint("bad", i)
	}
	if s.one(6) {
		out.Assignee = ""
	}
	for k := range s.specs {
		if s.one(3) {
			out.DependsOn = append(out.DependsOn, task.Ref{Task: s.specs[k].Title, Optional: s.one(2)})
		}
	}
	if s.one(3) {
		out = scopeAll(out)
	}
	if s.one(3) {
		out.Uses = []task.Use{{Name: fmt.Sprint("in", s.r.IntN(2))}}
	}
	return out
}

func (s *scene) one(in int) bool             { return s.r.IntN(in) == 0 }
func (s *scene) agent() string               { return fmt.Sprint("a", s.r.IntN(3)) }
func (s *scene) level() label.Classification { return s.levels[s.r.IntN(len(s.levels))] }

// marked is a word by which context of a level is known wherever it comes up.
func marked(level label.Classification) string { return fmt.Sprintf("canary-%v", level) }

// retell is an agent that answers with every canary of its prompt, or fails with it.
func (s *scene) retell(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
	title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
	s.mu.Lock()
	s.seen[title] = p.Text()
	s.mu.Unlock()
	if strings.HasPrefix(title, "bad") {
		return agent.Reply{}, fmt.Errorf("bad: %s", p.Text())
	}
	all := []string{"x"}
	for w := range strings.FieldsSeq(p.Text()) {
		if _, level, ok := strings.Cut(w, "canary-"); ok {
			all = append(all, "canary-"+level)
		}
	}
	return agent.Reply{Text: strings.Join(all, " ")}, nil
}

// highest is the level of the most sensitive thing that a task's agent read.
func (s *scene) highest(title string) label.Classification {
	level := label.Public
	for l := label.Public; l <= label.Secret; l++ {
		if strings.Contains(s.seen[title], marked(l)) {
			level = l
		}
	}
	return level
}

// Context that arrives during a run (a message, an entry of the memory, the text of
// an error) never has a label above the planned label of the task that reads it, so
// no planned context is withheld.
//
// Requirement: G48.
func TestContextSentDuringARunStaysBelowThePlan(t *testing.T) {
	t.Parallel()
	seeds, ran := 2000/slowtest.Every(10), 0
	for seed := range uint64(seeds) {
		s := newScene(t, seed)
		p, err := s.team.Plan(s.specs, s.options)
		if err != nil {
			continue // most random specs are refused, and teach nothing here
		}
		ran++
		res, err := s.team.RunTasks(t.Context(), s.specs, s.options)
		require.NoError(t, err)
		for i := range res.Tasks {
			got, plan := &res.Tasks[i], &p.Tasks[i]
			read := s.highest(got.Title)
			require.LessOrEqual(t, got.Label, plan.Label, "seed %d, %s", seed, got.Title)
			require.LessOrEqual(t, read, plan.Label, "seed %d, %s", seed, got.Title)
			require.LessOrEqual(t, read, s.accepts[plan.Assignee], "seed %d, %s", seed, got.Title)
			if got.Status == task.Completed {
				require.LessOrEqual(t, read, got.Label, "seed %d, %s: a result is as sensitive as what was read for it", seed, got.Title)
			}
			if got.Error != nil {
				require.Contains(t, []string{"AGENT_ERROR", codes.Dependency}, got.Error.Code, "seed %d, %s: %v", seed, got.Title, got.Error)
			}
		}
	}
	require.Greater(t, ran*7, seeds)
}

// Everything that may touch a run from outside does so at once. The test is for
// the race detector.
func TestRunWithConcurrentCallers(t *testing.T) {
	t.Parallel()
	var tasks []map[string]any
	for i := range 30 / slowtest.Every(3) {
		tasks = append(tasks, map[string]any{"title": fmt.Sprint("t", i), "description": "d", "memoryScope": "all", "maxRetries": 2, "retryDelayMs": 0})
	}
	text, err := json.Marshal(tasks)
	require.NoError(t, err)
	for k := range 3 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			var bus *mailbox.Bus
			work := func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
				_, _ = bus.Send(mailbox.Draft{From: "user", To: "bob", Content: "m"})
				_ = engine.OutboxFrom(ctx).Broadcast("m")
				switch rand.IntN(10) {
				case 0:
					return agent.Reply{}, errBroken
				case 1:
					panic("oh")
				}
				return agent.Reply{Text: strings.Repeat("word ", 200)}, nil
			}
			tm, err := engine.New(engine.Config{
				Agents:      []engine.Member{member("ada", work), member("bob", work)},
				Edges:       edges("ada<>bob"),
				Coordinator: &engine.Coordinator{Agent: &planner{plans: []string{string(text)}, digest: "d"}, MayGrant: synth.Grants{Memory: true}, Limits: plan.Limits{MaxPromptBytes: 4 << 10}},
			})
			require.NoError(t, err)
			bus = tm.NewBus()
			cancel, err := bus.Subscribe("bob", func(mailbox.Message) {
				_, _ = bus.Unread("bob")
				_, _ = bus.Send(mailbox.Draft{From: "user", To: "ada", Content: "re"})
			})
			require.NoError(t, err)
			defer cancel()

			var m record.Monitor
			var watchers sync.WaitGroup
			changed := make(chan struct{}, 3)
			for range 3 {
				watchers.Go(func() {
					for range changed {
						if _, err := m.Snapshot(context.Background()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			change := func(event.Event) {
				select {
				case changed <- struct{}{}:
				default: // the watchers are busy
				}
			}
			res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Go on, all of you."}, &engine.RunOptions{
				Bus: bus, Monitor: &m, Budget: plan.Budget{MaxTokenBudget: 100_000}, Subscribers: []func(event.Event){change},
			})
			close(changed)
			watchers.Wait()
			require.NoError(t, err)
			require.Len(t, res.Tasks, len(tasks))
			require.Equal(t, "the answer", res.Output)
		})
	}
}
