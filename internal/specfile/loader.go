package specfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/workdir"
)

// Limits of the texts that a spec names, in bytes.
const (
	maxText  = 1 << 20 // prompts, descriptions, schemas
	maxInput = 4 << 20
)

// fileNames are tried in a folder, in this order.
var fileNames = []string{"team.yaml", "team.yml", "team.json"}

// open finds the file that an option names, "Path" for the spec itself, and reads and parses
// it. It returns nil after reporting a problem.
func (l *loader) open(given, option string) *node {
	path, dir := given, "."
	text, copied, err := l.orCopy(given, given == "-", func() (text string, err error) {
		text, path, dir, err = l.fetch(given, option)
		return text, err
	})
	if copied != nil {
		path, dir = copied.Found, filepath.Dir(copied.Found)
	}
	if err != nil {
		p := Problem{File: path, Message: err.Error(), Hint: openHint(given, option, err), Err: err}
		if option != "Path" {
			p.Message = l.o.called(option) + ": " + strings.TrimPrefix(p.Message, ErrNotFound.Error()+": ")
		}
		l.found = append(l.found, finding{Problem: p})
		return nil
	}
	src := l.add(path, dir, text)
	src.loaded = l.record(given, path, optionFiles[option].role, text, copied)
	src.loaded.src, src.loaded.keyed = src, true
	n, bad := parse(src)
	if n != nil && copied != nil {
		src.taken = takenOut(n, copied.Without)
	}
	for _, f := range bad {
		l.badAtAs(src, f.at, f.condition(n != nil), f.hint, "%s", f.message)
	}
	if n == nil {
		return nil
	}
	if n.is == isNull {
		l.badAt(src, 0, wholeFile(src, option), "the file is empty")
		return nil
	}
	return n
}

// openHint says what to do about a file of an option that cannot be read.
func openHint(given, option string, err error) string {
	what := optionFiles[option].holds
	switch {
	case errors.Is(err, errNoCopy):
		return ""
	case errors.Is(err, errLarge):
		return "put long texts into files of their own ({file: PATH}), or write JSON"
	case errors.Is(err, errIrregular):
		return "name a regular file, or write - for standard input"
	case errors.Is(err, errFolder), errors.Is(err, ErrNotFound) && option != "Path":
		return "name a file with " + what
	case !errors.Is(err, ErrNotFound):
		return ""
	case given == "":
		return "name the file or its folder, or write team.yaml"
	}
	return "name a file, or a folder with " + strings.Join(fileNames, ", ")
}

// optionFiles are the options that name a file of keys: the role of the file in the
// fingerprint, which stored runs contain, and what it holds.
var optionFiles = map[string]struct{ role, holds string }{
	"Path":         {"spec", ""},
	"Team":         {"--team", "a team: name and agents"},
	"Orchestrator": {"--orchestrator", "settings, such as defaultModel and maxConcurrency"},
	"Coordinator":  {"--coordinator", "the keys of the coordinator, such as model and instructions"},
}

// add makes a source of a text and remembers it.
func (l *loader) add(path, dir, text string) *source {
	src := newSource(path, dir, text)
	src.order = l.sources
	l.sources++
	return src
}

// parse decides between JSON and YAML. JSON is nearly a part of YAML, so a
// file that begins with a brace is tried as JSON whatever its name; one that
// is named .json must be JSON.
func parse(src *source) (n *node, bad []fault) {
	defer func() { src.tree = n }()
	isJSON := src.namedJSON()
	if isJSON || src.opens("{") {
		n, twice, err := parseJSON(src)
		if err == nil {
			return n, twice
		}
		if f, ok := errors.AsType[*fault](err); ok && (isJSON || len(src.text) > maxYAML) {
			return nil, []fault{*f}
		}
	}
	if len(src.text) > maxYAML {
		return nil, []fault{{message: fmt.Sprintf("larger than %d KiB, the most for YAML", maxYAML>>10), hint: "put long texts into files of their own ({file: PATH}), or write JSON"}}
	}
	n, bad, _ = parseYAML(src)
	return n, bad
}

// namedJSON reports whether a file must be JSON.
func (s *source) namedJSON() bool { return strings.EqualFold(filepath.Ext(s.path), ".json") }

