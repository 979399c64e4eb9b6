package builtin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/membudget"
	"github.com/runteam/runteam/internal/workspace"
)

// Defaults and bounds of searches.
const (
	defaultFiles   = 500
	defaultResults = 100
	maxLine        = 500 // bytes of a line that grep returns
)

type globArguments struct {
	Path     string `json:"path,omitempty" jsonschema:"the folder to search, default the whole workspace"`
	Pattern  string `json:"pattern,omitempty" jsonschema:"glob such as **/*.go, default every file"`
	MaxFiles int    `json:"maxFiles,omitempty" jsonschema:"the most files to list, default 500"`
}

func glob(ctx context.Context, root *os.Root, in globArguments) (string, error) {
	limit := cmp.Or(max(in.MaxFiles, 0), defaultFiles)
	var out strings.Builder
	n, isMore := 0, false
	err := walk(ctx, matcher.NewBudget(ctx, matcher.MaxSteps), root, in.Path, in.Pattern, func(name string) error {
		if n == limit || out.Len()+len(name) >= maxRead {
			isMore = true
			return fs.SkipAll
		}
		n++
		out.WriteString(name)
		out.WriteByte('\n')
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "No files match.", nil
	case isMore:
		fmt.Fprintf(&out, "More than %d files match; narrow the pattern.\n", n)
	}
	return out.String(), nil
}

// walk calls f for each regular file below a folder that matches a pattern, in the order of
// their names. A pattern without a slash matches the last part of a path.
func walk(ctx context.Context, b *matcher.Budget, root *os.Root, dir, pattern string, f func(name string) error) error {
	dir, err := inside(root, cmp.Or(dir, "."))
	if err != nil {
		return err
	}
	files, err := matcher.ParseGlob(cmp.Or(pattern, "*"))
	switch {
	case errors.Is(err, matcher.ErrGlob):
		return fmt.Errorf("pattern %q: invalid pattern; use a glob such as **/*.go", pattern)
	case err != nil:
		return err
	}
	return plain(fs.WalkDir(workspace.FS(root), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == dir:
			return err
		case err != nil || !d.Type().IsRegular():
			return nil
		}
		subject := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		if dir == "." || subject == "" {
			subject = name
		}
		if found, err := files.Match(b, subject); !found || err != nil {
			return err
		}
		return f(name)
	}))
}

type grepArguments struct {
	Pattern    string `json:"pattern" jsonschema:"the regular expression"`
	Path       string `json:"path,omitempty" jsonschema:"the file or folder to search, default the whole workspace"`
	Glob       string `json:"glob,omitempty" jsonschema:"search only files that match this pattern"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"the most lines to return, default 100"`
}

func grep(ctx context.Context, root *os.Root, in grepArguments) (string, error) {
	re, err := matcher.Compile(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	b := matcher.NewBudget(ctx, matcher.MaxSteps)
	limit := cmp.Or(max(in.MaxResults, 0), defaultResults)
	var out bytes.Buffer
	n, isMore := 0, false
	err = walk(ctx, b, root, in.Path, in.Glob, func(name string) error {
		f, err := openFile(root, name)
		if err != nil {
			return nil // removed since, or unreadable
		}
		defer f.Close()
		ctx, end := membudget.Within(ctx, membudget.Attempt)
		defer end()
		if err := takeLines(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return matches(ctx, b, f, re, func(line int, text []byte) error {
			if n == limit || out.Len()+len(name)+min(len(text), maxLine) >= maxRead {
				isMore = true
				return fs.SkipAll
			}
			n++
			fmt.Fprintf(&out, "%s:%d:%s\n", name, line, bytes.ToValidUTF8(text[:min(len(text), maxLine)], nil))
			return nil
		})
	})
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "No lines match.", nil
	case isMore:
		fmt.Fprintf(&out, "More than %d lines match; narrow the search.\n", n)
	}
	return out.String(), nil
}

// takeLines takes the memory for the longest line that a file may have.
func takeLines(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return plain(err)
	}
	return membudget.Take(ctx, 2*min(info.Size(), maxFile)) // the buffer doubles
}

// matches calls f for each line of a text that matches. It skips files that are no text.
func matches(ctx context.Context, b *matcher.Budget, file io.Reader, re *matcher.Regexp, f func(line int, text []byte) error) error {
	lines := bufio.NewScanner(io.LimitReader(file, maxFile))
	lines.Buffer(make([]byte, 64<<10), maxFile+1)
	for n := 1; lines.Scan(); n++ {
		text := lines.Bytes()
		switch {
		case n%1024 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		case bytes.IndexByte(text, 0) >= 0:
			return nil
		}
		found, err := re.Match(b, text)
		if found {
			err = f(n, text)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return nil
}
