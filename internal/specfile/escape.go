package specfile

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape reads the escape that s begins with, and says how many bytes it is.
func unescape(s string) (text string, size int, err error) {
	if len(s) < 2 {
		return "", 0, errors.New("a string without an end")
	}
	if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
		return "\"\\/\b\f\n\r\t"[i : i+1], 2, nil
	}
	first, ok := hex4(s)
	if !ok {
		return "", 0, errors.New("no escape of JSON: write \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hexadecimal digits")
	}
	if !utf16.IsSurrogate(first) {
		return string(first), 6, nil
	}
	second, ok := hex4(s[6:])
	r := utf16.DecodeRune(first, second)
	if !ok || r == utf8.RuneError {
		return "", 0, errors.New("one half of a surrogate pair, without the other")
	}
	return string(r), 12, nil
}

func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 32)
	return rune(v), err == nil
}

// escapedLen returns how many bytes of a JSON string stand for the first n
// bytes of its value.
func escapedLen(raw string, n int) int {
	i := 0
	for n > 0 && i < len(raw) && raw[i] != '"' {
		if raw[i] != '\\' {
			i++
			n--
			continue
		}
		text, size, err := unescape(raw[i:])
		if err != nil {
			return i
		}
		i += size
		n -= len(text)
	}
	return i
}
