package flowtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
)

// remembering is a team whose last agent reads the shared memory, which has the result of
// the first one.
const remembering = `name: remembering
model: none
inputs:
  claim: {text: "water in the kitchen", classification: confidential}
agents:
  - {name: clerk, accepts: confidential, systemPrompt: You read.}
  - {name: other, accepts: confidential, systemPrompt: You read.}
  - {name: writer, accepts: confidential, systemPrompt: You write.}
tasks:
  - {title: Read, assignee: clerk, uses: [claim], description: Read., outputSchema: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}}
  - {title: Other, assignee: other, dependsOn: [{task: Read, need: [/a]}], description: Look.}
  - {title: Write, assignee: writer, dependsOn: [Other], memoryScope: all, description: Write.}
policy: {POLICY}
`

// TestPoliciesHold checks that what a policy withholds reaches the reader neither by an edge
// nor through the memory.
func TestPoliciesHold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		policy        string
		never, writer bool // part b never reaches the writer; part a does, through the memory
	}{
		{"", false, true},
		{"rules: [{from: clerk, to: writer, mode: minimal}]", true, true}, // a reaches c only as derived text
		{"rules: [{from: clerk, to: writer, block: [b]}]", true, true},
		{"rules: [{from: clerk, to: writer, allow: [/a]}]", true, true},
		{"default: minimal, rules: [{from: clerk, to: other, mode: full}, {from: other, to: writer, mode: full}]", true, true},
		{"default: minimal, rules: [{from: clerk, to: other, mode: full}]", true, false},
		{"rules: [{from: clerk, to: user, mode: minimal}]", false, true},
	}
	for _, tt := range tests {
		for _, careless := range []bool{false, true} {
			t.Run(tt.policy, func(t *testing.T) {
				t.Parallel()
				require.Empty(t, failures(t, strings.Replace(remembering, "POLICY", tt.policy, 1), func(f *flowtest.Flow) {
					if careless {
						f.Careless()
					}
					f.PlantInput("claim")
					a, b := f.PlantResult("Read", "/a"), f.PlantResult("Read", "/b")
					f.Reaches(a, "other")
					f.Never(b, "other")
					if tt.never {
						f.Never(b, "writer")
					} else {
						f.Reaches(b, "writer")
					}
					if tt.writer {
						f.Reaches(a, "writer")
					} else {
						f.Never(a, "writer")
					}
				}))
			})
		}
	}
}

// TestSecretsReachNoReader checks that a secret that an agent reads and repeats is in its
// prompts, and not in a result, event, log or trace.
//
// Requirement: G47.
func TestSecretsReachNoReader(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(
		"classification: confidential", "classification: secret",
		"{name: clerk, accepts: confidential,", "{name: clerk, accepts: secret, baseURL: 'http://127.0.0.1:9/v1',",
	).Replace(chains) + "policy: {rules: [{from: user, to: clerk, mode: full}]}\n"
	require.Empty(t, failures(t, text, func(f *flowtest.Flow) {
		f.PlantEverywhere()
		f.Never(f.PlantResult("Read the claim", ""), flowtest.Everybody)
	}))
	require.Empty(t, failures(t, text, func(f *flowtest.Flow) {
		claim := f.PlantInput("claim")
		f.Reaches(claim, "clerk", "http://127.0.0.1:9/v1")
		f.Never(claim, "user", "writer")
	}))
}

// TestMessagesCarryCanaries checks that a message reaches its recipient and no other agent.
//
// Requirement: G9.
func TestMessagesCarryCanaries(t *testing.T) {
	t.Parallel()
	text := chains + "edges: [{from: clerk, to: writer}]\nmessages: [{from: user, to: clerk, text: read slowly}, {from: clerk, to: writer, text: write slowly}]\n"
	require.Empty(t, failures(t, text, func(f *flowtest.Flow) { f.PlantEverywhere() }))
	got := failures(t, text, func(f *flowtest.Flow) {
		f.PlantEverywhere()
		f.Agent("writer", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			f.Logger().Info("told", "what", p.Text())
			return agent.Reply{Text: "done"}, nil
		}))
	})
	requireFailure(t, got, "message 2 of the spec (", "is in the log")
}
