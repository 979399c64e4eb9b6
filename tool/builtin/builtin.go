// Package builtin provides tools for files, commands and web pages. file_read, file_write,
// file_edit, glob and grep work on the workspace of a task, bash runs a command in it, and
// http_get reads web pages. Names and arguments match open-multi-agent.
//
//	files, err := builtin.Files("readwrite", tool.Options{})
//	member := team.Member{Name: "coder", Agent: coder, Tools: files}
//
// Paths are resolved in the [os.Root] of the workspace. No "..", absolute path or symbolic
// link leads outside it, even while another process moves files.
package builtin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/tool"
)

// historyDir is the folder of a workspace that the runtime writes and tools may only read.
const historyDir = "history"

// maxFile is the size of the largest file that is edited or searched, in bytes.
const maxFile = 16 << 20

// presets are the names of the tools in each preset.
var presets = map[string][]string{
	"readonly":  {"file_read", "grep", "glob"},
	"readwrite": {"file_read", "grep", "glob", "file_write", "file_edit"},
	"full":      {"file_read", "grep", "glob", "file_write", "file_edit", "bash"},
}

// CanConfine reports whether this system can confine bash to a workspace, as Linux with
// Landlock and user namespaces can. Where it is false, the bash of [Files] can read and change
// what other tasks and programs can; it is then stateful, and its effect is external.
func CanConfine() bool { return process.Confines() }

// Files returns the tools of a preset: "readonly" (file_read, grep, glob), "readwrite" (adds
// file_write and file_edit) or "full" (adds bash; see [CanConfine]). Accepts, Produces and
// MaxOutput apply to each tool, Readable to bash; Files sets Effect, and for bash Timeout too. The default
// MaxOutput of file_read, grep and glob is 2 MiB. Members share tools from one call of Files:
// two tools of one name are an error.
func Files(preset string, o tool.Options) ([]*tool.Tool, error) {
	names, ok := presets[preset]
	if !ok {
		return nil, fmt.Errorf("builtin: unknown preset %q; use readonly, readwrite or full", preset)
	}
	var list []*tool.Tool
	for _, name := range names {
		own := o
		if name != "bash" {
			own.Readable = nil
		}
		t, err := definitions[name](own)
		if err != nil {
			return nil, fmt.Errorf("builtin: %w", err)
		}
		list = append(list, t)
	}
	return slices.Clip(list), nil // callers append their own tools
}

// definitions make the tools that work on a workspace.
var definitions = map[string]func(o tool.Options) (*tool.Tool, error){
	"file_read": func(o tool.Options) (*tool.Tool, error) {
		return readsWorkspace(reading(o, "file_read", "Reads a text file of the workspace. Returns its lines, each after its number and a tab.", read))
	},
	"glob": func(o tool.Options) (*tool.Tool, error) {
		return reading(o, "glob", "Lists files of the workspace by a pattern, such as **/*.go.", glob)
	},
	"grep": func(o tool.Options) (*tool.Tool, error) {
		return readsWorkspace(reading(o, "grep", "Searches files of the workspace for a regular expression (RE2). Returns path:line:text for each line that matches. Lines are cut at 500 bytes; only the first 16 MiB of a file are searched.", grep))
	},
	"file_write": func(o tool.Options) (*tool.Tool, error) {
		o.Effect = tool.Workspace
		return define("file_write", "Writes a file of the workspace, and the folders above it. Replaces a file that exists.", write, o)
	},
	"file_edit": func(o tool.Options) (*tool.Tool, error) {
		o.Effect = tool.Workspace
		return define("file_edit", "Replaces a text in a file of the workspace. The text must occur exactly once, unless replace_all is true.", edit, o)
	},
	"bash": func(o tool.Options) (*tool.Tool, error) {
		for _, path := range o.Readable {
			if err := process.CheckReadable(path); err != nil {
				return nil, fmt.Errorf("bash: readable: %w", err)
			}
		}
		if o.Effect, o.Timeout = tool.Workspace, maxCommandTime+process.StopTime; !CanConfine() {
			o.Effect, o.Stateful, o.State, o.Readable = tool.External, true, process.Machine, nil
		}
		return readsWorkspace(define("bash", "Runs a command with bash in the workspace. Returns its exit status and its output.", bash(CanConfine(), slices.Clone(o.Readable)), o))
	},
}

// readsWorkspace marks a tool with which an agent can read any file of the workspace.
func readsWorkspace(t *tool.Tool, err error) (*tool.Tool, error) {
	if err == nil {
		t.ReadsWorkspace = true
	}
	return t, err
}

// reading makes a tool that changes nothing.
func reading[In any](o tool.Options, name, description string, f func(context.Context, *os.Root, In) (string, error)) (*tool.Tool, error) {
	o.Effect, o.MaxOutput = tool.None, cmp.Or(o.MaxOutput, maxRead)
	return define(name, description, f, o)
}

// define makes a tool of a function that works on a workspace.
func define[In any](name, description string, f func(context.Context, *os.Root, In) (string, error), o tool.Options) (*tool.Tool, error) {
	return tool.New(name, description, func(ctx context.Context, in In) (string, error) {
		c, _ := tool.CallFrom(ctx)
		if c.Workspace == nil {
			return "", errors.New("tool.Call.Workspace is nil; only a team provides a workspace")
		}
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		return f(ctx, root, in)
	}, o)
}

// inside returns a path as the root names it. An absolute path must lie in the root.
func inside(root *os.Root, name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the path contains a NUL character")
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(root.Name(), name)
		if err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("%s: outside the workspace; write a relative path", name)
		}
		name = rel
	}
	if name = path.Clean(filepath.ToSlash(name)); !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: outside the workspace", name)
	}
	return name, nil
}

// writable returns the path of a file that a tool may write.
func writable(root *os.Root, name string) (string, error) {
	name, err := inside(root, name)
	if err == nil && (name == historyDir || strings.HasPrefix(name, historyDir+"/")) {
		err = fmt.Errorf("%s: read-only folder; write to another path", name)
	}
	return name, err
}

// openFile opens a regular file for reading.
func openFile(root *os.Root, name string) (*os.File, error) {
	f, info, err := workspace.OpenFile(root, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, plain(err)
	}
	if info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("%s: is a folder; list it with glob", name)
	}
	return f, nil
}

// readText returns a text file of at most maxFile bytes.
func readText(ctx context.Context, root *os.Root, name string) (string, error) {
	f, err := openFile(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", plain(err)
	}
	size := min(info.Size(), maxFile) + 1
	if err := membudget.Take(ctx, 2*size); err != nil { // also as a string
		return "", fmt.Errorf("%s: %w", name, err)
	}
	raw := make([]byte, size)
	n, err := io.ReadFull(f, raw)
	raw = raw[:n]
	switch {
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
		return "", plain(err)
	case len(raw) > maxFile:
		return "", fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	case isBinary(raw):
		return "", fmt.Errorf("%s: not a UTF-8 text file", name)
	}
	return string(raw), nil
}

// isBinary reports whether bytes are no text.
func isBinary(raw []byte) bool {
	return bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw)
}

// plain returns an error of the file system without the system call and the path of the root.
func plain(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}
