package record

import "bytes"

// KeepElements returns a JSON object whose member with a name is a list of only those elements for which keep returns
// true. It gives keep the text of each element and parses none, so that a reader of a few elements of a long list need
// not decode the others. It returns false, and the object as it is, if the object has no such list or has spaces where
// [AppendLine] writes none. What is left out may be invalid JSON.
func KeepElements(object []byte, name string, keep func(element []byte) bool) ([]byte, bool) {
	list, ok := findMember(object, name)
	if !ok || object[list] != '[' {
		return object, false
	}
	kept := append(make([]byte, 0, min(len(object), 4<<10)), object[:list+1]...)
	at := list + 1
	for at < len(object) && object[at] != ']' {
		end := valueEnd(object, at)
		if end == at || end >= len(object) {
			return object, false
		}
		if keep(object[at:end]) {
			if kept[len(kept)-1] != '[' {
				kept = append(kept, ',')
			}
			kept = append(kept, object[at:end]...)
		}
		if at = end; object[at] == ',' {
			at++
		} else if object[at] != ']' {
			return object, false
		}
	}
	if at >= len(object) || object[at-1] == ',' {
		return object, false
	}
	return append(kept, object[at:]...), true
}

// findMember returns where the value of a member of an object begins.
func findMember(object []byte, name string) (at int, ok bool) {
	for at = 1; at < len(object) && object[at] == '"'; at++ {
		key := at
		at = stringEnd(object, at)
		if at >= len(object) || object[at] != ':' {
			return 0, false
		}
		found := string(object[key+1:at-1]) == name
		at++
		if found {
			return at, at < len(object)
		}
		if at = valueEnd(object, at); at >= len(object) || object[at] != ',' {
			return 0, false
		}
	}
	return 0, false
}

// valueEnd returns the end of the value at a place in JSON without spaces; the length of the text if it has no end.
func valueEnd(text []byte, at int) int {
	for depth := 0; at < len(text); {
		switch text[at] {
		case '"':
			if at = stringEnd(text, at); depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // of what encloses a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return len(text)
}

// stringEnd returns the end of the string at a place in JSON; the length of the text if it has no end.
func stringEnd(text []byte, at int) int {
	for at++; at < len(text); at++ {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			break
		}
		at += n
		escapes := 0
		for text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
	}
	return len(text)
}
