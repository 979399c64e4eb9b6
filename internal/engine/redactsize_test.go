package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/task"
)

// TestValuesOfThreeMiBAreRedactedAndCut delivers an input whole and a result in
// part. Both are larger than the megabyte above which values were withheld.
func TestValuesOfThreeMiBAreRedactedAndCut(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("one line of a long report\n", 3<<20/26) + "write to ada.one@example.org\n"
	d := newDesk()
	reader := member("reader", d.keeps(says("read")))
	reader.MaxContextBytes, reader.MaxPromptBytes = 4<<20, 4<<20
	last := member("last", d.keeps(says("read")))
	tm := newTeam(t, member("maker", says(text)), reader, last)
	first, second := spec("reader"), spec("last", "maker")
	first.Uses = []task.Use{{Name: "report"}}
	res := run(t, tm, &engine.RunOptions{Inputs: []engine.Input{{Name: "report", Text: text}}}, spec("maker"), first, second)
	require.NoError(t, res.Err())
	require.Greater(t, len(d.of("reader")), 3<<20-100)
	require.Contains(t, d.of("reader"), "write to [REDACTED:email]")
	require.Contains(t, d.of("last"), "cut 256 of 3072 KiB")
	require.Contains(t, d.of("last"), "one line of a long report")
}
