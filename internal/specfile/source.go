package specfile

import (
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A source is the text of one file. Places in it are byte offsets; lines and columns are
// counted on demand.
type source struct {
	path    string // as the user wrote or would write it
	dir     string // folder that its relative paths start from
	order   int    // in which it was read, for sorting problems
	text    string // without a byte order mark
	marks   []mark // every markEvery bytes
	tree    *node  // what the text says, if it could be parsed
	once    sync.Once
	secrets []span         // ranges that excerpts hide; set by conceal
	loaded  *loadedFile    // what Stored copies of it, or nil
	taken   map[*node]bool // in a stored copy: credentials that were removed
	prose   bool           // a prompt or an input, which has no keys
	other   bool           // a file of a [Table], which has other keys than a spec
}

// A mark is a line and a column that were counted up to a byte.
type mark struct{ line, column int }

// A span is a range of bytes.
type span struct{ start, end int }

// markEvery bounds the bytes that are counted for one place.
const markEvery = 4096

func newSource(path, dir, text string) *source {
	s := &source{path: path, dir: dir, text: text}
	at := mark{1, 1}
	for start := 0; start <= len(text); start += markEvery {
		s.marks = append(s.marks, at)
		at = s.count(at, start, min(start+markEvery, len(text)))
	}
	return s
}

// count moves a mark over the bytes from start to end. A line ends at LF, CR
// LF or a lone CR; columns count characters.
func (s *source) count(at mark, start, end int) mark {
	for i := start; i < end; i++ {
		switch c := s.text[i]; {
		case c == '\n', c == '\r' && (i+1 == len(s.text) || s.text[i+1] != '\n'):
			at = mark{at.line + 1, 1}
		case c == '\r', utf8.RuneStart(c):
			at.column++
		}
	}
	return at
}

// place returns the line and column of a byte, both from 1.
func (s *source) place(offset int) (line, column int) {
	offset = max(0, min(offset, len(s.text)))
	i := offset / markEvery
	at := s.count(s.marks[i], i*markEvery, offset)
	return at.line, at.column
}

// lineStart returns the offset of a line; the end of the text for a line after the last.
func (s *source) lineStart(line int) int {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].line >= line }) - 1
	if i < 0 {
		return 0
	}
	at := s.marks[i].line
	for offset := i * markEvery; offset < len(s.text); offset++ {
		if at == line {
			return offset
		}
		if s.text[offset] == '\n' || s.text[offset] == '\r' && !strings.HasPrefix(s.text[offset+1:], "\n") {
			at++
			if at == line {
				return offset + 1
			}
		}
	}
	return len(s.text)
}

// extent returns the range of the line that contains an offset, without its end, or of a
// part of a very long line.
func (s *source) extent(offset int) (start, end int) {
	const most = 4096
	start, end = offset, offset
	for start > 0 && offset-start < most && s.text[start-1] != '\n' && s.text[start-1] != '\r' {
		start--
	}
	for start < offset && !utf8.RuneStart(s.text[start]) {
		start++
	}
	for end < len(s.text) && end-offset < most && s.text[end] != '\n' && s.text[end] != '\r' {
		end++
	}
	for end < len(s.text) && end > offset && !utf8.RuneStart(s.text[end]) {
		end--
	}
	return start, end
}

// printable replaces control and format characters by a dot, and tabs by spaces.
func printable(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r == utf8.RuneError, unicode.IsControl(r), r == 0x2028, r == 0x2029, unicode.Is(unicode.Cf, r):
		return '·'
	}
	return r
}
