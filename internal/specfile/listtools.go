package specfile

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/tool"
)

// A ListedTool is a tool that a spec declares or that its agents have.
type ListedTool struct {
	*tool.Tool
	Written string   // its name in the spec: SERVER/TOOL for a tool of an MCP server
	Allowed bool     // false if its server has no allow
	Agents  []string // that have it
	Trusted []string // those of them that may call it from untrusted context, if its effect is external
}

// List connects to the MCP servers, also those that no agent uses, and returns all tools:
// entries in the order written, then built-in tools without one. of restricts it to the tool or the
// entry of this name; empty means all. Close the sessions with [Toolbox.Close].
func (b *Toolbox) List(ctx context.Context, of string) ([]ListedTool, error) {
	entries := slices.Clone(b.list)
	for _, name := range builtIns() {
		if e := b.entries[name]; e != nil && !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	if of != "" {
		entries = slices.DeleteFunc(entries, func(e *toolEntry) bool { return !e.has(of) })
	}
	if err := connectAll(ctx, entries, b.file.Config.Logger); err != nil {
		return nil, err
	}
	var all []ListedTool
	for _, e := range entries {
		for _, t := range e.tools {
			one := ListedTool{Tool: t, Allowed: !e.wrong, Agents: b.agentsWith(t)}
			if e.wrong {
				one.Written = e.name + "/" + strings.TrimPrefix(t.Name, e.name+"__")
			} else {
				one.Written = b.written(t.Name)
			}
			for i := range b.file.Agents {
				if m := &b.file.Agents[i].Member; slices.Contains(m.AllowUntrusted, t.Name) {
					one.Trusted = append(one.Trusted, m.Name)
				}
			}
			if of == "" || of == e.name || of == t.Name || of == one.Written {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// Names returns the names of the tools and servers, as a spec writes them. It starts no server.
func (b *Toolbox) Names() (names []string) {
	for _, e := range b.entries {
		names = append(names, e.name)
		for name := range e.allowed {
			names = append(names, e.name+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// has reports whether a name may be that of a tool of the entry.
func (e *toolEntry) has(name string) bool {
	return name == e.name || strings.HasPrefix(name, e.name+"/") || strings.HasPrefix(name, e.name+"__")
}

// agentsWith returns the names of the agents that have a tool.
func (b *Toolbox) agentsWith(t *tool.Tool) (names []string) {
	for i := range b.file.Agents {
		if m := &b.file.Agents[i].Member; slices.Contains(m.Tools, t) {
			names = append(names, m.Name)
		}
	}
	return names
}

// connectAll connects to the servers of entries, a few at a time. What they do later is logged.
func connectAll(ctx context.Context, entries []*toolEntry, log *slog.Logger) error {
	errs := make([]error, len(entries))
	var group errgroup.Group
	group.SetLimit(maxConnecting)
	for i, e := range entries {
		if e.server != nil {
			group.Go(func() error {
				errs[i] = e.connect(ctx, log)
				return nil
			})
		}
	}
	_ = group.Wait()
	var found []finding
	for i, e := range entries {
		found = append(found, e.findings(errs[i])...)
	}
	if len(found) > 0 {
		return &Error{Problems: locate(found)}
	}
	return nil
}
