package team_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A drawnTask is a task of a round: the tasks of the same round and of the round before that it
// reads, by their numbers.
type drawnTask struct{ same, before []int }

var (
	checkSchema = []byte(`{"type":"object","properties":{"valid":{"type":"boolean"},"note":{"type":"string"}},"required":["valid","note"]}`)
	fenceID     = regexp.MustCompile(`envelope [0-9a-f]+`)
	roundOfTask = regexp.MustCompile(`@\d+`)
)

// promptsOf runs a graph, of which the check accepts its round with this number, and returns all
// prompts without fences and rounds. Agents answer equal prompts equally.
func promptsOf(t require.TestingT, specs []task.Spec, accepted int) (all []string) {
	var mu sync.Mutex
	checks := 0
	says := func(checker bool) agent.Agent {
		return agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			text := roundOfTask.ReplaceAllString(fenceID.ReplaceAllString(p.Text(), "envelope"), "")
			text = strings.ReplaceAll(text, "### Loop (by", "### T0 (by")
			all = append(all, text)
			answer := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
			if checker {
				checks++
				answer = fmt.Sprintf(`{"valid":%t,"note":%q}`, checks >= accepted, answer)
			}
			return agent.Reply{Text: answer}, nil
		})
	}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: says(false)}, {Name: "checker", Agent: says(true)}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(context.Background(), specs, nil)
	require.NoError(t, err)
	require.Equal(t, team.StatusOK, res.Status)
	slices.Sort(all)
	return all
}

// work is a task of the worker.
func work(title string, on ...task.Ref) task.Spec {
	return task.Spec{Title: title, Description: "d", Assignee: "worker", DependsOn: on}
}

// check is the task that decides whether a loop ends; it reads the first task of a round.
func check(title string, on ...task.Ref) task.Spec {
	s := work(title, on...)
	s.Assignee, s.OutputSchema = "checker", checkSchema
	return s
}

// TestALoopHasThePromptsOfItsRounds compares a loop with the same rounds written by hand.
func TestALoopHasThePromptsOfItsRounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := make([]drawnTask, rapid.IntRange(1, 4).Draw(t, "tasks"))
		for i := range drawn {
			for k := range drawn {
				if k < i && rapid.Bool().Draw(t, "same") {
					drawn[i].same = append(drawn[i].same, k)
				}
				if rapid.Bool().Draw(t, "before") {
					drawn[i].before = append(drawn[i].before, k)
				}
			}
		}
		most := rapid.IntRange(1, 4).Draw(t, "most")
		accepted := rapid.IntRange(1, 5).Draw(t, "accepted")
		loop := &task.Repeat{MaxRounds: most, Until: task.Equals("Check", "/valid", true), Output: "T0"}
		hand := []task.Spec{work("Start")}
		for n := 0; n <= min(most, accepted); n++ { // 0 is the loop
			name := func(title string, n int) string { return fmt.Sprintf("%s@%d", title, n) }
			if n == 0 {
				name = func(title string, _ int) string { return title }
			}
			var round []task.Spec
			for i, d := range drawn {
				on := task.On("Start")
				for _, k := range d.same {
					on = append(on, task.Ref{Task: name(fmt.Sprint("T", k), n)})
				}
				for _, k := range d.before {
					ref := task.Ref{Task: name(fmt.Sprint("T", k), n-1), Optional: true}
					if n == 0 {
						ref.Round = task.Previous
					}
					if n != 1 {
						on = append(on, ref)
					}
				}
				round = append(round, work(name(fmt.Sprint("T", i), n), on...))
			}
			round = append(round, check(name("Check", n), task.Ref{Task: name("T0", n)}))
			if n == 0 {
				loop.Tasks = round
				continue
			}
			hand = append(hand, round...)
		}
		hand = append(hand, work("End", task.Ref{Task: fmt.Sprintf("T0@%d", min(most, accepted))}))
		specs := []task.Spec{work("Start"), {Title: "Loop", Repeat: loop}, work("End", task.Ref{Task: "Loop"})}
		require.Equal(t, promptsOf(t, hand, accepted), promptsOf(t, specs, accepted))
	})
}
