package texttemplate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/texttemplate"
)

func parsed(t *testing.T, text string) *texttemplate.Template {
	t.Helper()
	parsed, err := texttemplate.Parse(text)
	require.NoError(t, err)
	return parsed
}

func TestTemplatesReadInputsAndResults(t *testing.T) {
	t.Parallel()
	inputs := map[string]any{"claim": "a dent"}
	results := map[string]any{"Check claim": "fine", "score": texttemplate.Decoded(map[string]any{
		"points": json.Number("7"), "share": json.Number("0.25"), "tags": []any{"a", "b"},
	})}
	for give, want := range map[string]string{
		"Claim: {{.inputs.claim}}":                                               "Claim: a dent",
		`{{index .results "Check claim"}}`:                                       "fine",
		`{{if gt .results.score.points 5}}high{{else}}low{{end}}`:                "high",
		`{{range $i, $t := .results.score.tags}}{{if $i}}, {{end}}{{$t}}{{end}}`: "a, b",
		`{{index .results "score" "tags" 1}} {{.results.score.share}}`:           "b 0.25",
		`{{printf "%03d|%-4s|" .results.score.points "x"}}`:                      "007|x   |",
		`{{define "line"}}<{{.}}>{{end}}{{template "line" .inputs.claim}}`:       "<a dent>",
		`{{html "<b>"}} {{js "'"}} {{urlquery "a b"}} {{print 1 2}}`:             `&lt;b&gt; \' a+b 1 2`,
		`{{range 3}}{{.}}{{end}}`:                                                "012",
	} {
		got, err := parsed(t, give).Execute(t.Context(), inputs, results)
		require.NoError(t, err, give)
		require.Equal(t, want, got, give)
	}
}

func TestParseReportsTheLine(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]texttemplate.Error{
		"a\n{{.inputs.x":          {Line: 2, Message: "unclosed action"},
		"{{env \"HOME\"}}":        {Line: 1, Message: `function "env" not defined`},
		" \n":                     {Message: "it is empty"},
		"{{if .inputs.x}}\n\nyes": {Line: 3, Message: "unexpected EOF"},
	} {
		_, err := texttemplate.Parse(give)
		var got *texttemplate.Error
		require.ErrorAs(t, err, &got, give)
		require.Equal(t, want, *got, give)
	}
}

func TestExecuteReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	results := map[string]any{"score": map[string]any{"points": 7}, "text": "words", "list": []any{1}}
	for give, want := range map[string]string{
		"\n{{.results.other}}":                    `line 2: at <.results.other>: map has no entry for key "other"`,
		"{{.results.score.max}}":                  `line 1: at <.results.score.max>: map has no entry for key "max"`,
		"{{.results.text.max}}":                   `line 1: at <.results.text.max>: can't evaluate field max in type interface {}`,
		`{{index .results.score "max"}}`:          `line 1: at <index .results.score "max">: error calling index: there is no entry "max"`,
		"{{index .results.list 1}}":               `line 1: at <index .results.list 1>: error calling index: a list of 1 values has no entry 1`,
		`{{index .results.text 0}}`:               `line 1: at <index .results.text 0>: error calling index: only a mapping or a list has entries`,
		"{{index .results.score .results.score}}": `line 1: at <index .results.score .results.score>: error calling index: the key map[points:7] is no text`,
		`{{slice .results.text 3 99}}`:            `line 1: at <slice .results.text 3 99>: error calling slice: index out of range: 99`,
		"{{range .results.text}}{{end}}":          "line 1: at <.results.text>: range can't iterate over words",
		`{{template "none"}}`:                     `line 1: at <{{template "none"}}>: template "none" not defined`,
	} {
		_, err := parsed(t, give).Execute(t.Context(), nil, results)
		require.ErrorContains(t, err, want[:len(want)-1], give)
	}
}

func TestGrowthIsBounded(t *testing.T) {
	t.Parallel()
	big := map[string]any{"x": strings.Repeat("x", 1<<20)}
	for name, give := range map[string]string{
		"output":               `{{range 100}}{{$.results.x}}{{end}}`,
		"doubling":             `{{$x := "ab"}}{{range 60}}{{$x = print $x $x}}{{end}}`,
		"a wide verb":          `{{$x := ""}}{{range 1000}}{{$x = printf "%1000000d" 1}}{{end}}`,
		"many wide verbs":      `{{$f := "%900000d"}}{{range 8}}{{$f = print $f $f}}{{end}}{{len (printf $f 1)}}`,
		"a star":               `{{range 1000}}{{$x := printf "%*d" 900000 1}}{{end}}`,
		"repeated arguments":   `{{$f := "%[1]s"}}{{range 12}}{{$f = print $f $f}}{{end}}{{len (printf $f .results.x)}}`,
		"escapes":              `{{range 99}}{{$x := js $.results.x}}{{end}}`,
		"a list in a verb":     `{{range 99}}{{$x := print $.results}}{{end}}`,
		"an enormous number":   `{{printf "%99999999999999999999d" 1}}{{range 99}}{{$x := printf "%99999999999999999999d" 1}}{{end}}`,
		"recursion":            `{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}`,
		"recursion that grows": `{{define "r"}}{{template "r" (print . .)}}{{end}}{{template "r" "ab"}}`,
	} {
		_, err := parsed(t, give).Execute(t.Context(), nil, big)
		require.Error(t, err, name)
	}
}

func TestALoopWithoutOutputEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for _, give := range []string{
		`{{range 1000000000000}}{{end}}`,
		`{{range 1000000000}}{{if false}}{{else}}{{range 1000000000}}{{end}}{{end}}{{end}}`,
		`{{define "t"}}{{with 1}}{{range 1000000000000}}{{end}}{{end}}{{end}}{{template "t"}}`,
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := parsed(t, give).Execute(ctx, nil, nil)
		require.ErrorIs(t, err, cause, give)
	}
}

func TestReadsNamesThatAreWrittenOut(t *testing.T) {
	t.Parallel()
	const give = `{{.inputs.claim}}
{{with .results.score}}{{.points}}{{$.inputs.other}}{{else}}{{.results.late}}{{end}}
{{index .results "Check claim"}}{{if .result}}{{end}}{{range .results}}{{.results.no}}{{end}}
{{print (index $.inputs "in" | len)}}{{define "t"}}{{.inputs.unknown}}{{end}}{{template "t" .results.whole}}`
	require.Equal(t, []texttemplate.Read{
		{Of: "inputs", Name: "claim", Line: 1},
		{Of: "results", Name: "score", Line: 2}, {Of: "inputs", Name: "other", Line: 2}, {Of: "results", Name: "late", Line: 2},
		{Of: "results", Name: "Check claim", Line: 3}, {Of: "result", Line: 3}, {Of: "results", Line: 3},
		{Of: "inputs", Name: "in", Line: 4}, {Of: "results", Name: "whole", Line: 4},
	}, parsed(t, give).Reads())
}

func FuzzTemplate(f *testing.F) {
	f.Add(`{{range .results}}{{printf "%*d%v" 9 1 .}}{{end}}`)
	f.Add(`{{define "a"}}{{index . "x" 1}}{{end}}{{template "a" .inputs}}`)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := texttemplate.Parse(text)
		if err != nil {
			return
		}
		parsed.Reads()
		ctx, cancel := context.WithTimeout(t.Context(), 1e9)
		defer cancel()
		got, err := parsed.Execute(ctx, map[string]any{"x": "y"}, map[string]any{"x": []any{1, "z"}})
		if err == nil {
			require.LessOrEqual(t, len(got), texttemplate.MaxOutput)
		}
	})
}
