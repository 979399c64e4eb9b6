package scripted_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/scripted"
)

const full = `models: [scripted, other]
replies:
  - task: Extract facts
    system: adjuster
    text: |
      {"iban": "{{ match ` + "`IBAN ([A-Z0-9 ]+)`" + ` .Prompt }}"}
    delay: 50ms
    times: 2
    cut: true
    usage: {input: 10, output: 5}
  - task: "2026"
    status: 429
    retryAfter: 2s
    body: slow down
  - text: ""
  - system: lead
    coordinator: digest
    part: 2
    text: shorter
`

func TestParse(t *testing.T) {
	t.Parallel()
	want := &scripted.Script{Models: []string{"scripted", "other"}, Replies: []scripted.Reply{
		{
			Task: "Extract facts", System: "adjuster", Text: "{\"iban\": \"{{ match `IBAN ([A-Z0-9 ]+)` .Prompt }}\"}\n",
			Delay: 50 * time.Millisecond, Times: 2, Cut: true, Usage: &scripted.Usage{Input: 10, Output: 5},
			At: scripted.Place{File: "script.yaml", Line: 3, Column: 11},
		},
		{Task: "2026", Status: 429, RetryAfter: 2 * time.Second, Body: "slow down", At: scripted.Place{File: "script.yaml", Line: 11, Column: 11}},
		{At: scripted.Place{File: "script.yaml", Line: 15, Column: 9}},
		{System: "lead", Coordinator: scripted.Digest, Part: 2, Text: "shorter", At: scripted.Place{File: "script.yaml", Line: 17, Column: 18}},
	}}
	got, err := scripted.Parse("script.yaml", []byte(full))
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = scripted.Parse("script.yaml", []byte(strings.ReplaceAll(full, "\n", "\r\n")))
	require.NoError(t, err)
	require.Len(t, got.Replies, 4)
	got, err = scripted.Parse("script.json", []byte("{\n\t\"replies\": [\n\t\t{\"task\": \"a\", \"text\": \"x\\u00e9\\n\\/\\ud83d\\ude00\", \"delay\": \"1s\"}\n\t]\n}\n"))
	require.NoError(t, err)
	require.Equal(t, 3, got.Replies[0].At.Line)
	got.Replies[0].At = scripted.Place{} // the parser counts columns behind tabs in its own way
	require.Equal(t, []scripted.Reply{{Task: "a", Text: "xé\n/😀", Delay: time.Second}}, got.Replies)
}

