package record

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/event"
)

// plainEvent is an event without its method MarshalJSON, which no decoder undoes.
type plainEvent event.Event

// eventLine is the stored form of an event.
type eventLine struct {
	plainEvent
	WaitMs     int64 `json:"waitMs,omitempty"`
	DurationMs int64 `json:"durationMs,omitempty"`
	Rounded    bool  `json:"rounded,omitempty"` // of earlier versions: sizes are classes

	Hidden json.RawMessage `json:"hidden,omitempty"` // the message as only a journal can read it
}

// EventLine returns the value of the line of an event, for [AppendLine]. A journal may add the message in a form that
// only it can read.
func EventLine(e event.Event, hidden json.RawMessage) any {
	return &eventLine{plainEvent: plainEvent(e), WaitMs: e.Wait.Milliseconds(), DurationMs: e.Duration.Milliseconds(), Hidden: hidden}
}

// DecodeEvent decodes the value of the line of an event, with the message that only a journal can read.
func DecodeEvent(value []byte) (e event.Event, hidden json.RawMessage, err error) {
	var l eventLine
	if err := DecodeStrict(value, &l); err != nil {
		return e, nil, err
	}
	e = event.Event(l.plainEvent)
	e.Wait, e.Duration = time.Duration(l.WaitMs)*time.Millisecond, time.Duration(l.DurationMs)*time.Millisecond
	if l.Rounded {
		e.Bytes, e.Work = 0, event.Work{Reused: e.Reused, Partial: true}
	}
	return e, l.Hidden, nil
}

// typeMark is before the type of an event in its line, whose second member it is.
var typeMark = []byte(`"type":"`)

// TypeOfEvent returns the type of the event that the value of a line has, without decoding it; empty if that does not
// begin as a program writes it.
func TypeOfEvent(value []byte) event.Type {
	_, rest, _ := bytes.Cut(value[:min(len(value), 64)], typeMark)
	kind, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return ""
	}
	return event.Type(kind)
}
