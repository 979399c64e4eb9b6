package naming

import (
	"fmt"
	"strconv"
	"strings"
)

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~0", "~", "~1", "/")
)

// Escape returns a name as a token of an RFC 6901 pointer.
func Escape(name string) string { return escapes.Replace(name) }

// Unescape returns the name that a token of an RFC 6901 pointer means. It does not check the token: a "~"
// before another character stays.
func Unescape(token string) string { return unescapes.Replace(token) }

// Pointer joins the tokens, names and indexes, to an RFC 6901 pointer.
func Pointer(tokens ...any) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		escapes.WriteString(&b, fmt.Sprint(t))
	}
	return b.String()
}

// TaskIndex returns the index of the task that a pointer leads into, or -1 if it leads
// into none. Problems sort by it in the order of the text.
func TaskIndex(pointer string) int {
	rest, ok := strings.CutPrefix(pointer, "/tasks/")
	number, _, _ := strings.Cut(rest, "/")
	if i, err := strconv.ParseUint(number, 10, 31); ok && err == nil {
		return int(i)
	}
	return -1
}
