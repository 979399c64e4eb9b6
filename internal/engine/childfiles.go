package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An agent may pass files of its workspace with a goal. The child is offered them as a task is offered the folder of another
// one: layer by layer, so that each file keeps its producer, its label and the rules for it, with what the parent itself
// changed as the last layer. What the child changes passes the gate to its parent, into whose workspace it is put.

// returnedFiles are what children have left in the workspace of their parent.
type returnedFiles struct {
	layers []folderLayer   // what each of them changed, in the order in which it was put there
	trees  []filetree.Tree // parallel to layers: the files where they are, also beside other versions; nil texts were removed
	sealed []gate.Sealed   // what the gate delivered, also if nothing of it is left
}

// level returns the highest label of the files.
func (f *returnedFiles) level() label.Classification {
	level := label.Public
	for i := range f.sealed {
		level = level.Join(f.sealed[i].Decision().After)
	}
	return level
}

// passedLayer is a layer that a child is offered.
type passedLayer struct {
	folderLayer
	offered *envelope.Envelope // with the files that are passed
	tree    filetree.Tree      // these files
	renamed []string           // those of them that the run has put beside others, by names that no rule can know
}

// withoutRenamed leaves out files that have other names than those by which rules can name them.
func (p *passedLayer) withoutRenamed() (err error) {
	for _, name := range p.renamed {
		delete(p.tree, name)
	}
	p.offered, err = envelope.New(p.offered.Header(), envelope.Text(p.tree.JSON()))
	return err
}

// passedFiles returns the files that a call passes, of which the settings of the team grant some. It reports why there
// can be none.
func (g *childGroup) passedFiles(ctx context.Context, c *childCall, granted []string, goal *envelope.Envelope) (list []passedLayer, err error) {
	a := g.of
	switch {
	case len(c.Files) == 0:
		return nil, nil
	case len(granted) == 0:
		return nil, errors.New("no files can be passed to it")
	}
	isPassed, err := newPassedGlobs(ctx, c.Files, granted)
	if err != nil {
		return nil, err
	}
	if _, err := a.files(); err != nil {
		return nil, err
	}
	folder, _ := a.current()
	known := a.knownFiles()
	own, err := changedFiles(ctx, folder, c.Files, known)
	if err != nil {
		return nil, fmt.Errorf("name fewer files: %w", err)
	}
	maps.DeleteFunc(own, func(name string, text *string) bool { // a file that is written again with the same text is still that of who made it
		return !isPassed.match(name) || text != nil && filetree.SameText(known[name], text)
	})
	layers, trees, sealed := a.layers()
	for k := range layers {
		tree, renamed := filetree.Tree{}, []string{}
		for name, text := range trees[k] {
			if isPassed.match(path.Join(layers[k].At, name)) {
				tree[name] = text
				if _, isNamed := sealed[k][name]; !isNamed {
					renamed = append(renamed, name)
				}
			}
		}
		h := layers[k].envelope.Header()
		h.DerivedFrom = []envelope.ID{h.ID}
		if list, err = g.passLayer(list, c, layers[k], h, tree); err != nil {
			return nil, err
		}
		if len(tree) > 0 {
			list[len(list)-1].renamed = renamed
		}
	}
	if isPassed.err != nil {
		return nil, isPassed.err
	}
	last := folderLayer{FileLayer: plan.FileLayer{Task: -1, Input: -1, At: "."}, source: gate.Source{Name: string(a.task.ID)}, title: a.caps.Agent}
	h := goal.Header()
	for k := range layers {
		h.DerivedFrom = append(slices.Clip(h.DerivedFrom), layers[k].envelope.ID())
	}
	return g.passLayer(list, c, last.after(layers, trees), h, own)
}

// passedGlobs say which files a call passes: those that it names and that are granted.
type passedGlobs struct {
	named, granted matcher.Globs
	budget         *matcher.Budget
	err            error // of the first path that could not be compared; no path matches from then on
}

func newPassedGlobs(ctx context.Context, named, granted []string) (p *passedGlobs, err error) {
	p = &passedGlobs{budget: matcher.NewBudget(ctx, filetree.MaxSteps)}
	if p.named, err = filetree.ParseGlobs(named); err == nil {
		p.granted, err = filetree.ParseGlobs(granted)
	}
	return p, err
}

// match reports whether a call passes a file.
func (p *passedGlobs) match(name string) bool {
	for _, globs := range []matcher.Globs{p.named, p.granted} {
		if p.err != nil {
			return false
		}
		var is bool
		if is, p.err = globs.Match(p.budget, name); !is {
			return false
		}
	}
	return p.err == nil
}

