package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A FileLayer is what one source adds to the folder that a task gets from those that it depends on: the output files of a
// task, or the files of an input. A folder is a list of layers, so that each file keeps its producer, its label and its
// rule through every task that leaves it in place.
type FileLayer struct {
	Task  int         // whose output files they are; -1 of an input
	Input int         // an index into [Options].Inputs; -1 of a task
	At    string      // the folder of the workspace that they belong in; "." is the workspace itself
	Paths []task.Path // that are granted, as paths of the workspace

	// Floor is the label of what decided whether the tasks ran through which the layer came: that it is there
	// tells that they did.
	Floor label.Classification

	Via    []int // the dependencies of its reader that grant it
	Direct bool  // its reader depends on the task whose output files they are, or uses the input itself

	// Settles says that the layer has no files of its own: it says that the onConflict of the task counts for those of
	// the other layers that it was given.
	Settles bool
}

// Folders say which layers tasks get of those that they depend on.
type Folders struct {
	plan   *Plan
	layers [][]FileLayer // of each task, if all of its dependencies complete
}

// newFolders returns the folders of a plan, before their layers are known; nil if no task gets files of another one.
func newFolders(p *Plan) *Folders {
	for i := range p.Graph.Len() {
		if slices.ContainsFunc(p.Graph.Task(i).DependsOn, hasFiles) {
			return &Folders{p, make([][]FileLayer, p.Graph.Len())}
		}
	}
	return nil
}

// To returns the layers that task i may be given.
func (f *Folders) To(i int) []FileLayer {
	if f == nil || f.layers == nil {
		return nil
	}
	return f.layers[i]
}

// IsOf reports whether a layer has files of the same source as another one, at the same place.
func (l *FileLayer) IsOf(o *FileLayer) bool {
	return l.Task == o.Task && l.Input == o.Input && l.At == o.At && l.Settles == o.Settles
}

// Source names the layer for the gate.
func (l *FileLayer) Source(p *Plan) gate.Source {
	s := gate.Source{Kind: handoff.Folder}
	switch {
	case l.Task < 0:
		if s.Name = p.Options().Inputs[l.Input].Name; l.Direct {
			s.Kind = handoff.Input
		}
	default:
		if s.Name = string(p.Graph.Task(l.Task).ID); l.Direct {
			s.Kind = handoff.Files
		}
	}
	return s
}

// Producer returns who made the files.
func (l *FileLayer) Producer(p *Plan) string {
	if l.Task < 0 {
		return handoff.User
	}
	return p.Graph.Task(l.Task).Assignee
}

// Grant is the grant of a layer to task i.
func (l *FileLayer) Grant(p *Plan, i int) gate.Grant {
	g := gate.WholeOf(l.Source(p), p.Line(i))
	g.At, g.Paths, g.Terms = l.At, below(l.Paths, l.At), termsTo(p, i, l.Producer(p))
	return g
}

// below returns paths of a workspace as those of one of its folders.
func below(paths []task.Path, folder string) []task.Path {
	if folder == "." {
		return paths
	}
	return pick.Below(paths, strings.Split(folder, "/")...)
}

// HasPath reports whether a layer is granted at a path of the workspace.
func (l *FileLayer) HasPath(name string) bool {
	return len(pick.Intersect([]task.Path{task.Path(inFolder(name, ""))}, l.Paths)) > 0
}

// inFolder returns a path in a folder of a workspace as one of the workspace.
func inFolder(folder string, path task.Path) string {
	if folder == "." {
		return string(path)
	}
	var b strings.Builder
	for name := range strings.SplitSeq(folder, "/") {
		b.WriteString(naming.Pointer(name))
	}
	return b.String() + string(path)
}

// Via returns the layers that dependency j grants to task i, of the folder that the other task leaves.
func (f *Folders) Via(i, j int, folder []FileLayer) (layers []FileLayer) {
	p := f.plan
	files, up := p.Graph.Task(i).DependsOn[j].Files, int(p.Graph.Upstream(i)[j])
	for _, l := range folder {
		if l.Direct = l.Task == up; !l.Direct {
			l.Floor = l.Floor.Join(p.Branches.Of(up))
		}
		if l.Paths = pick.Intersect(l.Paths, files); len(below(l.Paths, l.At)) > 0 && !l.isUsed(p, i) {
			l.Via = []int{j}
			layers = append(layers, l)
		}
	}
	return layers
}

