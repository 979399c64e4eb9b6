// Package filetree holds the texts of a folder as a value, a [Tree]: [Read] makes it from a
// file system, [Tree.JSON] and [Parse] make it a text and back, and [Patch] compares two of them.
package filetree

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on a tree.
const (
	MaxFiles = 10_000
	MaxBytes = 32 << 20 // of all texts
)

// ErrInvalid reports a text that is no tree.
var ErrInvalid = errors.New("not a folder")

// A Tree has the files of a folder by their paths, which are relative and have slashes. A
// nil text means that the file was removed.
type Tree map[string]*string

// SameText reports whether two texts of a tree are the same. A nil text, of a file that was
// removed or never existed, is the same as nil only.
func SameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Paths returns the paths in order.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }

// Has reports whether there are files in a folder.
func (t Tree) Has(folder string) bool {
	for path := range t {
		if strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}

// Conflict returns a path of the tree that is that of a folder too; empty if there is none.
// Such a tree has no JSON.
func (t Tree) Conflict() string {
	for _, at := range t.Paths() {
		for folder := path.Dir(at); folder != "."; folder = path.Dir(folder) {
			if _, isFile := t[folder]; isFile {
				return folder
			}
		}
	}
	return ""
}

// Bytes returns the size of all texts.
func (t Tree) Bytes() int {
	n := 0
	for _, text := range t {
		if text != nil {
			n += len(*text)
		}
	}
	return n
}

// Value returns the tree as nested objects: folders with files, whose values are texts, or
// nil for removed files. A path of the tree is then a JSON Pointer.
func (t Tree) Value() map[string]any {
	root := map[string]any{}
	for path, text := range t {
		at := root
		folders := strings.Split(path, "/")
		name := folders[len(folders)-1]
		for _, folder := range folders[:len(folders)-1] {
			below, ok := at[folder].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[folder] = below
			}
			at = below
		}
		if text == nil {
			at[name] = nil
		} else {
			at[name] = *text
		}
	}
	return root
}

// JSON returns [Tree.Value] as JSON. Equal trees give equal texts.
func (t Tree) JSON() string {
	raw, err := json.Marshal(t.Value())
	if err != nil {
		panic(err) // it has only texts
	}
	return string(raw)
}

// Parse reads what [Tree.JSON] returns.
func Parse(text string) (Tree, error) {
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return Of(v)
}

// Of returns the tree of nested objects, as [Tree.Value] returns them.
func Of(v map[string]any) (Tree, error) {
	t := Tree{}
	return t, t.add("", v)
}

// add adds the files of a folder.
func (t Tree) add(prefix string, v map[string]any) error {
	for name, of := range v {
		path := prefix + name
		if !isName(name) {
			return fmt.Errorf("%w: %q cannot be the name of a file", ErrInvalid, path)
		}
		switch of := of.(type) {
		case nil:
			t[path] = nil
		case string:
			t[path] = &of
		case map[string]any:
			if err := t.add(path+"/", of); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %q is neither a text nor a folder", ErrInvalid, path)
		}
		if len(t) > MaxFiles {
			return fmt.Errorf("%w: more than %d files", ErrInvalid, MaxFiles)
		}
	}
	return nil
}

// isName reports whether a file can have this name.
func isName(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, `/\`) && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// IsText reports whether the content of a file is a text.
func IsText(content []byte) bool {
	return utf8.Valid(content) && !slices.Contains(content, 0)
}

// Newest returns the versions of a file that no other one follows, or all of them if each is followed by another. A version
// follows another one if whoever wrote it was given the other.
func Newest[V comparable](all []V, follows func(v, other V) bool) []V {
	left := slices.DeleteFunc(slices.Clone(all), func(v V) bool {
		return slices.ContainsFunc(all, func(o V) bool { return o != v && follows(o, v) })
	})
	if len(left) == 0 {
		return all
	}
	return left
}

// Under returns the tree as a part of a larger one, in a folder of it; "." is the top.
func (t Tree) Under(folder string) Tree {
	if folder == "." {
		return t
	}
	moved := make(Tree, len(t))
	for path, text := range t {
		moved[folder+"/"+path] = text
	}
	return moved
}

// Bounds on a listing.
const (
	maxListed      = 400 // files
	maxListedBytes = 32 << 10
)

// List returns a line for each file, with its path in a folder and its size, in the order
// of the paths.
func (t Tree) List(folder string) string {
	var b strings.Builder
	in := t.Under(folder)
	for i, path := range in.Paths() {
		switch text := in[path]; {
		case i == maxListed || b.Len()+len(path) > maxListedBytes:
			fmt.Fprintf(&b, "and %d other files\n", len(in)-i)
			return strings.TrimSuffix(b.String(), "\n")
		case text == nil:
			b.WriteString(path + " (removed)\n")
		default:
			fmt.Fprintf(&b, "%s (%d bytes)\n", path, len(*text))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
