package record

import (
	"context"
	"time"

	"github.com/runteam/runteam/label"
)

// A SessionTurn says which turn of a session a run is.
type SessionTurn struct {
	Session string               `json:"session"`         // its ID
	Turn    int                  `json:"turn"`            // from 1
	Agent   string               `json:"agent"`           // who answers: an agent, or coordinator
	After   string               `json:"after,omitempty"` // the run of the last turn that was answered before it; empty if none was
	Label   label.Classification `json:"label"`           // of Text
	Text    string               `json:"-"`               // what the person said; a journal stores it like a file
	Missing string               `json:"-"`               // why Text cannot be read; empty if it can

	// Repeats says that the run repeats a turn, as a replay does. It is no turn of the session itself.
	Repeats bool `json:"repeats,omitempty"`
}

// A StoredTurn is a turn of a session as a store has it.
type StoredTurn struct {
	SessionTurn
	Run     string
	Began   time.Time
	History *History
	Busy    error // another process, or this one, works on it; nil if none does
}

// A SessionStore is a [Store] that has sessions.
type SessionStore interface {
	Store

	// LoadSession returns the turns of the session that a run is a turn of, in order. The run may be
	// named as for LoadRun; the ID of the session is that of the run of its first turn.
	LoadSession(ctx context.Context, run string) ([]StoredTurn, error)
}
