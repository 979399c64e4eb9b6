package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"unique"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// A Line is a line of a trace that is decoded. [Parse] returns one.
type Line struct {
	Kind     string
	Value    json.RawMessage
	Event    *event.Event
	Hidden   json.RawMessage // the message of the event, that only a journal can read
	Prompt   *Prompt
	Decision *event.Handoff // nil of other lines of the chain
	Decoded  any            // of a line of another kind

	members   int   // of the line; a whole one has one, or two of the chain of decisions
	malformed error // the line is no JSON
	bad       error // its value cannot be decoded
}

// Err returns why the line cannot be read, if its place is as it must be.
func (l *Line) Err() error { return cmp.Or(l.malformed, l.bad) }

// A Decode decodes the value of a line of a kind that is not one of a trace; see [Encoder.Line].
type Decode func(kind string, value json.RawMessage) (any, error)

// Parse decodes a line for [Reader.Add], those of other kinds with other; nil leaves them as they are. Lines may be
// parsed at the same time, and in any order.
func Parse(text []byte, other Decode) *Line {
	l := &Line{members: 1}
	if l.Kind, l.Value = record.SplitLine(text); l.Kind == record.KindDecision {
		l.Decision, l.bad = Decision(text)
		return l
	}
	if strict := l.Kind == record.KindEvent || l.Kind == record.KindPrompt; !strict && !json.Valid(l.Value) {
		if l.Kind, l.Value, l.members, l.malformed = parseLine(text); l.malformed != nil {
			return l
		}
	}
	if l.bad = l.decode(other); l.bad != nil && !json.Valid(l.Value) { // the cause may be the line
		_, _, l.members, l.malformed = parseLine(text)
	}
	return l
}

// decode decodes the value of a line.
func (l *Line) decode(other Decode) (err error) {
	switch {
	case l.Kind == record.KindDecision || l.Kind == record.KindTrace || l.members != 1:
	case l.Kind == record.KindEvent:
		var e event.Event
		if e, l.Hidden, err = record.DecodeEvent(l.Value); err != nil {
			return fmt.Errorf("its event cannot be read: %w", err)
		}
		l.Event = &e
	case l.Kind == record.KindPrompt:
		l.Prompt = new(Prompt)
		if err := record.DecodeStrict(l.Value, l.Prompt); err != nil {
			return fmt.Errorf("its prompt cannot be read: %w", err)
		}
		complete(l.Prompt)
		return check(l.Prompt)
	case ownKind(l.Kind) && other != nil:
		l.Decoded, err = other(l.Kind, l.Value)
	}
	return err
}

// parseLine returns the kind and the value of any line, and how many members it has.
func parseLine(text []byte) (kind string, value json.RawMessage, members int, err error) {
	var all map[string]json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return "", nil, 0, errors.New("it is not a JSON object")
	}
	for _, kind := range []string{record.KindTrace, record.KindDecision} {
		if value, ok := all[kind]; ok {
			return kind, value, len(all), nil
		}
	}
	for kind, value = range all {
	}
	return kind, value, len(all), nil
}

// Decision returns the decision of a line of the chain of decisions; nil of a line that has none, as the first.
func Decision(line []byte) (*event.Handoff, error) {
	var l struct {
		Audit struct {
			Handoff                                               *event.Handoff
			Seq, Kind, Previous, Beside, Run, Keyed, Time, Counts ignored
		}
		Digest ignored
	}
	if err := record.DecodeStrict(line, &l); err != nil {
		return nil, fmt.Errorf("its decision cannot be read: %w", err)
	}
	if h := l.Audit.Handoff; h != nil { // many decisions have the same words
		h.Policy, h.Line, h.Source.Name = shared(h.Policy), shared(h.Line), shared(h.Source.Name)
		h.Task, h.From, h.To = shared(h.Task), shared(h.From), shared(h.To)
	}
	return l.Audit.Handoff, nil
}

// shared returns an equal text that is kept once in the process.
func shared[T ~string](text T) T { return unique.Make(text).Value() }

// ignored is a member that is known and not needed.
type ignored struct{}

// UnmarshalJSON decodes nothing.
func (ignored) UnmarshalJSON([]byte) error { return nil }
