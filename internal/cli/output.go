package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// print writes to stdout what write gives, and reports any failure of stdout.
func (a *app) print(write func(io.Writer) error) error {
	b := bufio.NewWriterSize(a.stdout, 64<<10)
	err := write(b)
	if err == nil {
		err = b.Flush()
	}
	return unwritten(err)
}

// unwritten words a failure of stdout, if there is one.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &fault{kind: kindInternal, err: fmt.Errorf("writing the result to standard output: %w", err)}
}

// printText writes a text to stdout, without what could play tricks on a
// terminal, and with a line feed at its end. It is the same whether stdout is
// a terminal or not: a file or a log is read in a terminal later. An empty
// text prints nothing.
func (a *app) printText(text string) error {
	if text == "" {
		return nil
	}
	return a.print(func(w io.Writer) error {
		_, err := io.WriteString(w, strings.TrimRight(clean(text), "\n")+"\n")
		return err
	})
}

// printDocument writes one JSON document to stdout, with a line feed at its end.
func (a *app) printDocument(write func(io.Writer) error) error {
	return a.print(func(w io.Writer) error {
		out := &lastLine{w: &cleanJSON{w: w}}
		if !a.settings.pretty {
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

// plural counts things: "1 task", "12,000 tasks".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}

// number writes n with commas between thousands.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
