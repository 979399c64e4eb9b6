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

// fields maps each key of a mapping to the function that reads its value.
type fields map[string]func(ast.Node)

// mapping reads the keys of a mapping, each at most once and none unknown.
// It returns the nodes of the keys that were there, or nil for another kind of node.
func (d *decoder) mapping(n ast.Node, what string, known fields) map[string]ast.Node {
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
	seen := make(map[string]ast.Node)
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			d.fail(v.Key, "%s: a key is a plain word", what)
			continue
		}
		read := known[key.Value]
		switch {
		case read == nil:
			d.fail(key, "%s: unknown key %q; known are %s", what, key.Value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[key.Value] != nil:
			d.fail(key, "%s: duplicate key %q", what, key.Value)
		default:
			seen[key.Value] = key
			read(v.Value)
		}
	}
	return seen
}

// script reads the root.
func (d *decoder) script(n ast.Node) *Script {
	s := &Script{}
	seen := d.mapping(n, "script", fields{
		"models": func(n ast.Node) {
			d.each(n, "models", func(n ast.Node) { s.Models = append(s.Models, d.text(n, "models")) })
		},
		"replies": func(n ast.Node) {
			d.each(n, "replies", func(n ast.Node) { s.Replies = append(s.Replies, d.reply(n)) })
		},
	})
	if seen != nil && len(seen) == 0 {
		d.ifNone("the script is empty: write models: or replies:")
	}
	return s
}

// reply reads one entry and checks it.
func (d *decoder) reply(n ast.Node) Reply {
	r := Reply{}
	textAt, at, before := n, n, len(d.faults)
	seen := d.mapping(n, "reply", fields{
		"task":        func(n ast.Node) { r.Task, at = d.text(n, "task"), n },
		"coordinator": func(n ast.Node) { r.Coordinator, at = Step(d.text(n, "coordinator")), n },
		"part":        func(n ast.Node) { r.Part = d.count(n, "part", "any part") },
		"system":      func(n ast.Node) { r.System = d.text(n, "system") },
		"text":        func(n ast.Node) { r.Text, textAt = d.text(n, "text"), n },
		"delay":       func(n ast.Node) { r.Delay = d.duration(n, "delay") },
		"status":      func(n ast.Node) { r.Status = d.number(n, "status") },
		"retryAfter":  func(n ast.Node) { r.RetryAfter = d.duration(n, "retryAfter") },
		"body":        func(n ast.Node) { r.Body = d.text(n, "body") },
		"times":       func(n ast.Node) { r.Times = d.count(n, "times", "no limit") },
		"cut":         func(n ast.Node) { r.Cut = d.boolean(n, "cut") },
		"usage":       func(n ast.Node) { r.Usage = d.usage(n) },
	})
	if seen == nil || len(d.faults) > before {
		return r
	}
	if t := at.GetToken(); t != nil {
		r.At = Place{d.file, t.Position.Line, t.Position.Column}
	}
	if _, ok := seen["text"]; !ok && seen["status"] == nil && seen["body"] == nil {
		d.fail(n, "reply: it says nothing: write text, status or body")
		return r
	}
	if key, message := r.check(); message != "" {
		d.fail(seen[key], "%s", message)
	} else if _, err := compile(r.Text); err != nil {
		d.fail(textAt, "text: %v", err)
	}
	return r
}

// usage reads the tokens of a reply.
func (d *decoder) usage(n ast.Node) *Usage {
	u := &Usage{}
	d.mapping(n, "usage", fields{
		"input":  func(n ast.Node) { u.Input = d.whole(n, "usage: input") },
		"output": func(n ast.Node) { u.Output = d.whole(n, "usage: output") },
	})
	return u
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

func (d *decoder) boolean(n ast.Node, what string) bool {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value
	}
	d.fail(n, "%s: want true or false, not %s", what, kind(n))
	return false
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

func (d *decoder) number(n ast.Node, what string) int {
	v := d.whole(n, what)
	if v != 0 && (v < 200 || v > 599) {
		d.fail(n, "%s: want a number from 200 to 599", what)
	}
	return v
}

// count reads a number from 1; without says what its absence means.
func (d *decoder) count(n ast.Node, what, without string) int {
	if i, ok := n.(*ast.IntegerNode); ok && i.Token.Value == "0" {
		d.fail(n, "%s: want a number from 1; leave it out for %s", what, without)
		return 0
	}
	return d.whole(n, what)
}

func (d *decoder) duration(n ast.Node, what string) time.Duration {
	if s, ok := n.(*ast.StringNode); ok {
		if v, err := time.ParseDuration(s.Value); err == nil && v >= 0 {
			return v
		}
	}
	d.fail(n, "%s: want a time with its unit, such as 50ms or 2s", what)
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
