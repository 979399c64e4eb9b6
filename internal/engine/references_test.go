package engine_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// Tests of requirements of the references that no other test shows by itself; see docs/explanation/references.md.

// Without a policy, an agent gets neither the number of a card nor an e-mail address, from an input or from another agent.
func TestCardAndEmailAreRedactedByDefault(t *testing.T) {
	t.Parallel()
	const card, mail = "4111 1111 1111 1111", "ada@example.com"
	d := newDesk()
	first := spec("first")
	first.Uses = []task.Use{{Name: "note"}}
	tm := newTeam(t, member("first", d.keeps(says("pay with "+card+" and tell "+mail))), member("second", d.keeps(says("done"))))
	o := &engine.RunOptions{Inputs: []engine.Input{{Name: "note", Text: "My card is " + card + ", write to " + mail + "."}}}
	require.NoError(t, run(t, tm, o, first, spec("second", "first")).Err())
	require.Contains(t, d.of("first"), "My card is [REDACTED:card], write to [REDACTED:email].")
	require.Contains(t, d.of("second"), "pay with [REDACTED:card] and tell [REDACTED:email]")
	require.NotContains(t, d.of("first")+d.of("second"), card)
	require.NotContains(t, d.of("first")+d.of("second"), mail)
}

// Neither the log, at its most detailed level, nor an event has personal data of an input, a result or an error.
func TestLogsAndEventsHaveNoPersonalData(t *testing.T) {
	t.Parallel()
	const card, mail = "4111 1111 1111 1111", "ada@example.com"
	broken := errors.New("cannot write to " + mail + " about card " + card)
	var a audience
	o := a.with(engine.RunOptions{Inputs: []engine.Input{{Name: "note", Text: "My card is " + card + ", write to " + mail + "."}}})
	first, last := spec("first"), spec("last", "first")
	first.Uses = []task.Use{{Name: "note"}}
	text, records := logged(t, slog.LevelDebug, o, []task.Spec{first, last}, member("first", says("tell "+mail)), member("last", fails(broken)))
	require.NotEmpty(t, records)
	failed := a.only(event.Error)
	require.Len(t, failed, 1)
	require.Contains(t, failed[0].Message, "cannot write to [REDACTED:email] about card [REDACTED:card]")
	for _, e := range a.events {
		text += encoded(e)
	}
	require.NotContains(t, text, mail)
	require.NotContains(t, text, card)
}

// The result of each task is written to the shared memory, and the answer of a goal is made with what is there.
func TestResultsAreWrittenToTheMemoryForTheSynthesis(t *testing.T) {
	t.Parallel()
	store := teammemory.NewMapStore()
	run(t, newTeam(t, member("ada", says("from before"))), &engine.RunOptions{Memory: store}, spec("ada"))
	entries, err := store.All(t.Context())
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "task:"+string(task.NewID("ada"))+":result", entries[0].Key)
	require.Equal(t, "from before", entries[0].Envelope.Open().Text())

	c, d := &planner{}, newDesk()
	tm := led(t, c, member("bob", d.keeps(says("of now"))))
	res, err := tm.RunTasks(t.Context(), []task.Spec{spec("bob")}, &engine.RunOptions{Memory: store, Answer: &engine.Goal{Text: "Sum it up."}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Len(t, c.prompts, 1)
	require.Contains(t, c.prompts[0], "of now")
	require.Contains(t, c.prompts[0], "result: from before")
	require.NotContains(t, d.of("bob"), "from before", "no agent reads it meanwhile")
}
