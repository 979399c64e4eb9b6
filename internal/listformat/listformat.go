// Package listformat reads a text that is a list: a JSON array, a JSON value on each line, or a
// table with a header.
package listformat

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// The formats.
const (
	JSON   = "json"   // one value; the format of a text that states none
	NDJSON = "ndjson" // a value on each line; empty lines do not count
	CSV    = "csv"    // as RFC 4180, with a header: each row is an object of texts
)

// Names returns the formats.
func Names() []string { return []string{JSON, NDJSON, CSV} }

// ErrInvalid reports a text that is not in its format.
var ErrInvalid = errors.New("invalid list")

// Of returns the format of a file by the extension of its name; empty if that says nothing.
func Of(file string) string {
	switch strings.ToLower(path.Ext(strings.ReplaceAll(file, `\`, "/"))) {
	case ".json":
		return JSON
	case ".ndjson", ".jsonl":
		return NDJSON
	case ".csv":
		return CSV
	}
	return ""
}

// Parse returns the value of a text. An error wraps [ErrInvalid], says in which line, and never
// quotes the text.
func Parse(format, text string) (jsonvalue.Value, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	var value any
	err := checkText(text)
	switch {
	case err != nil:
	case format == NDJSON:
		value, err = lines(text)
	case format == CSV:
		value, err = rows(text)
	default:
		if value, err = jsonvalue.FindValue(text); err != nil {
			err = fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if err != nil {
		return jsonvalue.Value{}, err
	}
	v, err := jsonvalue.Encode(value)
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return v, nil
}

// LineOf returns the line in which item n, from 0, of a text that [Parse] has read begins; zero if the
// format has no lines. The header of a table counts as a line.
func LineOf(format, text string, n int) int {
	text, at := strings.TrimPrefix(text, "\ufeff"), 0
	switch format {
	case NDJSON:
		for line := range strings.Lines(text) {
			if at++; strings.TrimSpace(line) != "" {
				n--
			}
			if n < 0 {
				return at
			}
		}
	case CSV:
		r := csv.NewReader(strings.NewReader(text))
		for range n + 2 { // the first one is the header
			if _, err := r.Read(); err != nil {
				return 0
			}
		}
		at, _ = r.FieldPos(0)
		return at
	}
	return 0
}

// checkText returns an error about the first line that is not UTF-8.
func checkText(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	n := 0
	for line := range strings.Lines(text) {
		if n++; !utf8.ValidString(line) {
			break
		}
	}
	return fmt.Errorf("%w: line %d is not UTF-8", ErrInvalid, n)
}

// lines reads a JSON value on each line.
func lines(text string) ([]any, error) {
	list, n := []any{}, 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		item, err := jsonvalue.Decode(line)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrInvalid, n, err)
		}
		list = append(list, item)
	}
	return list, nil
}

// rows reads a table.
func rows(text string) ([]any, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1 // checked here, with a message of ours
	header, err := r.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it has no header", ErrInvalid)
	case err != nil:
		return nil, badRow(err)
	}
	for k, name := range header {
		line, _ := r.FieldPos(k)
		switch {
		case strings.TrimSpace(name) == "":
			return nil, fmt.Errorf("%w: line %d: column %d of the header has no name", ErrInvalid, line, k+1)
		case slices.Contains(header[:k], name):
			return nil, fmt.Errorf("%w: line %d: columns %d and %d of the header have the same name", ErrInvalid, line, slices.Index(header, name)+1, k+1)
		}
	}
	list := []any{}
	for {
		row, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, badRow(err)
		}
		if len(row) != len(header) {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("%w: line %d: the number of fields is %d, and the header has %d", ErrInvalid, line, len(row), len(header))
		}
		item := make(map[string]any, len(header))
		for k, name := range header {
			item[name] = row[k]
		}
		list = append(list, item)
	}
}

// badRow says what is wrong with a row.
func badRow(err error) error {
	if p, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("%w: line %d, column %d: %w", ErrInvalid, p.Line, p.Column, p.Err)
	}
	return fmt.Errorf("%w: %w", ErrInvalid, err)
}
