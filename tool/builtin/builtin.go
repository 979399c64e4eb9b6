// Package builtin has tools for files, commands and web pages: file_read, file_write, file_edit, glob and grep,
// which work on the files of a task's workspace, bash, which runs a command there, and
// http_get. Names and arguments are those of open-multi-agent.
//
//	files, err := builtin.Files("readwrite", tool.Options{})
//	member := team.Member{Name: "coder", Agent: coder, Tools: files}
//
// Every path is resolved inside the [os.Root] of the workspace, so neither "..", an absolute
// path nor a symbolic link leads out of it, also while another process moves files.
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
	"syscall"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/process"
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

// Files returns the tools of a preset that work on the workspace of a task: readonly has
// file_read, grep and glob, readwrite adds file_write and file_edit, and full adds bash. The
// labels of the options hold for all of them. Agents that have the same tools share the
// values that one call of Files returned.
//
// On Linux, bash is confined to the workspace and the system's programs, without the network.
// Where that is not possible, it can read and change what other tasks and programs can, so
// it is stateful and its effect is external.
func Files(preset string, o tool.Options) ([]*tool.Tool, error) {
	names, ok := presets[preset]
	if !ok {
		return nil, fmt.Errorf("builtin: unknown preset %q; write readonly, readwrite or full", preset)
	}
	var list []*tool.Tool
	for _, t := range workspaceTools(o, process.Confines()) {
		if slices.Contains(names, t.Name) {
			list = append(list, t)
		}
	}
	return list, nil
}

// workspaceTools returns the tools that work on a workspace.
func workspaceTools(o tool.Options, confine bool) []*tool.Tool {
	reads, writes, runs := o, o, o
	reads.Effect, writes.Effect, runs.Effect = tool.None, tool.Workspace, tool.Workspace
	reads.MaxOutput = cmp.Or(o.MaxOutput, maxRead)
	if runs.Timeout = maxCommandTime + process.StopTime; !confine {
		runs.Effect, runs.Stateful = tool.External, true
	}
	return []*tool.Tool{
		define("file_read", "Reads a text file of the workspace. Returns its lines, each after its number and a tab.", read, reads),
		define("file_write", "Writes a file of the workspace, and the folders above it. Replaces a file that exists.", write, writes),
		define("file_edit", "Replaces a text in a file of the workspace. The text must occur exactly once, unless replace_all is true.", edit, writes),
		define("glob", "Lists files of the workspace by a pattern, such as **/*.go.", glob, reads),
		define("grep", "Searches files of the workspace for a regular expression (RE2). Returns path:line:text for each line that matches.", grep, reads),
		define("bash", "Runs a command with bash in the workspace. Returns its output and its exit status.", bash(confine), runs),
	}
}

// define makes a tool of a function that works on a workspace.
func define[In any](name, description string, f func(context.Context, *os.Root, In) (string, error), o tool.Options) *tool.Tool {
	t, err := tool.New(name, description, func(ctx context.Context, in In) (string, error) {
		c, _ := tool.CallFrom(ctx)
		if c.Workspace == nil {
			return "", errors.New("the task has no workspace")
		}
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		return f(ctx, root, in)
	}, o)
	if err != nil {
		panic(err) // the definitions above are constant
	}
	return t
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
		err = fmt.Errorf("%s: the runtime writes this folder; write elsewhere", name)
	}
	return name, err
}

// openFile opens a regular file for reading. It does not wait for a writer of a named pipe.
func openFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	switch info, err := f.Stat(); {
	case err != nil:
		f.Close()
		return nil, plain(err)
	case info.IsDir():
		f.Close()
		return nil, fmt.Errorf("%s: is a folder; list it with glob", name)
	case !info.Mode().IsRegular():
		f.Close()
		return nil, fmt.Errorf("%s: is no regular file", name)
	}
	return f, nil
}

// readText returns a text file of at most maxFile bytes.
func readText(root *os.Root, name string) (string, error) {
	f, err := openFile(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", plain(err)
	case len(raw) > maxFile:
		return "", fmt.Errorf("%s: larger than %d MiB", name, maxFile>>20)
	case isBinary(raw):
		return "", fmt.Errorf("%s: not a text in UTF-8", name)
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