// likeJSON reports whether a file is probably meant as JSON.
func (s *source) likeJSON() bool { return s.namedJSON() || s.opens("{") || s.opens("[") }

// opens reports whether a file begins with a text after whitespace.
func (s *source) opens(with string) bool {
	return strings.HasPrefix(strings.TrimLeft(s.text, " \t\r\n"), with)
}

// fetch reads a file of keys that the user named: the text, the path to show, and the
// folder that its paths start from. Only a spec and a team may be named by their folder.
func (l *loader) fetch(given, option string) (text, path, dir string, err error) {
	path = cmp.Or(given, ".")
	if path != "-" && !l.o.StoredOnly {
		info, err := l.o.Dir.Stat(path)
		if err != nil {
			return "", path, "", missing(err)
		}
		if info.IsDir() && option != "Path" && option != "Team" {
			return "", path, "", errFolder
		}
		if info.IsDir() {
			if path, err = l.inFolder(path); err != nil {
				return "", path, "", err
			}
		}
	}
	text, err = l.readPath(path, limitFor(path))
	return text, path, filepath.Dir(path), err
}

// readPath reads a file that may be anywhere; "-" is standard input.
func (l *loader) readPath(path string, limit int) (string, error) {
	switch {
	case l.o.StoredOnly:
		return "", errNoCopy
	case path == "-" && l.o.Stdin == nil:
		return "", errEmpty
	case path == "-":
		return readText(l.o.Stdin, limit, 0)
	}
	if err := CheckReadable(l.o.Dir, path); err != nil {
		return "", err
	}
	f, err := l.o.Dir.Open(path)
	if err != nil {
		return "", unreadable(err)
	}
	defer f.Close()
	return readText(f, limit, fileSize(f))
}

// orCopy reads a file and takes its stored copy if the file is gone, or instead of reading
// it. copied is nil unless the copy was taken.
func (l *loader) orCopy(asked string, instead bool, read func() (string, error)) (text string, copied *StoredFile, err error) {
	copied = l.storedCopy(asked)
	if copied == nil || !instead {
		text, err = read()
		if copied == nil || !errors.Is(err, errNoCopy) && !errors.Is(err, errMissing) && !errors.Is(err, fs.ErrNotExist) {
			return text, nil, err
		}
	}
	text, err = readText(strings.NewReader(copied.Text), len(copied.Text), int64(len(copied.Text)))
	return text, copied, err
}

// openEnds are the paths under which a process finds its own open files, such as
// /dev/fd/63 for <(command) of a shell.
var openEnds = regexp.MustCompile(`^(/dev/(stdin|fd/[0-9]+)|/proc/(self|[0-9]+)/fd/[0-9]+)$`)

// CheckReadable returns an [ErrRead] for a path from a folder that is neither a regular file nor an
// open file of this process, such as /dev/fd/63: opening a named pipe would wait
// for a writer, perhaps forever, and a device may have no end. A path that cannot
// be looked up is no error, since opening it returns a better one.
func CheckReadable(dir workdir.Dir, path string) error {
	info, err := dir.Stat(path)
	switch {
	case err != nil, info.Mode().IsRegular(), openEnds.MatchString(path):
		return nil
	case info.IsDir():
		return errFolder
	}
	return errIrregular
}

// limitFor returns how much of a file may be read, by its name.
func limitFor(path string) int {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return maxYAML
	}
	return maxJSON
}

// InFolder returns the path of the spec in a folder, if there is one. The folder is a path from here.
func InFolder(here workdir.Dir, dir string) (path string, found bool) {
	for _, name := range fileNames {
		if info, err := here.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return filepath.Join(dir, name), true
		}
	}
	return dir, false
}

// inFolder returns the path of the spec in a folder.
func (l *loader) inFolder(dir string) (string, error) {
	if path, found := InFolder(l.o.Dir, dir); found {
		return path, nil
	}
	return dir, fmt.Errorf("%w: the folder has no team.yaml, team.yml or team.json", ErrNotFound)
}

// missing says that a file does not exist, if that is what an error of the file system says.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it does not exist", ErrNotFound)
	}
	return unreadable(err)
}

// unreadable returns an error of the file system without its operation and path.
func unreadable(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Errorf("%w: %w", ErrRead, err)
}

// A readError says why a text cannot be used. It wraps [ErrRead].
type readError string

