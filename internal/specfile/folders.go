package specfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/naming"
	selection "github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// isFolder reads an input that is a folder, by an option or by its key dir. It reports false
// if the input is none.
func (r *reader) isFolder(in *engine.Input, f *fields) bool {
	path, given := r.o.Inputs[in.Name]
	if !given {
		if f.own("dir") == nil {
			return false
		}
		r.readFolderInput(in, f)
		return true
	}
	ok, err := r.givenFolder(in, path, f)
	if err != nil {
		r.found = append(r.found, finding{Problem: Problem{File: path, Message: fmt.Sprintf("%s %s: %v", r.o.called("Inputs"), in.Name, err), Hint: folderHint(err), Err: err}})
	}
	return ok
}

// readFolderInput reads the folder that an input names inside that of the spec.
func (r *reader) readFolderInput(in *engine.Input, f *fields) {
	n := f.own("dir")
	f.refuse(r.report, []string{"file", "text", "from", "cut", "maxContextBytes"}, "an input with dir is a folder, and this key is for texts", "leave it out")
	path, shown, ok := r.path("dir", n)
	if !ok {
		return
	}
	if !filepath.IsLocal(path) {
		r.badAs(n, errOutside, "name a folder inside that of the spec, or give it with "+strings.TrimSuffix(r.o.inputOption(in.Name), "FILE")+"DIR", "dir: %s: %v", quote(n.text), errOutside)
		return
	}
	whole := filepath.Join(n.src.dir, shown)
	err := r.readFolder(in, whole, "folder "+shown, textList(f.own("exclude")), n, func() (*os.Root, error) {
		root, err := r.o.Dir.OpenRoot(n.src.dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenRoot(path)
	})
	switch limit, isLimit := errors.AsType[*matcher.LimitError](err); {
	case isLimit:
		r.badAs(globAt(limit.Pattern, f.own("exclude")), err, "", "exclude: %v", err)
	case err != nil:
		r.badAs(n, err, folderHint(err), "dir: %s: %v", quote(n.text), err)
	}
}

// globAt returns the item of a list that is a glob, or the list.
func globAt(glob string, list *node) *node {
	for _, item := range list.parts() {
		if item.text == glob || selection.Loose(item.text) == glob {
			return item
		}
	}
	return list
}

// givenFolder reads the folder that an option names as an input. It is not ok if the path
// is none of a folder.
func (r *reader) givenFolder(in *engine.Input, path string, f *fields) (ok bool, err error) {
	info, err := r.o.Dir.Stat(path)
	isThere := err == nil && info.IsDir() && !r.o.StoredOnly
	if !isThere && r.storedCopy(folderName(path)) == nil {
		return false, nil
	}
	return true, r.readFolder(in, path, "input "+in.Name, textList(f.own("exclude")), nil, func() (*os.Root, error) { return r.o.Dir.OpenRoot(path) })
}

// readFolder reads a folder into an input, or its stored copy if the folder is gone. n is the
// value that names it; nil for one that an option names.
func (r *reader) readFolder(in *engine.Input, whole, role string, exclude []string, n *node, open func() (*os.Root, error)) error {
	var skipped []string
	whole = folderName(whole)
	text, copied, err := r.orCopy(whole, false, func() (string, error) {
		if r.o.StoredOnly {
			return "", errNoCopy
		}
		root, err := open()
		if errors.Is(err, fs.ErrNotExist) {
			return "", errMissing
		}
		if err != nil {
			return "", unreadable(err)
		}
		defer root.Close()
		tree, left, err := filetree.Read(r.ctx, root.FS(), exclude)
		skipped = left
		if err != nil {
			return "", err
		}
		return tree.JSON(), nil
	})
	if err != nil {
		return err
	}
	tree, err := filetree.Parse(text)
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		what := "left out files that are links or not UTF-8 text: " + strings.Join(firstOf(skipped, 3), ", ")
		if n != nil {
			r.warn(n, "list them in exclude to leave them out without a warning", "dir: %s", what)
		} else {
			r.warned = append(r.warned, finding{nil, len(r.warned), Problem{Message: r.o.called("Inputs") + " " + in.Name + ": " + what}})
		}
	}
	in.Folder = filetree.FolderOf(tree, skipped)
	in.Text = filetree.TextOf(in.Folder)
	k := r.record(whole, whole, role, in.Text, copied)
	k.label = k.label.Join(in.Classification)
	return nil
}

// folderName is the path under which the copy of a folder is stored, which no file has.
func folderName(path string) string { return strings.TrimRight(path, "/") + "/" }

// firstOf returns at most n texts of a list.
func firstOf(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), "…")
}

// folderHint says what to do about a folder that cannot be read.
func folderHint(err error) string {
	if _, large := errors.AsType[*filetree.TooLargeError](err); large {
		return "leave folders out with exclude: [node_modules, dist]"
	}
	if errors.Is(err, errMissing) {
		return "paths start from the folder of the spec"
	}
	return ""
}

// A filePaths is a list of paths of files, which a file writes as globs.
type filePaths []task.Path

