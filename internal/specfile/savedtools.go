package specfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// tools writes the tools of all files, without literal credentials.
func (s *saver) tools() *node {
	all := objectNode()
	for _, e := range s.f.Tools.list {
		n := objectNode()
		for _, k := range e.fields.place.keys {
			switch value := e.fields.own(k.name); {
			case k.name == "mcp" && value != nil:
				n.set(k.name, s.program("tool "+quote(e.name)+": ", value))
			case k.name == "readable" && value != nil:
				n.set(k.name, s.movedAll("tool "+quote(e.name)+": ", value))
			default:
				n.set(k.name, value)
			}
		}
		all.set(e.name, n)
	}
	return all.orNil()
}

// hasTools reports whether an agent has tools, its own or those of the runtime.
func (f *File) hasTools() bool {
	return len(f.Config.Edges) > 0 || slices.ContainsFunc(f.Agents, func(a Agent) bool { return len(a.Member.Tools) > 0 || a.Member.Spawn != nil })
}

// toolsNode returns the names of the tools of a task, or of a judge, as a spec writes them; nil if it
// names none, or no agent has any.
func toolsNode(s *saver, names []string) *node {
	if names == nil || !s.f.hasTools() {
		return nil
	}
	list := listNode()
	for _, name := range names {
		list.add(textNode(s.f.Tools.written(name)))
	}
	return list
}

// program writes the settings of an MCP server or of an agent that is a command.
func (s *saver) program(who string, n *node) *node {
	out := objectNode()
	for _, value := range n.parts() {
		switch value.key {
		case "command", "cwd":
			path := value
			if value.key == "cwd" || hasSlash(value.text) {
				path = s.moved(who+value.key, value)
			}
			out.set(value.key, path)
		case "readable":
			out.set(value.key, s.movedAll(who, value))
		case "args":
			kept := listNode()
			for i, one := range value.parts() {
				if !isSecretArgument(value, i) || s.named(fmt.Sprintf("%sargs[%d]", who, i), one) {
					kept.add(one)
				}
			}
			out.set(value.key, kept)
		case "env", "headers":
			kept := objectNode()
			for _, one := range value.parts() {
				if !soundsSecret(one.key) || s.named(who+value.key+": "+one.key, one) {
					kept.set(one.key, one)
				}
			}
			out.set(value.key, kept.orNil())
		default:
			out.set(value.key, value)
		}
	}
	return out
}

// movedAll writes the paths of a list as [saver.moved] does.
func (s *saver) movedAll(who string, n *node) *node {
	list := listNode()
	for _, item := range n.parts() {
		list.add(s.moved(who+n.key, item))
	}
	return list
}

// moved writes a path from the folder of the spec as a path from the folder of the plan, which
// need not contain it. It reports one that cannot be written.
func (s *saver) moved(what string, n *node) *node {
	path, err := s.movedPath(n)
	if err != nil {
		s.found = append(s.found, finding{n.src, n.at, Problem{
			Message: fmt.Sprintf("%s: cannot be named from %s, the folder of the plan: %v", what, quote(s.dir), err), Hint: "save the plan beside " + filepath.Base(n.src.path), Err: ErrRead,
		}})
	}
	return path
}

func (s *saver) movedPath(n *node) (*node, error) {
	if filepath.IsAbs(n.text) || strings.HasPrefix(n.text, opening) {
		return n, nil
	}
	rel, err := s.relativeToPlan(n.src.dir)
	switch {
	case err != nil:
		return n, err
	case rel == ".":
		return n, nil
	case strings.Contains(rel, opening):
		return n, errors.New("a folder on the way is called ${…, which a spec would take for a variable")
	}
	return textNode("./" + rel + "/" + strings.TrimPrefix(n.text, "./")), nil
}

// relativeToPlan returns a path relative to the folder of the plan.
func (s *saver) relativeToPlan(to string) (string, error) {
	from, err := s.p.options.Dir.Abs(s.dir)
	if err != nil {
		return "", err
	}
	if to, err = s.p.options.Dir.Abs(to); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}
