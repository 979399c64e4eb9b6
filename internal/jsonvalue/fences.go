package jsonvalue

import "strings"

// Fences returns the contents of the code fences of a text: of those marked json, and of
// those without a mark. Lines that begin with three backquotes or more open and close a
// fence, so that backquotes within a JSON string, which has no line breaks, do not. A fence
// that is not closed extends to the end.
func Fences(text string) (named, bare []string) {
	if !strings.Contains(text, "```") {
		return nil, nil
	}
	ticks, info, start := 0, "", 0 // of the open fence
	put := func(end int) {
		switch body := strings.TrimSpace(text[start:end]); info {
		case "json":
			named = append(named, body)
		case "":
			bare = append(bare, body)
		}
	}
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		next := min(at+len(line)+1, len(text))
		n, mark := fenceLine(line)
		switch {
		case ticks == 0 && n > 0:
			ticks, info, start = n, mark, next
		case ticks > 0 && n >= ticks && mark == "":
			put(at)
			ticks = 0
		}
		at = next
	}
	if ticks > 0 {
		put(len(text))
	}
	return named, bare
}

// fenceLine returns how many backquotes, three or more, a line begins with, and the text
// after them in lower case. The number is 0 if the line is no fence.
func fenceLine(line string) (ticks int, info string) {
	line = strings.TrimSpace(line)
	rest := strings.TrimLeft(line, "`")
	ticks = len(line) - len(rest)
	if ticks < 3 || strings.Contains(rest, "`") {
		return 0, ""
	}
	return ticks, strings.ToLower(strings.TrimSpace(rest))
}