// pathOfGlob returns the path that a glob such as src/** means. A part of a name cannot be
// matched: what a task is granted does not depend on the names that another task chose.
func pathOfGlob(glob string) (task.Path, error) {
	glob = strings.TrimPrefix(glob, "/")
	if glob == "**" {
		return task.Whole, nil
	}
	var b strings.Builder
	segments := strings.Split(glob, "/")
	for i, s := range segments {
		switch {
		case s == "":
			return "", errors.New("a part of the path is empty")
		case s == "**" && i < len(segments)-1, s != "*" && s != "**" && strings.ContainsAny(s, "*?[{"):
			return "", errors.New("only whole names can be *, and only the last one **")
		case s == "." || s == "..":
			return "", errors.New("the path leaves the workspace")
		}
		b.WriteString(naming.Pointer(s))
	}
	return task.Path(b.String()), nil
}

// globs returns paths of files as a file writes them.
func (f filePaths) globs() []string {
	out := make([]string, len(f))
	for i, p := range f {
		if p == task.Whole {
			out[i] = "**"
			continue
		}
		names := selection.Tokens(p)
		if strings.HasSuffix(string(p), "/**") {
			names = append(names, "**")
		}
		out[i] = strings.Join(names, "/")
	}
	return out
}

// filePathsOf returns the paths of a list of globs.
func filePathsOf(n *node) filePaths {
	var out filePaths
	for _, item := range n.parts() {
		if p, err := pathOfGlob(item.text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// checkFilePaths checks each glob of a list.
func checkFilePaths(r *report, key string, n *node) {
	if !r.areTexts(key, n) {
		return
	}
	for _, item := range n.parts() {
		if _, err := pathOfGlob(item.text); err != nil {
			r.bad(item, "write paths such as report.md, src/** or **", "%s: %s: %v", key, quote(item.text), err)
		}
	}
}

// checkGlobs checks each glob of a list.
func checkGlobs(r *report, key string, n *node) {
	if !r.areTexts(key, n) {
		return
	}
	for _, item := range n.parts() {
		if _, err := filetree.ParseGlobs([]string{item.text}); err != nil {
			r.bad(item, "", "%s: %v", key, err)
		}
	}
}

// workspaceMembers are the limits of a workspace.
func workspaceMembers(l *task.WorkspaceLimits) members {
	return members{{"maxBytes", &l.MaxBytes}, {"maxFiles", &l.MaxFiles}, {"maxOutputs", &l.MaxOutputs}, {"maxOutputBytes", &l.MaxOutputBytes}, {"maxTotalOutputBytes", &l.MaxTotalOutputBytes}}
}

// readWorkspace reads the key workspace of a task: the use that it stands for, and its limits. Both
// may be nil.
func (r *reader) readWorkspace(n *node) (uses []task.Use, limits *task.WorkspaceLimits) {
	if n == nil {
		return nil, nil
	}
	w := r.part(n, "workspace", "workspace: ")
	if w == nil {
		return nil, nil
	}
	if files := w.own("files"); files != nil && !continues(n) {
		r.bad(files, "add task, the task whose folder it continues, or round: previous", "files: there is no folder to pick files from")
	}
	var l task.WorkspaceLimits
	if workspaceMembers(&l).read(w.own); l != (task.WorkspaceLimits{}) {
		limits = &l
	}
	if w.own("input") == nil {
		if n := w.own("need"); n != nil {
			r.bad(n, "add input, the name of an input that is a folder", "need: it has no input to pick files from")
		}
		return nil, limits
	}
	use := task.Use{Name: text(w.own("input")), At: "."}
	members{{"need", &use.Need}}.read(w.own)
	return []task.Use{use}, limits
}

// continues reports whether the key workspace of a task names a folder that another task or round leaves.
func continues(w *node) bool { return w.get("task") != nil || w.get("round") != nil }

// continueFolder returns the dependencies of a task with the one that its key workspace stands for. It belongs to the
// entry of dependsOn for the same task, if there is one, and else it is the last.
func (r *reader) continueFolder(f *fields, s *task.Spec) []task.Ref {
	n := f.get("workspace")
	if !continues(n) {
		return s.DependsOn
	}
	r.subject = r.mine
	of := task.Ref{Task: s.Title, As: task.Payload(text(f.get("dependencyPayload"))), Files: filePathsOf(n.get("files"))}
	if name := n.get("task"); name != nil {
		of.Task = name.text
	}
	if len(of.Files) == 0 {
		of.Files = []task.Path{task.Whole}
	}
	if n.get("round") != nil {
		of.Round, of.Optional = task.Previous, true
	}
	k := slices.IndexFunc(s.DependsOn, func(d task.Ref) bool {
		return d.Round == of.Round && naming.Normalize(d.Task) == naming.Normalize(of.Task)
	})
	if k < 0 {
		return append(s.DependsOn, of)
	}
	switch d := &s.DependsOn[k]; {
	case d.Files == nil:
		d.Files = of.Files
	case !slices.Equal(d.Files, of.Files):
		r.bad(n, "write the files in one of the two places", "workspace: it continues the folder of %s with other files than dependsOn[%d] says", quote(of.Task), k)
	}
	return s.DependsOn
}
