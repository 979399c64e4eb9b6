package jsonvalue_test

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/visits"
)

// TestVisitsAreLinear checks that no block runs more than twice as often for a text of twice the size.
func TestVisitsAreLinear(t *testing.T) {
	slowtest.Only(t)
	cases := map[string]func(n int){
		"keys that repeat": func(n int) { _, _ = jsonvalue.Parse("[" + repeated(`{"a":1,"b":{"a":2}},`, n) + "{}]") },
		"wide object": func(n int) {
			var b strings.Builder
			for i := range n / 10 {
				b.WriteString(`"` + strings.Repeat("k", i%7) + strings.Repeat("l", i/7%300) + `":0,`)
			}
			_, _ = jsonvalue.Parse("{" + b.String() + `"z":1}`)
		},
		"strings": func(n int) { _, _ = jsonvalue.Parse(`"` + repeated(`\u0041\n`, n) + `"`) },
		"deep":    func(n int) { _, _ = jsonvalue.Parse(repeated("[", n)) },
		"deep enough": func(n int) {
			_, _ = jsonvalue.Parse("[" + repeated(strings.Repeat("[", 99)+strings.Repeat("]", 99)+",", n) + "0]")
		},
		"numbers":        func(n int) { _, _ = jsonvalue.Parse("[" + repeated("1e22,", n) + "0]") },
		"long number":    func(n int) { _, _ = jsonvalue.Parse(repeated("1", n)) },
		"unclosed fence": func(n int) { _, _, _ = jsonvalue.Unfence(repeated("```json\n", n)) },
	}
	for name, piece := range map[string]string{
		"braces": "{", "brackets": "[", "closed braces": "{}", "members": `{"a":`, "almost": `{"a":1,}`, "quotes": `"{`, "fences": "```\n", "named fences": "```json\n{\n```\n",
		"tags": "<think>", "closed tags": "<think>x</think>", "closing tags": "</think>\n", "values": `{"a":1} `,
	} {
		cases["find, "+name] = func(n int) { _, _, _ = jsonvalue.Find(repeated(piece, n), func(any) bool { return false }) }
		cases["reasoning, "+name] = func(n int) { _, _, _ = jsonvalue.CutReasoning(repeated(piece, n)) }
		cases["stream, "+name] = func(n int) {
			var s jsonvalue.AnswerStream
			for text := repeated(piece, n); text != ""; text = text[min(32, len(text)):] {
				s.Add(text[:min(32, len(text))])
			}
		}
	}
	visits.RequireLinear(t, 16<<10, ".", cases)
}

func repeated(piece string, n int) string { return strings.Repeat(piece, n/len(piece)+1) }
