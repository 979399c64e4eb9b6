package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
)

// errPart is the error of text that ends within a line.
var errPart = errors.New("what stands beside the record ends within a line: tell it in whole lines, each with its line feed")

// stretch is the other lines between two lines of a record, or before the
// first: how many they are, and the digest of their bytes, with the line feeds.
type stretch struct {
	hash  hash.Hash
	lines int
}

func newStretch() stretch { return stretch{hash: sha256.New()} }

// add takes whole lines.
func (s *stretch) add(text []byte) error {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return errPart
	}
	s.hash.Write(text)
	s.lines += bytes.Count(text, []byte("\n"))
	return nil
}

// take returns what the next line of the record says of the stretch, and
// begins another. Of no lines that is nothing.
func (s *stretch) take() (beside Head) {
	if s.lines == 0 {
		return beside
	}
	beside.Lines = s.lines
	s.hash.Sum(beside.Digest[:0])
	s.hash.Reset()
	s.lines = 0
	return beside
}

// Beside folds in lines that stand in the file between those of the chain,
// each with its line feed: the next line of the chain covers them, and so does
// its key. They are not written here. Whoever writes them calls Beside in the
// order of the file; what the closing line is to cover comes before Close. None
// of them may have a member "audit". After an error the chain is broken.
func (c *Chain) Beside(lines []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.closed:
		return ErrClosed
	}
	c.err = c.beside.add(lines)
	return c.err
}
