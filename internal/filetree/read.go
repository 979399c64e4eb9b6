package filetree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/runteam/runteam/internal/pick"
)

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
// take them for the same file.
func Read(fsys fs.FS, exclude []string) (t Tree, skipped []string, err error) {
	return ReadSome(fsys, exclude, MaxBytes, func(string, fs.FileInfo) bool { return true })
}

// ReadSome is [Read] for the files that are wanted. The texts of these may have so many bytes together.
func ReadSome(fsys fs.FS, exclude []string, maxBytes int, isWanted func(name string, info fs.FileInfo) bool) (t Tree, skipped []string, err error) {
	if err := CheckGlobs(exclude); err != nil {
		return nil, nil, err
	}
	t, bytes := Tree{}, 0
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case matchesLoosely(exclude, name), d.IsDir() && matchesLoosely(excluded, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
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
		case !isWanted(name, info):
			return nil
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

// CheckGlobs returns an error about the first glob that is not valid.
func CheckGlobs(globs []string) error {
	for _, g := range globs {
		switch {
		case g == "" || !doublestar.ValidatePattern(g):
			return fmt.Errorf("%q is not a valid glob; write one such as **/*.go", g)
		case g[0] == '/' || strings.HasPrefix(g, "./") || slices.Contains(strings.Split(g, "/"), ".."):
			return fmt.Errorf("%q matches no file; write a path from the folder, such as src/*.go, without a / or a dot before it", g)
		}
	}
	return nil
}

// Matches reports whether one of the globs matches a path. A glob without a slash matches
// the last part of the path.
func Matches(globs []string, name string) bool {
	for _, g := range globs {
		subject := name
		if !strings.Contains(g, "/") && g != "**" {
			subject = path.Base(name)
		}
		if ok, err := doublestar.Match(g, subject); ok && err == nil {
			return true
		}
	}
	return false
}

// matchesLoosely reports whether one of the globs matches a path, or matches it but for the
// spelling of names.
func matchesLoosely(globs []string, name string) bool {
	if Matches(globs, name) {
		return true
	}
	loose := make([]string, len(globs))
	for i, g := range globs {
		loose[i] = pick.Loose(g)
	}
	return Matches(loose, pick.Loose(name))
}
