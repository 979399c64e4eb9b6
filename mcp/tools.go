package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/tool"
)

// Tools connects to the server, reads the definitions of its tools, and disconnects. It gives
// up after Timeout of Options, or 30 seconds if that is zero.
//
// The tools are named SERVER__TOOL, in at most 64 bytes. A name of letters, digits, _ and - stays
// as it is. In any other name, _ replaces other characters. A digest of the server's own name
// follows if that would make two names equal, and if a name is too long, has no letter or digit,
// or has characters beyond ASCII. A name depends on the entries of Allow alone, or on all tools if
// Allow is nil; the order in which the server lists its tools makes no difference.
func (s *Server) Tools(ctx context.Context) ([]*tool.Tool, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ctx, cancel := s.untilTimeout(ctx)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	chosen, err := s.choose(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &pinned{server: s, digests: make(map[string]digest, len(chosen))}
	for i := range chosen {
		p.digests[chosen[i].Name] = chosen[i].digest()
	}
	return s.toolsOf(chosen, p.call)
}

// Declared returns the tools of Allow without connecting to the server, for the check of a
// plan: they have no descriptions, accept any object, and their calls fail.
func (s *Server) Declared() ([]*tool.Tool, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	defined := make([]namedDefinition, len(s.Allow))
	for i, name := range namesOf(s.Name, s.Allow) {
		defined[i] = namedDefinition{name, definition{Name: s.Allow[i], Schema: json.RawMessage(`{"type":"object"}`)}}
	}
	return s.toolsOf(defined, func(context.Context, string, tool.Call) (tool.Result, error) {
		return tool.Result{}, fmt.Errorf("mcp server %q: %w", s.Name, errNotConnected)
	})
}

// errNotConnected reports a call of a tool that is only declared.
var errNotConnected = errors.New("not connected; this tool is only declared")

// toolsOf returns tools with these definitions, whose calls call makes.
func (s *Server) toolsOf(defined []namedDefinition, call func(ctx context.Context, name string, c tool.Call) (tool.Result, error)) ([]*tool.Tool, error) {
	tools := make([]*tool.Tool, 0, len(defined))
	for _, d := range defined {
		t := &tool.Tool{
			Name: d.name, Description: s.masks().Text(d.Description), Parameters: parametersOf(s.masks().JSON(d.Schema)),
			Foreign: true, Definition: d.digest().String(), Program: s.program(), Options: s.Options,
		}
		t.State = cmp.Or(s.Options.State, "mcp "+cmp.Or(s.URL, s.Name))
		t.Stateful = !s.Stateless || s.SharedSession || s.Options.Stateful
		t.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) { return call(ctx, d.Name, c) }
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("mcp server %q: %w; to leave the tool %q out, list the others in Allow", s.Name, err, d.Name)
		}
		if i := slices.IndexFunc(tools, func(o *tool.Tool) bool { return o.Name == t.Name }); i >= 0 {
			return nil, fmt.Errorf("mcp server %q: its tools %q and %q both have the name %q; leave one of them out of Allow", s.Name, defined[i].Name, d.Name, t.Name)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
