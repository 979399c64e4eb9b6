package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/task"
)

func TestParseAssertion(t *testing.T) {
	t.Parallel()
	input, of, property := flow.OfInput, flow.OfTask, flow.Property
	tests := []struct {
		give    string
		subject flow.Subject
		claim   flow.Claim
		reader  string
	}{
		{"internal_notes never reaches letters", flow.Subject{Kind: property, Name: "internal_notes"}, flow.Reaches, "letters"},
		{"  ssn   never  derives  into   the lawyer  ", flow.Subject{Kind: property, Name: "ssn"}, flow.Derives, "the lawyer"},
		{`"internal notes" never reaches "the lawyer"`, flow.Subject{Kind: property, Name: "internal notes"}, flow.Reaches, "the lawyer"},
		{`"a/b" never reaches user`, flow.Subject{Kind: property, Name: "a/b"}, flow.Reaches, "user"},
		{`"never" never reaches user`, flow.Subject{Kind: property, Name: "never"}, flow.Reaches, "user"},
		{`"input" never reaches user`, flow.Subject{Kind: property, Name: "input"}, flow.Reaches, "user"},
		{"inputs never reaches user", flow.Subject{Kind: property, Name: "inputs"}, flow.Reaches, "user"},
		{"input claim never reaches https://api.openai.com/v1", flow.Subject{Kind: input, Name: "claim"}, flow.Reaches, "https://api.openai.com/v1"},
		{"input claim form/name never reaches b", flow.Subject{Kind: input, Name: "claim form", Path: "/name"}, flow.Reaches, "b"},
		{`input "claim form"/full name/0x never reaches b`, flow.Subject{Kind: input, Name: "claim form", Path: "/full name/0x"}, flow.Reaches, "b"},
		{"input x/a~1b/*/c never reaches b", flow.Subject{Kind: input, Name: "x", Path: "/a~1b/*/c"}, flow.Reaches, "b"},
		{"input x/a/** never reaches b", flow.Subject{Kind: input, Name: "x", Path: "/a"}, flow.Reaches, "b"},
		{"input x/a /** never reaches b", flow.Subject{Kind: input, Name: "x", Path: "/a "}, flow.Reaches, "b"},
		{"input x/** never reaches b", flow.Subject{Kind: input, Name: "x"}, flow.Reaches, "b"},
		{"input nevermore/never-again never reaches never", flow.Subject{Kind: input, Name: "nevermore", Path: "/never-again"}, flow.Reaches, "never"},
		{`task "Score \"it\" / now"/score never derives into coordinator`, flow.Subject{Kind: of, Name: `Score "it" / now`, Path: "/score"}, flow.Derives, "coordinator"},
		{"task score/path never reaches b", flow.Subject{Kind: of, Name: "score", Path: "/path"}, flow.Reaches, "b"},
		{"task Score fraud never reaches b", flow.Subject{Kind: of, Name: "Score fraud"}, flow.Reaches, "b"},
		{`x never reaches "quoted \"name\""`, flow.Subject{Kind: property, Name: "x"}, flow.Reaches, `quoted "name"`},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			t.Parallel()
			got, err := flow.ParseAssertion(tt.give)
			require.NoError(t, err)
			require.Equal(t, flow.Assertion{Text: tt.give, Subject: tt.subject, Claim: tt.claim, Reader: tt.reader}, got)
		})
	}
}

