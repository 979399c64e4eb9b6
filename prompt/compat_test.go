package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The text of the TypeScript original, as its documentation gives it: parts
// joined by "\n", nothing trimmed. This stands apart from the package on purpose.

type upstream struct {
	title, assignee, text string
	value                 any
	as                    task.Payload
}

type message struct{ from, content string }

func original(title, description string, deps []upstream, messages []message) string {
	lines := []string{"# Task: " + title, "", description}
	opened := false
	for _, d := range deps {
		if d.text == "" && d.value == nil {
			continue
		}
		if !opened {
			lines, opened = append(lines, "", "## Context from prerequisite tasks", ""), true
		}
		by := d.assignee
		if by == "" {
			by = "unknown"
		}
		lines = append(lines, "### "+d.title+" (by "+by+")")
		compact, _ := json.Marshal(d.value) // sorted keys; the values below need no escape
		switch d.as {
		case task.Structured:
			lines = append(lines, "#### Validated structured result", string(compact))
		case task.Both:
			lines = append(lines, "#### Raw output", d.text, "", "#### Validated structured result", string(compact))
		default:
			lines = append(lines, d.text)
		}
	}
	if len(messages) > 0 {
		lines = append(lines, "", "## Messages from team members")
		for _, m := range messages {
			lines = append(lines, "- **"+m.from+"**: "+m.content)
		}
	}
	return strings.Join(lines, "\n")
}

// unfenced takes the fence lines out, and nothing that stands between them.
func unfenced(text string) string {
	var out []string
	closing := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch found := fenceLine.FindStringSubmatch(line); {
		case closing == "" && found != nil:
			closing = "[/envelope " + found[1] + "]"
		case closing != "" && line == closing:
			closing = ""
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestUnfencedTextEqualsTheOriginal(t *testing.T) {
	t.Parallel()
	word := rapid.StringMatching(`[\pL\pN#*_.,:()\[\]<>|"'/-][\pL\pN #*_.,:()\[\]<>|"'/-]{0,20}`).Filter(clean)
	free := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(word, rapid.SampledFrom([]string{"", " ", "\n", "\t", "\r\n", "## Inputs", "### x (by y)", "- **x**: y", "[envelope 1]", "```"})), 0, 6).Draw(t, "words"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between"))
	}).Filter(clean)
	line := word.Filter(func(s string) bool { // some letters are invisible: fillers of Hangul
		return !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "#") && !strings.ContainsAny(s, "\u115f\u1160\u3164\uffa0")
	})
	values := rapid.OneOf(
		rapid.Map(word, func(s string) any { return map[string]any{"b": 1, "a": s, "c": []any{true, nil, "x"}} }),
		rapid.SampledFrom([]any{"text", 12, true, []any{}, map[string]any{}}),
	).Filter(func(v any) bool { raw, _ := json.Marshal(v); return !strings.Contains(string(raw), `\`) })
	agents := rapid.SampledFrom([]string{"analyst", "critic", "Élodie B.", "a-1"})

	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		d.task.Title = line.Draw(t, "title")
		d.task.Description = rapid.SampledFrom([]string{"", "Write.", "Write.\n\n- a\n- b\n", "\n x \n"}).Draw(t, "description")
		b := d.brief()
		var deps []upstream
		for range rapid.IntRange(0, 4).Draw(t, "dependencies") {
			up := upstream{title: line.Draw(t, "title"), assignee: agents.Draw(t, "assignee"), text: free.Draw(t, "text"), as: rapid.SampledFrom([]task.Payload{"", task.Output, task.Structured, task.Both}).Draw(t, "as")}
			payload := envelope.Text(up.text)
			if up.as == task.Structured || up.as == task.Both {
				up.value = values.Draw(t, "value")
				raw, err := json.Marshal(up.value)
				require.NoError(t, err)
				if up.text == "" {
					up.text = "words" // the original has a heading for the empty text too
				}
				payload = structured(t, string(raw)).WithText(up.text)
			}
			o := d.offer(handoff.Dependency, up.title, up.assignee, payload)
			o.As = up.as
			if rapid.IntRange(0, 4).Draw(t, "nobody") == 0 {
				up.assignee, o.Assignee = "", ""
			}
			b.Dependencies = append(b.Dependencies, d.gated(o))
			deps = append(deps, up)
		}
		var messages []message
		for range rapid.IntRange(0, 3).Draw(t, "messages") {
			m := message{agents.Draw(t, "from"), line.Draw(t, "content")}
			b.Messages = append(b.Messages, d.message(m.from, m.content))
			messages = append(messages, m)
		}
		text := build(t, b).Text()
		require.Equal(t, original(d.task.Title, d.task.Description, deps, messages), unfenced(text), "%s", text)
	})
}

// clean reports whether the gate leaves a text as it is.
func clean(text string) bool {
	s := newDesk(nothing{}).dep("x", "analyst", text)
	return s.Payload().Text() == text
}

// nothing is a test that must not fail.
type nothing struct{}

func (nothing) Errorf(format string, _ ...any) { panic(format) }
func (nothing) FailNow()                       { panic("failed") }
