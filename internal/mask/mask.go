// Package mask replaces secret values in what programs write by the names of the values.
package mask

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// minLength is the length of the shortest value that is replaced. Shorter ones occur in any
// text by chance.
const minLength = 4

// Values are texts to replace, each by ${NAME}. Nil replaces nothing. It is immutable and safe
// for concurrent use.
type Values struct {
	list []value // the longest first, since a value may contain another one
	most int     // bytes of the longest
}

type value struct{ text, name string }

// New returns values by their names. A value is found as it is and as JSON writes it; no other
// encoding of it is found. Values below 4 bytes, true, false and null are left out.
func New(named ...map[string]string) *Values {
	var v Values
	add := func(text, name string) {
		if len(text) >= minLength && text != "true" && text != "false" && text != "null" {
			v.list, v.most = append(v.list, value{text, "${" + name + "}"}), max(v.most, len(text))
		}
	}
	for _, values := range named {
		for name, text := range values {
			text = strings.TrimSpace(text)
			add(text, name)
			for _, escaped := range inJSON(text) {
				if escaped != text {
					add(escaped, name)
				}
			}
		}
	}
	if v.list == nil {
		return nil
	}
	slices.SortFunc(v.list, func(a, b value) int {
		return cmp.Or(len(b.text)-len(a.text), cmp.Compare(a.text, b.text), cmp.Compare(a.name, b.name))
	})
	return &v
}

// inJSON returns a text as JSON writes it, with and without the escapes of <, > and &.
func inJSON(text string) []string {
	var list []string
	for _, html := range []bool{true, false} {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(text) == nil {
			list = append(list, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`))
		}
	}
	return slices.Compact(list)
}

// Text returns a text with the values replaced.
func (v *Values) Text(text string) string {
	if v == nil {
		return text
	}
	done, _ := v.replace(text, true)
	return done
}

// JSON returns a JSON text with the values replaced, also in names of members.
func (v *Values) JSON(raw json.RawMessage) json.RawMessage {
	if v == nil {
		return raw
	}
	return json.RawMessage(v.Text(string(raw)))
}

// Error returns an error whose text has the values replaced. It wraps err.
func (v *Values) Error(err error) error {
	if err == nil || v.Text(err.Error()) == err.Error() {
		return err
	}
	return &maskedError{v.Text(err.Error()), err}
}

// A maskedError replaces the text of an error.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.err }

// replace replaces the values in a text, from left to right and the longest first. Unless the
// text is complete, it stops where a value may begin that the end of the text cuts; rest is
// what follows.
func (v *Values) replace(text string, complete bool) (done, rest string) {
	var b strings.Builder
	next := make([]int, len(v.list)) // where each value occurs next, found once for each occurrence
	for i := range next {
		next[i] = -1
	}
	pos, open := 0, len(text)
	if !complete {
		open = v.open(text, 0)
	}
	for {
		first, found := len(text), (*value)(nil)
		for i := range v.list {
			if next[i] < pos {
				if next[i] = strings.Index(text[pos:], v.list[i].text); next[i] < 0 {
					next[i] = len(text)
				} else {
					next[i] += pos
				}
			}
			if next[i] < first {
				first, found = next[i], &v.list[i]
			}
		}
		if pos > open {
			open = v.open(text, pos)
		}
		if found == nil || open <= first { // a longer value may begin where one was found
			b.WriteString(text[pos:open])
			return b.String(), text[open:]
		}
		b.WriteString(text[pos:first])
		b.WriteString(found.name)
		pos = first + len(found.text)
	}
}

// open returns where in a text, from a position on, a value may begin that the end of the text
// cuts, or its length.
func (v *Values) open(text string, from int) int {
	for at := max(from, len(text)-v.most+1); at < len(text); at++ {
		for i := range v.list {
			if of := v.list[i].text; len(of) > len(text)-at && of[:len(text)-at] == text[at:] {
				return at
			}
		}
	}
	return len(text)
}

// A Writer passes on what is written to it, with the values replaced. It holds back bytes that
// may begin a value, until more follows or Flush is called. It is not safe for concurrent use.
type Writer struct {
	values *Values
	to     io.Writer
	held   string
}

// Writer returns a writer to another one.
func (v *Values) Writer(to io.Writer) *Writer { return &Writer{values: v, to: to} }

// Write passes on all bytes but those that may begin a value.
func (w *Writer) Write(p []byte) (int, error) {
	if w.values == nil {
		return w.to.Write(p)
	}
	var done string
	done, w.held = w.values.replace(w.held+string(p), false)
	if _, err := io.WriteString(w.to, done); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on the bytes that were held back.
func (w *Writer) Flush() error {
	text := w.values.Text(w.held)
	w.held = ""
	_, err := io.WriteString(w.to, text)
	return err
}
