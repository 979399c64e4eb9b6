package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
)

// confine limits which files a resumed run reads, since a journal from elsewhere
// may name any file, and a spec that sends it anywhere:
//
//   - The spec is read where it was. Then the files in its folder are read too,
//     and others if this command names them; of an input outside the folder the
//     copy in the journal is taken. The result of an earlier run is no file: it
//     comes from the same journal.
//   - If the spec is gone, all is taken from the copies but the inputs that this
//     command names. A copy of a spec is never used with other files.
func (a *app) confine(ctx context.Context, m *remembered, was, own *source) error {
	root, there := was.root()
	if was.storedOnly || !there {
		was.storedOnly = true
		return a.readNamed(ctx, was, own)
	}
	for _, f := range []struct{ flag, path, named string }{
		{"team", was.team, own.team}, {"orchestrator", was.orchestrator, own.orchestrator}, {"coordinator", was.coordinator, own.coordinator},
	} {
		if f.path == "" || f.named != "" || f.path == was.main() {
			continue
		}
		if f.path == "-" || !within(root, f.path) {
			return usageError("--%s %s: the file is gone or outside %s, the folder of the spec, and such a file is read only if this command names it: add --%s FILE", f.flag, f.path, root, f.flag)
		}
	}
	named, err := pairs("input", "NAME=FILE", own.inputs)
	if err != nil {
		return err
	}
	given, err := pairs("input", "NAME=FILE", was.inputs)
	if err != nil {
		return err
	}
	for name, path := range given {
		if _, again := named[name]; again || path == "-" || isResult(path) || within(root, path) {
			continue
		}
		if err := a.insteadOf(m, was, name, path); err != nil {
			return err
		}
	}
	return nil
}

// main is the path of the file that a spec begins with.
func (s *source) main() string {
	if s.path == "" && s.team != "" {
		return s.team
	}
	return s.path
}

// isResult reports whether an --input names the result of an earlier run, and no file.
func isResult(given string) bool { return strings.HasPrefix(given, specfile.ResultPrefix) }

// root returns the folder that the spec is in, and whether the spec is there.
func (s *source) root() (folder string, there bool) {
	path := s.main()
	if path == "-" {
		return "", false
	}
	if path == "" {
		path = "."
	}
	at, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if !at.IsDir() {
		return filepath.Dir(path), true
	}
	_, there = specfile.InFolder(path)
	return path, there
}

// within reports whether a file is there and in a folder, wherever links lead.
func within(folder, path string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err != nil {
		return false
	}
	short, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(short)
}

// insteadOf has the copy of an input taken in place of its file.
func (a *app) insteadOf(m *remembered, was *source, name, path string) error {
	for i := range was.stored {
		if was.stored[i].Path != path {
			continue
		}
		was.stored[i].Instead = true
		if _, err := os.Lstat(path); err == nil {
			a.say("resume:  input %s is the copy in the journal: its file is outside the folder of the spec; to read it again: --input %s", cleanLine(name), shellWord(name+"="+path))
		}
		return nil
	}
	why := "the journal has no copy of it"
	if missing := m.missing[path]; missing != "" {
		why = "the copy in the journal cannot be read: " + missing
	}
	return usageError("input %s: %s is outside the folder of the spec, and %s; add --input %s", name, path, why, shellWord(name+"="+path))
}

// maxNamed is how many bytes are read of an input that the command names; the
// spec says how many of them it may have.
const maxNamed = 64 << 20

// readNamed reads the inputs that this command names, for a run that reads
// nothing else but copies.
func (a *app) readNamed(ctx context.Context, was, own *source) error {
	named, err := pairs("input", "NAME=FILE", own.inputs)
	if err != nil {
		return err
	}
	for name, path := range named {
		if path == "-" && was.main() == "-" {
			continue // refused elsewhere: the spec came from there
		}
		if isResult(path) {
			continue
		}
		in := a.stdin
		if path != "-" {
			file, err := openInput(ctx, path)
			if err != nil {
				return &fault{kind: kindIO, err: fmt.Errorf("--input %s: %s: %w", name, path, plainly(err))}
			}
			defer file.Close()
			in = file
		}
		text, err := io.ReadAll(io.LimitReader(newUntil(ctx, in), maxNamed))
		if err != nil {
			return &fault{kind: kindIO, err: fmt.Errorf("--input %s: %s: %w", name, path, plainly(err))}
		}
		kept := was.stored[:0:0]
		for _, s := range was.stored {
			if s.Path != path {
				kept = append(kept, s)
			}
		}
		was.stored = append(kept, specfile.StoredFile{Path: path, Found: path, Text: strings.TrimPrefix(string(text), "\xef\xbb\xbf"), Label: label.Internal, Instead: true})
	}
	return nil
}
