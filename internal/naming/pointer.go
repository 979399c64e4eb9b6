package naming

import (
	"fmt"
	"strings"
)

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer joins the tokens, names and indexes, to an RFC 6901 pointer.
func Pointer(tokens ...any) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		escapes.WriteString(&b, fmt.Sprint(t))
	}
	return b.String()
}
