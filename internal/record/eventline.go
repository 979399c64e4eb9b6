package record

import (
	"time"

	"github.com/runteam/runteam/internal/event"
)

// plainEvent is an event without its own way into JSON, which has none back.
type plainEvent event.Event

// eventLine is an event as it is written.
type eventLine struct {
	plainEvent
	WaitMs     int64 `json:"waitMs,omitempty"`
	DurationMs int64 `json:"durationMs,omitempty"`
}

// EncodeEvent returns the line of an event.
func EncodeEvent(e event.Event) ([]byte, error) {
	return EncodeLine(KindEvent, &eventLine{plainEvent: plainEvent(e), WaitMs: e.Wait.Milliseconds(), DurationMs: e.Duration.Milliseconds()})
}

// DecodeEvent decodes the value of the line of an event.
func DecodeEvent(value []byte) (event.Event, error) {
	var l eventLine
	if err := DecodeStrict(value, &l); err != nil {
		return event.Event{}, err
	}
	e := event.Event(l.plainEvent)
	e.Wait, e.Duration = time.Duration(l.WaitMs)*time.Millisecond, time.Duration(l.DurationMs)*time.Millisecond
	return e, nil
}
