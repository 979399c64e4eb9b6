package plan

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hostile are titles with special characters of the formats of drawings.
var hostile = []string{
	`"]; evil [label="x`, `\`, `\"`, `a\nb\lc\N\G`, `x"] --> y["z`, `a --> b`, `a -.-> b; c --- d`, `%% comment`, `%%{init: {"theme":"dark"}}%%`,
	`</text><script>alert(1)</script>`, `<b>bold</b> &amp; &#92;n #quot; #35; ﬂ°°34¶ß`, "line\nbreak\r\n-> t1", "\u202eright to left\u2066\u2069", "\x1b[2J\x00",
	"`code` *stars* _low_ $$x$$", `1. list`, `- list`, `end`, `subgraph evil`, `click t1 "javascript:alert(1)"`, `follow-up --x-- it's o-o`, `www.example.com http://example.com`, `style t1 fill:#f00;`, `classDef x fill:#f00;`,
	`digraph {`, `}`, `a];`, `// comment`, `/* comment`, `# comment`, `世界 👩‍🚀 ❤️`, strings.Repeat("long ", 40),
}

// planOfTitles is a plan in which each task reads the one before it, optionally, and an input.
func planOfTitles(titles []string) *engine.Plan {
	p := &engine.Plan{}
	p.Name = `plan "of" \titles`
	for i, title := range titles {
		t := engine.PlannedTask{ID: task.ID(fmt.Sprint(i)), Title: title, Assignee: "agent " + title, Label: label.Internal}
		t.Reads = append(t.Reads, engine.Reading{Kind: handoff.Input, Name: "input " + title, From: "user", Delivers: "/" + title, Rule: handoff.Rule(title), Line: title})
		p.Inputs = append(p.Inputs, engine.PlannedInput{Name: fmt.Sprintf("input %d %s", i, title), Classification: label.Confidential})
		t.Reads[0].Name = p.Inputs[i].Name
		t.LeavesTo = titles[min(i, 1)] + fmt.Sprint(min(i, 1))
		if i > 0 {
			t.Reads = append(t.Reads, engine.Reading{Kind: handoff.Dependency, Task: p.Tasks[i-1].ID, Name: titles[i-1], Optional: i%2 == 0})
		}
		p.Tasks = append(p.Tasks, t)
	}
	return p
}

func drawn(form string, p *engine.Plan) string {
	return Drawings[form](newDrawing(p))
}

// graph is what a reader of a drawing sees: labels by ID, and edges.
type graph struct {
	labels map[string]string
	edges  []string // "from to", "?" behind a faint one, and its text in brackets
	leaves []string // "from to"
}

var readers = map[string]func(require.TestingT, string) graph{"dot": readDot, "mermaid": readMermaid}

// dotTokens are those that Graphviz knows in what the command writes; in a
// quoted string a backslash takes the next character with it.
var dotTokens = regexp.MustCompile(`^(?:\s+|->|[{}\[\]=,;]|[a-z0-9]+|"(?:[^"\\]|\\.)*")`)

var dotAttributes = regexp.MustCompile(`^(?:\[ (style = dashed)?(?: ?,? ?label = (".*"))? \])?$`)

// dotUnquoted is what Graphviz shows of a quoted string, in one line.
func dotUnquoted(text string) string {
	return html.UnescapeString(strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, " ").Replace(text[1 : len(text)-1]))
}

