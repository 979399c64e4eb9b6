package chat

import (
	"bytes"
	"io"
)

// mark begins each line that a model wrote. No line of the chat begins so, and a model cannot write a
// line without it.
const mark = "│ "

// A gutter writes each line behind the mark.
type gutter struct {
	w      io.Writer
	inLine bool
}

func (g *gutter) Write(p []byte) (int, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(p) {
		if !g.inLine {
			out.WriteString(mark)
		}
		out.Write(line)
		g.inLine = line[len(line)-1] != '\n'
	}
	if _, err := g.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