// passLayer adds a layer with some files to those that a call passes, unless it has none of them.
func (g *childGroup) passLayer(list []passedLayer, c *childCall, l folderLayer, h envelope.Header, tree filetree.Tree) ([]passedLayer, error) {
	if len(tree) == 0 {
		return list, nil
	}
	h.ID = envelope.ID(fmt.Sprintf("%s/%s/files/%d", g.x.identity(), c.call.ID, len(list)+1))
	e, err := envelope.New(h, envelope.Text(tree.JSON()))
	if err != nil {
		return nil, err
	}
	if l.envelope == nil {
		l.envelope = e
	}
	l.source.Kind = handoff.Folder
	return append(list, passedLayer{folderLayer: l, offered: e, tree: tree}), nil
}

// after returns a layer whose files replace those of others.
func (l folderLayer) after(others []folderLayer, trees []filetree.Tree) folderLayer {
	l.left.parents = map[string][]string{}
	for k := range others {
		for name := range trees[k] {
			name = path.Join(others[k].At, name)
			l.left.parents[name] = append(l.left.parents[name], others[k].id())
		}
	}
	return l
}

// layers returns what others made of the workspace: the layers that were delivered, the files of each where they are, at
// paths in the layer, and the same as the gate delivered them, before some were put beside others.
func (a *attempt) layers() (layers []folderLayer, trees, sealed []filetree.Tree) {
	if a.given != nil {
		for k := range a.given.layers {
			if tree, _ := a.sealed[a.given.layers[k].offer].Files(); tree != nil {
				layers, sealed = append(layers, a.given.layers[k]), append(sealed, tree)
				trees = append(trees, a.given.versions.withBesides(&a.given.layers[k], tree))
			}
		}
	}
	for k := range a.returned.layers {
		tree, _ := a.returned.sealed[k].Files()
		sealed = append(sealed, tree)
	}
	return append(layers, a.returned.layers...), append(trees, a.returned.trees...), sealed
}

// knownFiles returns the files that others put into the workspace.
func (a *attempt) knownFiles() filetree.Tree {
	known := filetree.Tree{}
	maps.Copy(known, a.given.files())
	for _, tree := range a.returned.trees {
		maps.Copy(known, tree)
	}
	maps.DeleteFunc(known, func(_ string, text *string) bool { return text == nil })
	return known
}

// offerFiles offers a child the files that are passed to it, under the rules for it and for who made them.
func (g *childGroup) offerFiles(child *attempt, of *descendant, list []passedLayer) {
	for _, p := range list {
		from := p.offered.Producer()
		grant := gate.WholeOf(p.source, "goal")
		grant.Terms, grant.MaxBytes = child.by.Terms(from, child.caps.Agent), child.limits.On(p.source, 0)
		if of.edge != nil {
			grant.Terms = gate.Limited(grant.Terms, of.edge.Max, gate.Citation{Rule: gate.RuleEdge}, from, child.caps.Agent)
		}
		if s, err := grant.Terms.Delivers(nil); len(p.renamed) > 0 && (err != nil || !s.Whole()) && p.withoutRenamed() != nil {
			continue
		}
		p.offer = len(child.offers)
		child.given = child.given.with(p.folderLayer)
		child.given.offered++
		o := gate.Offer{Source: p.source, Title: passedTitle, Assignee: from, Envelope: p.offered, As: gate.AsFiles, Folder: p.At, Optional: true}
		child.offers, child.grants = append(child.offers, o), append(child.grants, grant)
	}
	if child.given != nil && g.of.given != nil {
		child.given.choices = g.of.given.choices
	}
	child.task.OutputFiles = of.files
	for _, d := range g.of.task.DependsOn { // which say whose version of a file counts
		d.Optional = true
		child.task.DependsOn = append(child.task.DependsOn, d)
	}
}

// passedTitle is the heading of passed files in the prompt of a child.
const passedTitle = "workspace"

// keepFiles notes what a child that has completed changed of the files that were passed to it.
func (c *childCall) keepFiles(a *attempt) (err error) {
	if c.outcome.code != "" || len(c.Files) == 0 {
		return nil
	}
	if c.outputs = c.child.outputs; c.outputs == nil { // it had no workspace
		c.outputs, err = outputsOf(c.outcome.envelope, filetree.Tree{}, filetree.Tree{}, nil)
	}
	return err
}

