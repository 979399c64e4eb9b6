package schema

import (
	"strconv"
	"strings"
)

// Target returns the schema that a "$ref" within the document names, or nil.
func Target(root any, ref string) any {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil
	}
	target, _ := find(root, pointer)
	return target
}

// find follows an RFC 6901 pointer.
func find(v any, pointer string) (any, bool) {
	tokens := strings.Split(pointer, "/")[1:]
	for i := range tokens {
		tokens[i] = unescape(tokens[i])
	}
	return valueAt(v, tokens)
}

// valueAt returns the part of a decoded value at a path.
func valueAt(v any, path []string) (any, bool) {
	for _, token := range path {
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[token]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, ok := index(token)
			if !ok || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// index returns the number that a token writes as RFC 6901 does.
func index(token string) (int, bool) {
	k, err := strconv.Atoi(token)
	return k, err == nil && k >= 0 && strconv.Itoa(k) == token
}

var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

func unescape(token string) string { return unescapes.Replace(token) }
