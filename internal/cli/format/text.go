// Package format formats numbers, times, lists, tables and shell words for people.
package format

import (
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/redact"
)

// Unless returns text unless the condition holds.
func Unless(not bool, text string) string {
	if not {
		return ""
	}
	return text
}

// Kinds returns the names of kinds of personal data.
func Kinds(kinds []redact.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// Dotted joins parts with dots between them, without those that are empty.
func Dotted(parts ...string) string {
	var all []string
	for _, part := range parts {
		if part != "" {
			all = append(all, terminal.CleanLine(part))
		}
	}
	return strings.Join(all, " · ")
}

// QuoteBlock returns a text with each line indented and marked.
func QuoteBlock(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(terminal.Clean(text), "\n"), "\n") {
		b.WriteString(strings.TrimRight("           │ "+line, " ") + "\n")
	}
	return b.String()
}

// Indent returns a message whose further lines are indented below the first.
func Indent(message string) string {
	return strings.ReplaceAll(terminal.Clean(strings.TrimRight(message, "\n")), "\n", "\n         ")
}
