package team_test

import (
	"context"
	"testing"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func TestMain(m *testing.M) {
	slowtest.Checks(12) // most draw runs with a journal
	useCompression()
	m.Run()
}

// useCompression writes and reads a stored run. The compression of the journal makes its channels on
// first use; made in a bubble of synctest, no other bubble could use them.
func useCompression() {
	j := journal.InMemory(journal.Options{})
	defer j.Close()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: answering("x")}}})
	if err != nil {
		panic(err)
	}
	specs := []task.Spec{assigned("first", "a")}
	if _, err := tm.RunTasks(context.Background(), specs, &team.RunOptions{RunID: "r1", Journal: j}); err != nil {
		panic(err)
	}
	if _, err := tm.Resume(context.Background(), "r1", &team.RunOptions{Tasks: specs, Journal: j}); err != nil {
		panic(err)
	}
}
