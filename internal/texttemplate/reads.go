package texttemplate

import (
	"encoding/json"
	"strconv"
	"strings"
	"text/template/parse"
)

// A Read is a name that a template reads at its top level.
type Read struct {
	Of   string // [Inputs], [Results], or another word, which no template may read
	Name string // of the input or the task; empty if the template reads all of them
	Line int    // from 1
}

// Reads returns the names that a template is certain to look for wherever they are written
// out: .results.score, $.results.score and index .results "score". Names in templates that it
// defines are not known, and neither are those that it computes.
func (t *Template) Reads() []Read {
	tree := t.parsed.Tree
	if tree == nil {
		return nil
	}
	r := &reader{text: t.text}
	r.list(tree.Root, true)
	return r.found
}

// A reader collects what a template reads. In the body of a with or a range, the dot is not
// the value that the template was given.
type reader struct {
	text  string
	line  int // of the pipeline that is read
	found []Read
}

func (r *reader) list(list *parse.ListNode, top bool) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe, top)
		case *parse.TemplateNode:
			r.pipe(n.Pipe, top)
		case *parse.IfNode:
			r.branch(&n.BranchNode, top, top)
		case *parse.WithNode:
			r.branch(&n.BranchNode, top, false)
		case *parse.RangeNode:
			r.branch(&n.BranchNode, top, false)
		}
	}
}

func (r *reader) branch(n *parse.BranchNode, top, inside bool) {
	r.pipe(n.Pipe, top)
	r.list(n.List, inside)
	r.list(n.ElseList, top)
}

func (r *reader) pipe(p *parse.PipeNode, top bool) {
	if p == nil {
		return
	}
	r.line = 1 + strings.Count(r.text[:p.Position()], "\n")
	for _, c := range p.Cmds {
		if len(c.Args) == 0 {
			continue
		}
		if f, ok := c.Args[0].(*parse.IdentifierNode); ok && f.Ident == "index" && len(c.Args) > 2 {
			if path := pathOf(c.Args[1], top); len(path) == 1 {
				if name, ok := c.Args[2].(*parse.StringNode); ok {
					r.add(append(path, name.Text))
					continue
				}
			}
		}
		for _, arg := range c.Args {
			if inner, ok := arg.(*parse.PipeNode); ok {
				r.pipe(inner, top)
			} else if path := pathOf(arg, top); len(path) > 0 {
				r.add(path)
			}
		}
	}
}

func (r *reader) add(path []string) {
	read := Read{Of: path[0], Line: r.line}
	if len(path) > 1 {
		read.Name = path[1]
	}
	r.found = append(r.found, read)
}

// pathOf returns the names by which a node selects a part of what the template was given.
func pathOf(n parse.Node, top bool) []string {
	switch n := n.(type) {
	case *parse.FieldNode:
		if top {
			return n.Ident
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			return n.Ident[1:]
		}
	}
	return nil
}

// Decoded returns a decoded JSON value as templates read it: a [json.Number] becomes an int if
// it is a whole number, and else a float64.
func Decoded(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.Atoi(string(v)); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return strings.Clone(string(v))
		}
		return f
	case []any:
		for i := range v {
			v[i] = Decoded(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = Decoded(v[key])
		}
	}
	return v
}
