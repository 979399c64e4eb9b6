package toolschema

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// maxName is how long the name of a property may be.
const maxName = 64

// nameOfProviders reports whether Anthropic and Bedrock take the name of a property:
// ^[a-zA-Z0-9_.-]{1,64}$.
func nameOfProviders(name string) bool {
	return name != "" && len(name) <= maxName && strings.IndexFunc(name, func(r rune) bool { return !isWord(r) && r != '.' && r != '-' }) < 0
}

// nameOfVariables reports whether a name is one that every provider takes.
func nameOfVariables(name string) bool {
	return name != "" && len(name) <= maxName && (name[0] < '0' || name[0] > '9') && strings.IndexFunc(name, func(r rune) bool { return !isWord(r) }) < 0
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// rename returns names for the properties whose names are not taken. No two are equal, and none is in
// the schema.
func rename(root any, taken func(name string) bool) (sent, original map[string]string) {
	var used map[string]bool
	walkAll(root, func(o *object) {
		properties := objectOf(o.get("properties"))
		if properties == nil {
			return
		}
		for _, m := range properties.members {
			if taken(m.name) || sent[m.name] != "" {
				continue
			}
			if sent == nil {
				sent, original, used = map[string]string{}, map[string]string{}, map[string]bool{}
				addTexts(root, used)
			}
			name := readable(m.name, used)
			sent[m.name], original[name], used[name] = name, m.name, true
		}
	})
	return sent, original
}

// addTexts adds all names of members and texts in a value.
func addTexts(v any, to map[string]bool) {
	switch v := v.(type) {
	case *object:
		for _, m := range v.members {
			to[m.name] = true
			addTexts(m.value, to)
		}
	case *array:
		for _, item := range v.items {
			addTexts(item, to)
		}
	default:
		if s, ok := textOf(v); ok {
			to[s] = true
		}
	}
}

// readable returns a name with the words of another and a digest of it that is not used.
func readable(name string, used map[string]bool) string {
	words := strings.Join(strings.FieldsFunc(name, func(r rune) bool { return !isWord(r) }), "_")
	words = strings.TrimLeft(words[:min(len(words), 40)], "0123456789_")
	if words == "" {
		words = "property"
	}
	for seed := name; ; seed += "_" {
		sum := sha256.Sum256([]byte(seed))
		if name := words + "_" + hex.EncodeToString(sum[:5]); !used[name] {
			return name
		}
	}
}

// unused returns a name that no property has.
func unused(root any, name string) string {
	for used := true; used; {
		used = false
		walk(root, func(o *object) {
			if properties := objectOf(o.get("properties")); properties != nil && properties.has(name) || slices.Contains(texts(o.get("required")), name) {
				used = true
			}
		})
		if used {
			name += "_"
		}
	}
	return name
}

// renamed returns a value with other names of members, at any depth. A value without such members
// is returned as it is.
func renamed(v any, names map[string]string) any {
	if len(names) == 0 {
		return v
	}
	switch v := v.(type) {
	case *object:
		out := &object{make([]member, len(v.members))}
		for i, m := range v.members {
			out.members[i] = member{nameIn(names, m.name), renamed(m.value, names)}
		}
		return out
	case *array:
		out := &array{make([]any, len(v.items))}
		for i, item := range v.items {
			out.items[i] = renamed(item, names)
		}
		return out
	}
	return v
}

// nameIn returns the other name of a member, or its own.
func nameIn(names map[string]string, name string) string {
	if other, ok := names[name]; ok {
		return other
	}
	return name
}
