package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
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
	left     taskFiles // of the task
	offer    int       // an index into the offers to the attempt
}

// Folders are those that the tasks of a run leave.
type folders struct {
	run    *results
	layers map[int][]plan.FileLayer // that tasks were offered; see to
	left   map[task.ID]taskFiles    // of tasks that have completed
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
	}
	from := i
	if plan.Joins(t) {
		ups := p.Graph.Upstream(i)
		from = f.run.branches.alternative(ups[:len(ups)-t.Reads])
	}
	folder := p.Folders.LeftBy(i, f.to(from))
	if f.left[t.ID].onConflict != "" {
		folder = append(folder, plan.FileLayer{Task: i, Input: -1, At: ".", Paths: []task.Path{task.Whole}, Settles: true})
	}
	return folder
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
	out.title, out.envelope, out.left = out.task.Title, gate.Raise(r.tasks[l.Task].Files, l.Floor), f.left[out.task.ID]
	return out
}

// offer offers an attempt at task i the files of its dependencies, layer by layer.
func (f *folders) offer(a *attempt, i int) {
	r := f.run
	var choices []choice
	for _, l := range f.to(i) {
		if l.Settles {
			choices = append(choices, choice{l, f.left[r.plan.Graph.Task(l.Task).ID]})
			continue
		}
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
	if a.given != nil {
		order := r.plan.Graph.Order()
		slices.SortFunc(choices, func(c, d choice) int {
			return cmp.Compare(slices.Index(order, int32(c.Task)), slices.Index(order, int32(d.Task)))
		})
		a.given.choices = choices
	}
}

// use notes that the last offer to an attempt is an input as a folder.
func (f *folders) use(a *attempt, name, at string) {
	l := plan.FileLayer{Task: -1, Input: f.run.plan.InputIndex[strings.ToLower(name)], At: at, Direct: true}
	a.given = a.given.with(f.layer(l, len(a.offers)-1))
}

// keep notes what a task leaves that has completed with an attempt.
func (f *folders) keep(a *attempt) {
	last := lastHolder(a)
	if a.outputs == nil && last.given == nil {
		return
	}
	var left taskFiles
	if g := last.given; g != nil {
		left = g.own
		left.parents = g.versions.parents(gate.NamesOfFiles(a.outputs), left.onConflict != "")
	}
	if a.outputs != nil {
		left.mounts = f.mountsOf(last.sealed)
	}
	f.left[a.task.ID] = left
}

// givenFiles are the files that an attempt is granted.
type givenFiles struct {
	layers   []folderLayer
	offered  int      // how many of the layers are of folders that other tasks leave
	choices  []choice // of the tasks before, in their order
	own      taskFiles
	versions folderMerge   // what was delivered
	tree     filetree.Tree // the files that the task gets, at their paths in the workspace; nil if nothing was delivered
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
	return &givenFiles{layers: g.layers, offered: g.offered, choices: g.choices}
}

// ofOthers returns how many layers are of what other tasks leave.
func (g *givenFiles) ofOthers() int {
	if g == nil {
		return 0
	}
	return g.offered
}

// files returns the files that the task gets; nil if it gets none.
func (g *givenFiles) files() filetree.Tree {
	if g == nil {
		return nil
	}
	return g.tree
}

// merged returns the files of which there were several versions, as the task gets them: without a text if it does not.
func (g *givenFiles) merged() filetree.Tree {
	if g == nil {
		return nil
	}
	merged := filetree.Tree{}
	for name, all := range g.versions {
		if len(all) > 1 || all[0].chosen {
			merged[name] = g.tree[name]
		}
	}
	return merged
}

// take sets the files that were delivered.
func (g *givenFiles) take(sealed []gate.Sealed, t *task.Task) (err error) {
	if g == nil {
		return nil
	}
	if err := g.checkRequired(sealed, t.DependsOn); err != nil {
		return err
	}
	g.own = taskFiles{onConflict: plan.OnConflict(t), chosen: string(t.ID) + "/chosen"}
	if g.versions = versionsOf(sealed, g.layers); g.versions == nil {
		return nil
	}
	newest, err := g.versions.merge(g.choices, &g.own)
	if err != nil {
		return err
	}
	g.tree = textsOf(newest)
	g.setLists(sealed, newest)
	return nil
}

// setLists sets the list of each layer in the prompt to the files of which it has the newest version.
func (g *givenFiles) setLists(sealed []gate.Sealed, newest map[string]*fileVersion) {
	level, lists := label.Public, make([]filetree.Tree, len(g.layers))
	for k := range g.layers {
		if s := &sealed[g.layers[k].offer]; !s.IsEmpty() {
			level = level.Join(s.Decision().Before).Join(s.Decision().After)
		}
		lists[k] = filetree.Tree{}
	}
	for name, v := range newest {
		if k := slices.IndexFunc(g.layers, func(l folderLayer) bool { return l.offer == v.of.offer }); v.text != nil || !v.chosen {
			lists[k][name] = v.text
		}
	}
	for k := range g.layers {
		s := &sealed[g.layers[k].offer]
		*s = s.Listing(lists[k], level)
	}
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
