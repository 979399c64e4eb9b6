package connect

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/specfile"
)

// Tools connects to the MCP servers of a spec. A server that cannot be used is an error of the
// environment; a tool that a server does not have is one of the spec.
func Tools(ctx context.Context, file *specfile.File) error {
	return ServerError(ctx, file.Tools.Connect(ctx))
}

// ServerError returns the error of connecting to MCP servers with its kind.
func ServerError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, specfile.ErrServer):
		return &exit.Error{Kind: exit.KindRuntime, Err: err}
	}
	return err
}
