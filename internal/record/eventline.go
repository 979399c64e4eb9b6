package record

import (
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
}

// EventLine returns the value of the line of an event, for [AppendLine].
func EventLine(e event.Event) any {
	return &eventLine{plainEvent: plainEvent(e), WaitMs: e.Wait.Milliseconds(), DurationMs: e.Duration.Milliseconds()}
}

// DecodeEvent decodes the value of the line of an event.
func DecodeEvent(value []byte) (event.Event, error) {
	var l eventLine
	if err := DecodeStrict(value, &l); err != nil {
		return event.Event{}, err
	}
	e := event.Event(l.plainEvent)
	e.Wait, e.Duration = time.Duration(l.WaitMs)*time.Millisecond, time.Duration(l.DurationMs)*time.Millisecond
	if l.Rounded {
		e.Bytes, e.Work = 0, event.Work{Reused: e.Reused, Partial: true}
	}
	return e, nil
}
