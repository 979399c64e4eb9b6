package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
)

// PrintResult prints the result of a command on stdout: as a JSON document, or as the text that
// write writes.
func (c *Console) PrintResult(document any, write func(io.Writer)) error {
	if c.Settings.JSON() {
		return c.PrintJSON(document)
	}
	var b strings.Builder
	write(&b)
	return c.PrintText(b.String())
}

// PrintJSON prints one JSON document on stdout.
func (c *Console) PrintJSON(v any) error {
	return c.PrintDocument(func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}

// Print prints what write writes on stdout, and reports any failure of stdout.
func (c *Console) Print(write func(io.Writer) error) error {
	b := bufio.NewWriterSize(c.Stdout, 64<<10)
	err := write(b)
	if err == nil {
		err = b.Flush()
	}
	return exit.WriteError(err)
}

// PrintText prints a text on stdout, with a line feed at its end. Characters that could deceive the
// reader of a terminal are escaped even if stdout is a file, which may be read in a terminal later.
// An empty text prints nothing.
func (c *Console) PrintText(text string) error {
	if text == "" {
		return nil
	}
	return c.Print(func(w io.Writer) error {
		_, err := io.WriteString(w, strings.TrimRight(terminal.Clean(text), "\n")+"\n")
		return err
	})
}

// PrintDocument prints the JSON document that write writes on stdout, with a line feed at its end.
func (c *Console) PrintDocument(write func(io.Writer) error) error {
	return c.Print(func(w io.Writer) error { return c.WriteDocument(w, write) })
}

// WriteDocument writes to w what [Console.PrintDocument] prints.
func (c *Console) WriteDocument(w io.Writer, write func(io.Writer) error) error {
	out := &lastLine{w: &terminal.JSONWriter{W: w}}
	if !c.Settings.pretty {
		if err := write(out); err != nil {
			return err
		}
		return out.end()
	}
	var whole, indented bytes.Buffer
	if err := write(&whole); err != nil {
		return err
	}
	if err := json.Indent(&indented, whole.Bytes(), "", "  "); err != nil {
		return err
	}
	if _, err := indented.WriteTo(out); err != nil {
		return err
	}
	return out.end()
}

// lastLine writes a text to w and ends it with a line feed unless it has one.
type lastLine struct {
	w     io.Writer
	ended bool
}

func (l *lastLine) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.ended = p[len(p)-1] == '\n'
	}
	return l.w.Write(p)
}

func (l *lastLine) end() error {
	if l.ended {
		return nil
	}
	_, err := l.w.Write([]byte("\n"))
	return err
}

// TitleWidth returns how wide a title may be in a table, in cells: half of the terminal, or 0 for
// any width.
func (c *Console) TitleWidth() int {
	if !c.IsTerminal(c.Stdout) {
		return 0
	}
	width, _ := c.TerminalSize(c.Stdout)
	return width / 2
}

// SharesOutput reports whether stdout and stderr lead to the same place: a terminal, or one file or pipe.
func (c *Console) SharesOutput() bool {
	if c.IsTerminal(c.Stdout) && c.IsTerminal(c.Stderr) {
		return true
	}
	out, isOut := c.Stdout.(*os.File)
	err, isErr := c.Stderr.(*os.File)
	if !isOut || !isErr {
		return false
	}
	atOut, badOut := out.Stat()
	atErr, badErr := err.Stat()
	return badOut == nil && badErr == nil && os.SameFile(atOut, atErr)
}

// Separated prints with empty lines around the result if a terminal shows both stdout and stderr.
func (c *Console) Separated(print func() error) error {
	if c.IsTerminal(c.Stdout) && c.IsTerminal(c.Stderr) {
		c.Say("")
		defer c.Say("")
	}
	return print()
}