// filesEntry returns what a journal stores of the files that a child changed.
func (c *childCall) filesEntry(a *attempt) record.Entry {
	return record.Entry{Files: &record.AgentCall{
		CallID: record.CallID{Session: c.id, Task: a.task.ID, Title: a.task.Title, Agent: c.outputs.Producer(), Attempt: a.number, Part: "/files"},
		Start:  c.began, End: c.began.Add(c.took), Result: gate.RecordOf(c.outputs), Shown: shownFiles(c.outputs, "", ""),
	}}
}

// recallFiles takes what a child changed in an earlier process. It is not ok if the journal does not have that.
func (c *childCall) recallFiles(m *memo.Memo) (ok bool) {
	if len(c.Files) == 0 || c.outcome.code != "" {
		return true
	}
	e := m.Call(c.id).Files
	if e == nil || e.Result == nil || e.Missing != "" {
		return false
	}
	_, old, err := gate.Reissue(e.Result, time.Now())
	c.outputs = old
	return err == nil
}

// takeFiles puts what the children of the turn have changed into the workspace of their parent, in the order of the calls.
func (g *childGroup) takeFiles(ctx context.Context) error {
	replaced := map[string]bool{} // by a child that worked at the same time
	for _, c := range g.list {
		if c.outputs == nil {
			continue
		}
		if err := g.takeFilesOf(ctx, c, replaced); err != nil {
			return err
		}
		c.outputs = nil
	}
	return nil
}

// returnedPart is behind the ID of a call in the journal's entry about the workspace with the files that the call returned.
const returnedPart = "/returned"

// takeFilesOf puts what a child has changed into the workspace of its parent, unless an earlier process has done so.
func (g *childGroup) takeFilesOf(ctx context.Context, c *childCall, replaced map[string]bool) error {
	a := g.of
	isThere := c.child == nil && a.run.memo.Call(c.id+returnedPart).Files != nil
	d := g.returning(c)
	if err := d.seal(ctx); err != nil {
		return err
	}
	if !isThere {
		if err := a.run.recordDecisions(&d); err != nil {
			return err
		}
	}
	if tree, _ := d.sealed[0].Files(); len(tree) == 0 {
		return nil
	}
	if a.know(c.id + returnedPart); !isThere {
		if err := a.atFiles(); err != nil {
			return err
		}
	}
	if _, err := a.files(); err != nil {
		return err
	}
	if err := a.returned.add(a, c, &d.sealed[0], replaced, isThere); err != nil {
		return err
	}
	if c.returned = true; isThere {
		return nil
	}
	return a.recordReturned(c)
}

// add puts what a call has returned into the workspace of an attempt, unless it is there already, and notes whose files these are.
func (f *returnedFiles) add(a *attempt, c *childCall, sealed *gate.Sealed, replaced map[string]bool, isThere bool) error {
	folder, _ := a.current()
	tree, _ := sealed.Files()
	before, err := filesBefore(c.outputs)
	if err != nil {
		return err
	}
	placed := filetree.Tree{}
	for _, name := range tree.Paths() {
		text, target := tree[name], ""
		if isThere {
			target = whereIs(folder.Root, name, c.call.ID, text)
		} else if target, err = putFile(folder, name, c.call.ID, text, before[name], replaced[name]); err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
		if replaced[name] = true; target != "" {
			placed[target] = text
		}
	}
	layers, trees, _ := a.layers()
	l, err := newReturnedLayer(c, sealed.Source(), layers, trees)
	if err != nil {
		return err
	}
	l.Input = -2 - len(f.layers)
	f.layers, f.trees, f.sealed = append(f.layers, l), append(f.trees, placed), append(f.sealed, *sealed)
	return nil
}

// newReturnedLayer returns the layer of what a child changed, which replaces what was in the workspace.
func newReturnedLayer(c *childCall, source gate.Source, older []folderLayer, trees []filetree.Tree) (l folderLayer, err error) {
	h := c.outputs.Header()
	for k := range older {
		h.DerivedFrom = append(h.DerivedFrom, older[k].envelope.ID())
	}
	l = folderLayer{FileLayer: plan.FileLayer{Task: -1, At: "."}, source: source, title: c.call.ID}
	l.envelope, err = envelope.New(h, envelope.Text("")) // for what it is from; each call that passes the files has its own
	return l.after(older, trees), err
}

