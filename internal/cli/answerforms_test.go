package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/stretchr/testify/require"
)

// formOfLetter is the form of an answer with a field of each kind.
const formOfLetter = `{"type":"object","properties":{"choice":{"enum":["send",2,true]},"ok":{"type":"boolean"},"n":{"type":"integer","minimum":1},"note":{"type":"string","description":"why"},"more":{"type":"array"}},"required":["ok","choice"]}`

// A text is the answer, or the value that it means to the form of the question.
func TestAnswersThatAreTexts(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, text, want, err string }{
		{name: "a text", text: "fine\n", want: "fine\n"},
		{name: "an empty text", text: " \n", err: "the answer is empty"},
		{name: "a text that is no UTF-8", text: "a\xff", err: "the answer is not valid UTF-8"},
		{name: "a choice", schema: `{"enum":["send","stop"]}`, text: "stop", want: `"stop"`},
		{name: "a wrong choice", schema: `{"enum":["send","stop"]}`, text: "burn", err: `"burn" is not one of send, stop`},
		{name: "yes", schema: `{"type":"boolean"}`, text: "Yes", want: `true`},
		{name: "a number", schema: `{"type":"number"}`, text: "1.50", want: `1.5`},
		{name: "no number", schema: `{"type":"number"}`, text: "one", err: `"one" is not a number`},
		{name: "a text with a bound", schema: `{"type":"string","maxLength":3}`, text: "long", err: "the answer does not fit"},
		{name: "any JSON", schema: `true`, text: `[1]`, want: `[1]`},
		{name: "an object as JSON", schema: formOfLetter, text: `{"choice":"send","ok":true}`, want: `{"choice":"send","ok":true}`},
		{name: "an object with a name twice", schema: formOfLetter, text: `{"ok":true,"ok":false}`, err: "the answer is not JSON: "},
		{name: "no object", schema: formOfLetter, text: `yes`, err: "this question has fields: write --set ok=yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := &runstate.Question{}
			q.Schema = tt.schema
			got, err := people.AnswerText(q, nil, tt.text, "")
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

// Each field is read by its kind and checked by its own bounds, before the answer is checked as a whole.
func TestAnswersWithFields(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
agents: [{name: ed, backend: {kind: person}}]
tasks:
  - {title: Letter, assignee: ed, description: d, outputSchema: ` + formOfLetter + `}
  - {title: Empty, assignee: ed, description: d, outputSchema: {"type":"object","properties":{"c":{"enum":[null,1]}},"required":["c"]}}
  - {title: Bounds, assignee: ed, description: d, outputSchema: {"type":"object","$defs":{"id":{"pattern":"^[a-z]+$"}},"properties":{"a":{"type":"integer","minimum":2},"b":{"type":"string","maxLength":3},"c":{"type":"string","pattern":"^[A-Z]{2}$"},"d":{"$ref":"#/$defs/id"},"e":{"type":"array","maxItems":1}},"required":["a","b","c","d","e"]}}
`})
	got := call{dir: dir, args: []string{"run", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusWaiting, got.status, "%+v", got)
	run := object(t, got.stdout)["runId"].(string)
	require.Regexp(t, `answer \w+ Letter --question \w+ --set ok=yes --set choice=send\n`, got.stderr)
	fields := func(text string) (args []string) {
		for one := range strings.FieldsSeq(text) {
			args = append(args, "--set", one)
		}
		return args
	}
	for _, tt := range []struct{ task, set, err string }{
		{"Letter", "choice=send ok=y note=\xff", "--set note: the text is not valid UTF-8"},
		{"Letter", "choice=send ok=y n=0", "n: found 0; expected minimum 1"},
		{"Letter", "choice=send ok=y more=x", `more: "x" is not a JSON list`},
		{"Letter", "choice=send ok=y more={}", "more must be a JSON list"},
		{"Letter", "choice=send", "ok is missing: write --set ok=yes"},
		{"Letter", "choice=2 ok=no n=3 note=a=b more=[1]", ""},
		{"Empty", "c=null", ""},
		{"Bounds", `a=1 b=abc c=AB d="x" e=[1]`, "a: found 1; expected minimum 2"},
		{"Bounds", `a=2 b=abcd c=AB d="x" e=[1]`, `b: found "abcd"; expected maxLength 3`},
		{"Bounds", `a=2 b=abc c=ABC d="x" e=[1]`, `c: found "ABC"; expected pattern`},
		{"Bounds", `a=2 b=abc c=AB d="x" e=[1,2]`, "e: found"},
		{"Bounds", `a=2 b=abc c=AB d="1" e=[]`, "the answer does not fit: /d"}, // which has a bound elsewhere in the schema
		{"Bounds", `a=2 b=abc c=AB d="x" e=[1]`, ""},
	} {
		got := call{dir: dir, args: append([]string{"answer", run, tt.task}, fields(tt.set)...)}.run(t)
		if tt.err == "" {
			require.Equal(t, exit.StatusOK, got.status, "%s: %+v", tt.set, got)
			continue
		}
		require.Equal(t, exit.StatusUsage, got.status, "%s: %+v", tt.set, got)
		require.Contains(t, got.stderr, tt.err)
	}
	got = call{dir: dir, args: []string{"resume", run, "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stdout, `{"choice":2,"more":[1],"n":3,"note":"a=b","ok":false}`)
	require.Contains(t, got.stdout, `{"c":null}`)
}
