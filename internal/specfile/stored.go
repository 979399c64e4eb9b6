package specfile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/runteam/runteam/label"
)

// A StoredFile is a copy of one file that a spec was made from, with which a run can be
// resumed when the file is gone. See [File.Stored] and [Options].
type StoredFile struct {
	Path    string               `json:"path"`              // as in the options, or as the spec names it
	Found   string               `json:"found"`             // the path of the file that was read
	Text    string               `json:"text"`              // without credentials
	Label   label.Classification `json:"label"`             // the highest label of its contents, at least internal
	Without []string             `json:"without,omitempty"` // the keys whose values were removed, and the placeholders of other secrets

	// Instead uses the copy of the file of an input, or of one that {file: PATH} names, even if the file exists.
	Instead bool `json:"-"`
}

// String names the file and shows nothing of its text.
func (s StoredFile) String() string {
	return fmt.Sprintf("copy of %q, %s", s.Path, s.Label)
}

// Format prints String, whatever the verb.
func (s StoredFile) Format(w fmt.State, _ rune) { io.WriteString(w, s.String()) }

// LogValue returns String.
func (s StoredFile) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Stored returns a copy of every file that f was made from, in the order in which they were
// read, each path once: the spec, the files of the options, the inputs, and the files that
// {file: PATH} names. [Load] with the same options and these copies as Options.Stored
// returns an equal File when the files are gone, but without credentials: keys and headers
// have only the names of variables, and placeholders replace other secrets that a run would
// redact. Files from which credentials cannot be removed reliably, and the script of
// Offline, are not copied.
func (f *File) Stored() []StoredFile {
	var out []StoredFile
	at := make(map[string]int)
	for _, k := range f.places.loaded {
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

// cleanOf returns a file without credentials. A text that is also read as a file of keys is
// cleaned as such.
func (f *File) cleanOf(k *loadedFile) cleaned {
	for _, other := range f.places.loaded {
		if other.keyed && other.text == k.text {
			return other.clean()
		}
	}
	return k.clean()
}

// Restored returns the paths of the files that a stored copy replaced, in the order in which
// they were read.
func (f *File) Restored() []string {
	var out []string
	for _, k := range f.places.loaded {
		if k.copied != nil && !slices.Contains(out, k.found) {
			out = append(out, k.found)
		}
	}
	return out
}

// A loadedFile is a file that was read, for [File.Stored] and [File.Fingerprint].
type loadedFile struct {
	asked, found string
	role         string // its role in the fingerprint
	text         string
	keyed        bool    // it is a file of keys, whose values may be credentials
	src          *source // nil for the input of an option
	label        label.Classification
	copied       *StoredFile // the copy that replaced it, or nil

	once    sync.Once
	cleaned cleaned
}

// record remembers a file that was read.
func (l *loader) record(asked, found, role, text string, copied *StoredFile) *loadedFile {
	k := &loadedFile{asked: asked, found: found, role: role, text: text, copied: copied, label: label.Internal}
	if copied != nil {
		k.label = k.label.Join(copied.Label)
	}
	l.loaded = append(l.loaded, k)
	return k
}

// raiseLabel raises the label of the file that a value names, or that contains it.
func (l *loader) raiseLabel(n *node, level label.Classification) {
	if n == nil {
		return
	}
	src := n.src
	if from, ok := l.named[n]; ok && from != nil {
		src = from
	}
	if src.loaded != nil {
		src.loaded.label = src.loaded.label.Join(level)
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

// Fingerprint returns a digest of f in hexadecimal digits that changes when f would run
// differently. It covers the values of the spec and the files of the options, but not their
// whitespace, comments and folder; the texts of the files that they name; the goal, models
// and parameters of the options; and variables in models and endpoints. It does not cover
// credentials. It is a plain digest of texts that may be sensitive, so it must be keyed
// before it is stored without them.
func (f *File) Fingerprint() string {
	h := sha256.New()
	add := func(words ...string) {
		for _, w := range words {
			fmt.Fprintf(h, "%d:%s", len(w), w)
		}
	}
	add("runteam spec 1", f.Name)
	for _, k := range f.places.loaded {
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

// meaning returns the values of a file of keys, or the text of another file, without
// credentials.
func (k *loadedFile) meaning() string {
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
		return clean.text // a number such as .inf, which JSON cannot express
	}
	return string(text)
}
