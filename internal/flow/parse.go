package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

const never = "never"

// forms is the hint for a text that is no assertion.
const forms = "write X never reaches B, or X never derives into B"

// ParseAssertion reads an assertion in the syntax of [Assertion]. It leaves Line
// empty. The error is a [task.Problem] that wraps [task.ErrInvalid].
func ParseAssertion(text string) (Assertion, error) {
	a := Assertion{Text: text}
	p := parser{rest: strings.TrimSpace(text)}
	err := naming.CheckLine(text)
	if err != nil {
		return Assertion{}, problem(text, wrong(err.Error(), "write it on one line, without control characters"))
	}
	if a.Subject, err = p.subject(); err == nil {
		if a.Claim, err = p.claim(); err == nil {
			a.Reader, err = p.reader()
		}
	}
	if err != nil {
		return Assertion{}, problem(text, err)
	}
	return a, nil
}

// A parser reads an assertion.
type parser struct {
	rest string // without leading space
}

func (p *parser) subject() (Subject, error) {
	if p.rest == "" {
		return Subject{}, wrong("it is empty", forms)
	}
	for _, kind := range []SubjectKind{OfInput, OfTask} {
		if word(p.rest) == string(kind) {
			p.skip(len(kind))
			return p.source(kind)
		}
	}
	return p.property()
}

// property reads the name of a property, one word or quoted.
func (p *parser) property() (Subject, error) {
	s := Subject{Kind: Property}
	var err error
	if p.quoted() {
		s.Name, err = p.quote()
		if err == nil && s.Name == "" {
			err = wrong("the name of the property is empty", "write the name of a property, input NAME or task \"TITLE\"")
		}
		if err == nil && strings.HasPrefix(p.rest, "/") {
			err = wrong("a path follows the name of a property", fmt.Sprintf("write input %[1]s%[2]s or task %[1]s%[2]s", quoted(s.Name, false), word(p.rest)))
		}
		return s, err
	}
	before := p.untilNever()
	switch name := word(before); {
	case before == "":
		err = wrong("never has no subject before it", forms)
	case before == p.rest:
		err = wrong("the word never is missing", forms)
	case strings.Contains(name, "/"):
		err = wrong("the path has no source", fmt.Sprintf("write input %[1]s or task %[1]s, or the name of a property alone", name))
	case name != before:
		err = wrong(fmt.Sprintf("%s are several words", quoted(before, false)), fmt.Sprintf("write input %s, task %s, or a property of this name in quotes", before, quoted(before, false)))
	default:
		s.Name = name
		p.skip(len(name))
	}
	return s, err
}

// source reads the name of an input or a task, and perhaps a path.
func (p *parser) source(kind SubjectKind) (Subject, error) {
	s := Subject{Kind: kind}
	var err error
	if p.quoted() {
		if s.Name, err = p.quote(); err != nil {
			return s, err
		}
	} else {
		before := p.untilNever()
		name, _, _ := strings.Cut(before, "/")
		s.Name = strings.TrimRightFunc(name, isSpace)
		p.skip(len(s.Name))
	}
	if strings.TrimSpace(s.Name) == "" {
		return s, wrong("no name follows "+string(kind), fmt.Sprintf("write %s NAME, or %q in quotes for a property of this name", kind, string(kind)))
	}
	s.Path, err = p.path()
	return s, err
}

// path reads a path, which ends at never.
func (p *parser) path() (task.Path, error) {
	if !strings.HasPrefix(p.rest, "/") {
		return task.Whole, nil
	}
	text := p.untilNever()
	path := task.Path(text)
	if err := pick.CheckAllow(path); err != nil {
		return "", wrong(err.Error(), "write the path as in need: /facts/*/score")
	}
	p.skip(len(text))
	return task.Path(strings.TrimSuffix(text, "/**")), nil // a path means all that is there anyway
}

// claim reads never and the claim.
func (p *parser) claim() (Claim, error) {
	if got := word(p.rest); got != never {
		return "", wrong(expected("never", got), forms)
	}
	p.skip(len(never))
	verb := word(p.rest)
	p.skip(len(verb))
	switch verb {
	case "reaches":
		return Reaches, nil
	case "derives":
		into := word(p.rest)
		if into != "into" {
			return "", wrong(expected("into", into), forms)
		}
		p.skip(len(into))
		return Derives, nil
	}
	return "", wrong(expected("reaches or derives into", verb), forms)
}

// reader reads the name at the end.
func (p *parser) reader() (name string, err error) {
	const hint = "write the name of an agent, coordinator, user or the URL of an endpoint"
	if !p.quoted() {
		name = p.rest
	} else if name, err = p.quote(); err == nil && p.rest != "" {
		err = wrong(expected("the end", p.rest), hint)
	}
	switch {
	case err != nil:
	case strings.TrimSpace(name) == "":
		err = wrong("the reader is missing", hint)
	case name == "*":
		err = wrong("* is no reader", "write an assertion for each reader")
	}
	return name, err
}

func expected(what, got string) string {
	if got == "" {
		return what + " is missing at the end"
	}
	return "found " + quoted(got, false) + " instead of " + what
}

func (p *parser) quoted() bool { return strings.HasPrefix(p.rest, `"`) }

// quote reads a name in quotes.
func (p *parser) quote() (name string, err error) {
	end := 1
	for end < len(p.rest) && p.rest[end] != '"' {
		if p.rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.rest) {
		return "", wrong("a quote is not closed", `write "NAME"`)
	}
	text := p.rest[:end+1]
	if err := json.Unmarshal([]byte(text), &name); err != nil {
		return "", wrong(text+" is not quoted as in JSON", `write \" for a quote and \\ for a backslash`)
	}
	if err := naming.CheckLine(name); err != nil {
		return "", wrong("the name "+text+": "+err.Error(), "write the name as the file has it")
	}
	p.skip(len(text))
	return name, nil
}

// skip drops the next n bytes and the space that follows them.
func (p *parser) skip(n int) { p.rest = strings.TrimLeftFunc(p.rest[n:], isSpace) }

// untilNever returns the text before the word never, or all of it.
func (p *parser) untilNever() string {
	for i := 0; i < len(p.rest); {
		size := len(word(p.rest[i:]))
		if p.rest[i:i+size] == never {
			return strings.TrimRightFunc(p.rest[:i], isSpace)
		}
		if i += size; i < len(p.rest) {
			_, space := utf8.DecodeRuneInString(p.rest[i:])
			i += space
		}
	}
	return p.rest
}

// word returns the text before the first space.
func word(s string) string {
	if i := strings.IndexFunc(s, isSpace); i >= 0 {
		return s[:i]
	}
	return s
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }
