package team_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A settledAgent says that it answers equal prompts equally.
type settledAgent struct{ agent.Agent }

func (settledAgent) Version() string       { return "1" }
func (settledAgent) IsDeterministic() bool { return true }

var feedback = regexp.MustCompile(`"feedback":.*`)

// stubborn are agents of which the critic accepts no draft: say is its feedback.
func stubborn(calls *atomic.Int64, say func(draft string) string) []team.Member {
	as := func(does func(text string) string) agent.Agent {
		return settledAgent{agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			calls.Add(1)
			return agent.Reply{Text: does(p.Text())}, ctx.Err()
		})}
	}
	return []team.Member{
		{Name: "writer", Agent: as(func(text string) string { return "draft after " + feedback.FindString(text) })},
		{Name: "critic", Agent: as(func(text string) string {
			_, draft, _ := strings.Cut(text, "draft after ")
			draft, _, _ = strings.Cut(draft, "\n")
			return fmt.Sprintf(`{"valid":false,"feedback":%q}`, say(draft))
		})},
		{Name: "publisher", Agent: as(func(string) string { return "published" })},
	}
}

// teamOf is a team of some members.
func teamOf(t *testing.T, members []team.Member) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: members})
	require.NoError(t, err)
	return tm
}

func TestLoopThatRepeatsItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		say     func(draft string) string
		repeat  task.Repeat
		calls   int // of agents
		message string
	}{
		"the same feedback": {
			say: func(string) string { return "more" }, repeat: task.Repeat{MaxRounds: 9}, calls: 4,
			message: "the loop repeats itself: round 3 would be given the same as round 2; change what its tasks read, or write onRepeat: continue",
		},
		"feedback in turns": {
			say: func(draft string) string {
				if strings.Contains(draft, "shorter") {
					return "longer"
				}
				return "shorter"
			},
			repeat: task.Repeat{MaxRounds: 9}, calls: 6,
			message: "the loop repeats itself: round 4 would be given the same as round 2; change what its tasks read, or write onRepeat: continue",
		},
		"continue":      {say: func(string) string { return "more" }, repeat: task.Repeat{MaxRounds: 5, OnRepeat: "continue"}, calls: 11},
		"not yet":       {say: func(string) string { return "more" }, repeat: task.Repeat{MaxRounds: 2}, calls: 5},
		"ever the last": {say: func(draft string) string { return strings.Repeat("z", strings.Count(draft, "z")+1) }, repeat: task.Repeat{MaxRounds: 5}, calls: 11},
	} {
		var calls atomic.Int64
		tm := teamOf(t, stubborn(&calls, test.say))
		_, specs := writing(t, 0, test.repeat)
		res, err := tm.RunTasks(t.Context(), specs, nil)
		require.EqualValues(t, test.calls, calls.Load(), name)
		loop, _ := res.Task("Draft")
		after, _ := res.Task("Publish")
		if test.message == "" {
			require.NoError(t, err, name)
			require.Equal(t, task.Completed, loop.Status)
			continue
		}
		require.ErrorContains(t, err, test.message, name)
		require.Equal(t, "LOOP_STUCK", loop.Error.Code)
		require.Equal(t, task.Failed, loop.Status)
		require.Equal(t, "DEPENDENCY_FAILED", after.Error.Code)
		require.Len(t, res.Tasks, test.calls+2, "rounds that did not run are in no result")
	}
}

// Rounds that may differ although their prompts are equal are not compared.
func TestRoundsThatAreNotCompared(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *team.Member, specs []task.Spec){
		"an agent that may answer differently": func(m *team.Member, _ []task.Spec) { m.Agent = m.Agent.(settledAgent).Agent },
		"shared memory":                        func(_ *team.Member, specs []task.Spec) { specs[0].Repeat.Tasks[1].MemoryScope = task.ScopeAll },
		"any agent": func(m *team.Member, specs []task.Spec) {
			m.Agent, specs[0].Repeat.Tasks[0].Assignee = m.Agent.(settledAgent).Agent, ""
		},
	} {
		var calls atomic.Int64
		members := stubborn(&calls, func(string) string { return "more" })
		_, specs := writing(t, 0, task.Repeat{MaxRounds: 4})
		change(&members[0], specs)
		_, err := teamOf(t, members).RunTasks(t.Context(), specs, nil)
		require.NoError(t, err, name)
		require.EqualValues(t, 9, calls.Load(), name)
	}
}

