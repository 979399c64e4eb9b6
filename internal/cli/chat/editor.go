package chat

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"golang.org/x/term"
)

// An editor reads turns from a terminal: with a line editor and a history, or, if the terminal cannot
// do that, line by line.
type editor struct {
	con     *console.Console
	keys    *keyboard
	history []string // the newest last

	terminal *term.Terminal // knows whether a text is being pasted; nil until the first line
}

// read reads a turn: a line, and those after it as long as each ends with a backslash or the text was
// pasted. Ctrl-C clears what was typed, which is an empty turn. At the end of the input read returns
// io.EOF.
func (e *editor) read(ctx context.Context, first, next string) (string, error) {
	var text []string
	for prompt := first; ; prompt = next {
		line, goesOn, err := e.line(ctx, prompt)
		if errors.Is(err, errCleared) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if cut, more := strings.CutSuffix(line, `\`); more && !goesOn {
			line, goesOn = cut, true
		}
		if text = append(text, line); goesOn {
			continue
		}
		if strings.TrimSpace(line) != "" {
			e.history = append(e.history, line)
		}
		return strings.Join(text, "\n"), nil
	}
}

// errCleared reports that Ctrl-C was typed.
var errCleared = errors.New("cleared")

// line reads a line, and reports whether it is part of a pasted text that goes on.
func (e *editor) line(ctx context.Context, prompt string) (line string, pasted bool, err error) {
	file, ok := e.con.Stdin.(*os.File)
	if !ok {
		return e.plain(ctx, prompt)
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return e.plain(ctx, prompt)
	}
	defer term.Restore(int(file.Fd()), before) //nolint:errcheck // the terminal is gone then
	w, resume := e.con.Screen.Pause()
	defer resume()
	if e.terminal == nil {
		e.terminal = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{e.keys, w}, "")
		e.terminal.History = (*history)(e)
	}
	t := e.terminal
	t.SetPrompt(prompt)
	if width, height := e.con.TerminalSize(e.con.Stderr); width > 0 && height > 0 {
		_ = t.SetSize(width, height)
	}
	t.SetBracketedPasteMode(true)
	defer t.SetBracketedPasteMode(false)
	e.keys.interrupted = false
	line, err = t.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		return line, true, nil
	}
	if e.keys.interrupted && errors.Is(err, io.EOF) {
		_, _ = io.WriteString(w, "^C\r\n")
		e.terminal = nil // it still has what was typed
		return "", false, errCleared
	}
	return line, false, err
}

// plain reads a line that the terminal has edited.
func (e *editor) plain(ctx context.Context, prompt string) (string, bool, error) {
	w, resume := e.con.Screen.Pause()
	_, _ = io.WriteString(w, prompt)
	resume()
	line, err := e.keys.line(ctx)
	return line, false, err
}

// history is the history of an editor; see [term.History]. The editor adds whole turns itself.
type history editor

func (h *history) Add(string) {}

func (h *history) Len() int { return len(h.history) }

func (h *history) At(i int) string { return h.history[len(h.history)-1-i] }