func TestParseErrorsHavePositions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give string
		want       []string // one for each fault
	}{
		{"empty", "", []string{"s.yaml: the file is empty"}},
		{"comments only", "# hi\n", []string{"s.yaml: the file is empty"}},
		{"no keys", "{}", []string{"s.yaml: the script is empty"}},
		{"binary", "replies:\x00", []string{"s.yaml: contains a zero byte"}},
		{"not UTF-8", "a: \xff", []string{"s.yaml: not UTF-8"}},
		{"too large", "# " + strings.Repeat("x", scripted.MaxFile), []string{"s.yaml: larger than 16 MiB"}},
		{"too deep", strings.Repeat("[", 100_000), []string{"s.yaml: nested too deep"}},
		{"too deep in dashes", strings.Repeat("- ", 100_000), []string{"s.yaml: nested too deep"}},
		{"syntax", "replies:\n  - text: \"x\n", []string{"s.yaml:2:"}},
		{"a list", "- text: x", []string{"s.yaml:1:1: script: want keys and values, not a list"}},
		{"a text", "hello", []string{"s.yaml:1:1: script: want keys and values, not a text"}},
		{"unknown key", "reply: []\nreplies:\n- {txt: x}", []string{`s.yaml:1:1: script: unknown key "reply"; known are models, replies`, `s.yaml:3:4: reply: unknown key "txt"; known are body, coordinator, cut,`}},
		{"a key twice", "replies: []\nreplies: []", []string{`s.yaml:2:1: mapping key "replies" already defined`}},
		{"null", "replies:", []string{"replies: want a list, not nothing"}},
		{"no end", "replies:\n- {task: x, ended: ''}", []string{"s.yaml:2:", "ended: want timeout, task timeout,", "not nothing"}},
		{"an end of nobody", "replies:\n- {task: x, ended: child -2 timeout}", []string{"s.yaml:2:", "not \"child -2 timeout\""}},
		{"says nothing", "replies:\n- {task: x}", []string{"s.yaml:2:", "write text, toolCalls, status, body or ended"}},
		{"number as text", "replies:\n- text: 5", []string{"s.yaml:2:9: text: want a text, not a number; put quotes around it"}},
		{"text as number", "replies:\n- status: '500'", []string{"s.yaml:2:11: status: want a whole number from 0, not a text"}},
		{"status", "replies:\n- status: 42", []string{"s.yaml:2:3: status: want a number from 200 to 599"}},
		{"delay without unit", "replies:\n- {text: x, delay: 50}", []string{"delay: want a time with its unit, such as 50ms or 2s"}},
		{"negative delay", "replies:\n- {text: x, delay: -1s}", []string{"delay: want a time"}},
		{"times", "replies:\n- {text: x, times: 0}", []string{"times: want a number from 1"}},
		{"coordinator", "replies:\n- {text: x, coordinator: plans}", []string{`s.yaml:2:13: coordinator: want one of plan, repair, digest, synthesis, not "plans"`}},
		{"coordinator with task", "replies:\n- {text: x, coordinator: plan, task: y}", []string{"s.yaml:2:13: coordinator: a reply for the coordinator has no task"}},
		{"part alone", "replies:\n- {text: x, part: 2}", []string{"s.yaml:2:13: part: goes with coordinator: digest"}},
		{"part zero", "replies:\n- {text: x, coordinator: digest, part: 0}", []string{"part: want a number from 1; leave the key out for all"}},
		{"cut", "replies:\n- {text: x, cut: half}", []string{"cut: want true or false"}},
		{"usage", "replies:\n- {text: x, usage: {input: -1, in: 2}}", []string{"usage: input: want a whole number from 0", `usage: unknown key "in"; known are input, output`}},
		{"tool calls are one", "replies:\n- toolCalls: {name: a}", []string{"s.yaml:2:14: toolCalls: want a list, not keys and values"}},
		{"tool call is a name", "replies:\n- toolCalls: [search]", []string{"s.yaml:2:15: toolCalls: want keys and values, not a text"}},
		{"tool call with an unknown key", "replies:\n- toolCalls:\n  - {name: a, args: {}}", []string{`s.yaml:3:15: toolCalls: unknown key "args"; known are arguments, name`}},
		{"tool call without a name", "replies:\n- toolCalls:\n  - arguments: {}", []string{"s.yaml:3:14: toolCalls: name is missing: write the name of the tool"}},
		{"tool call with an empty name", "replies:\n- toolCalls: [{name: ''}]", []string{"s.yaml:2:22: toolCalls: it names no tool: write name"}},
		{"tool call with a number as name", "replies:\n- toolCalls: [{name: 7}]", []string{"s.yaml:2:22: toolCalls: name: want a text, not a number; put quotes around it"}},
		{"arguments as a text", "replies:\n- toolCalls:\n  - {name: a, arguments: '{}'}", []string{"s.yaml:3:26: toolCalls: arguments: want keys and values, not a text; write {} for none"}},
		{"arguments as a list", "replies:\n- toolCalls:\n  - {name: a, arguments: [1]}", []string{"s.yaml:3:26: toolCalls: arguments: want keys and values, not a list"}},
		{"no arguments", "replies:\n- toolCalls:\n  - name: a\n    arguments:", []string{"toolCalls: arguments: want keys and values, not nothing; write {} for none"}},
		{"argument as a hexadecimal number", "replies:\n- toolCalls:\n  - {name: a, arguments: {n: 0x1f}}", []string{"s.yaml:3:30: toolCalls: arguments: want a JSON value, not 0x1f; write a number as JSON does, or put quotes"}},
		{"infinite argument", "replies:\n- toolCalls:\n  - {name: a, arguments: {n: [.inf]}}", []string{"s.yaml:3:31: toolCalls: arguments: want a JSON value, not .inf"}},
		{"argument beyond every number", "replies:\n- toolCalls:\n  - {name: a, arguments: {n: 1.0e999}}", []string{"s.yaml:3:26: toolCalls: arguments: ", "a number in it has no canonical form"}},
		{"number as the key of an argument", "replies:\n- toolCalls:\n  - {name: a, arguments: {7: x}}", []string{"s.yaml:3:27: toolCalls: arguments: a key is a text; put quotes around it"}},
		{"argument with a bad template", "replies:\n- toolCalls:\n  - {name: a, arguments: {q: '{{ nope }}'}}", []string{`s.yaml:3:30: toolCalls: arguments: text:1: function "nope" not defined`}},
		{"tool calls with a body", "replies:\n- {body: x, toolCalls: [{name: a}]}", []string{"s.yaml:2:13: toolCalls: a reply with status or body has none; remove one of them"}},
		{"turn zero", "replies:\n- {text: x, turn: 0}", []string{"s.yaml:2:19: turn: want a number from 1; leave the key out for all"}},
		{"text with status", "replies:\n- {text: x, status: 500}", []string{"text: a reply with status or body has none"}},
		{"retryAfter alone", "replies:\n- {text: x, retryAfter: 1s}", []string{"s.yaml:2:13: retryAfter: goes with a status"}},
		{"template", "replies:\n- text: |\n    a\n    {{ nope }}", []string{`text:2: function "nope" not defined`}},
		{"pattern", "replies:\n- text: '{{ if match `(` .Prompt }}{{ end }}'", []string{"missing closing )"}},
		{"anchor", "replies: &a []\nmodels: *a", []string{"s.yaml:1:10: anchors, aliases", "s.yaml:2:9: anchors, aliases"}},
		{"merge", "replies:\n- {<<: {text: x}}", []string{"anchors, aliases and merges"}},
		{"tag", "models: !!binary x", []string{"s.yaml:1:9: tags and directives"}},
		{"two documents", "models: [a]\n---\nmodels: [b]", []string{"s.yaml:3:", "a second document"}},
		{"model", "models: [1]", []string{"models: want a text"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := scripted.Parse("s.yaml", []byte(tt.give))
			require.Error(t, err)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			if s != nil {
				_, isFile := errors.AsType[*scripted.FileError](err)
				require.True(t, isFile)
			}
		})
	}
}

