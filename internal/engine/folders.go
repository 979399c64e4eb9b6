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
	"github.com/runteam/runteam/internal/record"
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
	given    []givenLayer // what the task that made it was offered
	offer    int          // an index into the offers to the attempt
}

// A givenLayer is a layer that the task which made another one was offered.
type givenLayer struct {
	plan.FileLayer
	files pick.Selection // which of them it was granted, and the policy let through
}

// follows reports whether the task that made a layer was given a file of another layer.
func (l *folderLayer) follows(o *folderLayer, name string) bool {
	if l.envelope == nil || o.envelope == nil || !slices.Contains(l.envelope.Header().DerivedFrom, o.envelope.ID()) {
		return false
	}
	if o.At != "." {
		name = strings.TrimPrefix(name, o.At+"/")
	}
	return slices.ContainsFunc(l.given, func(g givenLayer) bool {
		return g.IsOf(&o.FileLayer) && (g.files.Whole() || selects(g.files, name))
	})
}

// selects reports whether a selection has a file of a folder.
func selects(s pick.Selection, name string) bool {
	folder, isFolder := s.Apply(filetree.Tree{name: new("")}.Value()).Value.(map[string]any)
	files, err := filetree.Of(folder)
	return isFolder && err == nil && len(files) > 0
}

// Folders are those that the tasks of a run leave.
type folders struct {
	run    *results
	layers map[int][]plan.FileLayer   // that tasks were offered; see to
	mounts map[task.ID][]record.Mount // of each task with output files: the inputs in its workspace
}

// to returns the layers that task i was offered, or is if its dependencies have ended.
func (f *folders) to(i int) []plan.FileLayer {
	p := f.run.plan
	if len(p.Folders.To(i)) == 0 {
		return nil
	}
	if layers, known := f.layers[i]; known {
		return layers
	}
	var layers []plan.FileLayer
	ups := p.Graph.Upstream(i)
	for j := range f.run.branches.granted(i) {
		if len(p.Graph.Task(i).DependsOn[j].Files) > 0 {
			layers = plan.MergeLayers(layers, p.Folders.Via(i, j, f.leftBy(int(ups[j]))))
		}
	}
	if f.layers == nil {
		f.layers = map[int][]plan.FileLayer{}
	}
	f.layers[i] = layers
	return layers
}

// leftBy returns the folder that a task has left: nothing if it has failed. That of a loop is that of its last round.
func (f *folders) leftBy(i int) []plan.FileLayer {
	p := f.run.plan
	t := p.Graph.Task(i)
	switch {
	case f.run.queue.Status(i) != task.Completed:
		isOther := func(l plan.FileLayer) bool { return l.Task != i }
		return slices.DeleteFunc(p.Folders.LeftBy(i, nil), isOther) // which says why there are no files
	case !plan.Joins(t):
		return p.Folders.LeftBy(i, f.to(i))
	}
	ups := p.Graph.Upstream(i)
	return p.Folders.LeftBy(i, f.to(f.run.branches.alternative(ups[:len(ups)-t.Reads])))
}

// layer returns a layer that is the offer with this index, with its files; they are nil if there are none.
func (f *folders) layer(l plan.FileLayer, offer int) folderLayer {
	r := f.run
	out := folderLayer{FileLayer: l, source: l.Source(r.plan), offer: offer}
	if l.Task < 0 {
		out.title, out.envelope = out.source.Name, gate.Raise(r.inputs[l.Input], l.Floor)
		return out
	}
	out.task = r.plan.Graph.Task(l.Task)
	out.title, out.envelope = out.task.Title, gate.Raise(r.tasks[l.Task].Files, l.Floor)
	for _, given := range f.leftBy(l.Task) {
		out.given = append(out.given, givenLayer{given, given.Delivers(r.plan, l.Task)})
	}
	return out
}

