package scripted

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// fields pair the keys of a mapping with pointers to the values that they set.
type fields map[string]any

// A count is a number of at least 1.
type count int

// mapping reads the keys of a mapping, none of them unknown. It returns the members that were
// there, or nil for another kind of node.
func (d *decoder) mapping(n ast.Node, what string, known fields) map[string]*ast.MappingValueNode {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		d.fail(n, "%s: want keys and values, not %s", what, kind(n))
		return nil
	}
	seen := make(map[string]*ast.MappingValueNode)
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			d.fail(v.Key, "%s: a key is a plain word", what)
			continue
		}
		to, ok := known[key.Value]
		if !ok {
			d.fail(key, "%s: unknown key %q; known are %s", what, key.Value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
			continue
		}
		seen[key.Value] = v
		name := key.Value
		if what == "usage" || what == "toolCalls" {
			name = what + ": " + name
		}
		d.value(v.Value, name, to)
	}
	return seen
}

// script reads the root.
func (d *decoder) script(n ast.Node) *Script {
	s := &Script{}
	seen := d.mapping(n, "script", fields{"models": &s.Models, "replies": &s.Replies})
	if seen != nil && len(seen) == 0 {
		d.ifNone("the script is empty: write models: or replies:")
	}
	return s
}

// reply reads one entry and checks it.
func (d *decoder) reply(n ast.Node, r *Reply) {
	before := len(d.faults)
	seen := d.mapping(n, "reply", fields{
		"task": &r.Task, "goal": &r.Goal, "coordinator": (*string)(&r.Coordinator), "part": (*count)(&r.Part), "turn": (*count)(&r.Turn), "system": &r.System,
		"text": &r.Text, "toolCalls": &r.ToolCalls, "delay": &r.Delay, "status": &r.Status, "retryAfter": &r.RetryAfter, "body": &r.Body,
		"times": (*count)(&r.Times), "cut": &r.Cut, "ended": &r.Ended, "usage": &r.Usage, "messages": &r.Messages,
	})
	if seen == nil || len(d.faults) > before {
		return
	}
	at := n
	for _, key := range [...]string{"task", "goal", "coordinator"} {
		if member := seen[key]; member != nil {
			at = member.Value
		}
	}
	r.At = d.place(at)
	if seen["text"] == nil && len(r.ToolCalls) == 0 && seen["status"] == nil && seen["body"] == nil && seen["ended"] == nil {
		d.fail(n, "reply: it says nothing: write text, toolCalls, status, body or ended")
	} else if seen["ended"] != nil && r.Ended == "" {
		d.fail(seen["ended"].Value, "ended: want %s, not nothing", endedWords)
	} else if key, message := r.check(); message != "" {
		d.fail(seen[key].Key, "%s", message)
	} else if _, err := compile(r.Text); err != nil {
		d.fail(seen["text"].Value, "text: %v", err)
	}
}

// place returns where a node is.
func (d *decoder) place(n ast.Node) Place {
	t := n.GetToken()
	if t == nil {
		return Place{}
	}
	return Place{d.file, t.Position.Line, t.Position.Column}
}

// value reads a value into what to points to.
func (d *decoder) value(n ast.Node, what string, to any) {
	switch to := to.(type) {
	case *[]string:
		d.each(n, what, func(n ast.Node) { *to = append(*to, d.text(n, what)) })
	case *[]Reply:
		d.each(n, what, func(n ast.Node) {
			var r Reply
			d.reply(n, &r)
			*to = append(*to, r)
		})
	case *[]ToolCall:
		d.each(n, what, func(n ast.Node) {
			var c ToolCall
			d.toolCall(n, &c)
			*to = append(*to, c)
		})
	case *map[string]any:
		d.arguments(n, to)
	case **Usage:
		*to = &Usage{}
		d.mapping(n, what, fields{"input": &(*to).Input, "output": &(*to).Output})
	case *string:
		*to = d.text(n, what)
	case *int:
		*to = d.whole(n, what)
	case *count:
		if *to = count(d.whole(n, what)); n.GetToken().Value == "0" {
			d.fail(n, "%s: want a number from 1; leave the key out for all", what)
		}
	case *bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			d.fail(n, "%s: want true or false, not %s", what, kind(n))
			return
		}
		*to = b.Value
	case *time.Duration:
		var err error
		if *to, err = time.ParseDuration(n.GetToken().Value); err != nil || *to < 0 {
			d.fail(n, "%s: want a time with its unit, such as 50ms or 2s", what)
		}
	}
}

// each reads the elements of a list.
func (d *decoder) each(n ast.Node, what string, read func(ast.Node)) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, "%s: want a list, not %s", what, kind(n))
		return
	}
	for _, v := range list.Values {
		read(v)
	}
}

// text reads a string; a number probably has to be quoted.
func (d *decoder) text(n ast.Node, what string) string {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value
	case *ast.LiteralNode:
		return s.Value.Value
	}
	d.fail(n, "%s: want a text, not %s; put quotes around it", what, kind(n))
	return ""
}

// whole reads a number from zero.
func (d *decoder) whole(n ast.Node, what string) int {
	if i, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(i.Token.Value); err == nil && v >= 0 && v <= maxWhole {
			return v
		}
	}
	d.fail(n, "%s: want a whole number from 0, not %s", what, kind(n))
	return 0
}

// kind names what a node is, for errors.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	default:
		return fmt.Sprintf("%s", strings.ToLower(n.Type().String()))
	}
}
