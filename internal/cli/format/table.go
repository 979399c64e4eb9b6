package format

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// Table writes lines whose cells stand below each other.
type Table struct {
	w      *tabwriter.Writer
	indent string
	room   int // for titles; 0 for any length
}

// NewTable returns a table that writes to w, with each row indented.
func NewTable(w io.Writer, indent string) Table {
	return Table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), indent: indent}
}

// WithTitleWidth returns rows whose titles have so much room.
func (r Table) WithTitleWidth(room int) Table {
	r.room = room
	return r
}

// Title is a title as a cell.
func (r Table) Title(text string) string {
	if text = terminal.CleanLine(text); r.room > 0 {
		text = terminal.Clip(text, r.room)
	}
	return text
}

// Row adds a row; empty cells at its end are left out.
func (r Table) Row(cells ...string) {
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	fmt.Fprintln(r.w, r.indent+strings.Join(cells, "\t"))
}

// Flush writes the rows with their columns aligned.
func (r Table) Flush() { _ = r.w.Flush() } // to memory
