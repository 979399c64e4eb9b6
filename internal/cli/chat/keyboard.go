package chat

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
)

// A keyboard passes on what is typed to whoever reads next: the editor of a turn, or the dialog with a
// person of the team. What is typed ahead stays. Its goroutine ends with the input or the process, since
// nothing ends a read from a terminal.
type keyboard struct {
	ctx    context.Context //nolint:containedctx // of the command; it ends reads
	chunks chan []byte     // closed at the end of the input
	rest   []byte

	interrupted bool // Ctrl-C was typed while the terminal was raw
}

func newKeyboard(ctx context.Context, con *console.Console) *keyboard {
	return newLines(ctx, con.Stdin).keyboard
}

// lines are the lines of an input.
type lines struct{ *keyboard }

func newLines(ctx context.Context, in io.Reader) *lines {
	k := &keyboard{ctx: ctx, chunks: make(chan []byte)}
	go func() {
		defer close(k.chunks)
		for {
			p := make([]byte, 32<<10)
			n, err := in.Read(p)
			if n > 0 {
				select {
				case k.chunks <- p[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return &lines{k}
}

// more waits for more input.
func (k *keyboard) more(ctx context.Context) error {
	select {
	case p, ok := <-k.chunks:
		if !ok {
			return io.EOF
		}
		k.rest = append(k.rest, p...)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Read reads keys for a line editor, at most to the end of a line, and notes Ctrl-C.
func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.rest) == 0 {
		if err := k.more(k.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, k.rest)
	if end := bytes.IndexAny(p[:n], "\r\n"); end >= 0 {
		n = end + 1 // what follows is for whoever reads next
	}
	k.rest = k.rest[n:]
	k.interrupted = k.interrupted || bytes.IndexByte(p[:n], ctrlC) >= 0
	return n, nil
}

const ctrlC = 3

// line reads a line that a terminal has edited.
func (k *keyboard) line(ctx context.Context) (string, error) {
	for {
		if at := bytes.IndexByte(k.rest, '\n'); at >= 0 {
			text := string(k.rest[:at])
			k.rest = k.rest[at+1:]
			return strings.TrimSuffix(text, "\r"), nil
		}
		if len(k.rest) > maxLine {
			return string(k.rest), nil // it is refused
		}
		if err := k.more(ctx); err != nil {
			if err == io.EOF && len(k.rest) > 0 {
				text := string(k.rest)
				k.rest = nil
				return text, nil
			}
			return "", err
		}
	}
}

// next returns the next line.
func (l *lines) next(ctx context.Context) (string, error) { return l.line(ctx) }
