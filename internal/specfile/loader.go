package specfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/bytesize"
)

// Limits of the texts that a spec names, in bytes.
const (
	maxText  = 1 << 20 // prompts, descriptions, schemas
	maxInput = 4 << 20
)

// fileNames are tried in a folder, in this order.
var fileNames = []string{"team.yaml", "team.yml", "team.json"}

// open finds the file that a path means, reads it and parses it. It returns
// nil after reporting a problem. The flag names the option that gave the path,
// "" for the spec itself.
func (l *loader) open(given, flag string) *node {
	text, path, dir, err := l.fetch(given, flag)
	copied := l.storedCopy(given)
	if copied != nil && (given == "-" || errors.Is(err, errNoCopy) || errors.Is(err, ErrNotFound)) {
		path, dir = copied.Found, filepath.Dir(copied.Found)
		text, err = copyText(copied, limitFor(path))
	} else {
		copied = nil
	}
	if err != nil {
		p := Problem{File: path, Message: err.Error(), Err: err}
		if flag != "" {
			p.Message = flag + ": " + strings.TrimPrefix(p.Message, ErrNotFound.Error()+": ")
		}
		switch what := flagFiles[flag]; {
		case errors.Is(err, errNoCopy):
		case errors.Is(err, errLarge):
			p.Hint = "put long texts into files of their own ({file: PATH}), or write JSON"
		case errors.Is(err, errIrregular):
			p.Hint = "name a regular file, or write - for standard input"
		case errors.Is(err, errFolder):
			p.Hint = "name a file with " + what
		case !errors.Is(err, ErrNotFound):
		case flag != "":
			p.Hint = "name a file with " + what
		case given == "":
			p.Hint = "name the file or its folder, or write team.yaml"
		default:
			p.Hint = "name a file, or a folder with " + strings.Join(fileNames, ", ")
		}
		l.found = append(l.found, finding{Problem: p})
		return nil
	}
	src := l.add(path, dir, text)
	src.kept = l.keep(given, path, cmp.Or(flag, "spec"), text, copied)
	src.kept.src, src.kept.keyed = src, true
	n, bad := parse(src)
	if n != nil && copied != nil {
		src.taken = takenOut(n, copied.Without)
	}
	for _, f := range bad {
		err := ErrSyntax
		if n != nil && !f.refused {
			err = ErrInvalid
		}
		l.badAtAs(src, f.at, err, f.hint, "%s", f.message)
	}
	if n == nil {
		return nil
	}
	if n.is == isNull {
		l.badAt(src, 0, wholeFile(src, flag), "the file says nothing")
		return nil
	}
	return n
}

// flagFiles says what is in the file of a flag.
var flagFiles = map[string]string{
	"--team":         "a team: name and agents",
	"--orchestrator": "settings, such as defaultModel and maxConcurrency",
	"--coordinator":  "the keys of the coordinator, such as model and instructions",
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

// likeJSON reports whether who wrote a file probably meant JSON.
func (s *source) likeJSON() bool { return s.namedJSON() || s.opens("{") || s.opens("[") }

// opens reports whether a file begins with a word, behind blanks.
func (s *source) opens(with string) bool {
	return strings.HasPrefix(strings.TrimLeft(s.text, " \t\r\n"), with)
}

// fetch reads a file that the user named: the text, the path to show, and the
// folder that its paths start from. Only a spec and a team may be named by their folder.
func (l *loader) fetch(given, flag string) (text, path, dir string, err error) {
	if given == "-" && l.storedCopy(given) != nil {
		return "", "-", ".", nil // nobody writes it again
	}
	if l.o.StoredOnly {
		return "", cmp.Or(given, "."), "", fmt.Errorf("%w: %w", ErrRead, errNoCopy)
	}
	if given == "-" {
		var r io.Reader = strings.NewReader("")
		if l.o.Stdin != nil {
			r = l.o.Stdin
		}
		text, err = readText(r, maxJSON, 0)
		return text, "-", ".", err
	}
	path = cmp.Or(given, ".")
	info, err := os.Stat(path)
	if err != nil {
		return "", path, "", missing(err)
	}
	if info.IsDir() {
		if flag != "" && flag != "--team" {
			return "", path, "", fmt.Errorf("%w: %w", ErrRead, errFolder)
		}
		path, err = l.inFolder(path)
		if err != nil {
			return "", path, "", err
		}
	}
	if err := CheckReadable(path); err != nil {
		return "", path, "", fmt.Errorf("%w: %w", ErrRead, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", path, "", missing(err)
	}
	defer f.Close()
	text, err = readText(f, limitFor(path), fileSize(f))
	return text, path, filepath.Dir(path), err
}

// openEnds are the paths under which a process finds its own open files, such as
// /dev/fd/63 for <(command) of a shell.
var openEnds = regexp.MustCompile(`^(/dev/(stdin|fd/[0-9]+)|/proc/(self|[0-9]+)/fd/[0-9]+)$`)

// CheckReadable returns an error for a path that is neither a regular file nor an
// open file of this process, such as /dev/fd/63: opening a named pipe would wait
// for a writer, perhaps forever, and a device may have no end. A path that cannot
// be looked up is no error, since opening it returns a better one.
func CheckReadable(path string) error {
	info, err := os.Stat(path)
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

// InFolder returns the path of the spec in a folder, if there is one.
func InFolder(dir string) (path string, found bool) {
	for _, name := range fileNames {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return filepath.Join(dir, name), true
		}
	}
	return dir, false
}

// inFolder returns the path of the spec in a folder.
func (l *loader) inFolder(dir string) (string, error) {
	if path, found := InFolder(dir); found {
		return path, nil
	}
	return dir, fmt.Errorf("%w: the folder has no team.yaml, team.yml or team.json", ErrNotFound)
}

// missing words an error of the file system; the path stands before it.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it does not exist", ErrNotFound)
	}
	return fmt.Errorf("%w: %w", ErrRead, reason(err))
}

