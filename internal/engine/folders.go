package engine

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// A folder is what tasks have made of the files of a workspace, one after the other: a list of layers, each of one task or
// input. What a reader gets is made from the layers that the gate delivers to it, so a version that it may not have is not
// there for it.

// A folderLayer is a layer of the folder that an attempt is offered.
type folderLayer struct {
	plan.FileLayer
	source   gate.Source
	task     *task.Task // nil of an input
	title    string     // of the task, or the name of the input
	envelope *envelope.Envelope
	given    []plan.FileLayer // what the task that made it was offered
	offer    int              // an index into the offers to the attempt
}

// follows reports whether the task that made a layer was given a file of another layer.
func (l *folderLayer) follows(o *folderLayer, name string) bool {
	if l.envelope == nil || o.envelope == nil || !slices.Contains(l.envelope.Header().DerivedFrom, o.envelope.ID()) {
		return false
	}
	return slices.ContainsFunc(l.given, func(g plan.FileLayer) bool {
		return g.IsOf(&o.FileLayer) && grants(g.Paths, filetree.Tree{name: new("")})
	})
}

// grants reports whether paths select a file of a folder.
func grants(paths []task.Path, files filetree.Tree) bool {
	s, err := pick.Everything().Only(paths...)
	return err == nil && len(files) > 0 && (s.Whole() || s.Apply(files.Value()).Any)
}

// layersOf returns the layers that task i was offered, or is if its dependencies have ended.
func (r *results) layersOf(i int) []plan.FileLayer {
	if layers, known := r.layers[i]; known {
		return layers
	}
	var layers []plan.FileLayer
	ups := r.plan.Graph.Upstream(i)
	for j := range r.branches.granted(i) {
		if len(r.plan.Graph.Task(i).DependsOn[j].Files) > 0 {
			layers = plan.MergeLayers(layers, r.plan.LayersVia(i, j, r.folderOf(int(ups[j]))))
		}
	}
	r.layers[i] = layers
	return layers
}

// folderOf returns the folder that a task has left: nothing if it has failed. That of a loop is that of its last round.
func (r *results) folderOf(i int) []plan.FileLayer {
	t := r.plan.Graph.Task(i)
	switch {
	case r.queue.Status(i) != task.Completed:
		isOther := func(l plan.FileLayer) bool { return l.Task != i }
		return slices.DeleteFunc(r.plan.FolderOf(i, nil), isOther) // which says why there are no files
	case !plan.Joins(t):
		return r.plan.FolderOf(i, r.layersOf(i))
	}
	ups := r.plan.Graph.Upstream(i)
	return r.plan.FolderOf(i, r.layersOf(r.branches.alternative(ups[:len(ups)-t.Reads])))
}

// layer returns a layer with its files; they are nil if there are none.
func (r *results) layer(l plan.FileLayer) folderLayer {
	out := folderLayer{FileLayer: l, source: l.Source(r.plan)}
	if l.Task < 0 {
		out.title, out.envelope = out.source.Name, gate.Raise(r.inputs[l.Input], l.Floor)
		return out
	}
	out.task = r.plan.Graph.Task(l.Task)
	out.title, out.envelope, out.given = out.task.Title, gate.Raise(r.tasks[l.Task].Files, l.Floor), r.folderOf(l.Task)
	return out
}

// offerFolder offers an attempt at task i the files of its dependencies, layer by layer.
func offerFolder(a *attempt, r *results, i int) {
	for _, l := range r.layersOf(i) {
		layer := r.layer(l)
		layer.offer = len(a.offers)
		o := gate.Offer{Source: layer.source, Title: layer.title, Envelope: layer.envelope, As: gate.AsFiles, Folder: l.At, Optional: true}
		if l.Task >= 0 {
			from := r.plan.Graph.Task(l.Task)
			o.Title, o.Assignee, o.Status = plan.TitleInPrompts(plan.ReadBy(r.plan, i), from, plan.WrittenTitle(from)), from.Assignee, r.queue.Status(l.Task)
		}
		a.filesOffered++
		a.folder, a.grants, a.offers = append(a.folder, layer), append(a.grants, r.plan.LayerGrant(i, &l)), append(a.offers, o)
	}
}

// useFolder notes that an attempt was offered an input as a folder.
func useFolder(a *attempt, r *results, name, at string) {
	l := r.layer(plan.FileLayer{Task: -1, Input: r.plan.InputIndex[strings.ToLower(name)], At: at, Direct: true})
	l.offer = len(a.offers) - 1
	a.folder = append(a.folder, l)
}

