package roles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
)

// maxFile is the largest size of a file of roles, in bytes.
const maxFile = 1 << 20

// How often a file is read again, and for how long the roles of a file are valid that has become invalid.
const (
	readEvery = 2 * time.Second
	validFor  = 30 * time.Second
)

// A File is a file of roles, which is read again when it is used and has changed: at most once in two
// seconds. If it then cannot be read or is invalid, the roles that it had are valid for 30 seconds more;
// after that nobody has a role until the file is valid again. A File is safe for concurrent use.
type File struct {
	dir  workdir.Dir
	path string
	now  func() time.Time
	say  func(string)

	mu      sync.Mutex // guards what follows
	text    []byte     // that was read last
	set     *Set       // of the last valid text
	checked time.Time  // when the file was last read
	problem string     // what is wrong with the file; empty: nothing
	since   time.Time  // when that began
	closed  bool       // whether it was said that nobody has a role
}

// Open reads a file of roles, which must be valid. say is called with warnings about it, and later with
// what goes wrong with it, and when it is valid again; it must not use the File.
func Open(dir workdir.Dir, path string, now func() time.Time, say func(message string)) (*File, error) {
	f := &File{dir: dir, path: path, now: now, say: say, checked: now()}
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	if f.set, err = Parse(path, text, f.checked); err != nil {
		return nil, err
	}
	f.text = text
	f.sayWarnings()
	return f, nil
}

// Grants returns the grants of a person; see [Set.Grants].
func (f *File) Grants(person string, groups []string) []Grant {
	return f.current().Grants(person, groups)
}

// Token returns a token; see [Set.Token].
func (f *File) Token(secret string) (Token, bool) {
	return f.current().Token(secret, f.now())
}

// GrantsOf returns the grants of a token, of which the ID and the person count; see [Set.GrantsOf].
func (f *File) GrantsOf(t Token) []Grant {
	return f.current().GrantsOf(t, f.now())
}

// current returns what is valid now.
func (f *File) current() *Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if since := now.Sub(f.checked); since >= readEvery || since < 0 {
		f.checked = now
		f.update(now)
	}
	if f.problem == "" || now.Sub(f.since) < validFor {
		return f.set
	}
	if !f.closed {
		f.closed = true
		f.say(fmt.Sprintf("%s has been invalid for %v: nobody has a role until it is valid again", f.path, validFor))
	}
	return &Set{}
}

// update reads the file again.
func (f *File) update(now time.Time) {
	text, err := f.read()
	if err == nil && bytes.Equal(text, f.text) && f.problem == "" {
		return
	}
	var set *Set
	if err == nil {
		set, err = Parse(f.path, text, now)
	}
	if err != nil {
		if f.problem == "" {
			f.since = now
			f.say(fmt.Sprintf("%v\nthe roles of before stay valid for %v", err, validFor))
		}
		f.problem = err.Error()
		return
	}
	if f.problem != "" {
		f.say(f.path + " is valid again")
	}
	f.text, f.set, f.problem, f.closed = text, set, "", false
	f.sayWarnings()
}

func (f *File) sayWarnings() {
	for _, w := range f.set.Warnings {
		f.say(w.Error())
	}
}

// read returns the text of the file. The error is a [*specfile.Error].
func (f *File) read() (text []byte, err error) {
	bad := func(message, hint string, err error) ([]byte, error) {
		return nil, &specfile.Error{Problems: []specfile.Problem{{File: f.path, Message: message, Hint: hint, Err: errors.Join(specfile.ErrRead, err)}}}
	}
	at, err := f.dir.Stat(f.path)
	if err == nil && !at.Mode().IsRegular() { // opening a pipe would wait for its other end
		return bad("it is not a regular file", "name a file that can be read again when it has changed", nil)
	}
	in, err := f.dir.Open(f.path)
	if err != nil {
		return bad(cause(err), "", err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	if at, err = in.Stat(); err != nil {
		return bad(cause(err), "", err)
	}
	if mode := at.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" { // which has no modes
		return bad(fmt.Sprintf("it can be written by other users (mode %04o)", mode), "make sure that none of them has changed it, then `chmod go-w` it", nil)
	}
	text, err = io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return bad(cause(err), "", err)
	case len(text) > maxFile:
		return bad(fmt.Sprintf("it is larger than %s", bytesize.Text(maxFile)), "name groups in place of people", nil)
	}
	return text, nil
}

// cause returns an error of the file system without its operation and path.
func cause(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}
