package markdown

import (
	"bytes"
	"strings"
)

// maxPairs is how many pairs of marks a text may have within stretches of lines, of which each may be one paragraph. Marks
// open what others close, and the time to find that out grows with the pairs.
const maxPairs = 16_000_000

// IsCostly reports whether a text is too large to be read, or reading it could take much longer than its length says: a
// line is deep in quotes and lists, a stretch has many marks, or tables have many cells. Of several texts, join them with
// blank lines.
func IsCostly(text string) bool {
	source := []byte(text)
	if len(source) > maxBytes {
		return true
	}
	marks, pairs, columns, cells := 0, 0, 0, 0
	for line := range bytes.Lines(source) {
		line = bytes.TrimRight(line, "\r\n")
		depth, rest := markers(line)
		isBlank, isItem := len(rest) == 0, len(rest) < len(line) && strings.IndexByte("> \t", line[0]) < 0
		if isBlank || isItem {
			pairs, marks = pairs+marks*marks, 0
		}
		if isBlank {
			columns = 0
		}
		for _, c := range rest {
			if strings.IndexByte("[*_~`", c) >= 0 {
				marks++
			}
		}
		if strings.Trim(string(rest), "|:- \t") == "" { // each line that follows may become a row of as many cells
			columns = max(columns, bytes.Count(rest, []byte("|"))+1)
		}
		if cells += columns; depth > maxDepth || pairs+marks*marks > maxPairs || cells > maxNodes {
			return true
		}
	}
	return false
}

// markers returns how many quotes and items begin at the start of a line, and what follows.
func markers(line []byte) (depth int, rest []byte) {
	for rest = bytes.TrimLeft(line, " \t"); len(rest) > 0; rest = bytes.TrimLeft(rest, " \t") {
		length := 1
		if rest[0] != '>' {
			number := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
			after := rest[number:]
			isItem := len(after) > 0 && (number == 0 && strings.IndexByte("-+*", after[0]) >= 0 || number > 0 && strings.IndexByte(".)", after[0]) >= 0)
			if !isItem || len(after) > 1 && after[1] != ' ' && after[1] != '\t' {
				return depth, rest
			}
			length = number + 1
		}
		depth++
		rest = rest[length:]
	}
	return depth, rest
}