func readDot(t require.TestingT, text string) graph {
	var tokens []string
	for text != "" {
		token := dotTokens.FindString(text)
		require.NotEmpty(t, token, "%.80q", text)
		text = text[len(token):]
		if token = strings.TrimSpace(token); token != "" {
			tokens = append(tokens, token)
		}
	}
	require.Equal(t, []string{"digraph", "{"}, []string{tokens[0], tokens[2]})
	require.Equal(t, "}", tokens[len(tokens)-1])
	g := graph{labels: map[string]string{}}
	var statement []string
	for _, token := range tokens[3 : len(tokens)-1] {
		if token != ";" {
			statement = append(statement, token)
			continue
		}
		switch {
		case statement[0] == "node":
		case statement[1] == "->":
			edge, rest := statement[0]+" "+statement[2], strings.Join(statement[3:], " ")
			if rest == "[ style = dotted , arrowhead = open ]" {
				g.leaves = append(g.leaves, edge)
				break
			}
			m := dotAttributes.FindStringSubmatch(rest)
			require.NotNil(t, m, "%q", rest)
			if m[1] != "" {
				edge += "?"
			}
			if m[2] != "" {
				edge += "[" + dotUnquoted(m[2]) + "]"
			}
			g.edges = append(g.edges, edge)
		default:
			require.Equal(t, []string{"[", "label", "="}, statement[1:4])
			_, twice := g.labels[statement[0]]
			require.False(t, twice, "two nodes of one id")
			g.labels[statement[0]] = dotUnquoted(statement[4])
		}
		statement = nil
	}
	require.Empty(t, statement)
	return g
}

var (
	mermaidNode = regexp.MustCompile(`^  ([a-z][0-9a-f]+)(?:\["([^"]*)"\]|\[/"([^"]*)"/\]|\[\("([^"]*)"\)\]|\(\["([^"]*)"\]\)|\[\["([^"]*)"\]\]|>"([^"]*)"\])$`)
	mermaidEdge = regexp.MustCompile(`^  ([a-z][0-9a-f]+) (-->|-\.->|--o)(?:\|"([^"]*)"\|)? ([a-z][0-9a-f]+)$`)
	mermaidSafe = regexp.MustCompile(`^(?:[\p{L}\p{M}\p{Nd}]+(?:[-'][\p{L}\p{M}\p{Nd}]+)*|[ ,]|#[0-9]+;|<br>)*$`)
	mermaidCode = regexp.MustCompile(`#([0-9]+;)`)
)

func readMermaid(t require.TestingT, text string) graph {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Equal(t, "flowchart TD", lines[0])
	g := graph{labels: map[string]string{}}
	for _, line := range lines[1:] {
		if m := mermaidEdge.FindStringSubmatch(line); m != nil {
			edge := m[1] + " " + m[4]
			if m[2] == "--o" {
				require.Empty(t, m[3])
				g.leaves = append(g.leaves, edge)
				continue
			}
			edge += map[string]string{"-.->": "?"}[m[2]]
			if m[3] != "" {
				edge += "[" + mermaidUnquoted(t, m[3]) + "]"
			}
			g.edges = append(g.edges, edge)
			continue
		}
		m := mermaidNode.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		_, twice := g.labels[m[1]]
		require.False(t, twice, "two nodes of one id")
		g.labels[m[1]] = mermaidUnquoted(t, strings.Join(m[2:], ""))
	}
	return g
}

// mermaidUnquoted is what Mermaid shows of a label, in one line.
func mermaidUnquoted(t require.TestingT, label string) string {
	require.Regexp(t, mermaidSafe, label)
	return html.UnescapeString(mermaidCode.ReplaceAllString(strings.ReplaceAll(label, "<br>", " "), "&#$1"))
}

// requireDrawn compares a drawing with its plan: each task and input once, with its
// text, and an edge for each reading.
func requireDrawn(t require.TestingT, form string, p *engine.Plan) {
	text := drawn(form, p)
	require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return naming.Hidden(r) && r != '\n' }), "%q", text)
	g := readers[form](t, text)
	d := newDrawing(p)
	require.Len(t, g.labels, len(d.nodes))
	for i, n := range d.nodes {
		require.Equal(t, strings.Fields(n.text), strings.Fields(g.labels[n.id]))
		if i < len(p.Tasks) {
			require.Equal(t, terminal.CleanLine(p.Tasks[i].Title), strings.Split(n.text, "\n")[0])
		}
	}
	var want, leave []string
	for i, task := range p.Tasks {
		leave = append(leave, d.nodes[i].id+" "+d.nodes[len(p.Tasks)+len(p.Inputs)+min(i, 1)].id)
		for _, r := range task.Reads {
			from, mark := d.nodes[len(p.Tasks)+i].id, ""
			if r.Kind == handoff.Dependency {
				from = d.nodes[i-1].id
			}
			if r.Optional {
				mark = "?"
			}
			if text := strings.Join(append(deliveryNotes(&r), ruleNames(&r)), " "); text != " " && text != "" {
				mark += "[" + text + "]"
			}
			want = append(want, from+" "+d.nodes[i].id+mark)
		}
	}
	require.Equal(t, spaced(want), spaced(g.edges))
	require.Equal(t, spaced(leave), spaced(g.leaves))
}

