package task

import (
	"fmt"

	"github.com/runteam/runteam/internal/naming"
)

// An outsideName is a name in spec i of a scope that no scope around it knows. It may be an ID.
type outsideName struct {
	in    *scope
	i     int
	path  string // where it is, below the spec
	where string // the same for people
	name  string
}

// outsideNames are those that were found so far.
type outsideNames []outsideName

// find returns the title that a name in spec i means.
func (n *outsideNames) find(name string, in *scope, i int, path, where string) string {
	for s := in; s != nil; s = s.outer {
		if title, ok := s.names[naming.Normalize(name)]; ok && s.outer != nil {
			return title
		} else if ok {
			return name
		}
	}
	*n = append(*n, outsideName{in, i, path, where, name})
	return name
}

// check reports names of single rounds and items. Their tasks are read by the tasks of the
// same round or item, and by the loop, the list or the judges that they belong to: others would
// read a draft that the loop goes on to replace, or that the judges reject.
func (n outsideNames) check(u *unroller) {
	if len(n) == 0 {
		return
	}
	parts := make(map[string]*Instance, 2*len(u.out))
	for k := range u.out {
		if s := &u.out[k]; s.Instance != nil && s.Title != s.Instance.Title {
			parts[naming.Normalize(s.Title)], parts[string(NewID(s.Title))] = s.Instance, s.Instance
		}
	}
	for _, o := range n {
		part := parts[naming.Normalize(o.name)]
		if part == nil {
			continue // it is an ID, or the name of no task, which is reported when names are resolved
		}
		hint := "depend on " + naming.Quote(part.Loop) + ", whose result is that of its last round"
		if len(part.Lists) > 0 {
			hint = "depend on all items with each, or on the task that does"
		}
		u.bad(o.in, o.i, o.path, fmt.Sprintf("%s%s is only one round or item", o.where, naming.Quote(o.name)), hint)
	}
}
