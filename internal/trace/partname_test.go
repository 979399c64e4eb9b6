package trace_test

import (
	"testing"

	"github.com/runteam/runteam/internal/trace"
	"github.com/stretchr/testify/require"
)

func TestPartsAreNamed(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"":                                  "",
		"/turn/2":                           "turn 2",
		"/child/c":                          "child c",
		"/child/c/child/d/turn/3":           "child c child d turn 3",
		"/child/holder":                     "holder 2",
		"/child/holder/turn/2":              "holder 2 turn 2",
		"/child/holder/child/holder/turn/2": "holder 3 turn 2",
		"/child/holder/child/c":             "holder 2 child c",
		"/child/holder/call_1_1/approve":    "holder 2 call_1_1 approve",
		"/translate/child/c":                "translate child c",
	} {
		require.Equal(t, want, trace.PartName(part), part)
	}
}