// spaced is a list of texts as they are after lines were broken between words.
func spaced(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = strings.NewReplacer("[ ", "[", " ]", "]").Replace(strings.Join(strings.Fields(text), " "))
	}
	return out
}

// Requirement: G53.
func TestTitlesAddNothingToADrawing(t *testing.T) {
	t.Parallel()
	for form := range Drawings {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			requireDrawn(t, form, planOfTitles(hostile))
			rapid.Check(t, func(t *rapid.T) {
				piece := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())
				requireDrawn(t, form, planOfTitles(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return piece.Draw(t, "a") + piece.Draw(t, "b") }), 1, 5).Draw(t, "titles")))
			})
		})
	}
}

// Requirement: G53.
func FuzzTitlesAddNothingToADrawing(f *testing.F) {
	for i, title := range hostile {
		f.Add(title, hostile[len(hostile)-1-i])
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		for form := range Drawings {
			requireDrawn(t, form, planOfTitles([]string{one, two}))
		}
	})
}

// The expected texts were checked with Graphviz and Mermaid.
//
// Requirement: G53.
func TestDrawingOfHostileTitles(t *testing.T) {
	t.Parallel()
	for form := range Drawings {
		clitest.RequireGolden(t, "testdata/hostile."+form+".golden", drawn(form, planOfTitles(hostile)))
	}
}

// IDs depend on titles only: an added task changes no other line.
func TestDrawingChangesOnlyWithThePlan(t *testing.T) {
	t.Parallel()
	short, long := planOfTitles([]string{"a", "b"}), planOfTitles([]string{"a", "b", "c"})
	for form := range Drawings {
		all := drawn(form, long)
		for line := range strings.Lines(drawn(form, short)) {
			require.Contains(t, all, line)
		}
	}
}

// A title chosen so that its short ID equals another one makes IDs longer, not equal.
func TestDrawingIDsAreUnique(t *testing.T) {
	t.Parallel()
	d := &drawing{nodes: make([]node, 1<<17)} // of so many, some are equal in 32 bits
	for i := range d.nodes {
		d.nodes[i].key, d.nodes[i].kind = fmt.Sprint(i), taskKind
	}
	d.identify()
	seen := map[string]bool{}
	for _, n := range d.nodes {
		require.Len(t, n.id, 1+2*shortID)
		seen[n.id] = true
	}
	require.Len(t, seen, len(d.nodes))
}

func TestDrawingOfMemoryAndMessages(t *testing.T) {
	t.Parallel()
	p := planOfTitles([]string{"a", "b"})
	for i := range p.Tasks {
		p.Tasks[i].Reads = append(p.Tasks[i].Reads, engine.Reading{Kind: handoff.Memory, Name: "x", From: "a"}, engine.Reading{Kind: handoff.Memory, Name: "y", From: "b"}, engine.Reading{Kind: handoff.Message, From: "user"})
	}
	for form, read := range readers {
		g := read(t, drawn(form, p))
		require.Len(t, g.labels, 8)
		require.Len(t, g.edges, 7, "each task reads the memory once")
	}
}

func BenchmarkDrawing(b *testing.B) {
	titles := make([]string, 10_000)
	for i := range titles {
		titles[i] = fmt.Sprintf("Task %d of many", i)
	}
	p := planOfTitles(titles)
	for form := range Drawings {
		b.Run(form, func(b *testing.B) {
			for b.Loop() {
				drawn(form, p)
			}
		})
	}
}
