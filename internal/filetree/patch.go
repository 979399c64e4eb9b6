package filetree

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Patch returns the changes of files as a patch that git apply takes. before has the files
// as the task was given them, and original as they were before anything was redacted: what
// the task left alone is written as it is there.
func Patch(changed, before, original Tree) (string, error) {
	var b strings.Builder
	for _, path := range changed.Paths() {
		old, text := before[path], changed[path]
		if SameText(old, text) {
			continue
		}
		from, to := "a/"+path, "b/"+path
		fmt.Fprintf(&b, "diff --git %s %s\n", quoted(from), quoted(to))
		var was, is string
		switch {
		case old == nil:
			from, is = "/dev/null", *text
			b.WriteString("new file mode 100644\n")
		case text == nil:
			to, was = "/dev/null", whole(*old, original[path])
			b.WriteString("deleted file mode 100644\n")
		default:
			was, is = restored(*old, *text, original[path])
		}
		diff, err := udiff.ToUnified(quoted(from), quoted(to), was, udiff.Lines(was, is), udiff.DefaultContextLines)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		b.WriteString(diff)
	}
	return b.String(), nil
}

// quoted writes a path as git does.
func quoted(path string) string {
	if strings.ContainsAny(path, "\"\\\t\n ") {
		return strconv.Quote(path)
	}
	return path
}

// whole returns the text of a file before redaction, if it is known.
func whole(before string, original *string) string {
	if original == nil || !IsRedacted(before, *original) {
		return before
	}
	return *original
}

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

// restored returns both texts of a changed file with the lines that did not change as they
// were before redaction, if redaction kept the lines apart.
func restored(before, after string, original *string) (was, is string) {
	was = whole(before, original)
	if was == before {
		return before, after
	}
	old, plain := strings.SplitAfter(before, "\n"), strings.SplitAfter(was, "\n")
	place := make(map[int]int, len(old)) // of the start of a line, its number
	at := 0
	for i, line := range old {
		place[at] = i
		at += len(line)
	}
	place[at] = len(old)
	var b strings.Builder
	next := 0
	keep := func(from, to int) { // lines of before that did not change
		for i := place[from]; i < place[to]; i++ {
			b.WriteString(plain[i])
		}
	}
	for _, e := range udiff.Lines(before, after) {
		keep(next, e.Start)
		b.WriteString(e.New)
		next = e.End
	}
	keep(next, len(before))
	return was, b.String()
}
