package run

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/label"
)

// confine limits which files a resumed run reads, since a journal from elsewhere may name any file,
// and a spec that sends it anywhere:
//
//   - If the spec still exists, the files in its folder are read too, and others if this command
//     names them. An input outside the folder is read from its copy in the journal. The result of
//     an earlier run is no file: it comes from the same journal.
//   - If the spec no longer exists, everything is read from the copies, except for inputs that this
//     command names. The copy of a spec is never used with other files.
func confine(ctx context.Context, con *console.Console, m *StoredInvocation, was, own *source.SpecFlags) error {
	root, there := was.Root(con.WorkDir)
	if was.StoredOnly || !there {
		was.StoredOnly = true
		return readNamed(ctx, con, was, own)
	}
	for _, f := range []struct{ flag, path, named string }{
		{"team", was.Team, own.Team}, {"orchestrator", was.Orchestrator, own.Orchestrator}, {"coordinator", was.Coordinator, own.Coordinator},
	} {
		if f.path == "" || f.named != "" || f.path == was.MainPath() {
			continue
		}
		if f.path == "-" || !within(con.WorkDir, root, f.path) {
			return exit.Usagef("--%s %s: the file no longer exists or is outside %s, the folder of the spec; such a file is read only if this command names it: add --%s FILE", f.flag, f.path, root, f.flag)
		}
	}
	named, err := flags.Pairs("input", "NAME=FILE", own.Inputs)
	if err != nil {
		return err
	}
	given, err := flags.Pairs("input", "NAME=FILE", was.Inputs)
	if err != nil {
		return err
	}
	for name, path := range given {
		if _, again := named[name]; again || path == "-" || source.IsResult(path) || !isText(path) && within(con.WorkDir, root, path) {
			continue
		}
		if err := useCopy(con, m, was, name, path); err != nil {
			return err
		}
	}
	return nil
}

// within reports whether a file exists in a folder once links are followed.
func within(dir workdir.Dir, folder, path string) bool {
	var err error
	for _, p := range []*string{&folder, &path} {
		if *p, err = dir.EvalSymlinks(*p); err != nil {
			return false
		}
		if *p, err = dir.Abs(*p); err != nil {
			return false
		}
	}
	short, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(short)
}

// useCopy replaces the file of an input by its copy.
func useCopy(con *console.Console, m *StoredInvocation, was *source.SpecFlags, name, path string) error {
	for i := range was.Stored {
		if was.Stored[i].Path != path {
			continue
		}
		was.Stored[i].Instead = true
		if _, err := con.WorkDir.Lstat(path); err == nil && !isText(path) {
			con.Say("resume:  input %s is the copy in the journal: its file is outside the folder of the spec; to read it again: --input %s", terminal.CleanLine(name), format.ShellPath(name+"="+path))
		}
		return nil
	}
	why := "the journal has no copy of it"
	if missing := m.Missing[path]; missing != "" {
		why = "the copy in the journal cannot be read: " + missing
	}
	if isText(path) {
		return exit.Usagef("input %s: its text came with the request for the run, and %s; add --input %s=FILE", name, why, format.ShellPath(name))
	}
	return exit.Usagef("input %s: %s is outside the folder of the spec, and %s; add --input %s", name, path, why, format.ShellPath(name+"="+path))
}

// maxNamed is how many bytes are read of an input that the command names. The spec sets a lower
// limit.
const maxNamed = 64 << 20

// readNamed reads the inputs that this command names, for a run that otherwise reads only copies.
func readNamed(ctx context.Context, con *console.Console, was, own *source.SpecFlags) error {
	named, err := flags.Pairs("input", "NAME=FILE", own.Inputs)
	if err != nil {
		return err
	}
	for name, path := range named {
		if path == "-" && was.MainPath() == "-" {
			continue // refused elsewhere, since the spec came from standard input
		}
		if source.IsResult(path) {
			continue
		}
		text, err := readInput(ctx, con, path)
		if err != nil {
			return exit.FileError("--input "+name+": "+path, err)
		}
		stored := was.Stored[:0:0]
		for _, s := range was.Stored {
			if s.Path != path {
				stored = append(stored, s)
			}
		}
		was.Stored = append(stored, specfile.StoredFile{Path: path, Found: path, Text: strings.TrimPrefix(string(text), "\xef\xbb\xbf"), Label: label.Internal, Instead: true})
	}
	return nil
}

// readInput reads a file that may be a pipe, up to a limit.
func readInput(ctx context.Context, con *console.Console, path string) ([]byte, error) {
	in, err := files.OpenInput(ctx, con.Stdin, con.WorkDir, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, maxNamed))
}
