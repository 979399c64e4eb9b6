package flowtest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
)

// chains is a team of two chains that share an agent and nothing else.
const chains = `name: chains
model: none
inputs:
  claim: {text: "water in the kitchen", classification: confidential}
  rules: {text: "pay by clause 4"}
agents:
  - {name: clerk, accepts: confidential, systemPrompt: You read.}
  - {name: writer, accepts: confidential, systemPrompt: You write.}
tasks:
  - {title: Read the claim, assignee: clerk, uses: [claim], description: Read it.}
  - {title: Read the rules, assignee: clerk, uses: [rules], description: Read them.}
  - {title: Write about rules, assignee: writer, dependsOn: [Read the rules], description: Write.}
`

func TestPassesWhenAssertionsHold(t *testing.T) {
	t.Parallel()
	got := failures(t, chains, func(f *flowtest.Flow) {
		claim, rules := f.PlantInput("claim"), f.PlantInput("rules")
		f.Never(claim, "writer")
		f.Reaches(claim, "clerk", "user")
		f.Reaches(rules, "clerk", "writer", "user", "https://api.openai.com/v1")
	})
	require.Empty(t, got)
}

// TestFallbackEndpointIsAReader checks that the endpoint of a fallback counts as a reader of
// its agent's prompts.
func TestFallbackEndpointIsAReader(t *testing.T) {
	t.Parallel()
	const spare = "https://spare.example/v1"
	text := strings.Replace(chains, "{name: writer,", "{name: writer, fallback: [{baseURL: '"+spare+"'}],", 1)
	require.Empty(t, failures(t, text, func(f *flowtest.Flow) {
		f.Never(f.PlantInput("claim"), spare)
		f.Reaches(f.PlantInput("rules"), spare)
	}))
	requireFailure(t, failures(t, text, func(f *flowtest.Flow) { f.Never(f.PlantInput("rules"), spare) }), "never reaches "+spare)
}

// inTurn is chains with one task after the other: the claim is read before the rules.
var inTurn = strings.Replace(chains, "uses: [rules]", "uses: [rules], priority: low", 1) +
	"  - {title: Sum up, assignee: clerk, dependsOn: [Read the claim], description: Sum up.}\nmaxConcurrency: 1\n"

// TestBrokenGateFails has agents that leak what they read past the gate.
func TestBrokenGateFails(t *testing.T) {
	t.Parallel()
	plain := func(p prompt.Prompt) agent.Reply { return agent.Reply{Text: p.Text()} }
	tests := []struct {
		name  string
		leaky func(f *flowtest.Flow) engine.AgentFunc
		want  []string
	}{
		{
			"logs its prompt",
			func(f *flowtest.Flow) engine.AgentFunc {
				return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					f.Logger().Debug("asked", "prompt", p.Text())
					return plain(p), nil
				}
			},
			[]string{`input "claim" (`, "is in the log", "logs, events and printed values must not contain context"},
		},
		{
			"logs its prompt, encoded",
			func(f *flowtest.Flow) engine.AgentFunc {
				return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					f.Logger().Info("asked", "prompt", base64.URLEncoding.EncodeToString([]byte(p.Text())))
					return plain(p), nil
				}
			},
			[]string{`input "claim" (`, "is, encoded, in the log"},
		},
		{
			"remembers between tasks",
			func(*flowtest.Flow) engine.AgentFunc {
				var mu sync.Mutex
				var memory string
				return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					mu.Lock()
					defer mu.Unlock()
					memory += p.Text()
					return agent.Reply{Text: memory}, nil
				}
			},
			[]string{
				`input "claim" (`, `is in the prompt of "Write about rules" (writer): no edge of the spec delivers it there; the flow table says of claim and writer: never`,
				`is in the result of "Read the rules" that the user is shown: its prompt may not have it, so what it writes may not either`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := failures(t, inTurn, func(f *flowtest.Flow) {
				f.PlantInput("claim")
				f.Agent("clerk", tt.leaky(f))
			})
			requireFailure(t, got, tt.want...)
			t.Log(got)
		})
	}
}

