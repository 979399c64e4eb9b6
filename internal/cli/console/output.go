package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
)

// PrintResult prints the result of a command on stdout: as a JSON document, or as the text that
// write writes.
func (c *Console) PrintResult(document any, write func(io.Writer)) error {
	if c.Settings.JSON() {
		return c.PrintJSON(document)
	}
	return c.Print(func(w io.Writer) error {
		text := &cleanWriter{to: w}
		write(text)
		return text.end()
	})
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
	return c.Print(func(w io.Writer) error {
		clean := &cleanWriter{to: w}
		_, _ = io.WriteString(clean, text) // end returns its error
		return clean.end()
	})
}

// A cleanWriter writes a text as [terminal.Clean] returns it, line by line, since a text may be large. It keeps what may be
// the end of the text, and no Write ends within a character.
type cleanWriter struct {
	to   io.Writer
	rest []byte // the last line that is not empty, and the line feeds behind it
	some bool   // something was written
	err  error  // the first
}

func (c *cleanWriter) Write(text []byte) (int, error) {
	goesOn := !bytes.HasSuffix(c.rest, []byte("\n")) && !bytes.Contains(text, []byte("\n"))
	if c.rest = append(c.rest, text...); goesOn {
		return len(text), c.err
	}
	last := bytes.LastIndexByte(bytes.TrimRight(c.rest, "\n"), '\n') + 1
	c.write(c.rest[:last])
	c.rest = append(c.rest[:0], c.rest[last:]...)
	return len(text), c.err
}

// end writes what is left with one line feed; nothing if the text is empty.
func (c *cleanWriter) end() error {
	if c.some || len(c.rest) > 0 {
		c.write(append(bytes.TrimRight(c.rest, "\n"), '\n'))
	}
	return c.err
}

func (c *cleanWriter) write(text []byte) {
	if c.err == nil && len(text) > 0 {
		c.some = true
		_, c.err = io.WriteString(c.to, terminal.Clean(string(text)))
	}
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
