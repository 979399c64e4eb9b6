package openai

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// callTimeout bounds a call whose context has no deadline.
const callTimeout = 5 * time.Minute

// Call sends one request and reads the whole reply, as [llm.Model] requires. It requests a
// stream if emit is not nil. If the server answers in one piece, emit gets one delta. A
// stream that was not requested is read to its end.
//
// The deadline of ctx bounds the call. Without one, the call fails after 5 minutes with an
// [llm.Error] of kind "timeout".
func (m *Model) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if m == nil || m.client == nil {
		return llm.Response{}, &llm.Error{Kind: callfault.UnknownModel, Err: llm.ErrNoModel}
	}
	if ctx == nil {
		return llm.Response{}, errors.New("openai: the context is nil; use context.Background")
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, callTimeout, m.fault(callfault.Timeout, fmt.Sprintf("the call took longer than %v", callTimeout)))
		defer cancel()
	}
	res, err := m.callAdapted(ctx, req, emit)
	if err == nil {
		m.answered.Store(true)
		return res, nil
	}
	err = m.explain(ctx, req, err)
	// An endpoint that answered before is at this address, so it is out of order
	// for now. Not errors.AsType: the cause of a context belongs to the caller.
	if e, ok := err.(*llm.Error); ok && e.Kind == callfault.NotFound && m.answered.Load() {
		e.Kind = callfault.ServerError
	}
	return llm.Response{}, err
}

// fault returns an error of this model.
func (m *Model) fault(kind string, message string) *llm.Error {
	return &llm.Error{Kind: kind, Endpoint: m.base, Model: m.name, Message: message}
}

// explain returns the error to report for a failed call: that of emit, else the end of the
// context, else the failure of the call.
func (m *Model) explain(ctx context.Context, req llm.Request, err error) error {
	if refused, ok := errors.AsType[*emitError](err); ok {
		return fmt.Errorf("stream of model %q: %w", m.name, refused.err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("call of model %q: %w", m.name, context.Cause(ctx))
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e
	}
	return m.unreachable(req, err)
}
