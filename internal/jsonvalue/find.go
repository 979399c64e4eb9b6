package jsonvalue

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Find returns the one JSON value that a model's text holds, and the text to
// keep. That is the whole text if it is the value, or one code fence around it.
// Otherwise it is the text of the only object or array, without the reasoning
// that it begins with (see [CutReasoning]) and without the words around it, since nothing validates these. If code
// fences are marked json, only these count, and a value after the last of them. Find
// ignores values inside of other values, and values for which accepts, if not nil, returns
// false.
//
// The error wraps [ErrInvalid] if there is no value, if there are two different ones,
// or if a value is broken off or not strict, even if it contains smaller values.
func Find(text string, accepts func(value any) bool) (v Value, found string, err error) {
	_, answer, _ := CutReasoning(text)
	_, body, _ := Unfence(answer)
	if v, err = Parse(body); err == nil {
		return v, answer, nil
	}
	within := []string{body}
	behind := ""
	if named, _ := Fences(body); len(named) > 0 {
		last := named[len(named)-1]
		within, behind = named, body[strings.LastIndex(body, last)+len(last):]
	}
	s := search{accepts: accepts}
	for _, part := range within {
		if broken := s.look(part); broken != nil {
			return Value{}, "", broken
		}
	}
	// A model may quote a fence of what it read, and answer without one.
	if rest := (search{accepts: accepts}); s.found != "" && (errors.Is(rest.look(behind), errTwo) || rest.found != "" && rest.value.canonical != s.value.canonical) {
		return Value{}, "", errTwo
	}
	if s.found == "" {
		if strings.IndexAny(body, "{[") != 0 {
			err = fmt.Errorf("%w: there is none in the text", ErrInvalid)
		}
		return Value{}, "", err
	}
	return s.value, s.found, nil
}

// errTwo reports that a text has two different values.
var errTwo = fmt.Errorf("%w: the text holds two, and which one is the answer would be a guess", ErrInvalid)

// A search looks for values in texts.
type search struct {
	accepts func(any) bool
	value   Value
	found   string // the text of the value; empty if there was none
}

// maxRereading bounds how many bytes a search reads in vain, as a multiple of the text.
// Brackets in prose begin no value, which usually shows at once.
const maxRereading = 16

// look adds the values of a text. An error means that the text is no answer.
func (s *search) look(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: not valid UTF-8 at byte %d", ErrInvalid, invalidAt(text))
	}
	data := []byte(text)
	tokens := jsontext.NewDecoder(new(bytes.Buffer))
	vain, limit := 0, maxRereading*len(text)+4096
	for at := 0; at < len(text); {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			return nil
		}
		at += next
		read, whole := valueAt(tokens, data[at:])
		if !whole {
			if strings.ContainsAny(text[at+1:at+read], "{:") {
				return fmt.Errorf("%w: the value at byte %d is broken", ErrInvalid, at)
			}
			if vain += read; vain > limit {
				return fmt.Errorf("%w: too many brackets that begin none", ErrInvalid)
			}
			at++
			continue
		}
		if err := s.take(text[at : at+read]); err != nil {
			return err
		}
		at += read
	}
	return nil
}

// take adds one value.
func (s *search) take(text string) error {
	v, err := Parse(text)
	switch {
	case err != nil:
		return err
	case s.accepts != nil && !s.accepts(v.value):
	case s.found == "":
		s.value, s.found = v, text
	case s.value.canonical != v.canonical:
		return errTwo
	}
	return nil
}

// valueAt reports how many bytes of a text were read as the JSON value with
// which it begins, and whether that is whole.
func valueAt(tokens *jsontext.Decoder, text []byte) (read int, whole bool) {
	tokens.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	_, err := tokens.ReadValue()
	if err == nil {
		return int(tokens.InputOffset()), true
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		return int(min(max(syntax.ByteOffset, 1), int64(len(text)))), false
	}
	return len(text), false
}
