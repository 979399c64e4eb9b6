package builtin

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// maxRead is the size of what one call returns, in bytes.
const maxRead = 2 << 20

type readArguments struct {
	Path   string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to return, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"the number of lines to return, default all"`
}

// read returns numbered lines of a file, and reads no further than it must.
func read(ctx context.Context, root *os.Root, in readArguments) (string, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return "", errors.New("offset and limit must not be negative")
	}
	name, err := inside(root, in.Path)
	if err != nil {
		return "", err
	}
	f, err := openFile(root, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var out []byte
	first, n := cmp.Or(in.Offset, 1), 0
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), maxRead)
	lines.Split(keepCR)
	for (in.Limit == 0 || n < first-1+in.Limit) && lines.Scan() {
		if n++; n < first {
			if n%1024 == 0 && ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			continue
		}
		line := lines.Bytes()
		if isBinary(line) {
			return "", fmt.Errorf("%s: not a UTF-8 text file", name)
		}
		if len(out) > 0 && len(out)+len(line) > maxRead {
			return fmt.Sprintf("(Lines up to %d. Continue with offset %d.)\n%s", n-1, n, out), nil
		}
		out = append(append(append(strconv.AppendInt(out, int64(n), 10), '\t'), line...), '\n')
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return "", fmt.Errorf("%s: line %d is longer than %d MiB", name, n+1, maxRead>>20)
	case err != nil:
		return "", plain(err)
	case n == 0:
		return "(The file is empty.)\n", nil
	case len(out) == 0:
		return "", fmt.Errorf("%s: offset %d is past the end; the file has %d lines", name, first, n)
	}
	return string(out), nil
}

// keepCR splits at line feeds. Unlike [bufio.ScanLines], it keeps a carriage return before
// them, so that what file_read shows is what file_edit finds.
func keepCR(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
