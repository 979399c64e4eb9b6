package markdown_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/markdown"
)

// outline writes nodes in short: kinds with what they have, and texts in quotes.
func outline(nodes []markdown.Node) string {
	var parts []string
	for _, n := range nodes {
		if n.Kind == markdown.Text {
			parts = append(parts, fmt.Sprintf("%q", n.Text))
			continue
		}
		var text strings.Builder
		text.WriteString(string(n.Kind))
		for _, of := range []string{strings.TrimPrefix(fmt.Sprint(n.Level), "0"), strings.TrimPrefix(fmt.Sprint(n.First), "0"), n.Language, n.Align, n.Target} {
			if of != "" {
				text.WriteString(" " + of)
			}
		}
		if n.Text != "" {
			text.WriteString(fmt.Sprintf(" %q", n.Text))
		}
		parts = append(parts, text.String()+"("+outline(n.Nodes)+")")
	}
	return strings.Join(parts, " ")
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"headings and emphasis", "# A *b*\n\nc **d** ~~e~~\nf", `heading 1("A " emphasis("b")) paragraph("c " strong("d") " " deleted("e") "\nf")`},
		{"lists", "- a\n- b\n  1. c\n\n3. d", `list(item(paragraph("a")) item(paragraph("b") ordered 1(item(paragraph("c"))))) ordered 3(item(paragraph("d")))`},
		{"code", "`a  b`\n\n```go\nx := 1\n\n<b>\n```", `paragraph(literal "a  b"()) code go "x := 1\n\n<b>"()`},
		{"quotes and rules", "> a\n> b\n\n---", `quote(paragraph("a\nb")) rule()`},
		{"tables", "| a | b |\n| - | -: |\n| `c` | d |", `table(row(cell("a") cell right("b")) row(cell(literal "c"()) cell right("d")))`},
		{"links", "[a *b*](https://x.example \"t\") <http://y.example> me@z.example", `paragraph(link https://x.example("a " emphasis("b")) " " link http://y.example("http://y.example") " " link mailto:me@z.example("me@z.example"))`},
		{"targets are as they are written", "[a](javascript:alert(1)) [b](/x) [c]\n\n[c]: data:text/html,x", `paragraph(link javascript:alert(1)("a") " " link /x("b") " " link data:text/html,x("c"))`},
		{"images are texts", "![a **b**](https://x.example/y.png)", `paragraph(image https://x.example/y.png("a " strong("b")))`},
		{"HTML is text", "# x\n\n<script>a</script>\n\nb <img src=x onerror=\"y\"> &lt;&#x202e;", `heading 1("x") paragraph("<script>a</script>") paragraph("b <img src=x onerror=\"y\"> &lt;&#x202e;")`},
		{"escapes", `\*a\* **\<b**`, `paragraph("*a* " strong("<b"))`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, outline(markdown.Blocks(tt.give)))
		})
	}
}

func TestTextsAreStringsInJSON(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(markdown.Blocks("- a **b**\n- `c`"))
	require.NoError(t, err)
	require.JSONEq(t, `[{"kind":"list","nodes":[{"kind":"item","nodes":[{"kind":"paragraph","nodes":["a ",{"kind":"strong","nodes":["b"]}]}]},{"kind":"item","nodes":[{"kind":"paragraph","nodes":[{"kind":"literal","text":"c"}]}]}]}]`, string(out))
}

// These are shown as they are written: there is nothing to show in another way, or too much.
func TestTextsWithoutBlocks(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "plain": "Dear Ms Brennan,\n\n    pay   12.00\n\nYours", "JSON": `{"a": "**b**"}`, "a list in JSON": "[1, 2]",
		"long": "# a\n\n" + strings.Repeat("b\n\n", 30_000),
	} {
		require.Empty(t, markdown.Blocks(text), name)
	}
}

// hostile are texts that cost a reader of Markdown much time or memory, or the page many elements.
func hostile() map[string]string {
	const most = 60_000
	fill := func(part string) string { return strings.Repeat(part, most/len(part)) }
	return map[string]string{
		"deep quotes": fill("> "), "deep lists": fill("- "), "deep numbers": fill("1. "), "quotes in items": fill("> - "), "long quotes": fill(strings.Repeat(">", 500) + "a\n"),
		"open links": fill("[a](b"), "open images": fill("!["), "emphasis": fill("*a_ "), "escaped fences": fill("\\```\n"),
		"a wide table":              "|" + strings.Repeat("a|", most/8) + "\n|" + strings.Repeat("-|", most/8) + "\n" + strings.Repeat("|\n", most/4),
		"tables":                    fill("|a|a|a|\n|-|-|-|\n" + strings.Repeat("|\n", 9) + "\n"),
		"a long target, used often": "[a]: " + strings.Repeat("x", most/2) + "\n\n" + strings.Repeat("[a] ", 900),
		"links":                     fill("[a](b) "), "many items": fill("- a\n"), "one mebibyte": strings.Repeat("# a\n", 1<<18),
	}
}

// requireBounded checks that a tree is as small as the page can show.
func requireBounded(t require.TestingT, text string, blocks []markdown.Node) {
	nodes := 0
	var count func([]markdown.Node, int)
	count = func(list []markdown.Node, depth int) {
		require.LessOrEqual(t, depth, 33)
		for _, n := range list {
			nodes++
			count(n.Nodes, depth+1)
		}
	}
	count(blocks, 0)
	require.LessOrEqual(t, nodes, 20_000)
	out, err := json.Marshal(blocks)
	require.NoError(t, err)
	require.LessOrEqual(t, len(out), 3<<20, "%.80q", text)
}

func TestHostileTextsCostLittle(t *testing.T) {
	t.Parallel()
	for name, text := range hostile() {
		began := time.Now()
		blocks := markdown.Blocks(text)
		require.Less(t, time.Since(began), 10*time.Second, name) // without bounds, some take minutes
		requireBounded(t, text, blocks)
	}
}

func TestDrawnTextsCostLittle(t *testing.T) {
	t.Parallel()
	tokens := []string{"[", "]", "(", ")", "*", "**", "_", "~~", "`", "``", "<", ">", "!", "|", "-", "- ", "1. ", "> ", "\n", "\n\n", "    ", "\t", "a", "b ", "# ", "```\n", "http://a.b", "@", "&amp;", "\\", "\"", ":", "=", "---\n", "|-|\n", "|a|b|\n", "é", "\x00", "[a]: b\n"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, part := range rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 6), 1, 3).Draw(t, "parts") {
			text.WriteString(strings.Repeat(strings.Join(part, ""), rapid.IntRange(1, 2_000).Draw(t, "times")))
		}
		requireBounded(t, text.String(), markdown.Blocks(text.String()))
	})
}

// What a tree shows is part of the text: nothing is added, and nothing is decoded.
func FuzzBlocks(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 300)])
	}
	f.Fuzz(func(t *testing.T, text string) {
		blocks := markdown.Blocks(text)
		requireBounded(t, text, blocks)
		letters := func(of string) string {
			return strings.Map(func(r rune) rune {
				if strings.ContainsRune("\\ \t\r\n", r) || r == 0 || r == '\ufffd' {
					return -1
				}
				return r
			}, of)
		}
		whole := letters(text)
		var check func([]markdown.Node)
		check = func(list []markdown.Node) {
			for _, n := range list {
				for line := range strings.SplitSeq(n.Text, "\n") {
					require.Contains(t, whole, letters(line))
				}
				check(n.Nodes)
			}
		}
		check(blocks)
		require.False(t, slices.ContainsFunc(blocks, func(n markdown.Node) bool { return n.Kind == "" }))
	})
}
