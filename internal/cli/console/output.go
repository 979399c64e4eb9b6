package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/terminal"
)

// PrintJSON prints one JSON document on stdout.
func (c *Console) PrintJSON(v any) error {
	return c.PrintDocument(func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}

// Print writes to stdout what write gives, and reports any failure of stdout.
func (c *Console) Print(write func(io.Writer) error) error {
	b := bufio.NewWriterSize(c.Stdout, 64<<10)
	err := write(b)
	if err == nil {
		err = b.Flush()
	}
	return exit.WriteError(err)
}

// PrintText writes a text to stdout, without what could play tricks on a
// terminal, and with a line feed at its end. It is the same whether stdout is
// a terminal or not: a file or a log is read in a terminal later. An empty
// text prints nothing.
func (c *Console) PrintText(text string) error {
	if text == "" {
		return nil
	}
	return c.Print(func(w io.Writer) error {
		_, err := io.WriteString(w, strings.TrimRight(terminal.Clean(text), "\n")+"\n")
		return err
	})
}

// PrintDocument writes one JSON document to stdout, with a line feed at its end.
func (c *Console) PrintDocument(write func(io.Writer) error) error {
	return c.Print(func(w io.Writer) error {
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
	})
}

// lastLine passes a text on and sees to it that it ends in one line feed.
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

// TitleWidth is how long a title may be where a person reads tables: half of
// the terminal; 0 for any length.
func (c *Console) TitleWidth() int {
	if !c.IsTerminal(c.Stdout) {
		return 0
	}
	width, _ := c.TerminalSize(c.Stdout)
	return width / 2
}

// Separated puts blank lines around the result on a terminal that shows stderr too.
func (c *Console) Separated(print func() error) error {
	if c.IsTerminal(c.Stdout) && c.IsTerminal(c.Stderr) {
		c.Say("")
		defer c.Say("")
	}
	return print()
}
