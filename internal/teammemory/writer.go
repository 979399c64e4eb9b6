package teammemory

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/envelope"
)

// A Writer adds to a memory and cannot read from it: no method returns anything
// but an error, and no conversion makes a [Reader] of it. It is safe for
// concurrent use. The zero Writer refuses everything with [ErrNoMemory].
type Writer struct{ sink *Memory }

// Write keeps a note of an agent's, or of the user's, under a key, for so many
// turns; zero means without end. A note that the agent has under that key
// already is replaced.
//
// A name or key that is none, a key of the form of [ResultKey], or a negative
// number of turns is refused with [ErrInvalid], an envelope of another producer
// also with [ErrForeign]. Any other error is the store's or the context's. After
// an error the note cannot be read in this run; a store that failed may yet have
// kept it for the next.
func (w Writer) Write(ctx context.Context, agent, key string, e *envelope.Envelope, ttlTurns int) error {
	return w.write(ctx, Entry{Agent: agent, Key: key, Envelope: e, TTLTurns: ttlTurns}, 0)
}

// WriteResult keeps the result of a task that has completed, which the envelope
// names, and begins the next turn, at which the result then counts as written.
// The producer of the envelope is the agent, or several of which it is the first:
// the agent transferred its conversation to the others.
// It is refused as by [Writer.Write]; also an envelope that names no task. After
// an error no turn has begun.
func (w Writer) WriteResult(ctx context.Context, agent string, e *envelope.Envelope, ttlTurns int) error {
	entry := Entry{Agent: agent, Envelope: e, TTLTurns: ttlTurns}
	if e != nil {
		entry.Task = e.Task()
	}
	entry.Key = ResultKey(entry.Task)
	return w.write(ctx, entry, 1)
}

func (w Writer) write(ctx context.Context, e Entry, turns int) error {
	err := ErrNoMemory
	if w.sink != nil {
		if err = e.check(); err == nil {
			err = w.sink.put(ctx, e, turns)
		}
	}
	if err != nil {
		return fmt.Errorf("write memory %q: %w", e.subject(), err)
	}
	return nil
}
