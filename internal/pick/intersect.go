package pick

import (
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Intersect returns allow paths that select what both lists select, but for those above 256. Paths that are not valid
// select nothing. A number is the name of a folder, since these are paths of files.
func Intersect(a, b []task.Path) (both []task.Path) {
	first, err := parseAll(a, parseFiles)
	if err != nil {
		return nil
	}
	second, err := parseAll(b, parseFiles)
	if err != nil {
		return nil
	}
	for _, p := range meetOf(first, second) {
		both = append(both, p.path())
	}
	return both
}

// Below returns what allow paths of files select in a folder, as paths in that folder; [task.Whole] for all of it.
// A path that names the folder itself selects no file in it.
func Below(paths []task.Path, folder ...string) (below []task.Path) {
	patterns, err := parseAll(paths, parseFiles)
	if err != nil {
		return nil
	}
	for _, p := range patterns {
		switch {
		case !p.leadsTo(folder):
		case len(p.steps) > len(folder):
			below = append(below, pattern{steps: p.steps[len(folder):], deep: p.deep}.path())
		case p.deep:
			return []task.Path{task.Whole}
		}
	}
	return below
}

// leadsTo reports whether the steps of a pattern are those to a folder, as far as both go.
func (p pattern) leadsTo(folder []string) bool {
	for k, s := range p.steps[:min(len(p.steps), len(folder))] {
		if !s.any && s.name != Exact(folder[k]) {
			return false
		}
	}
	return true
}

// path returns the allow path of a pattern.
func (p pattern) path() task.Path {
	var b strings.Builder
	for _, s := range p.steps {
		if s.any {
			b.WriteString("/*")
		} else {
			b.WriteString(naming.Pointer(s.name))
		}
	}
	if p.deep && len(p.steps) > 0 {
		b.WriteString("/**")
	}
	return task.Path(b.String())
}
