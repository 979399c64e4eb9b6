package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// answerable is a journal to which a test leaves answers. It notes when it was asked for them.
type answerable struct {
	memory
	start time.Time

	mutex   sync.Mutex // guards the rest
	waiting []record.Answer
	looks   []time.Duration
	refused []string
}

func (m *answerable) OpenRun(context.Context, record.Opening) (record.Log, error) { return m, nil }

func (m *answerable) Waiting(context.Context) ([]record.Answer, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.looks = append(m.looks, time.Since(m.start))
	return m.waiting, nil
}

func (m *answerable) Refuse(_ context.Context, _ int64, why string) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.waiting, m.refused = nil, append(m.refused, why)
	return nil
}

func (m *answerable) LeftBefore() bool                                       { return false }
func (m *answerable) Commands(context.Context) ([]record.LeftCommand, error) { return nil, nil }

func (m *answerable) Mask(key record.Key) record.Key { return key }

// leave leaves an answer to the last question.
func (m *answerable) leave(text string) {
	q := m.lastQuestion()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.waiting = []record.Answer{{Task: q.Task, Key: q.Key, Text: text, By: "ann", Command: 1}}
}

func (m *answerable) lastQuestion() (last *record.Question) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.batches {
		for i := range b {
			if q := b[i].Question; q != nil {
				last = q
			}
		}
	}
	return last
}

// A run looks for answers each second while it asks, and at no other time.
func TestARunLooksForAnswersOnlyWhileItAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &answerable{start: time.Now()}
		works := func(d time.Duration) agentFunc {
			return func(context.Context, prompt.Prompt) (agent.Reply, error) {
				time.Sleep(d)
				return agent.Reply{Text: "done"}, nil
			}
		}
		later := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })
		tm := newTeam(t, member("first", works(10*time.Second+time.Millisecond)), engine.Member{Name: "ann", Agent: later}, member("long", works(time.Minute)))
		decide := spec("ann", "first")
		decide.OutputSchema = []byte(`{"enum": ["yes", "no"]}`)
		go func() {
			time.Sleep(13*time.Second + time.Millisecond)
			j.leave(`"perhaps"`)
			time.Sleep(2 * time.Second)
			j.leave(`"yes"`)
		}()
		res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: j}, spec("first"), decide, spec("long"))
		require.NoError(t, res.Err())
		require.Equal(t, time.Minute, time.Since(j.start))
		require.Equal(t, []string{"it does not fit the task"}, j.refused)
		var at []time.Duration
		for s := 11; s <= 16; s++ {
			at = append(at, time.Duration(s)*time.Second)
		}
		require.Equal(t, at, j.looks)
		require.Equal(t, 16*time.Second, res.Tasks[1].Metrics.End.Sub(j.start))
		require.Equal(t, task.Completed, res.Tasks[1].Status)
		taken := 0
		for _, b := range j.batches {
			for i := range b {
				if a := b[i].Answer; a != nil && a.Command == 1 && a.Text == `"yes"` {
					taken++
				}
			}
		}
		require.Equal(t, 1, taken, "the journal has the answer once")
	})
}

// People who do not answer do not keep a run from its end.
func TestARunEndsWhenOnlyQuestionsAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &answerable{start: time.Now()}
		later := person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, person.ErrLater })
		tm := newTeam(t, engine.Member{Name: "ann", Agent: later, MaxParallel: 1}, member("work", func(context.Context, prompt.Prompt) (agent.Reply, error) {
			time.Sleep(5 * time.Second)
			return agent.Reply{Text: "done"}, nil
		}))
		first, second := by("ann", spec("first")), by("ann", spec("second", "work"))
		res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 1}, first, spec("work"), second)
		require.Equal(t, engine.StatusSuspended, res.Status)
		require.Equal(t, 5*time.Second, time.Since(j.start))
		require.Equal(t, []string{"ann", "", "ann"}, []string{res.Tasks[0].WaitingFor, res.Tasks[1].WaitingFor, res.Tasks[2].WaitingFor})
	})
}