// returning returns the delivery to the parent of what a child changed.
func (g *childGroup) returning(c *childCall) modelCall {
	a, now := g.of, time.Now()
	source := gate.Source{Kind: handoff.ToolResult, Name: c.call.ID + "/files"}
	grant := gate.WholeOf(source, "tools")
	grant.Terms = a.by.Terms(c.outputs.Producer(), a.caps.Agent)
	d := modelCall{run: a.run, request: request{
		child: a.child, by: a.by, caps: a.caps, bound: a.bound, number: a.number, part: g.x.part + "/" + c.call.ID,
		task:  &task.Task{ID: a.task.ID, Spec: task.Spec{Title: a.task.Title, Assignee: a.task.Assignee, Classification: label.Public}},
		start: now, began: now, declassified: a.declassified, least: label.Public,
	}}
	d.offers = []gate.Offer{{Source: source, Title: passedTitle, Assignee: c.outputs.Producer(), Envelope: c.outputs, As: gate.AsFiles, Folder: ".", Optional: true}}
	d.grants = []gate.Grant{grant}
	return d
}

// filesBefore returns what the files that a child changed were as it was given them.
func filesBefore(outputs *envelope.Envelope) (filetree.Tree, error) {
	reply, _, err := gate.Reissue(gate.RecordOf(outputs), time.Time{})
	if err != nil {
		return nil, err
	}
	return filetree.Parse(reply.JSON.Canonical())
}

// recordDecisions records what the gate decided about a delivery that is in no prompt.
func (r *recorder) recordDecisions(d *modelCall) error {
	if r.sink == nil && !r.bus.live() {
		return nil
	}
	rec := record.Prompt{Handoffs: r.handoffs(d, time.Now())}
	if err := r.callSink(context.Background(), &d.request, rec); err != nil {
		return err
	}
	r.ledger.note(record.Entry{Record: &rec})
	r.emitUses(d)
	return nil
}

// recordReturned measures and records the workspace of an attempt once it has the files that a call returned.
func (a *attempt) recordReturned(c *childCall) error {
	f, sizes := a.current()
	of, err := f.Measure(a.place.limits, sizes)
	if limit, isAbove := errors.AsType[*workspace.LimitError](err); isAbove {
		return fmt.Errorf("%w with the files that %s returned: %s", ErrWorkspaceLimit, c.tool.Name, limit.Problem)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	a.run.ledger.note(record.Entry{Files: &record.AgentCall{
		CallID: record.CallID{Session: c.id + returnedPart, Task: a.task.ID, Title: a.task.Title, Agent: a.caps.Agent, Attempt: a.number, Folder: f.Base(), Part: "/files"},
		Keys:   record.Keys{Files: filesKey(f.Base(), of)}, Start: now, End: now,
	}})
	return nil
}

// putFile puts a file that a child changed into a workspace, or removes it, and returns where it is. It is beside the file
// of its name if that is not the version that the child was given; empty if a removal does not count for that reason.
func putFile(f *workspace.Folder, name, call string, text, before *string, isReplaced bool) (target string, err error) {
	info, err := f.Lstat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	if replaces := isNew || err == nil && info.Mode().IsRegular() && !isReplaced && isVersion(f.Root, name, before); text == nil {
		if !replaces || isNew {
			return "", nil
		}
		return name, f.Root.Remove(name)
	} else if target = name; !replaces && whereIs(f.Root, name, call, text) != name {
		target = freeBesides(f.Root, name, call, *text)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if info, err := f.Lstat(above); err == nil && !info.IsDir() {
			target = besides(above, call) + strings.TrimPrefix(name, above)
		}
	}
	return target, f.Put(target, *text)
}

// isVersion reports whether a file of a workspace is the version that a child was given, perhaps redacted.
func isVersion(root *os.Root, name string, given *string) bool {
	if given == nil {
		return false
	}
	text, err := root.ReadFile(name)
	return err == nil && (string(text) == *given || filetree.IsRedacted(*given, string(text)))
}

// whereIs returns where a file is that an earlier process has put into a workspace; empty if it has changed since.
func whereIs(root *os.Root, name, call string, text *string) (target string) {
	if text == nil {
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		return ""
	}
	for _, target := range []string{name, freeBesides(root, name, call, *text)} {
		if found, err := root.ReadFile(target); err == nil && string(found) == *text {
			return target
		}
	}
	return ""
}

// freeBesides returns a path beside a file that no other file has. A call with the same ID, in another task whose folder
// is continued, may have put one there.
func freeBesides(root *os.Root, name, call, text string) (target string) {
	for n := 1; ; n++ {
		by := call
		if n > 1 {
			by = fmt.Sprintf("%s-%d", call, n)
		}
		target = besides(name, by)
		if _, err := root.Lstat(target); err != nil {
			return target
		}
		if found, err := root.ReadFile(target); err == nil && string(found) == text {
			return target
		}
	}
}
