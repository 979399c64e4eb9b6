package redact

import (
	"context"
	"strings"
)

// The names that only tests outside of the package use.
const (
	Key      = kindKey
	Token    = kindToken
	JWT      = kindJWT
	Password = kindPassword
)

// The bounds of the work of a stream.
const (
	FreeWork    = freeWork
	WorkPerByte = workPerByte
)

type (
	Span   = span
	Reveal = reveal
)

var (
	ErrEncoding = errEncoding
	ErrSyntax   = errSyntax
	ErrDetector = errDetector
	ErrDiverged = errDiverged
	ErrStopped  = errStopped
)

// Spans appends what Find finds to dst.
func (r *Redactor) Spans(text string, dst []Span) []Span {
	r.Find(text, func(start, end int, kind Kind) { dst = append(dst, Span{start, end, kind}) })
	return dst
}

// Value is JSON without revealing anything.
func (r *Redactor) Value(canonical string) (string, Counts, error) {
	out, redacted, _, err := r.JSON(context.Background(), canonical, nil)
	return out, redacted, err
}

// Failing returns a redactor whose detector panics with a quotation of the text wherever an "!" is.
func Failing() *Redactor {
	return build(detector{name: "failing", anchors: []anchor{{"!", "", ""}}, find: func(p *pass, i int) { panic(p.text[i:]) }})
}

// Restless returns a redactor of a detector that finds a span in every text that has a bracket.
func Restless() *Redactor {
	return build(detector{name: "restless", anchors: []anchor{{"[", "", ""}}, find: func(p *pass, i int) { p.hit(kindToken, i, i+1) }})
}

// Work returns how many bytes r looked at beyond the pass itself, over all rounds on text.
func Work(r *Redactor, text string) int {
	s := newScan(context.Background())
	defer s.free()
	work := 0
	s.found, s.clean = s.found[:0], text
	for range maxRounds {
		s.spare = maxDecoded*len(s.clean) + 4096
		r.searchForms(s, s.clean, 0, given)
		work += s.work
		if len(s.hits) == 0 {
			break
		}
		s.found = union(s.found, s.hits)
		s.clean = replace(text, s.found)
	}
	s.found = s.found[:0]
	return work
}

// Work returns how many bytes s searched, in all windows and rounds.
func (s *Stream) Work() int { return s.work }

// FormatTable has the formats of tokens as they are written.
var FormatTable = formatTable

// DrawnTokens calls yield with the prefix of each format without a checksum and a drawn token of it.
func DrawnTokens(intN func(int) int, yield func(prefix, token string, kind Kind)) {
	draw := func(r run) string {
		set, text := strings.TrimRight(r.body.bytes(), "="), make([]byte, r.least)
		for k := range text {
			text[k] = set[intN(len(set))]
		}
		return string(text)
	}
	for _, f := range formats {
		if f.checks&base58check != 0 {
			continue
		}
		token, kind := draw(f.before)+f.prefix, kindToken
		for _, part := range f.after {
			token += part.literal + draw(part.run)
		}
		if f.checks&isKey != 0 {
			kind = kindKey
		}
		yield(f.prefix, token, kind)
	}
}
