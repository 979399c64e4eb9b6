package replay

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// A replay that did not build a prompt again names its task and the prompt, also if no task differs. Prompts after
// calls of tools, also those of children, are counted apart.
func TestVerdictNamesPromptsThatWereNotBuilt(t *testing.T) {
	t.Parallel()
	call := func(part string, key byte) *record.AgentCall {
		return &record.AgentCall{CallID: record.CallID{Task: "t", Title: "Report", Attempt: 2, Part: part}, Keys: record.Keys{Key: record.Key{key}}}
	}
	k := &journals.StoredRun{Tasks: []*journals.StoredTask{{
		ID: "t", Title: "Report", Status: task.Completed,
		Calls: []*record.AgentCall{call("/child/call_1_1", 1), call("/child/call_1_1/turn/2", 2), call("/repair/1", 3), call("", 4)},
	}}}
	r := &repetition{run: k, seen: map[record.Key]bool{{3}: true, {4}: true}}
	v := r.verdict(nil, nil)
	require.Equal(t, &Verdict{Prompts: 2, Replayed: 2, Later: 2, Differences: []Difference{}}, v)
	require.True(t, v.equal())
	r.seen = map[record.Key]bool{{4}: true}
	v = r.verdict(nil, nil)
	require.Equal(t, []Difference{{"Report", "its prompt of attempt 2 repair 1 was not built again"}}, v.Differences)
	require.False(t, v.equal())
	r.seen = nil
	require.Equal(t, "its prompt of attempt 2 was not built again", r.verdict(nil, nil).Differences[1].Why)
	require.Len(t, r.verdict([]difference{{title: "Report", why: promptDiffers}}, nil).Differences, 1)
}
