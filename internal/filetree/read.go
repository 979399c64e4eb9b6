package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/pick"
)

// MaxSteps is the budget of the globs that are matched with the paths of one folder.
const MaxSteps = 200_000_000

// excluded are folders that [Read] always leaves out: what is below them is for other programs.
var excluded = []string{".git", ".runteam", ".runteam-*"}

// A TooLargeError reports a folder with more than a tree may have.
type TooLargeError struct {
	Files, Bytes int // so many were found when the search ended
	limit        int // of bytes
}

func (e *TooLargeError) Error() string {
	if e.Files > MaxFiles {
		return fmt.Sprintf("the folder has more than %d files", MaxFiles)
	}
	return fmt.Sprintf("the texts of the folder have more than %d MiB", e.limit>>20)
}

// Read reads the texts of a folder. Files and folders that match one of the globs in
// exclude are left out, and so are .git, .runteam, symbolic links, and files that are not
// UTF-8 text; skipped names the files among them. A glob without a slash matches a name at
// any depth. Other spellings of a name are left out with it, see [pick.Loose]: some file systems
// take them for the same file. The error is the cause of the end of ctx if that ends before, and a
// [*matcher.LimitError] if a glob takes too much work.
func Read(ctx context.Context, fsys fs.FS, exclude []string) (t Tree, skipped []string, err error) {
	return ReadSome(ctx, fsys, exclude, MaxBytes, func(string, fs.FileInfo) (bool, error) { return true, nil })
}

// ReadSome is [Read] for the files that are wanted. The texts of these may have so many bytes together.
func ReadSome(ctx context.Context, fsys fs.FS, exclude []string, maxBytes int, isWanted func(name string, info fs.FileInfo) (bool, error)) (t Tree, skipped []string, err error) {
	x, err := newExclusion(ctx, exclude)
	if err != nil {
		return nil, nil, err
	}
	t, bytes := Tree{}, 0
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case name == ".":
			return nil
		}
		left, err := x.leavesOut(name, d.IsDir())
		switch {
		case err != nil:
			return err
		case left && d.IsDir():
			return fs.SkipDir
		case left, d.IsDir():
			return nil
		case !d.Type().IsRegular() || !isName(path.Base(name)):
			skipped = append(skipped, name)
			return nil
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		}
		if wanted, err := isWanted(name, info); !wanted || err != nil {
			return err
		}
		content, ok, err := readText(fsys, name, maxBytes-bytes)
		switch {
		case err != nil:
			return err
		case !ok:
			skipped = append(skipped, name)
			return nil
		case bytes > maxBytes-len(content) || len(t) == MaxFiles:
			return &TooLargeError{len(t) + 1, bytes + len(content), maxBytes}
		}
		t[name], bytes = new(string(content)), bytes+len(content)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return t, skipped, nil
}

// readText reads a file of at most limit bytes, or one byte more. It is not ok if the file is
// not a text.
func readText(fsys fs.FS, name string, limit int) (content []byte, ok bool, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	head := make([]byte, min(512, limit+1))
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return head[:n], IsText(head[:n]), nil
	}
	if err != nil || slices.Contains(head, 0) {
		return nil, false, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, int64(limit+1-n)))
	content = append(head, rest...)
	return content, IsText(content) || len(content) > limit, err
}

// ParseGlobs reads globs of paths below a folder. The error is about the first one that is not valid,
// or too large.
func ParseGlobs(globs []string) (matcher.Globs, error) {
	parsed := make(matcher.Globs, len(globs))
	for i, g := range globs {
		var err error
		parsed[i], err = matcher.ParseGlob(g)
		switch {
		case g == "" || errors.Is(err, matcher.ErrGlob):
			return nil, fmt.Errorf("%q is not a valid glob; write one such as **/*.go", g)
		case err != nil:
			return nil, err
		case g[0] == '/' || strings.HasPrefix(g, "./") || slices.Contains(strings.Split(g, "/"), ".."):
			return nil, fmt.Errorf("%q matches no file; write a path from the folder, such as src/*.go, without a / or a dot before it", g)
		}
	}
	return parsed, nil
}

// An exclusion decides what a walk through a folder leaves out.
type exclusion struct {
	own    looseGlobs
	always looseGlobs // folders
	budget *matcher.Budget
}

func newExclusion(ctx context.Context, globs []string) (x exclusion, err error) {
	if _, err = ParseGlobs(globs); err != nil {
		return x, err
	}
	if x.own, err = parseLoosely(globs); err != nil {
		return x, err
	}
	x.always, err = parseLoosely(excluded)
	x.budget = matcher.NewBudget(ctx, MaxSteps)
	return x, err
}

// leavesOut reports whether a path is left out.
func (x *exclusion) leavesOut(name string, isDir bool) (bool, error) {
	if is, err := x.own.match(x.budget, name); is || err != nil || !isDir {
		return is, err
	}
	return x.always.match(x.budget, name)
}

// looseGlobs match a path, or match it but for the spelling of names.
type looseGlobs struct{ exact, loose matcher.Globs }

func parseLoosely(globs []string) (l looseGlobs, err error) {
	if l.exact, err = matcher.ParseGlobs(globs); err != nil {
		return l, err
	}
	for _, g := range globs {
		loose, err := matcher.ParseGlob(pick.Loose(g))
		if errors.Is(err, matcher.ErrGlob) {
			continue // it only is a glob in its own spelling
		}
		if err != nil {
			return l, err
		}
		l.loose = append(l.loose, loose)
	}
	return l, nil
}

func (l *looseGlobs) match(b *matcher.Budget, name string) (bool, error) {
	if found, err := l.exact.Match(b, name); found || err != nil {
		return found, err
	}
	return l.loose.Match(b, pick.Loose(name))
}
