// Package redact finds personal data and secrets in texts and puts placeholders in their place.
//
//	clean, counts, err := redact.Default().Text(text) // "Mail to [REDACTED:email]"
//
// [Secrets] finds what no reader may have: private keys, tokens of clouds and APIs, JSON Web
// Tokens, and passwords in URLs or next to secret-like names. [Default] adds payment cards, IBANs,
// e-mail addresses, phone and social security numbers, [All] also addresses of machines, and [New]
// the kinds and patterns that you name. [Redactor.TextRevealing] and [Redactor.JSON] take a
// function that says which personal kinds may stay, and where; secrets never stay. No mark in a
// text disables redaction. [Redactor.Stream] redacts a text that arrives in pieces.
//
// A text is searched unchanged, normalized (invisible characters left out, compatibility forms
// replaced), and with up to three layers of base64, hexadecimal, percent-encoding and \u escapes
// decoded. A value that is split over neighboring elements of a JSON array is found in their join.
//
// All detectors share one pass over the bytes. The work is linear in the text, and a text in which
// nothing is found costs no allocation. docs/reference/redaction.md says what each kind means, what
// is not found, and what was measured.
package redact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind says what a span is.
type Kind string

// The kinds that [Secrets] finds.
const (
	kindKey      Kind = "key"      // private key: PEM, OpenSSH, PGP, PuTTY or age
	kindToken    Kind = "token"    // token of a cloud or an API, known by its own format or by the header that carries it
	kindJWT      Kind = "jwt"      // JSON Web Token with a decodable header
	kindPassword Kind = "password" // user and password in a URL, or the value of a secret-like name
)

// Placeholder returns the text that takes the place of a span of this kind, such as
// "[REDACTED:token]".
func (k Kind) Placeholder() string {
	if rank := k.rank(); rank >= 0 {
		return placeholders[rank]
	}
	return placeholder(k)
}

// A span is a range of bytes of a text, without the one at End, and its kind.
type span struct {
	Start, End int
	Kind       Kind
}

// Counts is the number of spans of each kind that were replaced. It is nil if there are none.
type Counts map[Kind]int

// Total returns the number of spans of all kinds.
func (c Counts) Total() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// The errors of a redactor. Each means that it could not decide, so the caller must withhold the
// value.
var (
	// errEncoding reports a text that is not valid UTF-8. Encoders would change its bytes after the
	// search, so that its result would be worthless. Clean such a text first (strings.ToValidUTF8).
	errEncoding = errors.New("not valid UTF-8")
	// errSyntax reports a value that is not one strict JSON value.
	errSyntax = errors.New("not one strict JSON value")
	// errDetector reports a detector that panicked.
	errDetector = errors.New("detector failed")
	// errDiverged reports a text whose redacted form keeps matching, because each replacement
	// uncovers a new span, or which decodes to many times its size. Only texts written for this
	// purpose do.
	errDiverged = errors.New("redaction does not end")
	// errStopped reports that the context ended before the whole text was read. The error also
	// wraps the cause.
	errStopped = errors.New("redaction stopped before the end of the text")
)

// A Redactor finds and replaces the spans of its kinds. It is immutable and safe for concurrent
// use; make one with [Secrets], [Default], [All] or [New]. The nil *Redactor and the zero value
// return an error: a missing configuration must not look like a clean text.
type Redactor struct {
	prefilter prefilter
	detectors []detector
	leaves    []detector // those with a rule for whole leaves
	patterns  []compiled
}

// Find calls found for each span of text, in order and without overlap. Replacing them gives what
// [Redactor.Text] returns. A text that cannot be searched is one span of the kind "password" over
// its whole length, since Find has no error to withhold it by. Offsets are bytes; invalid UTF-8 is
// scanned as bytes.
func (r *Redactor) Find(text string, found func(start, end int, kind Kind)) {
	s := newScan(context.Background())
	if err := r.guard(func() error { return r.redact(s, text, location{}) }); err != nil {
		found(0, len(text), kindPassword)
		return
	}
	for _, f := range s.found {
		found(f.Start, f.End, f.Kind)
	}
	s.free()
}

// Text returns text with a placeholder in the place of each span, and the number of spans of each
// kind. When nothing is found it returns the same string and nil, without an allocation. Redacting
// the result again changes nothing, and it is at most five times as long as text (own patterns that
// match less than ten bytes aside). An error quotes nothing of the text.
func (r *Redactor) Text(text string) (string, Counts, error) {
	out, redacted, _, err := r.TextRevealing(context.Background(), text, nil)
	return out, redacted, err
}

