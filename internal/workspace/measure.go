package workspace

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits bound a workspace. What the runtime writes itself does not count.
type Limits struct {
	Bytes       int // of all files together
	Files       int // files and folders
	Outputs     int // files in the folder outputs, and in folders there
	OutputBytes int // of each file there

	TotalOutputBytes int // of all files there together
}

// maxDepth bounds how deep folders are nested.
const maxDepth = 100

// A LimitError says how a workspace is above its limits. Its text is for the agent, which can
// correct that.
type LimitError struct{ Problem string }

func (e *LimitError) Error() string { return "workspace: " + e.Problem }

// A Digest is a digest of all files of a workspace: their paths, modes and contents, and which of them are as the task
// was given them, since one that was written again with the same text is an output.
type Digest [sha256.Size]byte

// runtimeFile matches the files that the runtime writes, and writes again when a run is
// resumed: the turns, and results that are too long for a prompt.
var runtimeFile = regexp.MustCompile(`^(history/step_\d{3,}\.json|outputs/call_\d+_\d+\.txt)$`)

// outputsDir is the folder that has limits of its own.
const outputsDir = "outputs"

// A seenFile is a file whose content was read.
type seenFile struct {
	info fs.FileInfo
	sum  [sha256.Size]byte
}

// settled is how old a file must be to have its content remembered: file systems count time
// in steps, so that a file that changes again at once may have the same time.
const settled = 2 * time.Second

// An entry is a file or folder of a workspace.
type entry struct {
	path string
	info fs.FileInfo
}

// A measurement adds up what is in a workspace.
type measurement struct {
	folder  *Folder
	limits  Limits
	written map[string]int // sizes of the files that the runtime wrote, by path
	entries []entry        // without the files of the runtime
	bytes   int64
	files   int
	outputs int
	output  int64 // bytes of them
}

// Unlimited are limits that no workspace exceeds.
var Unlimited = Limits{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt}

// Measure returns the digest of the workspace, without the files of the runtime. The error is a
// [*LimitError] if the workspace is above its limits. written has the sizes of the files that
// the runtime wrote; what a tool added to one counts.
func (f *Folder) Measure(l Limits, written map[string]int) (Digest, error) {
	m := measurement{folder: f, limits: l, written: written}
	if err := m.walk(".", 0); err != nil {
		return Digest{}, err
	}
	return m.digest(time.Now())
}

// walk adds the entries of a folder.
func (m *measurement) walk(dir string, depth int) error {
	if depth > maxDepth {
		return &LimitError{fmt.Sprintf("folders are nested more than %d deep; remove %q", maxDepth, firstOf(dir))}
	}
	d, _, err := OpenFile(m.folder.Root, dir, os.O_RDONLY, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // it was removed meanwhile
	case err != nil:
		return unreadable(dir, err)
	}
	defer d.Close()
	var folders []string
	for {
		list, err := d.ReadDir(256)
		for _, of := range list {
			name := of.Name()
			isFolder, err := m.add(path.Join(dir, name), of)
			if err != nil {
				return err
			}
			if isFolder {
				folders = append(folders, path.Join(dir, name))
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return unreadable(dir, err)
		}
	}
	for _, name := range folders {
		if err := m.walk(name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// add counts one file or folder.
func (m *measurement) add(name string, of fs.DirEntry) (isFolder bool, err error) {
	info, err := of.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // it was removed meanwhile
	case err != nil:
		return false, unreadable(name, err)
	}
	size := int64(0)
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	own, ours := m.written[name]
	if m.bytes += max(0, size-int64(own)); m.bytes > int64(m.limits.Bytes) {
		return false, &LimitError{fmt.Sprintf("its files have more than %d bytes, the limit; remove some", m.limits.Bytes)}
	}
	if strings.HasPrefix(name, outputsDir+"/") && !ours && !info.IsDir() {
		m.outputs++
		m.output += size
		switch {
		case m.outputs > m.limits.Outputs:
			return false, &LimitError{fmt.Sprintf("%s has more than %d files, the limit; remove some, or write elsewhere", outputsDir, m.limits.Outputs)}
		case size > int64(m.limits.OutputBytes):
			return false, &LimitError{fmt.Sprintf("%q has %d bytes; a file in %s may have %d", name, size, outputsDir, m.limits.OutputBytes)}
		case m.output > int64(m.limits.TotalOutputBytes):
			return false, &LimitError{fmt.Sprintf("the files in %s have more than %d bytes together, the limit; remove some, or write elsewhere", outputsDir, m.limits.TotalOutputBytes)}
		}
	}
	if !ours {
		m.files++
	}
	if m.files > m.limits.Files {
		return false, &LimitError{fmt.Sprintf("it has more than %d files and folders, the limit; remove some", m.limits.Files)}
	}
	if !info.Mode().IsRegular() || !runtimeFile.MatchString(name) {
		m.entries = append(m.entries, entry{name, info})
	}
	return info.IsDir(), nil
}

// firstOf returns the first folders of a path.
func firstOf(dir string) string {
	return strings.Join(strings.SplitN(dir, "/", 4)[:3], "/")
}

// unreadable returns the error about a file that cannot be counted.
func unreadable(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return &LimitError{fmt.Sprintf("%q cannot be counted (%v); remove it", name, err)}
}

// digest returns the digest of the entries.
func (m *measurement) digest(now time.Time) (of Digest, err error) {
	slices.SortFunc(m.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	all, seen := sha256.New(), make(map[string]seenFile, len(m.entries))
	for _, e := range m.entries {
		writeText(all, e.path)
		writeText(all, e.info.Mode().String())
		switch mode := e.info.Mode(); {
		case mode.IsRegular():
			s := m.folder.seen[e.path]
			switch {
			case isSame(s.info, e.info):
			case m.folder.isGiven(e.path, e.info):
				s.sum = m.folder.sumOf(m.folder.given[e.path].text)
			default:
				if s.sum, err = m.folder.sum(e.path, e.info.Size()); err != nil {
					return of, err
				}
			}
			all.Write(s.sum[:])
			if e.info.ModTime().Equal(givenTime) {
				writeText(all, "given")
			}
			if now.Sub(e.info.ModTime()) > settled {
				seen[e.path] = seenFile{e.info, s.sum}
			}
		case mode&fs.ModeSymlink != 0:
			target, err := m.folder.Readlink(e.path)
			if err != nil {
				return of, err
			}
			writeText(all, target)
		}
	}
	m.folder.seen = seen
	return Digest(all.Sum(nil)), nil
}

// isSame reports whether a file was not changed since it was read. a may be nil.
func isSame(a, b fs.FileInfo) bool {
	if a == nil || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
		return false
	}
	before, _ := changeTime(a)
	now, _ := changeTime(b)
	return before == now
}

// sum returns the digest of the content of a file, of which it reads at most so many bytes.
func (f *Folder) sum(name string, size int64) (sum [sha256.Size]byte, err error) {
	in, _, err := OpenFile(f.Root, name, os.O_RDONLY, 0)
	if err != nil {
		return sum, err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(in, size)); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// writeText adds a text with its length.
func writeText(h hash.Hash, text string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(text)))
	h.Write(size[:])
	h.Write([]byte(text))
}