// checkRequired returns an error if something is withheld of the folder that a required dependency leaves, and nothing
// is left of it.
func (a *attempt) checkRequired() error {
	left, withheld := map[int]bool{}, map[int]*gate.Decision{}
	for i := range a.folder {
		s := &a.sealed[a.folder[i].offer]
		tree, _ := s.Files()
		for _, j := range a.folder[i].Via {
			if left[j] = left[j] || len(tree) > 0; s.Withheld() && (withheld[j] == nil || a.folder[i].Direct) {
				withheld[j] = s.Decision()
			}
		}
	}
	for j := range a.task.DependsOn {
		if withheld[j] != nil && !left[j] && !a.task.DependsOn[j].Optional {
			return &gate.WithheldError{Decision: *withheld[j]}
		}
	}
	return nil
}

// mergeFolder returns the files that were delivered to the attempt, at their paths in the workspace, and the IDs of what
// they are from. The newest version of a file counts: that of a task which was given the other ones.
//
// What two tasks changed, neither of which was given the version of the other, is as their dependent wants it.
func mergeFolder(sealed []gate.Sealed, folder []folderLayer, on []task.Ref) (filetree.Tree, []envelope.ID, error) {
	var ids []envelope.ID
	versions := map[string][]version{}
	for k := range folder {
		tree, at := sealed[folder[k].offer].Files()
		if tree == nil {
			continue
		}
		ids = append(ids, folder[k].envelope.ID())
		for name, text := range tree.Under(at) {
			if name != brief.HistoryDir && name != brief.OutputsDir && !strings.HasPrefix(name, brief.HistoryDir+"/") { // the workspace has its own
				versions[name] = append(versions[name], version{&folder[k], text})
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil, nil
	}
	newest := map[string]version{}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		left := newestOf(name, versions[name])
		if len(left) > 1 {
			var err error
			if left, err = choose(name, left, on); err != nil {
				return nil, nil, err
			}
		}
		for _, v := range left {
			at := name
			if len(left) > 1 {
				at = besides(name, v.of.title)
			}
			_, taken := versions[at]
			if _, twice := newest[at]; at != name && (taken || twice) {
				return nil, nil, fmt.Errorf("%w: there is a file %s already: rename it, or name the task whose version of %s counts in onConflict", ErrFilesConflict, at, name)
			}
			if v.text != nil {
				newest[at] = v
			}
		}
	}
	files, err := withoutReplaced(newest)
	return files, ids, err
}

// A version is a file of a layer; its text is nil if the file was removed.
type version struct {
	of   *folderLayer
	text *string
}

// newestOf returns the version of a file that follows from all others, or several that differ if there is none.
func newestOf(name string, all []version) []version {
	left := slices.DeleteFunc(slices.Clone(all), func(v version) bool {
		return slices.ContainsFunc(all, func(o version) bool { return o.of != v.of && o.of.follows(v.of, name) })
	})
	if slices.ContainsFunc(left, func(v version) bool { return !filetree.SameText(v.text, left[0].text) }) {
		return left
	}
	return left[:1]
}

// choose returns the versions of a file that a task gets of several, as one of the dependencies that grant them says.
func choose(name string, left []version, on []task.Ref) ([]version, error) {
	setting := ""
	for _, v := range left {
		for _, j := range v.of.Via {
			setting = cmp.Or(setting, on[j].OnConflict)
		}
	}
	if setting == task.KeepBoth {
		return left, nil
	}
	if k := slices.IndexFunc(left, func(v version) bool { return v.of.task != nil && plan.IsNamed(v.of.task, setting) }); k >= 0 {
		return left[k : k+1], nil
	}
	return nil, fmt.Errorf("%w: %q and %q have changed %s, and neither was given the version of the other: set onConflict of a dependency to the task whose version counts, or to both", ErrFilesConflict, left[0].of.title, left[1].of.title, name)
}

// besides returns the name of one of several versions of a file.
func besides(name, title string) string {
	ext := path.Ext(name)
	if ext == path.Base(name) {
		ext = "" // a name that begins with a dot
	}
	title = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '-'
	}, title)
	return strings.TrimSuffix(name, ext) + "." + title + ext
}

// withoutReplaced returns files without those that became folders, and without files of folders that became files.
func withoutReplaced(newest map[string]version) (filetree.Tree, error) {
	files := filetree.Tree{}
	for name, v := range newest {
		files[name] = v.text
	}
	for name, v := range newest {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			o, isFile := newest[above]
			switch {
			case !isFile:
			case v.of.follows(o.of, above):
				delete(files, above)
			case o.of.follows(v.of, name):
				delete(files, name)
			default:
				return nil, fmt.Errorf("%w: %s is a file of %q, and a folder of %q", ErrFilesConflict, above, o.of.title, v.of.title)
			}
		}
	}
	return files, nil
}
