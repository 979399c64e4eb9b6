package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"
)

// MaxFile bounds a script file, in bytes. Recordings of long runs are that large; reading one
// takes seconds.
const MaxFile = 16 << 20

// A FileError is one problem of a script file. Line and Column count from 1; they are 0 if
// the problem has no place.
type FileError struct {
	File    string
	Line    int
	Column  int
	Message string
	Excerpt string // the lines around it; may be empty
}

// Error is "file:line:col: message" and the excerpt.
func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	if e.Excerpt == "" {
		return at + ": " + e.Message
	}
	return at + ": " + e.Message + "\n" + e.Excerpt
}

// ReadFile reads and parses the script at path.
func ReadFile(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a script in YAML or JSON. The error joins a [*FileError], with the file name,
// for each problem.
func Parse(name string, data []byte) (*Script, error) {
	if message := unfit(data); message != "" {
		return nil, &FileError{File: name, Message: message}
	}
	tokens := lexer.Tokenize(string(data))
	if depth(tokens) > maxDepth {
		return nil, &FileError{File: name, Message: "nested too deep"}
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(name, err)
	}
	d := &decoder{file: name}
	if len(file.Docs) > 1 {
		d.fail(file.Docs[1].Body, "a second document: a script is one")
		return nil, d.err()
	}
	for _, doc := range file.Docs {
		d.plain(doc.Body)
	}
	if d.err() != nil || len(file.Docs) == 0 || file.Docs[0].Body == nil {
		d.ifNone("the file is empty: write models: or replies:")
		return nil, d.err()
	}
	s := d.script(file.Docs[0].Body)
	return s, d.err()
}

// unfit returns why data cannot be a script, or "".
func unfit(data []byte) string {
	switch {
	case len(data) > MaxFile:
		return fmt.Sprintf("larger than %d MiB", MaxFile>>20)
	case !utf8.Valid(data):
		return "not UTF-8: is this a text file?"
	case bytes.IndexByte(data, 0) >= 0:
		return "contains a zero byte: is this a text file?"
	}
	return ""
}

// maxDepth bounds nesting, since the parser takes time quadratic in the depth.
const maxDepth = 200

// depth bounds how deep brackets and dashes nest, by counting their tokens.
func depth(tokens token.Tokens) int {
	deepest, open, dashes, line := 0, 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			open++
		case token.SequenceEndType, token.MappingEndType:
			open = max(open-1, 0)
		case token.SequenceEntryType:
			if t.Position.Line != line {
				line, dashes = t.Position.Line, 0
			}
			dashes++
		}
		deepest = max(deepest, open, dashes)
	}
	return deepest
}

// syntaxError returns an error of the parser with its place.
func syntaxError(name string, err error) error {
	type located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if at, ok := errors.AsType[interface {
		error
		located
	}](err); ok && at.GetToken() != nil {
		t := at.GetToken()
		return &FileError{File: name, Line: t.Position.Line, Column: t.Position.Column, Message: at.GetMessage(), Excerpt: excerpt(t)}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &FileError{File: name, Message: first}
}

// excerpt shows the lines around a token.
func excerpt(t *token.Token) string {
	var p printer.Printer
	text := p.PrintErrorToken(t, false)
	if len(text) > 2000 { // one very long line
		return ""
	}
	return strings.TrimRight(text, "\n")
}

// A decoder collects the problems of one file.
type decoder struct {
	file   string
	faults []error
}

func (d *decoder) err() error { return errors.Join(d.faults...) }

func (d *decoder) ifNone(message string) {
	if len(d.faults) == 0 {
		d.faults = append(d.faults, &FileError{File: d.file, Message: message})
	}
}

// fail notes a fault at a node.
func (d *decoder) fail(n ast.Node, format string, args ...any) {
	e := &FileError{File: d.file, Message: fmt.Sprintf(format, args...)}
	if n != nil && n.GetToken() != nil {
		t := n.GetToken()
		e.Line, e.Column, e.Excerpt = t.Position.Line, t.Position.Column, excerpt(t)
	}
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, e)
	}
}

// maxFaults bounds how many faults of a file are reported.
const maxFaults = 50

// plain reports anchors, aliases, merges and tags.
func (d *decoder) plain(n ast.Node) {
	if n == nil {
		return
	}
	ast.Walk(visitor(func(n ast.Node) {
		switch n.(type) {
		case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
			d.fail(n, "anchors, aliases and merges are not allowed: write the text out")
		case *ast.TagNode, *ast.DirectiveNode:
			d.fail(n, "tags and directives are not allowed")
		}
	}), n)
}

type visitor func(ast.Node)

func (v visitor) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}