// offer offers an attempt at task i the files of its dependencies, layer by layer.
func (f *folders) offer(a *attempt, i int) {
	r := f.run
	for _, l := range f.to(i) {
		layer := f.layer(l, len(a.offers))
		o := gate.Offer{Source: layer.source, Title: layer.title, Envelope: layer.envelope, As: gate.AsFiles, Folder: l.At, Cache: &r.contents, Optional: true}
		if l.Task >= 0 {
			layer.title = plan.TitleInPrompts(plan.ReadBy(r.plan, i), layer.task, layer.task.Title)
			o.Title, o.Assignee, o.Status = plan.TitleInPrompts(plan.ReadBy(r.plan, i), layer.task, plan.WrittenTitle(layer.task)), layer.task.Assignee, r.queue.Status(l.Task)
		}
		a.given = a.given.with(layer)
		a.given.offered++
		a.grants, a.offers = append(a.grants, l.Grant(r.plan, i)), append(a.offers, o)
	}
}

// use notes that the last offer to an attempt is an input as a folder.
func (f *folders) use(a *attempt, name, at string) {
	l := plan.FileLayer{Task: -1, Input: f.run.plan.InputIndex[strings.ToLower(name)], At: at, Direct: true}
	a.given = a.given.with(f.layer(l, len(a.offers)-1))
}

// givenFiles are the files that an attempt is granted.
type givenFiles struct {
	layers  []folderLayer
	offered int           // how many of the layers are of folders that other tasks leave
	tree    filetree.Tree // the files that were delivered, at their paths in the workspace
	from    []envelope.ID // of what they are from
}

// with returns the files with those of another layer.
func (g *givenFiles) with(l folderLayer) *givenFiles {
	if g == nil {
		g = &givenFiles{}
	}
	g.layers = append(g.layers, l)
	return g
}

// again returns the same layers for another reader.
func (g *givenFiles) again() *givenFiles {
	if g == nil {
		return nil
	}
	return &givenFiles{layers: g.layers, offered: g.offered}
}

// ofOthers returns how many layers are of what other tasks leave.
func (g *givenFiles) ofOthers() int {
	if g == nil {
		return 0
	}
	return g.offered
}

// delivered returns the files that were delivered, and the IDs of what they are from.
func (g *givenFiles) delivered() (filetree.Tree, []envelope.ID) {
	if g == nil {
		return nil, nil
	}
	return g.tree, g.from
}

// take sets the files that were delivered.
func (g *givenFiles) take(sealed []gate.Sealed, on []task.Ref) (err error) {
	if g == nil {
		return nil
	}
	if err := g.checkRequired(sealed, on); err != nil {
		return err
	}
	g.tree, g.from, err = mergeFolder(sealed, g.layers, on)
	return err
}

// checkRequired returns an error if something is withheld of the folder that a required dependency leaves, and nothing
// is left of it.
func (g *givenFiles) checkRequired(sealed []gate.Sealed, on []task.Ref) error {
	left, withheld := map[int]bool{}, map[int]*gate.Decision{}
	for i := range g.layers {
		s := &sealed[g.layers[i].offer]
		tree, _ := s.Files()
		for _, j := range g.layers[i].Via {
			if left[j] = left[j] || len(tree) > 0; s.Withheld() && (withheld[j] == nil || g.layers[i].Direct) {
				withheld[j] = s.Decision()
			}
		}
	}
	for j := range on {
		if withheld[j] != nil && !left[j] && !on[j].Optional {
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
	files, err := withoutReplaced(newest, versions)
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

// withoutReplaced returns files without those that became folders, and without files of folders that became files. All
// versions count, since what replaced a file may have been removed later.
func withoutReplaced(newest map[string]version, versions map[string][]version) (filetree.Tree, error) {
	files := filetree.Tree{}
	for name, v := range newest {
		files[name] = v.text
	}
	isReplaced := func(name string, by []version) bool {
		v, isFile := newest[name]
		return isFile && slices.ContainsFunc(by, func(o version) bool { return o.text != nil && o.of.follows(v.of, name) })
	}
	for name := range versions {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if isReplaced(above, versions[name]) {
				delete(files, above)
			}
			if isReplaced(name, versions[above]) {
				delete(files, name)
			}
		}
	}
	if above := files.Conflict(); above != "" {
		below := slices.IndexFunc(files.Paths(), func(name string) bool { return strings.HasPrefix(name, above+"/") })
		return nil, fmt.Errorf("%w: %s is a file of %q, and a folder of %q", ErrFilesConflict, above, newest[above].of.title, newest[files.Paths()[below]].of.title)
	}
	return files, nil
}
