package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"
	"github.com/runteam/runteam/internal/workdir"
)

// MaxFile bounds a script file, in bytes. Recordings of long runs are that large; reading one
// takes seconds.
const MaxFile = 16 << 20

// A FileError is one problem of a script file. Its line is 0 if the problem has no place.
type FileError struct {
	Place
	Message string
	Excerpt string // the lines around it; may be empty
}

// Error is "file:line:col: message" and the excerpt.
func (e *FileError) Error() string {
	return strings.TrimSuffix(e.Place.String()+": "+e.Message+"\n"+e.Excerpt, "\n")
}

// ReadFile reads and parses the script at a path from dir.
func ReadFile(dir workdir.Dir, path string) (*Script, error) {
	f, err := dir.Open(path)
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
	d := &decoder{file: name}
	if message := unfit(data); message != "" {
		d.ifNone(message)
		return nil, d.err()
	}
	tokens := lexer.Tokenize(string(data))
	if d.inspect(tokens); d.err() != nil {
		return nil, d.err()
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		d.syntax(err)
		return nil, d.err()
	}
	if len(file.Docs) > 1 {
		d.fail(file.Docs[1].Body, "a second document: a script is one")
		return nil, d.err()
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
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

// inspect reports anchors, aliases, merges and tags, and brackets or dashes that nest too deep.
func (d *decoder) inspect(tokens token.Tokens) {
	open, dashes, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			d.failAt(t, "anchors, aliases and merges are not allowed: write the text out")
		case token.TagType, token.DirectiveType:
			d.failAt(t, "tags and directives are not allowed")
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
		if max(open, dashes) > maxDepth {
			d.faults = nil
			d.ifNone("nested too deep")
			return
		}
	}
}

// syntax reports an error of the parser, at its place if it has one.
func (d *decoder) syntax(err error) {
	if at, ok := errors.AsType[interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}](err); ok && at.GetToken() != nil {
		d.failAt(at.GetToken(), "%s", at.GetMessage())
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	d.ifNone(first)
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

// ifNone reports a fault of the whole file, unless there are others.
func (d *decoder) ifNone(message string) {
	if len(d.faults) == 0 {
		d.failAt(nil, "%s", message)
	}
}

// fail reports a fault at a node.
func (d *decoder) fail(n ast.Node, format string, args ...any) {
	var t *token.Token
	if n != nil {
		t = n.GetToken()
	}
	d.failAt(t, format, args...)
}

// failAt reports a fault at a token; nil means the whole file.
func (d *decoder) failAt(t *token.Token, format string, args ...any) {
	e := &FileError{Place: Place{File: d.file}, Message: fmt.Sprintf(format, args...)}
	if t != nil {
		e.Line, e.Column, e.Excerpt = t.Position.Line, t.Position.Column, excerpt(t)
	}
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, e)
	}
}

// maxFaults bounds how many faults of a file are reported.
const maxFaults = 50
