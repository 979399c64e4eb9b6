package scripted

import (
	"encoding/json"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// toolCall reads one entry of toolCalls.
func (d *decoder) toolCall(n ast.Node, c *ToolCall) {
	before := len(d.faults)
	seen := d.mapping(n, "toolCalls", fields{"name": &c.Name, "arguments": &c.Arguments})
	if seen == nil || len(d.faults) > before {
		return
	}
	if seen["name"] == nil {
		d.fail(n, "toolCalls: name is missing: write the name of the tool")
		return
	}
	c.At = d.place(seen["name"].Value)
	if message := c.check(); message != "" {
		at := seen["name"]
		if c.Name != "" {
			at = seen["arguments"]
		}
		d.fail(at.Value, "toolCalls: %s", message)
	}
}

// arguments reads the arguments of a tool call.
func (d *decoder) arguments(n ast.Node, to *map[string]any) {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		*to, _ = d.json(n).(map[string]any)
	default:
		d.fail(n, "toolCalls: arguments: want keys and values, not %s; write {} for none", kind(n))
	}
}

// json reads a JSON value whose texts are templates.
func (d *decoder) json(n ast.Node) any {
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.object(n.Values)
	case *ast.MappingValueNode:
		return d.object([]*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, item := range n.Values {
			list[i] = d.json(item)
		}
		return list
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.StringNode:
		if t := n.GetToken(); t.Type == token.StringType && isNumber(t.Value) {
			return json.Number(t.Value) // such as 1e5, which this parser reads as a text
		}
		return d.template(n, n.Value)
	case *ast.LiteralNode:
		return d.template(n, n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		if text := n.GetToken().Value; isNumber(text) {
			return json.Number(text)
		}
	}
	d.fail(n, "toolCalls: arguments: want a JSON value, not %s; write a number as JSON does, or put quotes around a text", n.GetToken().Value)
	return nil
}

// object reads the members of an object.
func (d *decoder) object(members []*ast.MappingValueNode) map[string]any {
	o := make(map[string]any, len(members))
	for _, m := range members {
		key, ok := m.Key.(*ast.StringNode)
		if !ok {
			d.fail(m.Key, "toolCalls: arguments: a key is a text; put quotes around it")
			continue
		}
		o[key.Value] = d.json(m.Value)
	}
	return o
}

// template returns a text that is a valid template.
func (d *decoder) template(n ast.Node, text string) string {
	if _, err := compile(text); err != nil {
		d.fail(n, "toolCalls: arguments: %v", err)
	}
	return text
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && strings.Contains("-0123456789", text[:1]) && json.Valid([]byte(text))
}