// TextRevealing is [Redactor.Text] for a reader that may see the kinds for which reveal, called
// with a nil path, returns true; nil reveals nothing. It also returns the number of spans of each
// kind that stay. It stops when ctx ends, even in the middle of an own pattern, and the error then
// wraps the cause.
func (r *Redactor) TextRevealing(ctx context.Context, text string, reveal func(kind Kind, path []string) bool) (out string, redacted, revealed Counts, err error) {
	if at := invalidUTF8(text); at >= 0 {
		return "", nil, nil, fmt.Errorf("redact text: %w at byte %d of %d", errEncoding, at, len(text))
	}
	s := newScan(ctx)
	if err := r.guard(func() error { return r.redact(s, text, location{reveal: reveal}) }); err != nil {
		return "", nil, nil, fmt.Errorf("redact text of %d bytes: %w", len(text), err)
	}
	out, redacted, revealed = s.clean, count(nil, s.found), count(nil, s.revealed)
	s.free()
	return out, redacted, revealed, nil
}

// guard runs decide. It turns a panic of a detector into an error, and refuses a redactor without
// detectors. After an error, the scan is in an unknown state and must not be reused.
func (r *Redactor) guard(decide func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %T", errDetector, p) // the value of p may quote the text
		}
	}()
	if r == nil || len(r.detectors) == 0 {
		return fmt.Errorf("%w: this redactor has none; use redact.Default()", errDetector)
	}
	return decide()
}

// redact leaves in s the spans of text, the text without them, which has no further span to redact,
// and its revealed spans.
func (r *Redactor) redact(s *scan, text string, where location) error {
	s.found, s.revealed, s.clean, s.location = s.found[:0], s.revealed[:0], text, where
	for range maxRounds {
		s.spare = maxDecoded*len(s.clean) + 4096
		r.searchForms(s, s.clean, 0, given)
		if err := s.stopped(); err != nil {
			return err
		}
		if s.spare < 0 {
			return fmt.Errorf("%w: decodes to many times its size", errDiverged)
		}
		revealed := s.splitRevealed()
		if len(s.hits) == 0 {
			s.revealed = append(s.revealed, revealed...)
			return nil
		}
		if len(revealed) > 0 {
			s.hits = overlapping(s.hits, merge(s.hits), revealed)
		}
		s.found = union(s.found, s.hits)
		s.clean = replace(text, s.found)
	}
	return errDiverged
}

// stopped returns an error if the context of s has ended, so that not all of the text was searched.
func (s *scan) stopped() error {
	if s.ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errStopped, context.Cause(s.ctx))
}

// maxRounds bounds the passes over one text. Ordinary texts need two.
const maxRounds = 8

// union adds hits to found. Offsets of found are those of the original text, offsets of hits those
// of the text with found replaced. Overlapping spans become one, of the kind of the highest rank.
func union(found, hits []span) []span {
	shift, next := 0, 0 // original offset = offset + shift, for what lies after found[:next]
	before := len(found)
	origin := func(at int, end bool) int {
		for next < before {
			f := found[next]
			start := f.Start - shift
			stop := start + len(f.Kind.Placeholder())
			if at < start || at == start && end {
				break
			}
			if at < stop || at == stop && end {
				if end {
					return f.End
				}
				return f.Start
			}
			shift = f.End - stop
			next++
		}
		return at + shift
	}
	for _, h := range merge(hits) { // origin reads forward only
		found = append(found, span{origin(h.Start, false), origin(h.End, true), h.Kind})
	}
	return merge(found)
}

// merge sorts spans in place and joins overlapping ones.
func merge(spans []span) []span {
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		if a.End != b.End {
			return b.End - a.End
		}
		return b.Kind.rank() - a.Kind.rank()
	})
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			last := &out[n-1]
			last.End = max(last.End, s.End)
			if s.Kind.rank() > last.Kind.rank() {
				last.Kind = s.Kind
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// replace returns text with each span's placeholder in its place.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 8*len(spans))
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start])
		b.WriteString(s.Kind.Placeholder())
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// count adds spans to c, which may be nil.
func count(c Counts, spans []span) Counts {
	if c == nil && len(spans) > 0 {
		c = Counts{}
	}
	for _, s := range spans {
		c[s.Kind]++
	}
	return c
}

// invalidUTF8 returns the offset of the first byte of text that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}
