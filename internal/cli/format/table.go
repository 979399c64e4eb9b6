package format

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// A Table writes rows with aligned columns.
type Table struct {
	w      *tabwriter.Writer
	indent string
	width  int // of a title at most, in cells; 0 for any width
}

// NewTable returns a table that writes to w, with each row indented.
func NewTable(w io.Writer, indent string) Table {
	return Table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), indent: indent}
}

// WithTitleWidth returns the table with a limit on the width of titles.
func (t Table) WithTitleWidth(width int) Table {
	t.width = width
	return t
}

// Title returns a title as a cell.
func (t Table) Title(text string) string {
	if t.width == 0 {
		return text
	}
	return terminal.Clip(terminal.CleanLine(text), t.width)
}

// Row adds a row. Each cell stays on its line: characters that could deceive the reader of a
// terminal are escaped. Empty cells at the end are omitted.
func (t Table) Row(cells ...string) {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = terminal.CleanLine(cell)
	}
	fmt.Fprintln(t.w, t.indent+strings.Join(clean, "\t"))
}

// Flush writes the rows with their columns aligned.
func (t Table) Flush() { _ = t.w.Flush() } // a write to memory does not fail
