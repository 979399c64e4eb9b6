package flowtest

import (
	"bytes"
	"slices"
	"sync"

	"github.com/runteam/runteam/internal/event"
)

// A buffer collects what several goroutines write.
type buffer struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write appends b.
func (w *buffer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

// String returns what was written.
func (w *buffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// Reset removes what was written.
func (w *buffer) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Reset()
}

// A feed collects the events of a run. Subscribers have goroutines of their own.
type feed struct {
	mu     sync.Mutex // guards events
	events []event.Event
}

func (f *feed) add(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

func (f *feed) all() []event.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}
