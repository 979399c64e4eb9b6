package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/workspace"
)

type writeArguments struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

func write(_ context.Context, root *os.Root, in writeArguments) (string, error) {
	name, err := writable(root, in.Path)
	if err != nil {
		return "", err
	}
	if err := store(root, name, in.Content); err != nil {
		return "", err
	}
	return fmt.Sprintf("Wrote %d bytes to %s.", len(in.Content), name), nil
}

// store writes a whole file, and the folders above it.
func store(root *os.Root, name, content string) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return plain(err)
		}
	}
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	f, _, err := workspace.OpenFile(root, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return plain(err)
	}
	_, err = f.WriteString(content)
	if err := errors.Join(err, f.Close()); err != nil {
		if info == nil { // half of a new file would keep a full disk full
			_ = root.Remove(name)
		}
		return plain(err)
	}
	return nil
}

type editArguments struct {
	Path       string `json:"path" jsonschema:"the file, relative to the workspace"`
	Old        string `json:"old_string" jsonschema:"the text to replace, exactly as the file has it"`
	New        string `json:"new_string" jsonschema:"the text to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence, default false"`
}

func edit(ctx context.Context, root *os.Root, in editArguments) (string, error) {
	name, err := writable(root, in.Path)
	if err != nil {
		return "", err
	}
	text, err := readText(ctx, root, name)
	if err != nil {
		return "", err
	}
	n := strings.Count(text, in.Old)
	switch {
	case in.Old == "":
		return "", errors.New("old_string is empty; write a new file with file_write")
	case in.Old == in.New:
		return "", errors.New("old_string and new_string are equal")
	case n == 0:
		return "", fmt.Errorf("%s: does not contain old_string; read the file and copy the text exactly", name)
	case n > 1 && !in.ReplaceAll:
		return "", fmt.Errorf("%s: contains old_string %d times; add lines around it, or set replace_all", name, n)
	}
	size := int64(len(text)) + int64(n)*int64(len(in.New)-len(in.Old))
	if size > maxFile {
		return "", fmt.Errorf("%s: would be %s after the edit, more than %d MiB", name, bytesize.Text(int(size)), maxFile>>20)
	}
	if err := membudget.Take(ctx, size); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if err := store(root, name, strings.ReplaceAll(text, in.Old, in.New)); err != nil {
		return "", err
	}
	return fmt.Sprintf("Replaced %d occurrences in %s.", n, name), nil
}