// Error begins with the text of [ErrRead].
func (e readError) Error() string { return ErrRead.Error() + ": " + string(e) }

// Unwrap returns [ErrRead].
func (e readError) Unwrap() error { return ErrRead }

const (
	errEmpty     readError = "it is empty"
	errBinary    readError = "it holds a zero byte: name a text file"
	errUTF8      readError = "it is not UTF-8: save it as UTF-8"
	errLarge     readError = "it is larger than"
	errFolder    readError = "it is a folder"
	errIrregular readError = "it is not a regular file"
	errUTF16     readError = "it is UTF-16: save it as UTF-8"
	errMissing   readError = "it does not exist"
	errNoCopy    readError = "no copy of it is stored" // only stored copies are read
	errOutside   readError = "it is outside the folder of the spec"
)

// readText reads at most limit bytes of text; hint is a guess of the size. A byte
// order mark is dropped.
func readText(r io.Reader, limit int, hint int64) (string, error) {
	var b strings.Builder // and no copy of 64 MiB
	b.Grow(int(min(max(hint, 0), int64(limit))) + 1)
	if _, err := io.Copy(&b, io.LimitReader(r, int64(limit)+1)); err != nil {
		return "", unreadable(err)
	}
	text := b.String()
	if len(text) > limit {
		return "", fmt.Errorf("%w %s", errLarge, bytesize.Text(int(limit)))
	}
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", errUTF16
	}
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	switch {
	case strings.TrimSpace(text) == "":
		return "", errEmpty
	case strings.IndexByte(text, 0) >= 0:
		return "", errBinary
	case !utf8.ValidString(text):
		return "", errUTF8
	}
	return text, nil
}

// fileSize returns the size of a regular file, and 0 for a pipe.
func fileSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// readFile reads a text that a spec names, relative to the spec and inside its
// folder. It returns nil after reporting what is wrong, at the path. The same
// path is read once.
func (l *loader) readFile(at *node, limit int) *source {
	path, shown, ok := l.path("file", at)
	if !ok {
		return nil
	}
	id := fileID{at.src.dir, path, limit}
	if src, known := l.texts[id]; known {
		return src
	}
	whole := filepath.Join(at.src.dir, shown)
	c := l.storedCopy(whole)
	text, copied, err := l.orCopy(whole, c != nil && c.Instead, func() (string, error) { return l.inside(at.src.dir, path, limit) })
	if err != nil {
		// The path as written: what the environment put into it is not shown.
		l.badAs(at, err, fileHint(err), "file: %s: %v", quote(at.text), err)
		l.texts[id] = nil
		return nil
	}
	src := l.add(whole, filepath.Join(at.src.dir, filepath.Dir(path)), text)
	src.prose = true
	src.loaded = l.record(whole, whole, "file "+shown, text, copied)
	src.loaded.src = src
	l.texts[id] = src
	return src
}

// path returns the path that a value names, and the path to show and to store:
// with ${NAME} in place of values of the environment.
func (e *environment) path(key string, n *node) (path, shown string, ok bool) {
	x, ok := e.expand(key, n)
	if ok {
		e.send(key, nil, n, x, toFile, toFile) // also offline a file is read where it is
	}
	return x.value, x.written, ok
}

type fileID struct {
	dir, path string
	limit     int
}

func fileHint(err error) string {
	switch {
	case errors.Is(err, errOutside):
		return "copy the file into the folder of the spec, and write its path from there"
	case errors.Is(err, errMissing):
		return "paths start from the folder of the spec"
	}
	return ""
}

// inside reads a file of a folder; neither path nor links may lead out of it.
func (l *loader) inside(dir, path string, limit int) (string, error) {
	if l.o.StoredOnly && filepath.IsLocal(path) {
		return "", errNoCopy
	}
	f, err := openInside(l.o.Dir, dir, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readText(f, limit, fileSize(f))
}

func openInside(here workdir.Dir, dir, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, errOutside
	}
	root, err := here.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, unreadable(err)
	}
	defer root.Close()
	// Opening a named pipe would wait for a writer, so look first.
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errMissing
	case err != nil && strings.Contains(err.Error(), "escapes"):
		return nil, errOutside
	case err != nil:
		return nil, unreadable(err)
	case info.IsDir():
		return nil, errFolder
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	return f, nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
