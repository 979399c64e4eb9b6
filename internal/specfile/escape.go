package specfile

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// escapedLen returns how many bytes of a JSON string encode the first n bytes of its value.
func escapedLen(raw string, n int) int {
	i := 0
	for n > 0 && i < len(raw) && raw[i] != '"' {
		if raw[i] != '\\' {
			i++
			n--
			continue
		}
		size := 2
		if strings.HasPrefix(raw[i:], `\u`) {
			size = 6
		}
		value, err := jsontext.AppendUnquote(nil, `"`+raw[i:min(i+size, len(raw))]+`"`)
		if err != nil && size == 6 { // the first half of a surrogate pair
			size = 12
			value, err = jsontext.AppendUnquote(nil, `"`+raw[i:min(i+size, len(raw))]+`"`)
		}
		if err != nil {
			return i
		}
		i += size
		n -= len(value)
	}
	return i
}
