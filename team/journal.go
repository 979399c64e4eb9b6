package team

import (
	"context"

	"github.com/runteam/runteam/event"
)

// A Journal makes one run durable. It is safe for concurrent use.
type Journal interface {
	// Append takes entries that belong together: after a crash all of them are
	// there or none, and behind what earlier calls brought. It keeps the slice
	// and does not wait. done is called once, in the order of the calls: with nil
	// when the entries are as durable as the journal can make them. After an
	// error nothing more is taken, and every later done is given that error.
	Append(entries []event.Entry, done func(error))

	// Recall returns what other runs were answered to the prompt with this key,
	// the newest first, as far as it may be taken: reusable and kept. None is no
	// error.
	Recall(ctx context.Context, key event.Key) ([]event.Exchange, error)
}
