package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// taskFiles is what a run knows of the files of a task that has completed.
type taskFiles struct {
	mounts []record.Mount // the inputs in its workspace

	// parents are the IDs of the versions of a path that the task was given: for each path that it changed, with the
	// folders above and the files below, and for each that its onConflict may have settled.
	parents map[string][]string

	onConflict string // which version of a file it was given of several; empty if a conflict fails it
	chosen     string // the ID of the versions that this made
}

// wasGiven reports whether the task was given a version.
func (f *taskFiles) wasGiven(v *fileVersion) bool {
	return slices.Contains(f.parents[v.name], v.id) || slices.Contains(f.parents[v.was], v.id)
}

// A fileVersion is a file of a layer, or what the onConflict of a task has made of several versions of a file.
type fileVersion struct {
	of   *folderLayer // that has the text
	id   string       // of the layer, or of the choice
	name string       // its path in the workspace
	was  string       // its path before secrets and personal data were taken out of it
	text *string      // nil if the file was removed

	chosen   bool           // onConflict made it
	replaces []*fileVersion // of what was chosen, what it was chosen from
	stands   []*fileVersion // of what was chosen: what follows all of these follows it too
}

// follows reports whether a version replaces another one: the task that wrote it was given the other, or chose it
// instead of the other.
func (v *fileVersion) follows(o *fileVersion) bool {
	switch {
	case v.chosen:
		return slices.Contains(v.replaces, o)
	case v.of.left.wasGiven(o):
		return true
	}
	missed := func(o *fileVersion) bool { return !v.follows(o) }
	return len(o.stands) > 0 && !slices.ContainsFunc(o.stands, missed)
}

// newestOf returns the version of a file that follows from all others, or several that differ if there is none.
func newestOf(all []*fileVersion) []*fileVersion {
	left := filetree.Newest(all, (*fileVersion).follows)
	if slices.ContainsFunc(left, func(v *fileVersion) bool { return !filetree.SameText(v.text, left[0].text) }) {
		return left
	}
	return left[:1]
}

// A choice says that the onConflict of a task counts for the versions that the task was given.
type choice struct {
	plan.FileLayer
	by taskFiles
}

// A folderMerge makes the files of a task of the versions in its layers.
type folderMerge map[string][]*fileVersion // by path

// add adds a version, unless there is one of the same layer: an input may come in two ways.
func (m folderMerge) add(v *fileVersion) {
	if !slices.ContainsFunc(m[v.name], func(o *fileVersion) bool { return o.id == v.id }) {
		m[v.name] = append(m[v.name], v)
	}
}

// versionsOf returns the versions in the layers that were delivered; nil if no layer was.
func versionsOf(sealed []gate.Sealed, layers []folderLayer) folderMerge {
	var m folderMerge
	for k := range layers {
		l := &layers[k]
		tree, at := sealed[l.offer].Files()
		if tree == nil {
			continue
		}
		if m == nil {
			m = folderMerge{}
		}
		for name, text := range tree {
			v := &fileVersion{of: l, id: l.id(), name: path.Join(at, name), was: path.Join(at, sealed[l.offer].NameBefore(name)), text: text}
			if name := v.name; name != brief.HistoryDir && name != brief.OutputsDir && !strings.HasPrefix(name, brief.HistoryDir+"/") { // the workspace has its own
				m.add(v)
			}
		}
	}
	return m
}

// withBesides returns the files of a layer with those that onConflict has put beside others.
func (m folderMerge) withBesides(l *folderLayer, tree filetree.Tree) filetree.Tree {
	all := filetree.Tree{}
	for name, versions := range m {
		for _, v := range versions {
			if v.chosen && v.stands == nil && v.of.offer == l.offer {
				all[strings.TrimPrefix(name, l.At+"/")] = v.text
			}
		}
	}
	if len(all) == 0 {
		return tree
	}
	maps.Copy(all, tree)
	return all
}

// contested returns the paths that have several versions.
func (m folderMerge) contested() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if len(m[name]) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// repeat repeats a choice among those versions that the task was given and that are here: any other is not there for the
// reader, who learns nothing of it.
func (m folderMerge) repeat(c *choice) {
	for _, name := range m.contested() {
		given := slices.DeleteFunc(slices.Clone(m[name]), func(v *fileVersion) bool {
			return v.id == c.by.chosen || !c.by.wasGiven(v)
		})
		if len(given) > 1 && c.HasPath(given[0].was) {
			m.settle(name, newestOf(given), given, &c.by)
		}
	}
}

// settle adds what onConflict makes of several versions of a file. It reports false if it names none of them.
func (m folderMerge) settle(name string, left, all []*fileVersion, by *taskFiles) bool {
	if len(left) == 1 {
		return true
	}
	if by.onConflict == task.KeepBoth {
		for _, v := range left {
			if at := besides(name, v.of.title); v.text != nil && m[at] == nil {
				m[at] = append(m[at], &fileVersion{of: v.of, id: by.chosen, name: at, was: at, text: v.text, chosen: true})
			}
		}
		m[name] = append(m[name], &fileVersion{of: left[0].of, id: by.chosen, name: name, was: left[0].was, chosen: true, replaces: all, stands: left})
		return true
	}
	v := named(left, by.onConflict)
	if v != nil {
		m[name] = append(m[name], &fileVersion{of: v.of, id: by.chosen, name: name, was: v.was, text: v.text, chosen: true, replaces: all, stands: []*fileVersion{v}})
	}
	return v != nil
}

