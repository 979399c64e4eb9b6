package tool

import (
	"errors"
	"io"
	"slices"
	"sync"
)

// Shared holds resources that the calls of one attempt at a task share. The team closes it
// when the attempt ends. It is safe for concurrent use; the zero value is empty.
type Shared struct {
	mu     sync.Mutex // guards the fields below
	values map[any]*sharedValue
	order  []*sharedValue
	closed bool
}

// A sharedValue is opened by the first call that needs it.
type sharedValue struct {
	once  sync.Once
	value io.Closer
	err   error
}

// ErrClosed reports a call that outlived its attempt.
var ErrClosed = errors.New("tool: the attempt has ended")

// Get returns the value of a key. The first call for a key runs open, and concurrent calls
// wait for it. If open fails, later calls get the same error. open must not call Get with the
// same key.
func (s *Shared) Get(key any, open func() (io.Closer, error)) (io.Closer, error) {
	s.mu.Lock()
	v, ok := s.values[key]
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, ErrClosed
	case !ok:
		if v = (&sharedValue{err: errPanicked}); s.values == nil {
			s.values = map[any]*sharedValue{}
		}
		s.values[key] = v
		s.order = append(s.order, v)
	}
	s.mu.Unlock()
	v.once.Do(func() { v.value, v.err = open() })
	return v.value, v.err
}

// errPanicked is the error of a value whose open panicked.
var errPanicked = errors.New("tool: open panicked")

// Close closes all values, the newest first. Values that are being opened are closed once
// they are open. A second Close does nothing.
func (s *Shared) Close() error {
	s.mu.Lock()
	order := s.order
	s.order, s.values, s.closed = nil, nil, true
	s.mu.Unlock()
	var errs []error
	for _, v := range slices.Backward(order) {
		v.once.Do(func() { v.err = ErrClosed }) // waits for a running open
		if v.value != nil {
			errs = append(errs, v.value.Close())
		}
	}
	return errors.Join(errs...)
}
