package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
)

// errPart is the error of text that ends within a line.
var errPart = errors.New("the other lines of a record end within a line: pass whole lines, each with its line feed")

// A stretch is the other lines between two lines of a record, or before the first: their
// number, and the digest of their bytes with the line feeds.
type stretch struct {
	hash  hash.Hash
	lines int
}

func newStretch() stretch { return stretch{hash: sha256.New()} }

// add adds whole lines.
func (s *stretch) add(text []byte) error {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return errPart
	}
	s.hash.Write(text)
	s.lines += bytes.Count(text, []byte("\n"))
	return nil
}

// take returns the number and digest of the stretch for the next line of the record, and
// begins another stretch. Of no lines it is zero.
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

// Beside adds lines that the caller writes between those of the chain, each with its line
// feed. The digest of the next line of the chain covers them. Call Beside in the order of the
// file, and before Close. None of the lines may have a member "audit". After an error the
// chain is broken.
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