func TestParseAssertionErrors(t *testing.T) {
	t.Parallel()
	const forms = "write X never reaches B, or X never derives into B"
	const readers = "write the name of an agent, coordinator, user or the URL of an endpoint"
	tests := []struct{ give, message, hint string }{
		{"", "it is empty", forms},
		{" ", "it is empty", forms},
		{"never reaches b", "never has no subject before it", forms},
		{"ssn", "the word never is missing", forms},
		{"ssn reaches b", "the word never is missing", forms},
		{"input claim reaches b", "never is missing at the end", forms},
		{"claim form never reaches b", `"claim form" are several words`, `write input claim form, task "claim form", or a property of this name in quotes`},
		{"ssn never", "reaches or derives into is missing at the end", forms},
		{"ssn never reach b", `found "reach" instead of reaches or derives into`, forms},
		{"ssn never derives b", `found "b" instead of into`, forms},
		{"ssn never derives", "into is missing at the end", forms},
		{"ssn never reaches", "the reader is missing", readers},
		{`ssn never reaches ""`, "the reader is missing", readers},
		{`ssn never reaches "b" c`, `found "c" instead of the end`, readers},
		{"ssn never reaches *", "* is no reader", "write an assertion for each reader"},
		{"claim/name never reaches b", "the path has no source", "write input claim/name or task claim/name, or the name of a property alone"},
		{`"claim"/name never reaches b`, "a path follows the name of a property", `write input "claim"/name or task "claim"/name`},
		{`"" never reaches b`, "the name of the property is empty", `write the name of a property, input NAME or task "TITLE"`},
		{"input never reaches b", "no name follows input", `write input NAME, or "input" in quotes for a property of this name`},
		{"task /a never reaches b", "no name follows task", `write task NAME, or "task" in quotes for a property of this name`},
		{`input "" never reaches b`, "no name follows input", `write input NAME, or "input" in quotes for a property of this name`},
		{`input "claim never reaches b`, "a quote is not closed", `write "NAME"`},
		{`input "cl\aim" never reaches b`, `"cl\aim" is not quoted as in JSON`, `write \" for a quote and \\ for a backslash`},
		{`input "a\u000ab" never reaches b`, `the name "a\u000ab": not one clean line: it has a line break (U+000A) at byte 1`, "write the name as the file has it"},
		{`input "a"b never reaches b`, `found "b" instead of never`, forms},
		{"input claim/items/0 never reaches b", `not a path: "/items/0": "0" is the number of one array element: write /items/*`, "write the path as in need: /facts/*/score"},
		{"input claim/a~b never reaches b", `not a path: "/a~b": "~" in "a~b" stands alone: write ~0 for "~" and ~1 for "/"`, "write the path as in need: /facts/*/score"},
		{"ssn never\nreaches b", "not one clean line: it has a line break (U+000A) at byte 9", "write it on one line, without control characters"},
		{"ssn \xff", "not one clean line: it is not valid UTF-8", "write it on one line, without control characters"},
	}
	for _, tt := range tests {
		t.Run(tt.give, func(t *testing.T) {
			t.Parallel()
			got, err := flow.ParseAssertion(tt.give)
			require.Zero(t, got)
			require.ErrorIs(t, err, task.ErrInvalid)
			var p task.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, tt.message, p.Message)
			require.Equal(t, tt.hint, p.Hint)
		})
	}
}

func TestErrorQuotesTheAssertion(t *testing.T) {
	t.Parallel()
	_, err := flow.ParseAssertion(`"<a>" never`)
	require.EqualError(t, err, `assertion "\"<a>\" never": reaches or derives into is missing at the end: write X never reaches B, or X never derives into B`)
}

func TestAssertionsSurviveJSON(t *testing.T) {
	t.Parallel()
	a, err := flow.ParseAssertion(`task "Score fraud"/score never derives into letters`)
	require.NoError(t, err)
	a.Line = "team.yaml:31"
	text, err := json.Marshal(a)
	require.NoError(t, err)
	require.JSONEq(t, `{"text": "task \"Score fraud\"/score never derives into letters", "line": "team.yaml:31",
		"subject": {"kind": "task", "name": "Score fraud", "path": "/score"}, "claim": "derives into", "reader": "letters"}`, string(text))
	var back flow.Assertion
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, a, back)
}

// FuzzParseAssertion checks that what is read means the same when it is written
// again, and that what is refused says why.
func FuzzParseAssertion(f *testing.F) {
	for _, seed := range []string{
		"internal_notes never reaches letters", `task "Score \"it\""/score never derives into the lawyer`,
		`input "claim form"/a~1b/* never reaches https://api.openai.com/v1`, "input a b/c d never reaches user",
		`"input" never reaches "x"`, `"task" never derives into user`, "task never never reaches b", "never never never", `"\u00e9<&>" never reaches b`, "input x/a /** never reaches b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			var p task.Problem
			require.ErrorAs(t, err, &p)
			require.NotEmpty(t, p.Message)
			require.NotEmpty(t, p.Hint)
			return
		}
		require.Equal(t, text, a.Text)
		again, err := flow.ParseAssertion(a.String())
		require.NoError(t, err, "%q", a.String())
		again.Text = text
		require.Equal(t, a, again)
	})
}
