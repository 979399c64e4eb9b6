package flowtest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
)

// sickness is a spec with an employee's file. One agent is granted all of it, one a part by
// its needs, and one a part by a rule that blocks names.
const sickness = `name: sickness
model: none
baseURL: http://127.0.0.1:9/v1
inputs:
  employee: {text: '{"name":"Jo","iban":"DE1","medical":"flu","salary":"40"}'}
  unread: {text: nobody reads it}
agents:
  - {name: summarizer, systemPrompt: You sum up.}
  - {name: payroll, systemPrompt: You pay.}
  - {name: letters, systemPrompt: You write.}
tasks:
  - {title: Summarize the case, assignee: summarizer, uses: [employee], description: Sum up.}
  - {title: Order the payment, assignee: payroll, uses: [{name: employee, need: [/iban]}], description: Pay.}
  - {title: Write a letter, assignee: letters, dependsOn: [Summarize the case], description: Write.}
policy:
  rules:
    - {from: user, to: summarizer, block: [iban, medical]}
`

// TestLeakPathFollowsTheCanary checks that a message names a path that the canary took, not
// one that only the rest of its source can take.
func TestLeakPathFollowsTheCanary(t *testing.T) {
	t.Parallel()
	got := failures(t, sickness, func(f *flowtest.Flow) {
		iban := f.PlantInput("employee", "/iban")
		f.Never(iban, "user", "letters")
		f.Reaches(iban, "letters")
	})
	requireFailure(t, got,
		`never reaches user, but it is in the result of "Order the payment" that the user is shown`,
		`the path it took (derived): input "employee" → task "Order the payment" [-:13] → user`,
		`to withhold it, write a rule {from: payroll, to: user, mode: minimal}, or narrow or cut what -:13 grants, or block it`,
		`reaches letters, but nothing that was delivered to letters has it`+"\n  the flow table says: never",
	)
	require.NotContains(t, got, "Summarize the case")

	got = failures(t, sickness, func(f *flowtest.Flow) { f.Never(f.PlantInput("employee", "/salary"), "letters") })
	requireFailure(t, got, `input "employee" → task "Summarize the case" [-:12] → task "Write a letter" [-:14] → letters`, "narrow or cut what -:14 grants")
	require.NotContains(t, got, "mode: minimal")
}

// TestLeakPathWasObserved has two paths to the user. The canary does not take the shorter one.
func TestLeakPathWasObserved(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(
		"need: [/iban]", "need: [/iban, /salary]",
		"dependsOn: [Summarize the case]", "dependsOn: [Order the payment]",
		"    - {from: user", "    - {from: payroll, to: user, mode: minimal}\n    - {from: user",
	).Replace(sickness)
	got := failures(t, text, func(f *flowtest.Flow) {
		f.Agent("summarizer", says("fine"))
		f.Never(f.PlantInput("employee", "/salary"), "user")
	})
	requireFailure(t, got,
		`it is in the result of "Write a letter" that the user is shown`,
		`the path it took (derived): input "employee" → task "Order the payment" [-:13] → task "Write a letter" [-:14] → user`,
		"{from: letters, to: user, mode: minimal}",
	)
	require.NotContains(t, got, "Summarize the case")
}

// TestLeakPathEndsAtTheSighting has an agent that first reads the canary in the words of
// another agent, and later gets its source.
func TestLeakPathEndsAtTheSighting(t *testing.T) {
	t.Parallel()
	later := chains + "  - {title: Compare, assignee: writer, dependsOn: [Write about rules], uses: [rules], description: Compare.}\n"
	requireFailure(t, failures(t, later, func(f *flowtest.Flow) { f.Never(f.PlantInput("rules"), "writer") }),
		`it is in the prompt of "Write about rules" (writer)`,
		`the path it took (derived): input "rules" → task "Read the rules" [-:11] → task "Write about rules" [-:12] → writer`,
	)
}

