package pick

import (
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Intersect returns allow paths that select what both lists select, but for those above 256. Paths that are not valid
// select nothing.
func Intersect(a, b []task.Path) (both []task.Path) {
	first, err := parseAll(a, parseAllow)
	if err != nil {
		return nil
	}
	second, err := parseAll(b, parseAllow)
	if err != nil {
		return nil
	}
	for _, p := range meetOf(first, second) {
		both = append(both, p.path())
	}
	return both
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
