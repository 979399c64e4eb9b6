package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/llm"
)

// A ToolCall is a call of a tool in a reply.
type ToolCall struct {
	Name      string         // the tool; each request that gets the reply must offer it
	Arguments map[string]any // each text in it is a template; nil means no arguments

	At Place `json:"-"` // where it is written; zero for a call that was made in Go
}

// A compiledCall is a ToolCall whose texts are compiled.
type compiledCall struct {
	ToolCall
	arguments any // the arguments, with a *template.Template in place of each text
}

// check returns what is wrong with a call; empty if nothing is.
func (c *ToolCall) check() string {
	if c.Name == "" {
		return "it names no tool: write name"
	}
	if _, err := jsonvalue.Encode(c.object()); err != nil {
		return "arguments: " + err.Error()
	}
	return ""
}

// object returns the arguments, which may be empty.
func (c *ToolCall) object() any {
	if c.Arguments == nil {
		return map[string]any{}
	}
	return c.Arguments
}

// compileCalls compiles the arguments of calls.
func compileCalls(calls []ToolCall) ([]compiledCall, error) {
	list := make([]compiledCall, len(calls))
	for i := range calls {
		value, err := mapTexts(calls[i].object(), func(text any) (any, error) { return compile(text.(string)) })
		if err != nil {
			return nil, fmt.Errorf("toolCalls: the arguments of %q: %w", calls[i].Name, err)
		}
		list[i] = compiledCall{calls[i], value}
	}
	return list, nil
}

// mapTexts returns a copy of a JSON value in which change has replaced each text, or each
// template in place of a text.
func mapTexts(v any, change func(any) (any, error)) (any, error) {
	switch v := v.(type) {
	case string, *template.Template:
		return change(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = mapTexts(item, change); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			var err error
			if out[key], err = mapTexts(item, change); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// toolCalls returns the calls of a reply with their arguments for this prompt. The ID of a
// call depends on its place in the conversation alone, so a repeated request gets equal IDs.
func (r *received) toolCalls(calls []compiledCall, offered []llm.Tool) ([]llm.ToolCall, error) {
	var list []llm.ToolCall
	for i := range calls {
		c := &calls[i]
		if err := c.checkOffered(offered); err != nil {
			return nil, err
		}
		value, err := mapTexts(c.arguments, func(t any) (any, error) { return r.render(t.(*template.Template)) })
		if err != nil {
			return nil, fmt.Errorf("toolCalls: the arguments of %q: %w", c.Name, err)
		}
		arguments, err := quote(value)
		if err != nil {
			return nil, fmt.Errorf("toolCalls: the arguments of %q: %w", c.Name, err)
		}
		list = append(list, llm.ToolCall{ID: fmt.Sprintf("call_%d_%d", r.Turn, i+1), Name: c.Name, Arguments: arguments})
	}
	return list, nil
}

// checkOffered returns an error if a request does not offer the tool.
func (c *ToolCall) checkOffered(offered []llm.Tool) error {
	if slices.ContainsFunc(offered, func(t llm.Tool) bool { return t.Name == c.Name }) {
		return nil
	}
	text := fmt.Sprintf("toolCalls: unknown tool %q", c.Name)
	if at := c.At.String(); at != "" {
		text += " at " + at
	}
	names := make([]string, len(offered))
	for i, t := range offered {
		names[i] = t.Name
	}
	if len(names) == 0 {
		return errors.New(text + "; the request offers no tools")
	}
	return fmt.Errorf("%s; the request offers %s", text, strings.Join(names, ", "))
}

// toolResult returns the payload of a result of a tool: of its nth call in the conversation,
// counted from 1, or of its last call.
func (r *received) toolResult(name string, n ...int) (string, error) {
	if len(n) > 1 || len(n) == 1 && n[0] < 1 {
		return "", errors.New("toolResult takes a tool and at most one number from 1")
	}
	var of []string // the IDs of the calls of the tool in one turn
	var payloads []string
	for _, m := range r.messages {
		if m.Role == llm.Assistant {
			of = nil
		}
		for _, c := range m.ToolCalls {
			if c.Name == name {
				of = append(of, c.ID)
			}
		}
		if m.Role == llm.ToolResult && slices.Contains(of, m.ToolCallID) {
			payloads = append(payloads, payloadOf(m.Text))
		}
	}
	at := len(payloads)
	if len(n) == 1 {
		at = n[0]
	}
	if at < 1 || at > len(payloads) {
		return missing, nil
	}
	return payloads[at-1], nil
}

// payloadOf returns the payload of a message of a tool, without its fence.
func payloadOf(text string) string {
	d := document{lines: strings.Split(text, "\n")}
	d.scan()
	return d.payload(d.all())
}

// argumentsOf returns the arguments of a call as a script has them, with texts that print
// what the model wrote. ok is false if a script cannot have them.
func argumentsOf(text string) (arguments map[string]any, ok bool) {
	if text == "" {
		return nil, true
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, false
	}
	value, _ = mapTexts(value, func(text any) (any, error) { return literal(text.(string)), nil })
	arguments, ok = value.(map[string]any)
	if len(arguments) == 0 {
		arguments = nil
	}
	return arguments, ok
}

// toolCallsOf returns the calls of a response as a script has them. ok is false if a script
// cannot have them: the request does not offer the tool, or the arguments are not an object.
func toolCallsOf(calls []llm.ToolCall, offered []llm.Tool) (list []ToolCall, ok bool) {
	for _, c := range calls {
		one := ToolCall{Name: c.Name}
		if one.Arguments, ok = argumentsOf(c.Arguments); !ok || one.check() != "" || one.checkOffered(offered) != nil {
			return nil, false
		}
		list = append(list, one)
	}
	return list, true
}

// numberTurns gives each reply with tool calls and without a turn the one that follows the turn
// of the last reply before it that calls tools under the same conditions.
func numberTurns(replies []Reply) {
	type conditions struct {
		task, goal, system string
		step               Step
		part               int
	}
	last := make(map[conditions]int)
	for i := range replies {
		r := &replies[i]
		if len(r.ToolCalls) == 0 {
			continue
		}
		of := conditions{folded(strings.TrimSpace(r.Task)), strings.ToLower(r.Goal), strings.ToLower(r.System), r.Coordinator, r.Part}
		if r.Turn == 0 {
			r.Turn = last[of] + 1
		}
		last[of] = r.Turn
	}
}