// reason takes operation and path out of an error of the file system.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Conditions of a text that cannot be taken.
var (
	errEmpty     = errors.New("it is empty")
	errBinary    = errors.New("it holds a zero byte: name a text file")
	errUTF8      = errors.New("it is not UTF-8: save it as UTF-8")
	errLarge     = errors.New("it is larger than")
	errFolder    = errors.New("it is a folder")
	errIrregular = errors.New("it is not a regular file")
	errUTF16     = errors.New("it is UTF-16: save it as UTF-8")
)

// readText reads at most limit bytes of text, of which hint is a guess. A byte
// order mark is dropped.
func readText(r io.Reader, limit int, hint int64) (string, error) {
	var b strings.Builder // and no copy of 64 MiB
	b.Grow(int(min(max(hint, 0), int64(limit))) + 1)
	if _, err := io.Copy(&b, io.LimitReader(r, int64(limit)+1)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrRead, reason(err))
	}
	text := b.String()
	if len(text) > limit {
		return "", fmt.Errorf("%w: %w %s", ErrRead, errLarge, bytesize.Text(int(limit)))
	}
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", fmt.Errorf("%w: %w", ErrRead, errUTF16)
	}
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	switch {
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("%w: %w", ErrRead, errEmpty)
	case strings.IndexByte(text, 0) >= 0:
		return "", fmt.Errorf("%w: %w", ErrRead, errBinary)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("%w: %w", ErrRead, errUTF8)
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
	text, err := l.inside(at.src.dir, path, limit)
	whole := filepath.Join(at.src.dir, shown)
	copied := l.storedCopy(whole)
	if copied != nil && (errors.Is(err, errMissing) || errors.Is(err, errNoCopy)) {
		text, err = copyText(copied, limit)
	} else {
		copied = nil
	}
	if err != nil {
		// The path as written: what the environment put into it is not shown.
		l.badAs(at, err, fileHint(err), "file: %s: %v", quote(at.text), err)
		l.texts[id] = nil
		return nil
	}
	src := l.add(whole, filepath.Join(at.src.dir, filepath.Dir(path)), text)
	src.prose = true
	src.kept = l.keep(whole, whole, "file "+shown, text, copied)
	src.kept.src = src
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

var errMissing = errors.New("it does not exist")

// errNoCopy reports a file that is read from copies alone, and of which there is none.
var errNoCopy = errors.New("no copy of it was kept")

var errOutside = errors.New("it is outside the folder of the spec")

// inside reads a file of a folder; neither path nor links may lead out of it.
func (l *loader) inside(dir, path string, limit int) (string, error) {
	if l.o.StoredOnly && filepath.IsLocal(path) {
		return "", fmt.Errorf("%w: %w", ErrRead, errNoCopy)
	}
	f, err := openInside(dir, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readText(f, limit, fileSize(f))
}

func openInside(dir, path string) (*os.File, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%w: %w", ErrRead, errOutside)
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrRead, errMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRead, reason(err))
	}
	defer root.Close()
	// Opening a named pipe would wait for a writer, so look first.
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrRead, errMissing)
	case err != nil && strings.Contains(err.Error(), "escapes"):
		return nil, fmt.Errorf("%w: %w", ErrRead, errOutside)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrRead, reason(err))
	case info.IsDir():
		return nil, fmt.Errorf("%w: %w", ErrRead, errFolder)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %w", ErrRead, errIrregular)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRead, reason(err))
	}
	return f, nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
