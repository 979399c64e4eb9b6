package trace_test

import (
	"testing"

	"github.com/runteam/runteam/internal/trace"
	"github.com/stretchr/testify/require"
)

func TestPartsAreNamed(t *testing.T) {
	t.Parallel()
	holders := trace.Holders{"r/t/1/child/a": 2, "r/t/1/child/a/child/b": 3}
	for part, want := range map[string]string{
		"":                          "",
		"/turn/2":                   "turn 2",
		"/child/c":                  "child c",
		"/child/c/child/d/turn/3":   "child c child d turn 3",
		"/child/a":                  "holder 2",
		"/child/a/turn/2":           "holder 2 turn 2",
		"/child/a/child/b/turn/2":   "holder 3 turn 2",
		"/child/a/child/c":          "holder 2 child c",
		"/child/a/call_1_1/approve": "holder 2 call_1_1 approve",
		"/translate/child/c":        "translate child c",
	} {
		require.Equal(t, want, holders.Part("r/t/1", part), part)
	}
}