func TestParseErrorsShowTheLine(t *testing.T) {
	t.Parallel()
	_, err := scripted.Parse("s.yaml", []byte("replies:\n  - task: a\n    txt: b\n"))
	e, ok := errors.AsType[*scripted.FileError](err)
	require.True(t, ok)
	require.Equal(t, 3, e.Line)
	require.Equal(t, 5, e.Column)
	require.Contains(t, e.Excerpt, ">  3 |     txt: b\n           ^")
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(path, []byte(full), 0o600))
	s, err := scripted.ReadFile("", path)
	require.NoError(t, err)
	require.Len(t, s.Replies, 4)
	_, err = scripted.ReadFile("", filepath.Dir(path))
	require.ErrorContains(t, err, "script: ")
	_, err = scripted.ReadFile("", path+".no")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParse(f *testing.F) {
	f.Add(full)
	f.Add("replies: &a [*a]")
	f.Add(`{"replies": [{"text": "{{ range 3 }}x{{ end }}"}]}`)
	f.Add("replies:\n- task: a\n  turn: 2\n  text: so\n  toolCalls:\n  - {name: x, arguments: {q: '{{ toolResult \"x\" 1 }}', n: [1e5, -0, null, {\"a: b\": true}]}}\n  - name: y\n    arguments:\n      t: |\n        a\n")
	f.Add(`{"replies": [{"toolCalls": [{"name": "x", "arguments": {"": 1.0e999, "d": [[[{}]]]}}, {"name": 7}, {"arguments": []}]}]}`)
	f.Add("replies:\n- ? a\n  : b\n- !!str x\n- <<: 1\n--- %\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := scripted.Parse("s.yaml", []byte(text))
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		_, err = scripted.New(s, false)
		require.NoError(t, err, "what loads, runs")
		require.NoError(t, writeAgain(s), "and can be written")
	})
}

// writeAgain writes a script that was read, and reads it once more.
func writeAgain(s *scripted.Script) error {
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		return err
	}
	_, err := scripted.Parse("again.yaml", b.Bytes())
	return err
}
