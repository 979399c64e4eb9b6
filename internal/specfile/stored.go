package specfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/label"
)

// A StoredFile is a copy of one file that a spec was made of, to go on with
// when the file is gone. See [File.Stored] and [Options].
type StoredFile struct {
	Path    string               `json:"path"`              // as the options ask for it, or as the spec names it, from where its own path starts
	Found   string               `json:"found"`             // where it was: Path, or for a folder the file in it
	Text    string               `json:"text"`              // without credentials
	Label   label.Classification `json:"label"`             // the highest of what stands in it, at least internal
	Without []string             `json:"without,omitempty"` // the keys whose values were taken out, and the placeholders of other secrets

	// Instead takes the copy of an input's file even if the file exists.
	Instead bool `json:"-"`
}

// String names the file and shows nothing of its text.
func (s StoredFile) String() string {
	return fmt.Sprintf("copy of %q, %s, %s", s.Path, s.Label, bytesize.ClassText(len(s.Text)))
}

// Format prints String, whatever the verb.
func (s StoredFile) Format(w fmt.State, _ rune) { io.WriteString(w, s.String()) }

// LogValue returns String.
func (s StoredFile) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Stored returns a copy of every file that f was made of: the spec, those of
// the flags, the inputs, and what {file: PATH} names, in the order in which
// they were read, each path once. [Load] with the same options and these copies
// as Options.Stored gives an equal File where the files are gone, except that
// credentials are not copied: of keys and headers only the names of variables
// are kept, and in place of any other secret that a run would redact stands its
// placeholder. A file of which that cannot be told is not among the copies. The
// script of Offline is not either.
func (f *File) Stored() []StoredFile {
	var out []StoredFile
	at := make(map[string]int)
	for _, k := range f.places.kept {
		if i, twice := at[k.asked]; twice {
			out[i].Label = out[i].Label.Join(k.label)
			continue
		}
		clean := f.cleanOf(k)
		if !clean.ok {
			continue
		}
		at[k.asked] = len(out)
		out = append(out, StoredFile{Path: k.asked, Found: k.found, Text: clean.text, Label: k.label, Without: slices.Clone(clean.without)})
	}
	return out
}

// cleanOf returns what may be kept of a file: of one that is named as a text and
// is a file of keys too, what may be kept of that.
func (f *File) cleanOf(k *kept) cleaned {
	for _, other := range f.places.kept {
		if other.keyed && other.text == k.text {
			return other.clean()
		}
	}
	return k.clean()
}

// Restored returns the paths of the files for which a stored copy was taken, in
// the order in which they were asked for.
func (f *File) Restored() []string {
	var out []string
	for _, k := range f.places.kept {
		if k.copied != nil && !slices.Contains(out, k.found) {
			out = append(out, k.found)
		}
	}
	return out
}

// A kept is a file that was read, as a copy of it is made when somebody asks.
type kept struct {
	asked, found string
	role         string // what it is to the spec, for the fingerprint
	text         string
	keyed        bool    // it may have keys whose values are credentials
	src          *source // nil for the file of an input flag
	label        label.Classification
	copied       *StoredFile // what stood in for it, or nil

	once    sync.Once
	cleaned cleaned
}

// keep remembers a file that was read.
func (l *loader) keep(asked, found, role, text string, copied *StoredFile) *kept {
	k := &kept{asked: asked, found: found, role: role, text: text, copied: copied, label: label.Internal}
	if copied != nil {
		k.label = k.label.Join(copied.Label)
	}
	l.kept = append(l.kept, k)
	return k
}

// holds notes that what a value says has a label: the file that it names, or
// the one in which it stands.
func (l *loader) holds(n *node, level label.Classification) {
	if n == nil {
		return
	}
	src := n.src
	if from, ok := l.named[n]; ok && from != nil {
		src = from
	}
	if src.kept != nil {
		src.kept.label = src.kept.label.Join(level)
	}
}

// storedCopy returns the stored copy of a path, or nil.
func (l *loader) storedCopy(path string) *StoredFile {
	for i := range l.o.Stored {
		if l.o.Stored[i].Path == path {
			return &l.o.Stored[i]
		}
	}
	return nil
}

// Fingerprint returns a digest, in hexadecimal digits, of what f means for a
// run, to tell whether a spec has changed: of the values of the spec and of the
// files of flags, so not of white space, comments and the folder that they
// stand in; of the texts of the files that are named, as they are; of the goal,
// the models and the parameters of flags; and of what the environment says of
// models and endpoints. Credentials do not count. Whoever writes it down beside
// less than all of that keys it first: it is a plain digest, also of what is
// secret.
func (f *File) Fingerprint() string {
	h := sha256.New()
	add := func(words ...string) {
		for _, w := range words {
			fmt.Fprintf(h, "%d:%s", len(w), w)
		}
	}
	add("runteam spec 1", f.Name)
	for _, k := range f.places.kept {
		add(k.role, k.meaning())
	}
	add(f.places.flags...)
	for i := range f.Agents {
		add(f.Agents[i].version())
	}
	if f.Coordinator != nil {
		add(f.Coordinator.version())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// meaning is what a file says, without credentials: its values if it has keys,
// else its text.
func (k *kept) meaning() string {
	clean := k.clean()
	switch {
	case !clean.ok && !k.keyed:
		return k.text
	case !k.keyed:
		return clean.text
	}
	n := k.src.tree
	if clean.ok && clean.text != k.text {
		n, _ = parse(newSource(k.found, "", clean.text))
	}
	text, err := n.appendJSON(nil)
	if err != nil {
		return clean.text // a number that JSON has none for, such as .inf, in a value that is not looked at
	}
	return string(text)
}