// TestLeakPathThroughTheCoordinator shows the user only the coordinator's answer.
func TestLeakPathThroughTheCoordinator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(`replies:
  - {coordinator: plan, text: '[{"title": "Read", "assignee": "clerk", "uses": ["claim"], "description": "Read it."}]'}
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(`name: council
model: none
offline: script.yaml
goal: Judge the claim.
coordinator: {mayGrant: [inputs]}
inputs: {claim: {text: water in the kitchen}}
agents: [{name: clerk, systemPrompt: You read.}]
policy: {rules: [{from: clerk, to: user, mode: minimal}]}
`), 0o600))
	got := failuresWith(t, spec.Options{Path: dir}, func(f *flowtest.Flow) { f.Never(f.PlantInput("claim"), "user") })
	requireFailure(t, got, `it is in the answer that the user is shown`, `(derived): input "claim" → task "Read" → task "the answer" → user`, "to withhold it, block it by a rule")
}

// TestLeakPathThroughALongMemory has so many tasks that read the memory that the flow table
// has one stop for it. All but the last task begin before the memory has an entry.
func TestLeakPathThroughALongMemory(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("name: many\nmodel: none\nmaxConcurrency: 500\nagents: [{name: clerk, systemPrompt: You read.}, {name: writer, systemPrompt: You write.}]\ntasks:\n  - {title: First, assignee: clerk, description: Read.}\n")
	for i := range 450 {
		fmt.Fprintf(&b, "  - {title: Task %d, assignee: writer, memoryScope: all, description: Write.}\n", i)
	}
	b.WriteString("  - {title: Next, assignee: clerk, dependsOn: [First], description: Read.}\n  - {title: Last, assignee: writer, dependsOn: [Next], memoryScope: all, description: Write.}\n")
	got := failures(t, b.String(), func(f *flowtest.Flow) { f.Never(f.PlantResult("First", ""), "writer") })
	requireFailure(t, got, `result of "First" → task "shared memory" → writer`)
}

// says is an agent that answers with this text.
func says(text string) engine.Agent {
	return engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil })
}

// TestFailureNamesWithheldContext checks that a broken Reaches says what was delivered to the
// reader instead.
func TestFailureNamesWithheldContext(t *testing.T) {
	t.Parallel()
	const text = `name: one
model: none
agents: [{name: clerk, systemPrompt: You read.}]
tasks:
  - {title: Read, assignee: clerk, description: Read., outputSchema: {type: object, properties: {a: {type: string}, b: {type: string}}}}
policy: {rules: [{from: clerk, to: user, block: [b]}]}
`
	got := failures(t, text, func(f *flowtest.Flow) {
		f.Reaches(f.PlantResult("Read", "/a"), "user")
		f.Reaches(f.PlantResult("Read", "/b"), "user")
	})
	require.NotContains(t, got, "/a of the result")
	requireFailure(t, got, `asserted that /b of the result of "Read" (`, "the flow table says: never\n  user sees everything except b")
}

func TestCanaryWithoutReader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		test func(f *flowtest.Flow)
		want []string
	}{
		{"blocked, and one assertion says so", func(f *flowtest.Flow) { f.Never(f.PlantInput("employee", "/medical"), "letters") }, nil},
		{"blocked, and assertions say so", func(f *flowtest.Flow) {
			f.Never(f.PlantInput("employee", "/medical"), "summarizer", "payroll", "letters", "http://127.0.0.1:9/v1")
		}, nil},
		{"blocked, and nothing is asserted", func(f *flowtest.Flow) { f.PlantInput("employee", "/medical") }, []string{
			`/medical of input "employee" (`, "reached no reader and has no assertion; add Never or Reaches",
		}},
		{"blocked, against an assertion", func(f *flowtest.Flow) { f.Reaches(f.PlantInput("employee", "/medical"), "summarizer") }, []string{
			"reaches summarizer, but nothing that was delivered to summarizer has it", `"Summarize the case" receives`,
		}},
		{"granted to no reader", func(f *flowtest.Flow) { f.Never(f.PlantInput("unread"), "letters") }, []string{
			`input "unread" (`, "was planted in something that no edge of the spec delivers",
		}},
		{"granted to no reader, as asserted", func(f *flowtest.Flow) { f.Never(f.PlantInput("unread"), flowtest.Everybody) }, nil},
		{"granted to no reader, as asserted by name", func(f *flowtest.Flow) { f.Never(f.PlantInput("unread"), "summarizer", "payroll", "letters", "user") }, nil},
		{"not written", func(f *flowtest.Flow) {
			f.Never(f.PlantResult("Order the payment", ""), flowtest.Everybody)
			f.Agent("payroll", says("paid"))
		}, []string{`the result of "Order the payment" (`, "was not written: no agent answered with it"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, failures(t, sickness, tt.test), tt.want...)
		})
	}
	minimal := strings.Replace(sickness, "    - {from: user", "    - {from: payroll, to: user, mode: minimal}\n    - {from: user", 1)
	require.Empty(t, failures(t, minimal, func(f *flowtest.Flow) { f.Never(f.PlantResult("Order the payment", ""), "user") }))
}
