package pick

import (
	"maps"
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// places collects paths without doubles, at most [MaxPaths].
type places struct {
	paths []task.Path
	seen  map[task.Path]bool
}

// add takes a path; only one through an array can come twice.
func (p *places) add(path []byte, repeats bool) {
	if len(p.paths) >= MaxPaths || p.seen[task.Path(path)] {
		return
	}
	one := task.Path(path)
	p.paths = append(p.paths, one)
	if repeats {
		if p.seen == nil {
			p.seen = make(map[task.Path]bool)
		}
		p.seen[one] = true
	}
}

// step descends to a member in the path that reports name.
func (w *walker) step(name string) {
	w.path = append(append(w.path, '/'), naming.Escape(name)...)
}

// report adds a place that is selected as a whole or not at all.
func (w *walker) report(got amount) {
	switch got {
	case none:
		w.dropped.add(w.path, w.arrays > 0)
	case all:
		w.kept.add(w.path, w.arrays > 0)
	}
}

// reportRoot adds the root if it was granted as such. If nothing is selected, it adds the
// parts of the root instead.
func (w *walker) reportRoot(v any, got amount) {
	object, _ := v.(map[string]any)
	array, _ := v.([]any)
	switch {
	case got == none && len(object) > 0:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			w.step(name)
			w.report(got)
			w.path = w.path[:0]
		}
	case got == none && len(array) > 0:
		w.dropped.add([]byte("/*"), false)
	default:
		w.report(got)
	}
}

// unmatched returns the allow paths that match nothing, and those of them that met containers.
func (w *walker) unmatched() (paths, containers []task.Path) {
	for i, p := range w.allow {
		if w.met[i] != metMatch {
			paths = append(paths, p.text)
		}
		if w.met[i] == metContainer {
			containers = append(containers, p.text)
		}
	}
	slices.Sort(paths)
	slices.Sort(containers)
	return slices.Compact(paths), slices.Compact(containers)
}
