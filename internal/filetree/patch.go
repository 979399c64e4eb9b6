package filetree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An Original is a file as it was before the task's agent was given a redacted form of it.
type Original struct {
	Text   string
	Hidden []string // placeholders in Text of data that is not known
}

// Patch returns the changes of files as a patch that git apply takes, in the folder of the files
// itself, even if that is in a folder of a repository. before has the files as the task was given
// them. What the task left alone is written as it is in originals, by path.
//
// No line of the patch has a placeholder of redacted data. Patch returns an error, and no patch,
// if a change cannot be written without one.
func Patch(changed, before Tree, originals map[string]*Original) (string, error) {
	var b, empty strings.Builder
	var refused []error
	for _, path := range changed.Paths() {
		old, text := before[path], changed[path]
		if SameText(old, text) {
			continue
		}
		if p := placeholder.FindString(path); p != "" {
			refused = append(refused, fmt.Errorf("%s: the name of the file has %s in place of redacted data", path, p))
			continue
		}
		if old == nil && *text == "" || text == nil && *old == "" {
			writeEmptyFile(&empty, path, text != nil)
			continue
		}
		if err := writeFile(&b, path, old, text, originals[path]); err != nil {
			refused = append(refused, fmt.Errorf("%s:%w", path, err))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return "", err
	}
	return b.String() + empty.String(), nil // after such a header git would read the next one as a part of it
}

// writeFile writes the changes of one file. It writes no line "diff --git", since git apply takes
// the paths after one from the root of the repository, and silently skips them in a folder below.
func writeFile(b *strings.Builder, path string, old, text *string, original *Original) error {
	from, to := quoted("a/"+path), quoted("b/"+path)
	var was, is string
	if old == nil {
		from = noFile
	} else {
		was = *old
	}
	if text == nil {
		to = noFile
	} else {
		is = *text
	}
	hunks, err := hunksOf(newGivenFile(was, original), is)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", from, to)
	for i := range hunks {
		hunks[i].write(b)
	}
	return nil
}

const (
	noFile    = "/dev/null"
	gitHeader = "diff --git "
)

// writeEmptyFile writes that an empty file is new or was removed, which a patch without the
// header of git cannot say.
func writeEmptyFile(b *strings.Builder, path string, isNew bool) {
	mode := "deleted"
	if isNew {
		mode = "new"
	}
	fmt.Fprintf(b, "%s%s %s\n%s file mode 100644\n", gitHeader, quoted("a/"+path), quoted("b/"+path), mode)
}

// HasEmptyFiles reports whether a patch adds or removes empty files, which git apply does at the
// root of a repository only.
func HasEmptyFiles(patch string) bool {
	return strings.HasPrefix(patch, gitHeader) || strings.Contains(patch, "\n"+gitHeader)
}

// quoted writes a path as git does.
func quoted(path string) string {
	if strings.ContainsAny(path, "\"\\\t\n ") {
		return strconv.Quote(path)
	}
	return path
}
