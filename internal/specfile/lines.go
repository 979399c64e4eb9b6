package specfile

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// Positions of the lines and characters of a value in its file.

// lineOffset returns the start of a line of a text. Lines end as in prompts: at LF, CR,
// CR LF, VT, FF, FS to RS, NEL, LS and PS.
func lineOffset(text string, line int) int {
	for i, r := range text {
		if line <= 1 {
			return i
		}
		if naming.EndsLine(r) && !strings.HasPrefix(text[i:], "\r\n") {
			line--
		}
	}
	return len(text)
}

// skipSpaces moves an offset to the first visible character of its line.
func skipSpaces(text string, offset int) int {
	for i, r := range text[offset:] {
		if r == '\n' || r == '\r' || !unicode.IsSpace(r) {
			return offset + i
		}
	}
	return offset
}

// placeInText returns the position in the file of a byte of a value: exactly for JSON and
// for block scalars, otherwise by searching for the same characters, or else the start of
// the value.
func placeInText(n *node, offset int) (*source, int) {
	offset = max(0, min(offset, len(n.text)))
	switch n.form {
	case quoted:
		return n.src, n.at + 1 + escapedLen(n.src.text[n.at+1:], offset)
	case literal:
		first, _ := n.src.place(n.at)
		start := n.src.lineStart(first + 1 + strings.Count(n.text[:offset], "\n"))
		_, end := n.src.extent(start)
		line := n.text[strings.LastIndexByte(n.text[:offset], '\n')+1:]
		line, _, _ = strings.Cut(line, "\n")
		line = strings.TrimSuffix(line, "\r")
		depth := max(0, end-start-len(line))
		if !strings.HasSuffix(n.src.text[start:end], line) {
			depth = 0
		}
		into := offset - (strings.LastIndexByte(n.text[:offset], '\n') + 1)
		return n.src, min(start+depth+into, end)
	}
	return n.src, search(n, offset)
}

// search returns the position in the file of the characters at an offset of a text. It
// skips their earlier occurrences in the text.
func search(n *node, offset int) int {
	const most = 24
	letters := n.text[offset:]
	if i := strings.IndexAny(letters, "\n\r"); i >= 0 {
		letters = letters[:i]
	}
	if len(letters) > most {
		letters = letters[:most]
		for len(letters) > 0 && !utf8.ValidString(letters) {
			letters = letters[:len(letters)-1]
		}
	}
	if strings.TrimSpace(letters) == "" {
		return n.at
	}
	before := 0
	for i := 0; i < offset && before < 1000; before++ {
		k := strings.Index(n.text[i:], letters)
		if k < 0 || i+k >= offset {
			break
		}
		i += k + 1
	}
	at := n.at
	for ; ; before-- {
		k := strings.Index(n.src.text[at:], letters)
		if k < 0 {
			return n.at
		}
		if at += k; before == 0 {
			break
		}
		at++
	}
	if at > n.at+len(n.text)*4+4096 {
		return n.at
	}
	return at
}
