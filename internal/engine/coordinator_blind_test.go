package engine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// TestCoordinatorPromptsDoNotDependOnInputs runs a goal with two texts of one
// input. By the flow table the input never derives into the coordinator, so the
// coordinator must get the same prompts, byte for byte.
//
// Requirement: G54.
func TestCoordinatorPromptsDoNotDependOnInputs(t *testing.T) {
	t.Parallel()
	const uses = `[{"title": "Use", "description": "Use it.", "assignee": "ada", "uses": ["pin"]}]`
	allow := handoff.PairRule{From: handoff.User, To: "ada", Mode: handoff.Scoped, Allow: []task.Path{"/a"}}
	whole := handoff.PairRule{From: handoff.User, To: "ada", Mode: handoff.Full}
	big := func(n int) string { return `{"a": "` + strings.Repeat("ab ", n) + `"}` }
	tests := []struct {
		name          string
		plan          string
		rule          handoff.PairRule
		assert        string
		first, second string
	}{
		{"its length", uses, whole, "", "1234", "123456789"},
		{"its length, where it is too large to deliver", uses, whole, "", big(1_500_000), big(1_600_000)},
		{"whether it is too large", uses, whole, "", "1234", strings.Repeat("word ", 1_000_000)},
		{"a text or a value", uses, allow, "", `{"a": 1}`, "call me"},
		{"which members it has", uses, allow, "", `{"a": 1}`, `{"b": 1}`},
		{"which members it has, behind a plan that cannot be run", strings.Replace(uses, "Use it.", `Use it.", "agent": "ada`, 1), allow, "", `{"a": 1}`, `{"b": 1}`},
		{"whether a property was asserted to be withheld", uses, whole, "ssn never reaches ada", `{"ssn": 1, "a": 1}`, `{"sum": 1, "a": 1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			play := func(text string) []string {
				c := &planner{plans: []string{tt.plan, uses}}
				tm, err := engine.New(engine.Config{
					Agents: []engine.Member{
						{Name: "ada", Accepts: label.Secret, Agent: engine.AgentFunc(says("done"))},
						{Name: "bob", Agent: engine.AgentFunc(never(t)), OutputSchema: []byte(`{"properties": {"ssn": {}}}`)},
					},
					Coordinator: &engine.Coordinator{Agent: c, MayGrant: synth.Grants{Inputs: true}},
					Policy:      &handoff.Policy{Rules: []handoff.PairRule{tt.rule}},
				})
				require.NoError(t, err)
				o := &engine.RunOptions{RunID: "run", Inputs: []engine.Input{{Name: "pin", Text: text, Classification: label.Secret}}}
				for _, a := range []string{tt.assert, "input pin never derives into coordinator"} {
					if a != "" {
						parsed, err := flow.ParseAssertion(a)
						require.NoError(t, err)
						o.Assert = append(o.Assert, parsed)
					}
				}
				o.Subscribers = []func(event.Event){func(event.Event) {}}
				_, err = tm.RunTeam(t.Context(), engine.Goal{Text: "Use the pin."}, o)
				require.NoError(t, err)
				var all []string
				for i := range c.prompts {
					all = append(all, c.systems[i]+"\n"+c.prompts[i])
				}
				return all
			}
			first, second := play(tt.first), play(tt.second)
			n := min(len(first), len(second)) // a run may end earlier than another one: how it ended is no content
			require.Equal(t, first[:n], second[:n])
			if n < max(len(first), len(second)) {
				longer := append(first[n:], second[n:]...)[0]
				require.NotContains(t, longer, "## Goal\n", "the coordinator is not asked again because of the input")
			}
		})
	}
}
