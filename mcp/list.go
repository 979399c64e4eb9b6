package mcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/oneline"
)

// Bounds on what a server may offer.
const (
	maxTools      = 256
	maxDefinition = 64 << 10 // bytes of one definition
	maxPages      = 64       // of one list
)

// choose returns the definitions of the tools that the server offers and the caller allows, by the
// server's names.
func (s *Server) choose(ctx context.Context, c *connection) ([]namedDefinition, error) {
	tools, err := s.offered(ctx, c)
	if err != nil {
		return nil, err
	}
	entries := s.Allow
	if entries == nil {
		entries = slices.Sorted(maps.Keys(tools))
	}
	found, err := s.find(entries, tools)
	if err != nil {
		return nil, err
	}
	chosen := make([]namedDefinition, len(entries))
	for i, name := range namesOf(s.Name, entries) {
		d, err := definitionOf(found[i].tool)
		switch {
		case err != nil:
			return nil, fmt.Errorf("mcp server %q: tool %q: %w", s.Name, d.Name, err)
		case found[i].twice:
			return nil, fmt.Errorf("mcp server %q: it lists the tool %q twice, with different definitions; leave it out of Allow", s.Name, d.Name)
		case len(d.Schema)+len(d.Description) > maxDefinition:
			return nil, fmt.Errorf("mcp server %q: tool %q: the definition is larger than %d bytes; leave it out of Allow", s.Name, d.Name, maxDefinition)
		}
		chosen[i] = namedDefinition{name, d}
	}
	slices.SortFunc(chosen, func(a, b namedDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return chosen, nil
}

// An offer is a tool that a server lists.
type offer struct {
	tool   *sdk.Tool
	digest digest
	twice  bool // it is listed again, with another definition
}

// offered returns the tools that the server lists, by its names of them.
func (s *Server) offered(ctx context.Context, c *connection) (map[string]*offer, error) {
	tools := map[string]*offer{}
	return tools, s.eachTool(ctx, c, func(t *sdk.Tool) error {
		d, err := definitionOf(t)
		if err != nil {
			return fmt.Errorf("mcp server %q: tool %q: %w", s.Name, t.Name, err)
		}
		if o := tools[t.Name]; o != nil {
			o.twice = o.twice || o.digest != d.digest()
			return nil
		}
		if len(tools) == maxTools {
			return fmt.Errorf("mcp server %q: offers more than %d tools", s.Name, maxTools)
		}
		tools[t.Name] = &offer{tool: t, digest: d.digest()}
		return nil
	})
}

// eachTool calls visit with each tool that the server lists, page by page.
func (s *Server) eachTool(ctx context.Context, c *connection, visit func(*sdk.Tool) error) error {
	cursor, seen := "", map[string]bool{}
	for page := 1; ; page++ {
		res, err := await(ctx, func() (*sdk.ListToolsResult, error) {
			return c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		})
		if err != nil {
			return s.failed(ctx, c, withoutRequest(err))
		}
		c.heard()
		for _, t := range res.Tools {
			if err := visit(t); err != nil {
				return err
			}
		}
		switch cursor = res.NextCursor; {
		case cursor == "":
			return nil
		case seen[cursor]:
			return fmt.Errorf("mcp server %q: tools/list does not end: the cursor %q repeats", s.Name, oneline.Of(s.masks().Text(cursor)))
		case page == maxPages:
			return fmt.Errorf("mcp server %q: tools/list does not end: it has more than %d pages", s.Name, maxPages)
		}
		seen[cursor] = true
	}
}

// find returns the tool that each entry of Allow means: the one that has exactly this name, or
// else the only one whose name becomes the entry.
func (s *Server) find(entries []string, tools map[string]*offer) (found []*offer, err error) {
	var missing []string
	meant := map[string]string{}
	for _, entry := range entries {
		names := []string{entry}
		if tools[entry] == nil {
			names = slices.DeleteFunc(slices.Sorted(maps.Keys(tools)), func(name string) bool { return !mayMean(entry, s.Name, name) })
		}
		switch {
		case len(names) == 0:
			missing = append(missing, entry)
			continue
		case len(names) > 1:
			return nil, &AmbiguousToolError{Server: s.Name, Entry: entry, Tools: names}
		}
		if other, twice := meant[names[0]]; twice {
			return nil, fmt.Errorf("mcp server %q: Allow: %q and %q are the same tool; remove one of them", s.Name, other, entry)
		}
		meant[names[0]], found = entry, append(found, tools[names[0]])
	}
	if len(missing) > 0 {
		return nil, &MissingToolsError{Server: s.Name, Missing: missing, Offered: slices.Sorted(maps.Keys(tools))}
	}
	return found, nil
}

// A MissingToolsError reports tools of [Server].Allow that the server does not have.
type MissingToolsError struct {
	Server  string
	Missing []string // in the order of Allow
	Offered []string // what the server has, sorted
}

// Error names the tools that are missing.
func (e *MissingToolsError) Error() string {
	names := fmt.Sprintf("%q", e.Missing)
	return fmt.Sprintf("mcp server %q: Allow: the server has no tool %s", e.Server, names[1:len(names)-1])
}

// An AmbiguousToolError reports an entry of [Server].Allow that no tool has as its name, and that
// the names of several tools become.
type AmbiguousToolError struct {
	Server string
	Entry  string   // of Allow
	Tools  []string // the server's own names, sorted
}

// Error names the tools.
func (e *AmbiguousToolError) Error() string {
	return fmt.Sprintf("mcp server %q: Allow: %q may be any of the tools %q; write one of these", e.Server, e.Entry, e.Tools)
}
