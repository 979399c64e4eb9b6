package postgres

import (
	"context"
	"time"

	"github.com/runteam/runteam/internal/journal"
)

// OpenPatient is [Open] with a time for which an operation waits for the server.
func OpenPatient(ctx context.Context, address string, o journal.Options, patience time.Duration) (*journal.Journal, error) {
	return open(ctx, address, o, patience)
}
