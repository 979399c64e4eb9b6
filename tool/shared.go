package tool

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Shared holds resources that the calls of one attempt at a task share. The team closes it
// when the attempt ends. It is safe for concurrent use; the zero value is empty.
type Shared struct {
	mu     sync.Mutex // guards the fields below
	values map[any]*sharedValue
	open   []io.Closer // in the order in which they were opened
	closed bool
}

// A sharedValue is opened by the first call that needs it.
type sharedValue struct {
	done  chan struct{} // closed when open has returned
	value io.Closer
	err   error
}

// ErrClosed reports a call that outlived its attempt.
var ErrClosed = errors.New("tool: the attempt has ended")

// errPanicked is the error of a value whose open panicked.
var errPanicked = errors.New("tool: open panicked")

// Get returns the value of a key. The first call for a key runs open, and concurrent calls
// wait for it. If open fails, later calls get the same error. open must not call Get with the
// same key. A value that is opened after Close is closed at once.
func (s *Shared) Get(key any, open func() (io.Closer, error)) (io.Closer, error) {
	s.mu.Lock()
	v, known := s.values[key]
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case known:
		s.mu.Unlock()
		<-v.done
		return v.value, v.err
	}
	v = &sharedValue{done: make(chan struct{}), err: errPanicked}
	if s.values == nil {
		s.values = map[any]*sharedValue{}
	}
	s.values[key] = v
	s.mu.Unlock()
	defer close(v.done) // also if open panics
	value, err := open()
	s.mu.Lock()
	late := s.closed
	if !late && value != nil {
		s.open = append(s.open, value)
	}
	s.mu.Unlock()
	if late && value != nil {
		value, err = nil, errors.Join(ErrClosed, closeOne(value))
	}
	v.value, v.err = value, err
	return v.value, v.err
}

// Close closes all values, the newest first. It does not wait for values that are being
// opened. A second Close does nothing.
func (s *Shared) Close() error {
	s.mu.Lock()
	open := s.open
	s.open, s.closed = nil, true
	s.mu.Unlock()
	var errs []error
	for _, value := range slices.Backward(open) {
		errs = append(errs, closeOne(value))
	}
	return errors.Join(errs...)
}

// closeOne closes a value. A panic is an error, so that the other values are closed too.
func closeOne(value io.Closer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool: Close panicked: %v", p)
		}
	}()
	return value.Close()
}