// A loop that is stuck is stuck after an interruption at any point, and in a replay.
func TestInterruptedStuckLoop(t *testing.T) {
	t.Parallel()
	for stop := range 6 {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		var calls atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		tm := teamOf(t, stubborn(&calls, func(string) string {
			if calls.Load() == int64(stop) {
				cancel()
			}
			return "more"
		}))
		_, specs := writing(t, 0, task.Repeat{MaxRounds: 9})
		res, err := tm.RunTasks(ctx, specs, &team.RunOptions{RunID: "r", Journal: j})
		require.Error(t, err)
		if ctx.Err() != nil {
			require.Equal(t, team.StatusCanceled, res.Status)
			res, err = tm.Resume(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
		}
		requireStuck(t, res, err)
		require.LessOrEqual(t, calls.Load(), int64(5))
		before := calls.Load()
		res, err = tm.Replay(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
		requireStuck(t, res, err)
		require.Equal(t, before, calls.Load(), "a replay asks nobody")
		require.NoError(t, j.Close())
		cancel()
	}
}

func requireStuck(t *testing.T, res *team.Result, err error) {
	t.Helper()
	require.ErrorContains(t, err, "round 3 would be given the same as round 2")
	loop, _ := res.Task("Draft")
	require.Equal(t, "LOOP_STUCK", loop.Error.Code)
	require.Len(t, res.Tasks, 6)
}

// Who may not see what rounds are given may not learn that they repeat each other.
func TestLabelOfAStuckLoop(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	members := stubborn(&calls, func(string) string { return "more" })
	for i := range members {
		members[i].Accepts = label.Confidential
	}
	_, specs := writing(t, 0, task.Repeat{MaxRounds: 4})
	check := specs[0].Repeat.Tasks[1]
	check.DependsOn = []task.Ref{{Task: "Check", Round: task.Previous, Need: []task.Path{"/feedback"}, Optional: true}}
	specs[0].Repeat.Output, specs[0].Repeat.Tasks = "Check", []task.Spec{check, {
		Title: "Note", Description: "d", Assignee: "writer", Classification: label.Confidential,
		DependsOn: []task.Ref{{Task: "Check"}, {Task: "Note", Round: task.Previous, Optional: true}},
	}}
	tm := teamOf(t, members)
	problemsOf := func() (list []string) {
		_, err := tm.Plan(specs, &team.RunOptions{UserAccepts: new(label.Internal)})
		var problems task.Problems
		if err != nil {
			require.ErrorAs(t, err, &problems)
		}
		for _, p := range problems {
			list = append(list, p.Pointer+" "+p.Message+"; "+p.Hint)
		}
		return list
	}
	require.Equal(t, []string{"/tasks/0/repeat whether it runs is confidential, and the caller sees the status of tasks and may see internal; write onRepeat: continue, or raise the clearance"}, problemsOf())
	members[1].Accepts = label.Internal
	tm = teamOf(t, members)
	require.Contains(t, problemsOf()[0], `"critic" accepts internal`, "it would learn whether its round runs")
	specs[0].Repeat.OnRepeat = "continue"
	require.Empty(t, problemsOf())
}

// A loop of equal rounds is reported before the run, and so is a comparison that has no effect.
func TestLoopOfEqualRounds(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	members := stubborn(&calls, func(string) string { return "more" })
	_, specs := writing(t, 0, task.Repeat{MaxRounds: 4})
	specs[0].Repeat.Tasks[0].DependsOn = nil
	_, err := teamOf(t, members).Plan(specs, nil)
	require.ErrorContains(t, err, `task "Draft": all rounds would be the same: no task reads the round before`)
	members[1].Agent = members[1].Agent.(settledAgent).Agent
	specs[0].Repeat.OnRepeat = "fail"
	p, err := teamOf(t, members).Plan(specs, nil)
	require.NoError(t, err)
	require.ErrorContains(t, p.Warnings[0], `rounds are not compared: "critic" may answer equal prompts differently; set temperature: 0 or a seed, and no fallback: leave onRepeat out`)
	specs[0].Repeat.OnRepeat = "stop"
	_, err = teamOf(t, members).Plan(specs, nil)
	require.ErrorContains(t, err, `onRepeat: unknown word "stop"`)
}

// The rounds of a loop may have one prompt and different answers, which a resumed run and a replay
// give to the rounds that had them.
func TestResumedRoundsWithOnePrompt(t *testing.T) {
	t.Parallel()
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int64
	tm := teamOf(t, []team.Member{
		{Name: "a", Agent: versionedAgent{agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			n := calls.Add(1)
			return agent.Reply{Text: fmt.Sprintf(`{"ok":%t,"n":%d}`, n == 3, n)}, nil
		})}},
		{Name: "b", Agent: versionedAgent{agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			cancel()
			return agent.Reply{Text: p.Text()}, ctx.Err()
		})}},
	})
	loop := loopOf("Draft", 4, nil)
	loop.Repeat.Tasks[0].OutputSchema = []byte(`{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer"}},"required":["ok","n"]}`)
	specs := []task.Spec{loop, {Title: "End", Description: "d", Assignee: "b", DependsOn: task.On("Draft")}}
	_, err = tm.RunTasks(ctx, specs, &team.RunOptions{RunID: "r", Journal: j})
	require.Error(t, err)
	for name, again := range map[string]func(context.Context, string, *team.RunOptions) (*team.Result, error){"resume": tm.Resume, "replay": tm.Replay} {
		if name == "replay" {
			_, err := tm.Resume(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
			require.NoError(t, err)
		}
		res, err := again(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
		require.NoError(t, err, name)
		for n := range 3 {
			round, _ := res.Task(fmt.Sprintf("Try Draft#%d", n+1))
			require.Contains(t, round.Result, fmt.Sprintf(`"n":%d`, n+1), name)
		}
		require.EqualValues(t, 3, calls.Load(), name)
	}
}

// A round that was interrupted asks, also if an earlier one had the same prompt.
func TestResumedRoundAsksForItself(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	tm := teamOf(t, []team.Member{{Name: "a", Agent: versionedAgent{agent.Func(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		if calls++; calls == 2 {
			cancel()
		}
		return agent.Reply{Text: fmt.Sprintf(`{"ok":%t,"n":%d}`, calls == 3, calls)}, ctx.Err()
	})}}})
	loop := loopOf("Draft", 4, nil)
	loop.Repeat.Tasks[0].OutputSchema = []byte(`{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer"}},"required":["ok","n"]}`)
	_, err := tm.RunTasks(ctx, []task.Spec{loop}, &team.RunOptions{RunID: "r", Journal: j})
	require.Error(t, err)
	res, err := tm.Resume(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: []task.Spec{loop}})
	require.NoError(t, err)
	last, _ := res.Task("Try Draft#2")
	require.Equal(t, []any{3, `{"ok":true,"n":3}`}, []any{calls, last.Result})
}

