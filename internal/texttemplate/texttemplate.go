// Package texttemplate decides which text a template makes of inputs and results.
//
// A template is one of text/template with its own functions and no others. It calls nothing
// outside, and its time, its output and the texts that it makes on the way are bounded.
package texttemplate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

// Bounds of one execution.
const (
	MaxOutput = 4 << 20          // bytes of the text
	maxMade   = 64 << 20         // bytes of all texts that functions make
	maxTime   = 30 * time.Second // if the context ends no earlier
)

// What the bounds refuse.
var (
	errOutput = fmt.Errorf("the text has more than %d bytes; write less", MaxOutput)
	errMade   = fmt.Errorf("its functions make texts of more than %d bytes together; make fewer of them", maxMade)
)

// The names of the two values that a template reads.
const (
	Inputs  = "inputs"
	Results = "results"
)

// A Template is a template that was parsed. It is immutable and safe for concurrent use.
type Template struct {
	text   string
	parsed *template.Template
}

// An Error says what is wrong with a template. Its text names no line.
type Error struct {
	Line    int // from 1; zero if it is not known
	Message string
}

func (e *Error) Error() string { return e.Message }

// Parse reads a template. The error is an [*Error].
func Parse(text string) (*Template, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &Error{Message: "it is empty"}
	}
	parsed, err := template.New("template").Option("missingkey=error").Funcs(new(execution).functions()).Parse(text)
	if err != nil {
		return nil, located(err)
	}
	for _, t := range parsed.Templates() {
		if t.Tree != nil {
			addSteps(t.Root)
		}
	}
	return &Template{text, parsed}, nil
}

// place matches what text/template writes before its messages.
var place = regexp.MustCompile(`^template: template:(\d+)(?::\d+)?: (?:executing "(?:[^"\\]|\\.)*" )?`)

// located returns an error of text/template with its line. Errors of this package, and of a
// context, are found in it.
func located(err error) error {
	message := err.Error()
	m := place.FindStringSubmatch(message)
	if m == nil {
		return &Error{Message: message}
	}
	line, _ := strconv.Atoi(m[1])
	return &Error{Line: line, Message: message[len(m[0]):]}
}

// addSteps puts an empty text at the start of a template and of each loop in it. Writing it is
// a step of the execution, so that a loop without output ends with its context.
func addSteps(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			addBranches(&n.BranchNode)
		case *parse.WithNode:
			addBranches(&n.BranchNode)
		case *parse.RangeNode:
			addBranches(&n.BranchNode)
		}
	}
	list.Nodes = append([]parse.Node{&parse.TextNode{NodeType: parse.NodeText}}, list.Nodes...)
}

func addBranches(n *parse.BranchNode) {
	addSteps(n.List)
	addSteps(n.ElseList)
}

// Execute returns the text for inputs and results by their names. Values are texts, or decoded
// JSON as [Decoded] returns it. The error has the line, or wraps the cause of the context.
func (t *Template) Execute(ctx context.Context, inputs, results map[string]any) (string, error) {
	limit := fmt.Errorf("the template took more than %v", maxTime)
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, limit)
	defer cancel()
	run, err := t.parsed.Clone()
	if err != nil {
		return "", err
	}
	e := &execution{ctx: ctx}
	err = run.Funcs(e.functions()).Execute(e, map[string]any{Inputs: inputs, Results: results})
	switch {
	case err == nil:
		return e.text.String(), nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, errOutput):
		return "", errOutput
	case errors.Is(err, errMade):
		return "", errMade
	}
	if at, ok := errors.AsType[*Error](located(err)); ok && at.Line > 0 {
		return "", fmt.Errorf("line %d: %w", at.Line, at)
	}
	return "", err
}

// An execution collects the text of a template and counts what it takes.
type execution struct {
	ctx   context.Context
	text  strings.Builder
	steps int
	made  int
}

// Write appends to the text, unless the context has ended or the text is too long.
func (e *execution) Write(p []byte) (int, error) {
	if e.steps++; e.steps%64 == 0 && e.ctx.Err() != nil {
		return 0, context.Cause(e.ctx)
	}
	if e.text.Len()+len(p) > MaxOutput {
		return 0, errOutput
	}
	return e.text.Write(p)
}
