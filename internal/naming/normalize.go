package naming

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalize returns the form in which titles are compared: without surrounding
// spaces, in lower case, and composed (NFC), so that an accented letter is the
// same however an editor wrote it. A title that is normal already is returned
// as it is, without a copy.
func Normalize(title string) string {
	title = strings.TrimSpace(title)
	ascii, lower := true, true
	for i := range len(title) {
		switch c := title[i]; {
		case c >= utf8.RuneSelf:
			ascii = false
		case 'A' <= c && c <= 'Z':
			lower = false
		}
	}
	switch {
	case !ascii:
		return normalUnicode(title)
	case !lower:
		return strings.ToLower(title)
	}
	return title
}

// AppendNormal appends Normalize(title). It does not allocate for ASCII that fits dst.
func AppendNormal(dst []byte, title string) []byte {
	title = strings.TrimSpace(title)
	start := len(dst)
	for i := range len(title) {
		c := title[i]
		if c >= utf8.RuneSelf {
			return append(dst[:start], normalUnicode(title)...)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// normalUnicode composes first, since a letter and its mark may have a lower
// case only together, and afterwards, since lower case may leave them apart.
func normalUnicode(title string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(title)))
}
