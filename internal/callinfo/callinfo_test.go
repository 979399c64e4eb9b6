package callinfo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/llm"
)

// TestOutlineRepeatsNothingOfTheEndpoint checks that an outline has nothing in which an
// endpoint could repeat what it read, such as letters in another case.
func TestOutlineRepeatsNothingOfTheEndpoint(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"stop": "stop", "MaX_tOKenS": "max_tokens", "eND_tURn": "end_turn", "because canary": "", "": ""} {
		full := llm.CallInfo{Model: "canary", Endpoint: "https://h.example/v1", RequestID: "canary", FinishReason: given}
		require.Equal(t, llm.CallInfo{Endpoint: "https://h.example/v1", FinishReason: want}, callinfo.Outline(full), given)
	}
}
