package flowtest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// standIn answers in place of an agent, which repeats canaries that it read. Without tools, a
// command writes into its workspace; root is nil for any other agent.
func (t *testTeam) standIn(p prompt.Prompt, repeated []string, root *os.Root) (agent.Reply, error) {
	if p.Layout() == brief.Planning.String() {
		text, err := t.planner.Answer(p.System(), p.Text())
		return agent.Reply{Text: text, Turns: 1}, err
	}
	if approvalIn(p) != nil {
		return agent.Reply{Text: `{"decision":"yes"}`}, nil
	}
	own := t.canariesOf(p.Receipt().Task)
	structured, words := p.Schema() != "", slices.Clip(repeated)
	for _, x := range own {
		structured = structured || x.path != ""
		words = append(words, x.word)
	}
	if calls := t.toolCalls(p, words); len(calls) > 0 {
		thought, err := json.Marshal(map[string]string{"thought": strings.Join(words, " ")})
		return agent.Reply{ToolCalls: calls, Turns: 1, Provider: &llm.ProviderData{Message: thought}}, err
	}
	if err := t.writeFile(root, p.Receipt().Task, words); err != nil {
		return agent.Reply{}, err
	}
	if structured || len(t.decisions[p.Receipt().Task]) > 0 {
		return t.structured(p, own, repeated)
	}
	text, err := new(scripted.Handler).Answer(p.System(), p.Text())
	return agent.Reply{Text: firstLine(own, repeated) + text, Turns: 1}, err
}

// firstLine returns the first line of a text: the canaries planted there, then those of the
// prompt.
func firstLine(own []*canary, repeated []string) string {
	var words []string
	for _, x := range own {
		if x.path == "" {
			words = append(words, x.word)
		}
	}
	if words = append(words, repeated...); len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + "\n"
}

// canariesIn returns the canaries in a text.
func (t *testTeam) canariesIn(text string) (words []string) {
	lower := strings.ToLower(text)
	for _, x := range t.f.canaries {
		if _, ok := x.in(lower); ok {
			words = append(words, x.word)
		}
	}
	return words
}

// structured answers with a small value that the schema of the prompt allows and that has
// the task's own canaries at their paths. In a free text it repeats those of the prompt, if
// the answer has no schema or the stand-ins are careless.
func (t *testTeam) structured(p prompt.Prompt, own []*canary, repeated []string) (agent.Reply, error) {
	shape, err := decodeSchema(p.Schema())
	for _, d := range t.decisions[p.Receipt().Task] {
		if changed, impossible := d.require(shape); err == nil && impossible == nil {
			shape = changed
		}
	}
	for _, x := range own {
		if err == nil && x.path != "" {
			if shape, _, err = requireText(shape, x.keys, x.word); err != nil {
				err = fmt.Errorf("%v: %w", x, err)
			}
		}
	}
	if err != nil {
		return agent.Reply{}, err
	}
	text, err := scripted.Instance(shape)
	if err != nil {
		return agent.Reply{}, err
	}
	value, err := jsonvalue.Decode(string(text))
	if err != nil {
		return agent.Reply{}, err
	}
	if p.Schema() == "" {
		if o, ok := value.(map[string]any); ok && len(repeated) > 0 {
			o["repeated"] = strings.Join(repeated, " ")
		}
		out, err := jsonvalue.Encode(value)
		return agent.Reply{Text: out.Canonical(), Turns: 1}, err
	}
	if !t.f.careless {
		repeated = nil
	}
	out, err := valid(p.Schema(), value, repeated)
	return agent.Reply{JSON: out, Text: firstLine(own, nil) + out.Canonical(), Turns: 1}, err
}

// valid returns a value with words added to its free texts, if the schema allows that, else
// without them.
func valid(text string, value any, words []string) (jsonvalue.Value, error) {
	checked, err := schema.Parse(text)
	if err != nil {
		return jsonvalue.Value{}, err
	}
	plain, err := jsonvalue.Encode(value)
	if err != nil {
		return plain, err
	}
	if err := checked.Validate(plain); err != nil {
		return plain, fmt.Errorf("no small result of its schema has the canaries where they are planted: %w", err)
	}
	if len(words) > 0 {
		if full, err := jsonvalue.Encode(addWords(value, strings.Join(words, " "))); err == nil && checked.Validate(full) == nil {
			return full, nil
		}
	}
	return plain, nil
}

// addWords adds words to every free text of a value, which package scripted marks.
func addWords(v any, words string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			v[k] = addWords(member, words)
		}
	case []any:
		for i, element := range v {
			v[i] = addWords(element, words)
		}
	case string:
		if strings.HasPrefix(v, scripted.Mark) {
			return words + " " + v
		}
	}
	return v
}
