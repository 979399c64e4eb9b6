package format

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// ShellPath quotes a path so that a shell reads it as one word and no command reads it as a flag.
func ShellPath(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return ShellWord(path)
}

// ShellWord quotes a text so that a shell reads it as one word. Characters that a terminal must not
// receive are written in the $'…' form of bash, zsh and ksh.
func ShellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	switch {
	case text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0:
		return text
	case strings.Trim(text, " ") != "" && strings.IndexFunc(text, func(r rune) bool { return r != ' ' && !plain(r) }) < 0:
		return `"` + text + `"`
	case terminal.CleanLine(text) == text:
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
