package toolschema

import (
	"net/url"
	"strconv"
	"strings"
)

// unescaped returns the tokens of a JSON Pointer in the fragment of a URI (RFC 6901).
func unescaped(fragment string) []string {
	if fragment == "" {
		return nil
	}
	if decoded, err := url.PathUnescape(fragment); err == nil {
		fragment = decoded
	}
	tokens := strings.Split(fragment[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens
}

// pointer returns a JSON Pointer as the fragment of a URI.
func pointer(tokens []string) string {
	var b strings.Builder
	b.WriteByte('#')
	for _, t := range tokens {
		b.WriteByte('/')
		t = strings.ReplaceAll(strings.ReplaceAll(t, "~", "~0"), "/", "~1")
		for _, c := range []byte(t) {
			if c <= ' ' || c >= 0x7f || strings.IndexByte(`"%<>\^{|}`+"`", c) >= 0 {
				const digits = "0123456789ABCDEF"
				b.Write([]byte{'%', digits[c>>4], digits[c&15]})
				continue
			}
			b.WriteByte(c)
		}
	}
	return b.String()
}

// follow returns the value that tokens lead to.
func follow(v any, tokens []string) (any, bool) {
	for _, t := range tokens {
		switch of := v.(type) {
		case *object:
			i := of.index(t)
			if i < 0 {
				return nil, false
			}
			v = of.members[i].value
		case *array:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(of.items) {
				return nil, false
			}
			v = of.items[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// target returns the schema that a reference of a full form names, or nil.
func target(top *object, ref string) *object {
	v, _ := follow(top, unescaped(strings.TrimPrefix(ref, "#")))
	return objectOf(v)
}