func TestFilesMayHaveContextForTheUser(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"confidential", "secret"} {
		text := strings.Replace(chains, "classification: confidential", "classification: "+level, 1)
		text = strings.Replace(text, "{name: clerk, accepts: confidential,", "{name: clerk, accepts: "+level+", baseURL: 'http://127.0.0.1:9/v1',", 1)
		if level == "secret" {
			text += "policy: {rules: [{from: user, to: clerk, mode: full}]}\n"
		}
		got := failures(t, text, func(f *flowtest.Flow) {
			f.PlantInput("claim")
			f.Agent("clerk", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				err := os.WriteFile(filepath.Join(f.Dir(), p.Sections()[0].Title), []byte(p.Text()), 0o600)
				return agent.Reply{Text: "done"}, err
			}))
		})
		if level == "confidential" {
			require.Empty(t, got)
		} else {
			requireFailure(t, got, "is in the file claim: it is at least secret, and the user accepts confidential")
		}
	}
}

func TestFailsWhenAssertionsAreBroken(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		test func(f *flowtest.Flow)
		want []string
	}{
		{
			"a broken never",
			func(f *flowtest.Flow) { f.Never(f.PlantInput("rules"), "writer") },
			[]string{
				`asserted that input "rules" (`, `never reaches writer, but it is in the prompt of "Write about rules" (writer)`,
				"the path it took (derived): input \"rules\" → task \"Read the rules\" [-:11] → task \"Write about rules\" [-:12] → writer",
				"narrow or cut what -:12 grants",
			},
		},
		{
			"a broken reaches",
			func(f *flowtest.Flow) { f.Reaches(f.PlantInput("claim"), "writer") },
			[]string{`reaches writer, but nothing that was delivered to writer has it`, "the flow table says: never"},
		},
		{
			"never anybody",
			func(f *flowtest.Flow) { f.Never(f.PlantInput("claim"), flowtest.Everybody) },
			[]string{"never reaches clerk", "never reaches user", "never reaches https://api.openai.com/v1"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, failures(t, chains, tt.test), tt.want...)
		})
	}
}

func TestMisuseIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		test func(f *flowtest.Flow)
		want string
	}{
		{"no such input", func(f *flowtest.Flow) { f.PlantInput("clam") }, `unknown input "clam"`},
		{"no such task", func(f *flowtest.Flow) { f.PlantResult("Read the clam", "") }, `unknown task "Read the clam"; did you mean "Read the claim"?`},
		{"no such reader", func(f *flowtest.Flow) { f.Never(f.PlantInput("claim"), "writers") }, `unknown reader "writers": did you mean "writer"?`},
		{"no such agent", func(f *flowtest.Flow) { f.Agent("clerks", nil) }, `unknown agent "clerks"`},
		{"twice", func(f *flowtest.Flow) { f.PlantInput("claim"); f.PlantInput("claim") }, `is planted twice`},
		{"a path in a text", func(f *flowtest.Flow) { f.PlantInput("claim", "/a") }, "it is not a JSON value, so it has no path /a"},
		{"a foreign canary", func(f *flowtest.Flow) { f.Never(flowtest.Canary{}, "writer") }, "a canary that was not planted in this flow"},
		{"no reader", func(f *flowtest.Flow) { f.Never(f.PlantInput("claim")) }, "names no reader"},
		{"reaches everybody", func(f *flowtest.Flow) { f.Reaches(f.PlantInput("claim"), flowtest.Everybody) }, "* is only for Never"},
		{"a path of many", func(f *flowtest.Flow) { f.PlantResult("Read the claim", "/a/**") }, "is not the path of one value"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			requireFailure(t, failures(t, chains, tt.test), tt.want)
		})
	}
}

func TestFailedRunFails(t *testing.T) {
	t.Parallel()
	got := failures(t, chains, func(f *flowtest.Flow) {
		f.PlantInput("claim")
		f.Agent("clerk", engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{}, errors.New("out of ink")
		}))
	})
	requireFailure(t, got, `the run failed before everything was tested: task "Read the claim": out of ink`)
}