// The result of a loop has one label, which says how sensitive the number of rounds is.
func TestLabelOfTheResultOfALoop(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, `{"ok":true}`, "a")
	check := task.Spec{Title: "Check", Description: "d", Assignee: "a", Classification: label.Confidential, OutputSchema: []byte(okSchema)}
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Draft", Repeat: &task.Repeat{
		MaxRounds: 2, Until: task.Equals("Check", "/ok", true), Output: "Write",
		Tasks: []task.Spec{{Title: "Write", Description: "d", Assignee: "a"}, check},
	}}}, nil)
	require.NoError(t, err)
	loop, _ := res.Task("Draft")
	require.Equal(t, label.Confidential, loop.Label)
	require.Equal(t, label.Confidential, loop.Envelope.Classification())
	require.NoError(t, loop.Envelope.Genuine())
	write, _ := res.Task("Write#1")
	require.Equal(t, label.Internal, write.Envelope.Classification())
}

// A loop of values and templates repeats itself, and so may loops inside of it.
func TestLoopOfTemplatesThatRepeatsItself(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, "", "a")
	schema := []byte(`{"type":"object","properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["n"]}`)
	inner := task.Spec{Title: "Inner", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Step", "/n", 1), Output: "Step", Tasks: []task.Spec{{
		Title: "Step", Template: `{"n":1}`, OutputSchema: schema,
		DependsOn: []task.Ref{{Task: "Step", Round: task.Previous, Optional: true}},
	}}}}
	specs := []task.Spec{{Title: "Outer", Repeat: &task.Repeat{
		MaxRounds: 9, Until: task.Equals("Check", "/n", 7), Output: "Inner",
		Tasks: []task.Spec{inner, {
			Title: "Check", Key: "check", OutputSchema: schema, Template: `{"n":2{{if .results.check}},"text":"again"{{end}}}`,
			DependsOn: []task.Ref{{Task: "Inner"}, {Task: "Check", Round: task.Previous, Need: []task.Path{"/n"}, Optional: true}},
		}},
	}}}
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.ErrorContains(t, err, `task "Outer": the loop repeats itself: round 3 would be given the same as round 2`)
	var titles []string
	for i := range res.Tasks {
		titles = append(titles, res.Tasks[i].Title)
	}
	require.Equal(t, []string{"Step#1.1", "Inner#1", "Check#1", "Step#2.1", "Inner#2", "Check#2", "Outer"}, titles)
}
