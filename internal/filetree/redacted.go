package filetree

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// placeholder is what stands in place of redacted data.
var placeholder = regexp.MustCompile(`\[REDACTED:[^\]\n]*\]`)

// IsRedacted reports whether a text may be what redaction made of another one: it has the same
// lines, but for its placeholders.
func IsRedacted(text, original string) bool {
	lines, plain := strings.Split(text, "\n"), strings.Split(original, "\n")
	if len(lines) != len(plain) {
		return false
	}
	for i, line := range lines {
		kept, rest, ok := placeholder.Split(line, -1), plain[i], false
		if rest, ok = strings.CutPrefix(rest, kept[0]); !ok || len(kept) == 1 && rest != "" {
			return false
		}
		last := len(kept) - 1
		for k := 1; k < last; k++ {
			if _, rest, ok = strings.Cut(rest, kept[k]); !ok {
				return false
			}
		}
		if last > 0 && !strings.HasSuffix(rest, kept[last]) {
			return false
		}
	}
	return true
}

// A givenFile is a file as a task was given it, line by line.
type givenFile struct {
	text   string
	given  []string // as the task was given them
	plain  []string // as they were before redaction, as far as that is known
	hidden []string // of each line, a placeholder in plain of data that is not known; empty if there is none
}

func newGivenFile(text string, original *Original) *givenFile {
	f := &givenFile{text: text, given: linesOf(text)}
	f.plain = f.given
	known := original != nil && IsRedacted(text, original.Text)
	if known {
		f.plain = linesOf(original.Text)
	}
	f.hidden = make([]string, len(f.plain))
	for i, line := range f.plain {
		for _, p := range placeholder.FindAllString(line, -1) {
			if !known || slices.Contains(original.Hidden, p) {
				f.hidden[i] = p
			}
		}
	}
	return f
}

// linesOf returns the lines of a text, each with its line break.
func linesOf(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		return lines[:last]
	}
	return lines
}

// values returns what the placeholders in some lines stand for. A placeholder that stands for
// more than one text, or for an unknown one, is left out.
func (f *givenFile) values(from, to int) map[string]string {
	values, unclear := map[string]string{}, map[string]bool{}
	for i := from; i < to; i++ {
		names := placeholder.FindAllString(f.given[i], -1)
		if len(names) == 0 {
			continue
		}
		texts, ok := valuesIn(f.given[i], f.plain[i])
		for k, name := range names {
			if !ok || f.hidden[i] != "" || values[name] != "" && values[name] != texts[k] {
				unclear[name] = true
				continue
			}
			values[name] = texts[k]
		}
	}
	for name := range unclear {
		delete(values, name)
	}
	return values
}

// valuesIn returns what each placeholder in a line stands for. It is not ok if there are two ways
// to read the line.
func valuesIn(line, plain string) (values []string, ok bool) {
	kept := placeholder.Split(line, -1)
	last := len(kept) - 1
	if last == 0 {
		return nil, line == plain
	}
	rest, begins := strings.CutPrefix(plain, kept[0])
	rest, ends := strings.CutSuffix(rest, kept[last])
	if !begins || !ends {
		return nil, false
	}
	late := make([]string, last) // with each piece as late as possible
	from := rest
	for k := last - 1; k > 0; k-- {
		i := -1
		if _, n := utf8.DecodeLastRuneInString(rest); n > 0 {
			i = strings.LastIndex(rest[:len(rest)-n], kept[k])
		}
		if i < 0 {
			return nil, false
		}
		late[k], rest = rest[i+len(kept[k]):], rest[:i]
	}
	late[0], rest = rest, from
	for k := 1; k < last; k++ {
		_, n := utf8.DecodeRuneInString(rest)
		i := strings.Index(rest[n:], kept[k])
		if i < 0 {
			return nil, false
		}
		values, rest = append(values, rest[:n+i]), rest[n+i+len(kept[k]):]
	}
	values = append(values, rest)
	if slices.Contains(values, "") || !slices.Equal(values, late) {
		return nil, false
	}
	return values, true
}
