package flowtest_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/flowtest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
)

func load(t *testing.T, text string) *flowtest.Flow {
	t.Helper()
	return flowtest.LoadOptions(t, spec.Options{Path: "-", Stdin: strings.NewReader(text)})
}

func TestCanariesAreUniqueWords(t *testing.T) {
	t.Parallel()
	f, again := load(t, chains), load(t, chains)
	seen := map[string]bool{}
	for i := range 500 {
		title := fmt.Sprintf("Task %d", i)
		word := f.PlantResult(title, "/a").String()
		require.Regexp(t, `^[a-z]{22}$`, word)
		require.False(t, seen[word])
		seen[word] = true
		text := "the iban is " + word + ", and so " + word
		out, counts, err := redact.All().Text(text)
		require.NoError(t, err)
		require.Empty(t, counts)
		require.Equal(t, text, out)
		require.Equal(t, word, again.PlantResult(title, "/a").String(), "it follows from the place")
	}
	require.Empty(t, flowtest.Canary{}.String())
}

// TestEncodedCanariesAreFound writes canaries to the log in every encoding, with text before
// and after them.
func TestEncodedCanariesAreFound(t *testing.T) {
	t.Parallel()
	escaped := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, r := range s {
				fmt.Fprintf(&b, format, r)
			}
			return b.String()
		}
	}
	tests := []struct {
		name   string
		encode func(string) string
	}{
		{"plain", strings.Clone},
		{"upper case", strings.ToUpper},
		{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"base64 of addresses, unpadded", func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
		{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"hex in capitals", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
		{"percent", escaped("%%%02X")},
		{"escapes of JSON", escaped(`\u%04x`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for n := range 4 {
				before, behind := strings.Repeat("~", n), strings.Repeat("?", 3-n)
				got := failures(t, chains, func(f *flowtest.Flow) {
					claim := f.PlantInput("claim")
					f.Agent("clerk", engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
						f.Logger().Debug(tt.encode(before + claim.String() + behind))
						return agent.Reply{Text: "done"}, nil
					}))
				})
				requireFailure(t, got, "in the log: logs, events")
			}
		})
	}
}

const shaped = `name: shaped
model: none
agents: [{name: clerk, systemPrompt: You read.}, {name: writer, systemPrompt: You write.}]
tasks:
  - {title: Read, assignee: clerk, description: Read., outputSchema: %s}
  - {title: Write, assignee: writer, dependsOn: [Read], description: Write.}
`

func TestCanariesFitTheirSchema(t *testing.T) {
	t.Parallel()
	tests := []struct{ schema, path, want string }{
		{`{type: object, properties: {a: {type: string}}}`, "/a", ""},
		{`{type: object, properties: {a: {type: object, required: [c], properties: {b: {type: string}, c: {type: number}}}}}`, "/a/b", ""},
		{`{type: object, properties: {list: {type: array, items: {type: object, required: [n, m], properties: {n: {type: string}, m: {enum: [x]}}}}}}`, "/list/0/n", ""},
		{`{type: object, properties: {list: {type: array, items: {type: string}}}}`, "/list/*", ""},
		{`{type: array, items: {type: string}}`, "/0", ""},
		{`{type: object, properties: {a: {$ref: "#/$defs/s"}}, $defs: {s: {type: object, properties: {b: {type: string}}}}}`, "/a/b", ""},
		{`{allOf: [{type: object, properties: {a: {type: string}}}]}`, "/a", ""},
		{`{type: object, additionalProperties: {type: string}}`, "/any", ""},
		{`{type: object, properties: {a~1b: {type: string}}}`, "/a~01b", ""},
		{`{type: object, properties: {a: {type: string}}}`, "", ""},
		{`{type: object, additionalProperties: false, properties: {a: {type: string}}}`, "/b", `the schema has no property "b" there`},
		{`{type: object, properties: {a: {type: number}}}`, "/a", "the schema allows no text there: its type is number"},
		{`{type: object, properties: {a: {type: array, items: {type: string}}}}`, "/a", "the schema allows no text there: its type is array; the first element is at /0"},
		{`{type: object, properties: {a: {enum: [x, y]}}}`, "/a", "no small result of its schema has the canaries where they are planted"},
		{`{type: object, properties: {a: {type: string, maxLength: 21}}}`, "/a", "no small result of its schema"},
	}
	for _, tt := range tests {
		t.Run(tt.schema+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			got := failures(t, fmt.Sprintf(shaped, tt.schema), func(f *flowtest.Flow) {
				f.Reaches(f.PlantResult("Read", task.Path(tt.path)), "writer", "user")
			})
			if tt.want == "" {
				require.Empty(t, got)
			} else {
				requireFailure(t, got, tt.want)
			}
		})
	}
}
