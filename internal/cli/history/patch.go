package history

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// printPatch prints the changes of the output files of a run, or of one task, as a patch.
func printPatch(con *console.Console, k *journals.StoredRun, only task.ID) error {
	p, err := collectPatch(k, only)
	if err != nil {
		return err
	}
	text, err := filetree.Patch(p.changed, p.before, p.originals)
	if err != nil {
		err = fmt.Errorf("the changes cannot be written as a patch:\n%w\nsave the files with --save, and copy these changes yourself", err)
		return &exit.Error{Kind: exit.KindRuntime, Err: err, Status: exit.StatusFailed}
	}
	if p.note != "" {
		fmt.Fprintln(con.Screen, "note: "+terminal.CleanLine(p.note))
	}
	if only == "" {
		for _, way := range waysOf(Artifacts(k, "")) {
			fmt.Fprintln(con.Screen, "note: "+terminal.CleanLine(way))
		}
	}
	if filetree.HasEmptyFiles(text) {
		fmt.Fprintln(con.Screen, "note: the patch adds or removes empty files, which git apply skips in a subfolder of a repository; use git apply --directory=SUBFOLDER at its root")
	}
	if con.IsTerminal(con.Stdout) {
		return con.PrintText(text)
	}
	return con.Print(func(w io.Writer) error { // as it is, to be applied
		_, err := io.WriteString(w, text)
		return err
	})
}

// A patchSet has the files of a patch, by the paths that the patch has.
type patchSet struct {
	changed, before filetree.Tree
	originals       map[string]*filetree.Original
	note            string // what the paths are, if they are not those of an input
}

// collectPatch returns the files of the patch of a run, or of one task. If all of them are in one
// input, their paths are those in that input, and else those in the workspace.
func collectPatch(k *journals.StoredRun, only task.ID) (*patchSet, error) {
	all, err := readableChanges(k, only)
	if err != nil {
		return nil, err
	}
	isOne := inOneInput(all)
	p := &patchSet{changed: filetree.Tree{}, before: filetree.Tree{}, originals: map[string]*filetree.Original{}}
	if !isOne {
		p.note = noteOn(all)
	}
	folders := foldersOf(k)
	for _, t := range all {
		for at, text := range t.changed {
			path := at
			if _, inside := t.place(at); isOne {
				path = inside
			}
			if _, known := p.changed[path]; !known {
				p.before[path], p.originals[path] = t.before[at], originalOf(folders, path, t.before[at], t.label)
			}
			p.changed[path] = text
		}
	}
	return p, nil
}

// readableChanges returns the output files of the tasks of a run, or of one task, that are not empty.
func readableChanges(k *journals.StoredRun, only task.ID) (all []taskFiles, err error) {
	for _, t := range changesOf(k) {
		if only != "" && t.task.ID != only {
			continue
		}
		if t.err != nil {
			return nil, fmt.Errorf("task %q: %w", t.task.Title, t.err)
		}
		if len(t.changed) > 0 {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, exit.Usagef("no task of the run has output files: list them in outputFiles of a task")
	}
	return all, nil
}

// place returns the input that a path of the workspace belongs to, and the path in its folder. The
// name is empty if that is no input, or one of several.
func (t *taskFiles) place(path string) (input, inside string) {
	longest := -1
	for _, m := range t.mounts {
		prefix := m.At + "/"
		if m.At == "." {
			prefix = ""
		}
		rest, ok := strings.CutPrefix(path, prefix)
		switch {
		case !ok || len(prefix) < longest:
		case len(prefix) == longest: // two inputs in one folder
			input, inside = "", path
		default:
			input, inside, longest = strings.ToLower(m.Input), rest, len(prefix)
		}
	}
	return input, inside
}

// inOneInput reports whether all files belong to one and the same input.
func inOneInput(all []taskFiles) bool {
	inputs := map[string]bool{}
	for i := range all {
		for path := range all[i].changed {
			input, _ := all[i].place(path)
			inputs[input] = true
		}
	}
	return len(inputs) == 1 && !inputs[""]
}

// noteOn says which paths a patch has whose files are not all in one input; empty if the tasks
// were given no files.
func noteOn(all []taskFiles) string {
	const advice = "; apply the patch to a folder laid out like it, with git apply --directory=FOLDER"
	var list []string
	given := false
	for i := range all {
		for _, text := range all[i].before {
			given = given || text != nil
		}
		for _, m := range all[i].mounts {
			what := fmt.Sprintf("input %s is in %s/", m.Input, m.At)
			if m.At == "." {
				what = fmt.Sprintf("input %s is the workspace itself", m.Input)
			}
			list = append(list, what)
		}
	}
	switch {
	case len(list) > 0:
		slices.Sort(list)
		return "not all files are in one input, so the paths are those of the workspace (" + strings.Join(slices.Compact(list), ", ") + ")" + advice
	case given:
		return "the run does not say which input the files are from, so the paths are those of the workspace" + advice
	}
	return ""
}

// A storedFolder is the copy of an input that was a folder.
type storedFolder struct {
	tree   filetree.Tree
	hidden []string // placeholders in it of data that it lacks
	label  label.Classification
}

// foldersOf returns the copies of folders that a run has.
func foldersOf(k *journals.StoredRun) (list []storedFolder) {
	without := map[string][]string{}
	for _, c := range journals.InvocationOf(&k.Info).Copies {
		without[c.Path] = c.Without
	}
	for _, f := range k.Info.Files {
		if !strings.HasSuffix(f.Path, "/") || f.Missing != "" {
			continue
		}
		if tree, err := filetree.Parse(f.Text); err == nil {
			list = append(list, storedFolder{tree, without[f.Path], f.Label})
		}
	}
	return list
}

// originalOf returns a file before redaction; nil unless exactly one text can be it. A task has
// read no folder that is more sensitive than its files; copies are at least internal.
func originalOf(folders []storedFolder, path string, given *string, level label.Classification) (found *filetree.Original) {
	if given == nil {
		return nil
	}
	for below := true; below; _, path, below = strings.Cut(path, "/") { // a task may have the folder anywhere
		for _, f := range folders {
			text := f.tree[path]
			switch {
			case text == nil, f.label > max(level, label.Internal), !filetree.IsRedacted(*given, *text):
			case found != nil && found.Text != *text:
				return nil
			case found != nil:
				found.Hidden = append(slices.Clone(found.Hidden), f.hidden...)
			default:
				found = &filetree.Original{Text: *text, Hidden: f.hidden}
			}
		}
	}
	return found
}
