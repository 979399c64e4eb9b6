package journal

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/runteam/runteam/internal/audit"
)

// Options say how a journal is kept. The zero value keeps only keyed digests of
// what is above confidential, and has a chain of decisions without a key.
type Options struct {
	Key      []byte           // 32 bytes: what is above confidential is encrypted with it; nil keeps only keyed digests of that
	AuditKey []byte           // of the chain of decisions, 16 bytes at least; nil means none
	ReadOnly bool             // changes nothing, and works in a folder that cannot be written
	Now      func() time.Time // nil means time.Now
	Holder   *Holder          // who takes up runs; nil means this process
	Logger   *slog.Logger     // nil discards

	// UseReserve lets [Open] use the room that the journal keeps for [Journal.Remove]
	// if the disk is full, so that runs can be removed to make room.
	UseReserve bool

	// Hurry, once it is closed, limits each wait for a file that other processes
	// keep locked to 1 s. Without it a wait takes up to 30 s.
	Hurry <-chan struct{}

	busy  time.Duration // the longest wait for a locked file; zero means 30 s
	pages int           // how many pages the file may have; zero means any number
}

// Check returns what is wrong with the keys: Key has another length than
// [KeyBytes], or AuditKey can be guessed. A journal with such options is not made.
func (o *Options) Check() error {
	if n := len(o.AuditKey); n > 0 && n < audit.MinKey {
		return fmt.Errorf("a key of the chain of %d bytes can be guessed: give one of %d or more", n, audit.MinKey)
	}
	return checkKey(o.Key)
}

// withDefaults returns a copy with every default filled in.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Holder == nil {
		o.Holder = new(ThisHolder())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.busy == 0 {
		o.busy = 30 * time.Second
	}
	return o
}
