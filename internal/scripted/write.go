package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/yamltext"
)

// ErrTooLarge reports a script that was written completely but is above [MaxFile], so that
// [Parse] does not read it.
var ErrTooLarge = errors.New("too large to be read as one script")

// WriteTo writes the script as YAML. [Parse] reads it as an equal script, except for the places
// of replies. Equal scripts give equal bytes.
//
// An invalid script, or one that is not UTF-8, is an error, and nothing is written. One above
// [MaxFile] is written completely, with an error that wraps [ErrTooLarge].
func (s *Script) WriteTo(w io.Writer) (int64, error) {
	f, err := s.file("")
	if err != nil {
		return 0, err
	}
	return f.writeTo(w)
}

// file returns the script as a file that begins with a head.
func (s *Script) file(head string) (*file, error) {
	f := &file{}
	f.WriteString(head)
	if s == nil {
		s = &Script{}
	}
	if _, err := s.compileAll(); err != nil {
		return nil, err
	}
	if len(s.Models) > 0 {
		f.WriteString("models:\n")
	}
	for _, m := range s.Models {
		f.WriteString("  - " + f.quoted(m) + "\n")
	}
	if len(s.Replies) == 0 {
		f.WriteString("replies: []\n")
	} else {
		f.WriteString("replies:\n")
	}
	for i, r := range s.Replies {
		f.reply(r)
		if f.invalid {
			return nil, fmt.Errorf("script: reply %d: not UTF-8", i+1)
		}
	}
	if f.invalid {
		return nil, errors.New("script: models: not UTF-8")
	}
	return f, nil
}

// A file is a script file that is being written.
type file struct {
	bytes.Buffer
	dash    bool // the next key begins a reply
	invalid bool // a text was not UTF-8
}

func (f *file) writeTo(w io.Writer) (int64, error) {
	size := f.Len()
	n, err := f.WriteTo(w)
	if err == nil && size > MaxFile {
		err = fmt.Errorf("script: %w: %d KiB, at most %d KiB; it is complete: split it by task into several", ErrTooLarge, (size+1023)>>10, MaxFile>>10)
	}
	return n, err
}

// reply writes one entry: what it matches, then what it answers.
func (f *file) reply(r Reply) {
	f.dash = true
	f.text("task", r.Task)
	f.text("goal", r.Goal)
	f.plain("coordinator", string(r.Coordinator), r.Coordinator != "")
	f.plain("part", strconv.Itoa(r.Part), r.Part != 0)
	f.plain("turn", strconv.Itoa(r.Turn), r.Turn != 0)
	f.text("system", r.System)
	f.messages(r.Messages)
	f.plain("times", strconv.Itoa(r.Times), r.Times != 0)
	f.plain("delay", r.Delay.String(), r.Delay != 0)
	f.plain("status", strconv.Itoa(r.Status), r.Status != 0)
	f.plain("retryAfter", r.RetryAfter.String(), r.RetryAfter != 0)
	f.plain("cut", "true", r.Cut)
	f.plain("ended", r.Ended, r.Ended != "")
	if u := r.Usage; u != nil {
		f.plain("usage", fmt.Sprintf("{input: %d, output: %d}", u.Input, u.Output), true)
	}
	f.text("body", r.Body)
	f.text("text", r.Text)
	if len(r.ToolCalls) > 0 {
		f.toolCalls(r.ToolCalls)
	} else if r.Text == "" && r.Body == "" && r.Status == 0 && r.Ended == "" {
		f.plain("text", `""`, true)
	}
}

// messages writes the members whose messages a prompt must have, if there are any.
func (f *file) messages(names []string) {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = f.quoted(name)
	}
	f.plain("messages", "["+strings.Join(quoted, ", ")+"]", len(names) > 0)
}

// toolCalls writes calls of tools, each with its arguments on one line.
func (f *file) toolCalls(calls []ToolCall) {
	f.plain("toolCalls", "", true)
	for _, c := range calls {
		f.WriteString("      - name: " + f.quoted(c.Name) + "\n")
		if len(c.Arguments) > 0 {
			f.WriteString("        arguments: ")
			f.value(c.Arguments)
			f.WriteString("\n")
		}
	}
}

// value writes a JSON value on one line, with sorted keys.
func (f *file) value(v any) {
	switch v := v.(type) {
	case string:
		f.WriteString(f.quoted(v))
	case []any:
		f.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				f.WriteString(", ")
			}
			f.value(item)
		}
		f.WriteByte(']')
	case map[string]any:
		f.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				f.WriteString(", ")
			}
			f.WriteString(f.quoted(key) + ": ")
			f.value(v[key])
		}
		f.WriteByte('}')
	case nil:
		f.WriteString("null")
	default: // true, false or a json.Number
		fmt.Fprint(f, v)
	}
}

// plain writes a key with a value that needs no quotes, if there is one.
func (f *file) plain(key, value string, there bool) {
	if !there {
		return
	}
	lead := "    "
	if f.dash {
		lead, f.dash = "  - ", false
	}
	f.WriteString(strings.TrimSuffix(lead+key+": "+value, " ") + "\n")
}

// text writes a key with a text, if there is one.
func (f *file) text(key, text string) {
	switch block, fits := yamltext.Block(text, "      "); {
	case text == "":
	case fits && strings.ContainsAny(text, "\n\"\\"):
		f.plain(key, strings.TrimSuffix(block, "\n"), true)
	default:
		f.plain(key, f.quoted(text), true)
	}
}

// isSpace reports whether r is a space, but not the end of a line.
func isSpace(r rune) bool { return r != '\n' && unicode.IsSpace(r) }

// quoted returns a text between double quotes, on one line.
func (f *file) quoted(text string) string {
	f.invalid = f.invalid || !utf8.ValidString(text)
	return yamltext.Quote(text)
}
