package flowtest

import (
	"bytes"
	"sync"
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

// Reset forgets what was written.
func (w *buffer) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Reset()
}
