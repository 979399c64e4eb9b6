package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// After a crash at any commit, a command that is durable has its effect once, and one that is not
// durable has none.
func TestCommandsHoldAfterEveryCommit(t *testing.T) {
	t.Parallel()
	var whole *memory
	specs := []task.Spec{spec("a"), spec("b", "a"), spec("c", "b"), spec("e", "c")}
	synctest.Test(t, func(t *testing.T) {
		s := newSteered(t)
		interrupted := s.at(1.5, steer.Command{Kind: steer.Interrupt, Task: "b", Text: "Write it in French."})
		told := s.at(1.6, steer.Command{Kind: steer.Message, Agent: "c", Text: "The customer is Ann."})
		canceled := s.at(1.7, steer.Command{Kind: steer.Cancel, Task: "e"})
		res := run(t, newTeam(t, s.slow("a"), s.slow("b"), s.slow("c"), s.slow("e")), s.options(), specs...)
		for _, done := range []<-chan error{interrupted, told, canceled} {
			require.NoError(t, <-done)
		}
		require.Equal(t, []string{"a at 0", "b at 1", "b at 1.5", "c at 2.5"}, s.asked)
		require.Equal(t, task.Skipped, of(t, res, "e").Status)
		whole = s.journal
	})
	texts := map[string]string{"b": "Write it in French.", "c": "The customer is Ann."}
	for n := range whole.len() + 1 {
		h := whole.history(n)
		h.End = nil
		commands, completed := map[steer.Kind]bool{}, map[string]bool{}
		for _, e := range h.Log {
			if e.Command != nil {
				commands[e.Command.Kind] = true
			}
			if e.Exchange != nil && e.Exchange.Completed() {
				completed[e.Exchange.Title] = true
			}
		}
		if n == whole.len() {
			require.Len(t, commands, 3)
		}
		durable := map[string]bool{"b": commands[steer.Interrupt], "c": commands[steer.Message]}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Hour)
			s := newSteered(t)
			res := resumed(t, newTeam(t, s.slow("a"), s.slow("b"), s.slow("c"), s.slow("e")), h, specs...)
			asked := map[string]bool{}
			for i, who := range s.asked {
				title, _, _ := strings.Cut(who, " ")
				require.False(t, completed[title] || asked[title], "%s after %d commits", who, n)
				asked[title] = true
				for reader, text := range texts {
					want := 0
					if reader == title && durable[title] {
						want = 1
					}
					require.Equal(t, want, strings.Count(s.texts[i], text), "%s after %d commits: %s", who, n, s.texts[i])
				}
			}
			if !commands[steer.Cancel] {
				require.NoError(t, res.Err(), "after %d commits", n)
				return
			}
			require.Equal(t, task.Skipped, of(t, res, "e").Status, "after %d commits", n)
			require.False(t, asked["e"])
		})
	}
}