// isUsed reports whether task i uses all of the input of a layer itself, at the same place. If it needs only a part of the
// input, the layer stands by itself.
func (l *FileLayer) isUsed(p *Plan, i int) bool {
	if l.Task >= 0 {
		return false
	}
	for j, u := range p.Graph.Task(i).Uses {
		if at, ok := p.Folder(i, j); ok && at == l.At && p.InputIndex[strings.ToLower(u.Name)] == l.Input && (u.Need == nil || slices.Contains(u.Need, task.Whole)) {
			return true
		}
	}
	return false
}

// LeftBy returns the folder that task i leaves: inputs, the layers that it was given, and its own output files.
func (f *Folders) LeftBy(i int, given []FileLayer) (folder []FileLayer) {
	p := f.plan
	t := p.Graph.Task(i)
	for j, u := range t.Uses {
		at, ok := p.Folder(i, j)
		if !ok {
			continue
		}
		need := u.Need
		if need == nil {
			need = []task.Path{task.Whole}
		}
		l := FileLayer{Task: -1, Input: p.InputIndex[strings.ToLower(u.Name)], At: at}
		for _, path := range need {
			if path == task.Whole && at != "." {
				path = "/**"
			}
			l.Paths = append(l.Paths, task.Path(inFolder(at, path)))
		}
		folder = append(folder, l)
	}
	folder = append(folder, given...)
	if len(t.OutputFiles) > 0 {
		folder = append(folder, FileLayer{Task: i, Input: -1, At: ".", Paths: []task.Path{task.Whole}})
	}
	return folder
}

// MergeLayers adds layers to those before, each source once: its paths are those of all of its layers.
func MergeLayers(layers, more []FileLayer) []FileLayer {
	for _, l := range more {
		k := slices.IndexFunc(layers, func(o FileLayer) bool { return o.IsOf(&l) })
		if k < 0 {
			layers = append(layers, l)
			continue
		}
		o := &layers[k]
		o.Direct = o.Direct || l.Direct
		o.Floor, o.Via, o.Paths = o.Floor.Join(l.Floor), slices.Concat(o.Via, l.Via), slices.Clip(o.Paths)
		for _, path := range l.Paths {
			if !slices.Contains(o.Paths, path) {
				o.Paths = append(o.Paths, path)
			}
		}
	}
	return layers
}

// find finds the layers that task i may be given, from those of the tasks before it.
func (f *Folders) find(i int) {
	if f == nil {
		return
	}
	t, ups := f.plan.Graph.Task(i), f.plan.Graph.Upstream(i)
	f.layers[i] = nil
	for j := range t.DependsOn {
		if len(t.DependsOn[j].Files) > 0 {
			f.layers[i] = MergeLayers(f.layers[i], f.Via(i, j, f.mayLeave(int(ups[j]))))
		}
	}
}

// reachesLaterRounds reports whether a task of a later round than the first may be given files of task i.
func (f *Folders) reachesLaterRounds(i int) bool {
	if f == nil {
		return false
	}
	for k, layers := range f.layers {
		of := f.plan.Graph.Task(k).Instance
		if of != nil && of.Round > 1 && slices.ContainsFunc(layers, func(l FileLayer) bool { return l.Task == i }) {
			return true
		}
	}
	return false
}

// mayLeave returns the folder that a task may leave.
func (f *Folders) mayLeave(i int) []FileLayer {
	t := f.plan.Graph.Task(i)
	if !Joins(t) {
		return f.LeftBy(i, f.To(i))
	}
	var given []FileLayer
	for j, up := range f.plan.Graph.Upstream(i) {
		if !isRead(t, j) && !isReread(t, j) {
			given = MergeLayers(given, f.To(int(up)))
		}
	}
	return f.LeftBy(i, given)
}

