package cli

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/team"
)

// shellWord writes a path so that a shell takes it as one word, and no command
// as a flag.
func shellWord(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return shellQuote(path)
}

// shellQuote writes a text so that a shell takes it as one word. What a terminal
// must not be sent is written in the $'…' form of bash, zsh and ksh.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	switch {
	case text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0:
		return text
	case cleanLine(text) == text:
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

// command returns a command about a run of the journal that works where this one
// was typed: it names the journal and the keys that this one was given.
func (g *journaling) command(verb string, words ...string) string {
	var flags []string
	for _, flag := range []struct{ name, path string }{{"--journal", g.path}, {"--journal-key", g.keyFile}, {"--audit-key", g.auditKey}} {
		if flag.path != "" && (flag.name != "--audit-key" || verb == "resume") {
			flags = append(flags, flag.name, shellWord(flag.path))
		}
	}
	end := false // a word that begins with a hyphen stands behind --
	for i, word := range words {
		end = end || strings.HasPrefix(word, "-")
		words[i] = shellQuote(word)
	}
	text := []string{"runteam", verb}
	if end {
		return strings.Join(append(append(append(text, flags...), "--"), words...), " ")
	}
	return strings.Join(append(append(text, words...), flags...), " ")
}

// nextStep says what can be done about a run that did not succeed: the command
// that resumes it, or that the program that began it can. It is empty for a run
// that is still running, that succeeded, or that an experiment made.
func (g *journaling) nextStep(s *journal.Summary, short string, info func() (*journal.Info, error)) string {
	if s.Status == string(team.StatusOK) || s.Status == journal.Running || s.Command == experimenting {
		return ""
	}
	switch i, err := info(); {
	case err != nil:
		return ""
	case len(i.Invocation) == 0:
		return begunByProgram
	}
	return g.command("resume", short)
}

// begunByProgram says why no command resumes a run.
const begunByProgram = "begun by a Go program: only the program can resume it"