// named returns the version of the task that a name means; of the rounds of a loop, that of the last one. It returns nil
// if there is none, or if there are several, such as those of items. That a file is not there because an earlier task kept
// several versions beside it is a version of none of them.
func named(versions []*fileVersion, name string) (of *fileVersion) {
	for _, v := range versions {
		switch {
		case v.of.task == nil || len(v.stands) > 1 || !plan.IsNamed(v.of.task, name):
		case of == nil || v.of.Task == of.of.Task || isLaterRound(v.of, of.of):
			of = v
		case !isLaterRound(of.of, v.of):
			return nil
		}
	}
	return of
}

// isLaterRound reports whether a layer is of a task in a later round than that of another layer.
func isLaterRound(l, o *folderLayer) bool {
	of, before := l.task.Instance, o.task.Instance
	return of != nil && before != nil && (of.Round != before.Round || of.Loop != before.Loop) && l.Task > o.Task
}

// merge returns the newest version of each file that a task is given: the one whose task was given the others. It has no
// text if the file was removed.
//
// If two tasks changed a file and neither was given the version of the other, onConflict decides: first that of the tasks
// before, in their order, and then that of the task itself.
func (m folderMerge) merge(choices []choice, own *taskFiles) (newest map[string]*fileVersion, err error) {
	for i := range choices {
		m.repeat(&choices[i])
	}
	for _, name := range m.contested() {
		left := newestOf(m[name])
		if at := m.takenBesides(name, left); own.onConflict == task.KeepBoth && at != "" {
			return nil, fmt.Errorf("%w: there is a file %s already: rename it, or name the task whose version of %s counts in onConflict", ErrFilesConflict, at, name)
		}
		if !m.settle(name, left, m[name], own) {
			return nil, fmt.Errorf("%w: %q and %q have changed %s, and neither was given the version of the other: set onConflict of a dependency to the task whose version counts, or to both", ErrFilesConflict, left[0].of.title, left[1].of.title, name)
		}
	}
	newest = map[string]*fileVersion{}
	for name, all := range m {
		newest[name] = newestOf(all)[0]
	}
	return newest, m.leaveOutReplaced(newest)
}

// textsOf returns the files that a task gets of the newest versions.
func textsOf(newest map[string]*fileVersion) filetree.Tree {
	files := filetree.Tree{}
	for name, v := range newest {
		if v.text != nil {
			files[name] = v.text
		}
	}
	return files
}

// takenBesides returns a path that is not free for one of several versions of a file; empty if there is none.
func (m folderMerge) takenBesides(name string, versions []*fileVersion) string {
	var taken []string
	for _, v := range versions {
		at := besides(name, v.of.title)
		if len(versions) == 1 || v.text == nil {
			continue
		}
		isOther := func(o *fileVersion) bool { return !filetree.SameText(o.text, v.text) }
		if slices.ContainsFunc(m[at], isOther) || slices.Contains(taken, at) {
			return at
		}
		taken = append(taken, at)
	}
	return ""
}

// leaveOutReplaced removes from newest the files that became folders, and files of folders that became files. All versions
// count, since what replaced a file may have been removed later.
func (m folderMerge) leaveOutReplaced(newest map[string]*fileVersion) error {
	files := textsOf(newest)
	isReplaced := func(name string, by []*fileVersion) bool {
		v := newest[name]
		return v != nil && v.text != nil && slices.ContainsFunc(by, func(o *fileVersion) bool { return o.text != nil && o.follows(v) })
	}
	for name := range m {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if isReplaced(above, m[name]) {
				delete(files, above)
			}
			if isReplaced(name, m[above]) {
				delete(files, name)
			}
		}
	}
	if above := files.Conflict(); above != "" {
		below := slices.IndexFunc(files.Paths(), func(name string) bool { return strings.HasPrefix(name, above+"/") })
		return fmt.Errorf("%w: %s is a file of %q, and a folder of %q", ErrFilesConflict, above, newest[above].of.title, newest[files.Paths()[below]].of.title)
	}
	maps.DeleteFunc(newest, func(name string, v *fileVersion) bool { return v.text != nil && files[name] == nil })
	return nil
}

// parents returns what [taskFiles.parents] says of a task that was given these versions.
func (m folderMerge) parents(changed []string, settles bool) map[string][]string {
	if m == nil {
		return nil
	}
	folders := map[string]bool{}
	for _, name := range changed {
		for ; name != "."; name = path.Dir(name) {
			folders[name] = true
		}
	}
	isBelow := func(name string) bool {
		for name = path.Dir(name); name != "."; name = path.Dir(name) {
			if _, isChanged := slices.BinarySearch(changed, name); isChanged {
				return true
			}
		}
		return false
	}
	parents := map[string][]string{}
	for name, all := range m {
		if folders[name] || isBelow(name) || settles && len(all) > 1 {
			for _, v := range all {
				parents[name] = append(parents[name], v.id)
			}
		}
	}
	return parents
}

// maxName is how many bytes the name of a file can have.
const maxName = 255

// besides returns the path of one of several versions of a file.
func besides(name, title string) string {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	if ext == base || len(ext) > 32 {
		ext = "" // a name that begins with a dot, or has one in its text
	}
	stem := strings.TrimSuffix(base, ext)
	title = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '-'
	}, title)
	if whole := stem + "." + title + ext; len(whole) > maxName {
		sum := sha256.Sum256([]byte(whole))
		title = strings.ToValidUTF8(title[:min(len(title), 64)], "") + "-" + hex.EncodeToString(sum[:4])
		stem = strings.ToValidUTF8(stem[:min(len(stem), maxName-len("."+title+ext))], "")
	}
	return dir + stem + "." + title + ext
}

// id returns the ID of the versions in a layer.
func (l *folderLayer) id() string {
	id := string(l.envelope.ID())
	if l.At != "." {
		id += " at " + l.At
	}
	return id
}