// deliveries appends the layers of the folder of task i to list. A layer may be missing or withheld; a required dependency
// fails its dependent only if that is so for all of its layers.
func (f *Folders) deliveries(list []delivery, i int, reader *gate.Capabilities) []delivery {
	if f == nil {
		return list
	}
	p, layers := f.plan, f.layers[i]
	deliver := func(n int, optional bool) delivery {
		l := &layers[n]
		least, most := l.levels(p)
		from := l.Producer(p)
		a := deliveryOf(ReadBy(p, i).Terms(from, reader.Agent), least, most, optional, reader)
		a.part, a.from, a.most = partOf{handoff.Files, int32(n)}, from, most
		return a
	}
	first := len(list)
	for n := range layers {
		list = append(list, deliver(n, true))
	}
	for n, l := range layers {
		for _, j := range l.Via {
			isLeft := func(a delivery) bool { return !a.Withheld && slices.Contains(layers[a.part.n].Via, j) }
			if l.Task == int(p.Graph.Upstream(i)[j]) && !p.Graph.Task(i).DependsOn[j].Optional && !slices.ContainsFunc(list[first:], isLeft) {
				list[first+n] = deliver(n, false)
			}
		}
	}
	return list
}

// levels returns the lowest and the highest label that a layer can have.
func (l *FileLayer) levels(p *Plan) (least, most label.Classification) {
	if l.Task >= 0 {
		return p.least[l.Task].Join(l.Floor), p.Labels[l.Task].Join(l.Floor)
	}
	level := p.Options().Inputs[l.Input].Classification.Join(l.Floor)
	return level, level
}

// IsNamed reports whether a name in a spec means a task: its title, as written or with its round, its key or its ID.
func IsNamed(t *task.Task, name string) bool {
	_, is := naming.TaskList{{Title: t.Title, Key: t.Key, ID: string(t.ID)}, {Title: WrittenTitle(t)}}.Find(name)
	return is
}

// OnConflict returns the onConflict of the dependencies of a task, which must agree; empty if conflicts fail it.
func OnConflict(t *task.Task) string {
	for _, d := range t.DependsOn {
		if len(d.Files) > 0 && d.OnConflict != "" && d.OnConflict != task.FailOnConflict {
			return d.OnConflict
		}
	}
	return ""
}

// checkOnConflict reports an onConflict of dependency j of task i that can never count.
func (c *pathCheck) checkOnConflict(i, j int) {
	t := c.plan.Graph.Task(i)
	on := t.DependsOn
	d := &on[j]
	at := func() subject { return dependency(c.checker, i, j).at("onConflict") }
	isLacking := func(name string) bool { return strings.EqualFold(strings.TrimSpace(d.OnConflict), name) }
	other := slices.IndexFunc(on[:j], func(o task.Ref) bool { return o.OnConflict != "" && len(o.Files) > 0 })
	switch {
	case d.OnConflict == "":
	case len(d.Files) == 0:
		at().report("onConflict is about files, and the dependency grants none", "add files, or remove onConflict", task.ErrInvalid)
	case other >= 0 && !strings.EqualFold(strings.TrimSpace(d.OnConflict), strings.TrimSpace(on[other].OnConflict)):
		at().report(fmt.Sprintf("onConflict is %s, and another dependency of the task says %s: the task has one folder", naming.Quote(d.OnConflict), naming.Quote(on[other].OnConflict)),
			fmt.Sprintf("write onConflict: %s here, or remove it from one of them", naming.Quote(on[other].OnConflict)), task.ErrInvalid)
	case d.OnConflict == task.FailOnConflict, d.OnConflict == task.KeepBoth:
	case t.Instance != nil && slices.ContainsFunc(t.Instance.Lacks, isLacking): // later rounds have it
	default:
		var titles []string
		for _, l := range c.plan.Folders.To(i) {
			if l.Task < 0 {
				continue
			}
			t := c.plan.Graph.Task(l.Task)
			if titles = append(titles, WrittenTitle(t)); IsNamed(t, d.OnConflict) {
				return
			}
		}
		for k := range c.plan.Graph.Len() {
			if t := c.plan.Graph.Task(k); IsNamed(t, d.OnConflict) && len(t.OutputFiles) == 0 {
				at().report(fmt.Sprintf("task %s has no outputFiles, so no version of a file is its own", naming.Quote(t.Title)),
					"write whose version counts: "+naming.List(append(titles, task.KeepBoth)), task.ErrInvalid)
				return
			}
		}
		at().report(fmt.Sprintf("onConflict: no task %s has files in the folder", naming.Quote(d.OnConflict)),
			naming.Suggest(d.OnConflict, append(titles, task.FailOnConflict, task.KeepBoth)), task.ErrInvalid)
	}
}
