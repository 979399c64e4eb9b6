package engine_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// A provider chooses the names of members. A receipt shows those that are names and would not be redacted.
//
// Requirement: G64.
func TestReceiptsShowNamesOfMembersOnly(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"reasoning_content": "reasoning_content", "_x-thought.v2": "_x-thought.v2", "gh" + "p_0123456789abcdefghijABCDEFGHIJ012345": "", "AK" + "IAQ3J5Z7XK2M9PL4TB": "",
		"the canary of a prompt": "", "canary\n": "", "": "", strings.Repeat("canary", 7): "", "canary@example.org": "", "4111-1111-1111-1111": "", "token=canary": "",
	}
	for name, shown := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			member, err := json.Marshal(map[string]int{name: 1, "seal": 2})
			require.NoError(t, err)
			s := looksUpSigned(1)
			answer := s.reply
			s.reply = func(turn int, r llm.Request) llm.Response {
				res := answer(turn, r)
				if turn == 1 {
					res.Provider = &llm.ProviderData{Endpoint: s.at, Message: member, Calls: []llm.ProviderCall{{Members: member}}}
				}
				return res
			}
			var returned []prompt.Returned
			res := run(t, toolTeam(t, s, factTool(t, noEffect)), &engine.RunOptions{Subscribers: []func(event.Event){func(e event.Event) {
				if e.Type == event.AgentStart && e.Receipt != nil {
					returned = append(returned, e.Receipt.Returned...)
				}
			}}}, errand())
			require.NoError(t, res.Err())
			require.Len(t, returned, 2)
			for _, r := range returned {
				require.Equal(t, slices.Sorted(slices.Values([]string{cmp.Or(shown, "(another name)"), "seal"})), r.Members)
			}
		})
	}
}
