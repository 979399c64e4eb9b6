package history

import (
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
)

// taskFiles are the output files of a task, by their paths in its workspace.
type taskFiles struct {
	task            *runstate.Task
	changed, before filetree.Tree
	label           label.Classification
	mounts          []record.Mount
	id              envelope.ID
	from            map[envelope.ID]bool // what the task was given, among others the output files of other tasks
	err             error                // why they cannot be read
}

// changesOf returns the output files of the tasks of a run, each behind those that its task was given. Files above the
// user of the run are left out: whether there are any depends on what their task read.
func changesOf(k *journals.StoredRun) (all []taskFiles) {
	byID := map[envelope.ID]*taskFiles{}
	var found []*taskFiles
	for _, t := range k.Tasks {
		r, changed, err := outputFiles(k, t)
		if r == nil || r.Hidden && r.Label > k.History.Clearance() {
			continue
		}
		f := &taskFiles{task: t, changed: changed, label: r.Label, mounts: t.OutputFiles().Mounts, from: map[envelope.ID]bool{}, err: err}
		if result := t.OutputFiles().Result; err == nil && result != nil {
			f.before, f.err = filetree.Parse(r.Structured)
			f.id = result.ID
			for _, id := range result.DerivedFrom {
				f.from[id] = true
			}
		}
		found, byID[f.id] = append(found, f), f
	}
	placed := map[*taskFiles]bool{}
	var place func(f *taskFiles)
	place = func(f *taskFiles) {
		if placed[f] {
			return
		}
		placed[f] = true
		for _, o := range found {
			if f.from[o.id] {
				place(o)
			}
		}
		all = append(all, *f)
	}
	for _, f := range found {
		place(f)
	}
	return all
}

// A fileVersion is a version of a file, among those that the user of the run may see.
type fileVersion struct {
	of       *taskFiles
	number   int            // 1 is the first
	replaces []*fileVersion // the newest of those that its task was given
	input    string         // whose file its task was given; empty if it replaces other versions, or nothing
}

// follows reports whether a version was made of another one, directly or through others.
func (v *fileVersion) follows(o *fileVersion) bool {
	return slices.ContainsFunc(v.replaces, func(r *fileVersion) bool { return r == o || r.follows(o) })
}

// versionsOf returns the versions of each file, in order.
func versionsOf(all []taskFiles) map[string][]*fileVersion {
	versions := map[string][]*fileVersion{}
	for i := range all {
		f := &all[i]
		for path := range f.changed {
			earlier := versions[path]
			v := &fileVersion{of: f, number: len(earlier) + 1}
			given := slices.DeleteFunc(slices.Clone(earlier), func(o *fileVersion) bool {
				return !f.from[o.of.id] || !isSameFile(f.before[path], o.of.changed[path])
			})
			v.replaces = filetree.Newest(given, (*fileVersion).follows)
			if f.before[path] != nil && len(v.replaces) == 0 {
				v.input, _ = f.place(path)
			}
			versions[path] = append(earlier, v)
		}
	}
	return versions
}

// isSameFile reports whether a file that a task was given is one that another task left, but for what was redacted.
func isSameFile(given, left *string) bool {
	return filetree.SameText(given, left) || given != nil && left != nil && filetree.IsRedacted(*given, *left)
}

// waysOf says of each file with several versions which tasks made them, in their order.
func waysOf(list []ArtifactDocument) (lines []string) {
	ways := map[string][]*ArtifactDocument{}
	for i := range list {
		if d := &list[i]; d.Versions > 1 {
			ways[d.Name] = append(ways[d.Name], d)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(ways)) {
		slices.SortFunc(ways[path], func(a, b *ArtifactDocument) int { return a.Version - b.Version })
		var by []string
		for _, d := range ways[path] {
			by = append(by, d.Title)
		}
		lines = append(lines, path+" was made by "+strings.Join(by, ", then by ")+"; the patch has the last version")
	}
	return lines
}
