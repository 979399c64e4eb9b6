package people

import (
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/promptview"
)

// writeAsked writes what a person is asked: what to decide, and each text that this is about, with who wrote it, its
// label and the marks of the gate. Lines that others wrote begin with a bar, so that no text can pass for a line of
// this command.
func writeAsked(w io.Writer, asked *promptview.Asked) {
	writeQuoted(w, asked.Decide)
	for i := range asked.Texts {
		of := &asked.Texts[i]
		parts := []string{terminal.CleanLine(of.Name)}
		if of.From != "" {
			parts = append(parts, "from "+terminal.CleanLine(of.From))
		}
		if of.Label != "" {
			parts = append(parts, of.Label)
		}
		for _, mark := range of.Marks {
			parts = append(parts, terminal.CleanLine(mark))
		}
		fmt.Fprintf(w, "\n  %s:\n", strings.Join(parts, ", "))
		writeQuoted(w, of.Text)
	}
}

// writeQuoted writes the lines of a text that somebody else wrote.
func writeQuoted(w io.Writer, text string) {
	for line := range strings.Lines(terminal.Clean(text)) {
		fmt.Fprintf(w, "  │ %s\n", strings.TrimSuffix(line, "\n"))
	}
}
