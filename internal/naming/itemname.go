package naming

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxItemName is how many characters of a key the name of an item has.
const maxItemName = 40

// ItemNames returns the names of the items of a list by their keys: texts, numbers ([json.Number])
// or nil, at a member with this name. A name is one clean line. It is empty for an item without a
// key, and for items whose names would be equal.
func ItemNames(keys []any, member string) []string {
	names, count := make([]string, len(keys)), map[string]int{}
	for i, key := range keys {
		names[i] = itemName(key, member)
		count[Normalize(names[i])]++
	}
	for i, name := range names {
		if count[Normalize(name)] > 1 {
			names[i] = ""
		}
	}
	return names
}

// itemName returns the name of an item by its key. A number follows the name of its member, since
// by itself it would be a position.
func itemName(key any, member string) string {
	text, isText := key.(string)
	if n, isNumber := key.(json.Number); isNumber {
		text = n.String()
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return ""
	case !isText || strings.Trim(text, "0123456789") == "":
		text = member + "=" + text
	}
	if utf8.RuneCountInString(text) > maxItemName {
		text = string([]rune(text)[:maxItemName-1]) + "…"
	}
	switch {
	case CheckLine(text) != nil:
		return strconv.QuoteToASCII(text)
	case strings.ContainsAny(text, `[]#"\`): // the title has these around it
		return strconv.Quote(text)
	}
	return text
}

// position matches the position of an item in the title of an instance.
var position = regexp.MustCompile(`\[\d+\]`)

// WithItems returns the title of an instance with the names of its items, the outermost first, in
// place of their positions. It is empty if none has a name. The title as written is the beginning.
func WithItems(title, written string, items []string) string {
	suffix, ok := strings.CutPrefix(title, written)
	at := position.FindAllStringIndex(suffix, -1)
	if !ok || len(at) != len(items) || strings.Join(items, "") == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(written)
	end := 0
	for k, name := range items {
		if name != "" {
			b.WriteString(suffix[end:at[k][0]] + "[" + name + "]")
			end = at[k][1]
		}
	}
	return b.String() + suffix[end:]
}
