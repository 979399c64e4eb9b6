package flowtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// clerks is a team of which one reads something confidential, and may not call its tool then.
const clerks = `
agents:
  - {name: clerk, accepts: confidential, tools: [http_get], allowUntrusted: [http_get]}
  - {name: writer, tools: [http_get], allowUntrusted: [http_get]}
  - {name: reader}
inputs:
  claim: {text: claim, classification: confidential}
  rules: {text: rules}
tasks:
  - {title: Read, assignee: clerk, tools: [], uses: [claim], description: d}
  - {title: Write, assignee: writer, uses: [rules], description: d}
  - {title: Sum up, assignee: reader, dependsOn: [Write], description: d}
tools: {http_get: {origins: ["https://example.com"]}}
`

// TestToolsAreReaders checks what tools are called with. The page that a stand-in asks
// for is never read.
func TestToolsAreReaders(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, clerks, func(f *flowtest.Flow) {
		claim, rules, note := f.PlantInput("claim"), f.PlantInput("rules"), f.PlantResult("Write", "")
		f.Reaches(claim, "clerk")
		f.Never(claim, "tool:http_get")
		f.Reaches(rules, "writer", "tool:http_get")
		f.Reaches(note, "tool:http_get") // what an agent is about to answer
		f.Never(f.PlantResult("Sum up", ""), "tool:http_get")
	}))
	requireFailure(t, failures(t, clerks, func(f *flowtest.Flow) {
		f.Never(f.PlantInput("rules"), "tool:http_get")
	}), "never reaches tool:http_get, but it is in the arguments of a call of tool:http_get", `the path it took (whole): input "rules"`)
	requireFailure(t, failures(t, clerks, func(f *flowtest.Flow) {
		f.Reaches(f.PlantInput("claim"), "tool:http_get")
	}), "reaches tool:http_get, but nothing that was delivered to tool:http_get has it")
}

// TestToolsOfAgentsUnderTestWork checks that an agent of the test has its tools.
func TestToolsOfAgentsUnderTestWork(t *testing.T) {
	t.Parallel()
	requireFailure(t, failures(t, clerks, func(f *flowtest.Flow) {
		sum := f.PlantResult("Sum up", "")
		f.Reaches(sum, "user")
		f.Agent("writer", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if len(p.Messages()) == 1 {
				return agent.Reply{ToolCalls: []llm.ToolCall{{Name: "http_get", Arguments: fmt.Sprintf(`{"url": "https://other.example/%s"}`, sum)}}}, nil
			}
			require.Contains(t, p.Messages()[len(p.Messages())-1].Text, "is not allowed; allowed are")
			return agent.Reply{Text: "done"}, nil
		}))
	}), "is in the arguments of a call of tool:http_get: the flow table says that it never reaches tool:http_get")
}

// TestWhatGoesBackToAProviderIsSearched checks what an agent has its provider get back.
func TestWhatGoesBackToAProviderIsSearched(t *testing.T) {
	t.Parallel()
	requireFailure(t, failures(t, clerks, func(f *flowtest.Flow) {
		claim := f.PlantInput("claim")
		f.Reaches(claim, "clerk")
		f.Agent("writer", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			if len(p.Messages()) > 1 {
				return agent.Reply{Text: "done"}, nil
			}
			return agent.Reply{
				ToolCalls: []llm.ToolCall{{Name: "http_get", Arguments: `{"url": "https://other.example/"}`}},
				Provider:  &llm.ProviderData{Calls: []llm.ProviderCall{{Members: fmt.Appendf(nil, `{"signature": %q}`, claim)}}},
			}, nil
		}))
	}), `is in the tool calls of "Write" (writer)`)
}
