package toolschema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A builder makes the full form of one schema.
type builder struct {
	root     any // as it was given; never changed
	sent     map[string]string
	original map[string]string
	changed  bool // the form differs from what was given

	places  map[string][]string // where the schemas with an $id, an id or an anchor are
	located map[string][]string // where the targets of references are in the form
	moved   []movedSchema       // targets outside of schemas
	refs    []reference

	top     *object
	wrapper string
}

// A reference is a $ref in the form.
type reference struct {
	from *object
	to   []string
}

// A movedSchema is one that a reference found below an unknown keyword.
type movedSchema struct {
	name   string
	schema any
}

// newBuilder returns the builder for a schema whose properties have names that taken reports.
func newBuilder(root any, taken func(name string) bool) *builder {
	b := &builder{root: root}
	b.sent, b.original = rename(root, taken)
	b.changed = len(b.sent) > 0
	w := walker{visit: func(o *object, at []string) {
		for _, m := range o.members {
			switch m.name {
			case "$id", "id":
				b.addPlace("", m.value, at)
			case "$anchor", "$dynamicAnchor":
				b.addPlace("#", m.value, at)
			}
		}
	}}
	w.walk(root)
	return b
}

// addPlace notes the place of a schema that references can name.
func (b *builder) addPlace(prefix string, name any, at []string) {
	text, ok := textOf(name)
	if !ok || text == "" {
		return
	}
	if b.places == nil {
		b.places = map[string][]string{}
	}
	if _, known := b.places[prefix+text]; !known {
		b.places[prefix+text] = slices.Clone(at)
	}
}

// find returns the target of a reference and its place in what was given.
func (b *builder) find(ref string) (target any, at []string) {
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" {
		var known bool
		if at, known = b.places[base]; !known {
			if at, known = b.places[base+"#"]; !known {
				return nil, nil
			}
		}
	}
	switch {
	case fragment == "":
	case fragment[0] == '/':
		at = append(slices.Clip(at), unescaped(fragment)...)
	default:
		var known bool
		if at, known = b.places["#"+fragment]; !known {
			return nil, nil
		}
	}
	target, ok := follow(b.root, at)
	if !ok {
		return nil, nil
	}
	return target, at
}

// locate returns where the target of a reference is in the form, or nil if it has none. The top
// is an empty list.
func (b *builder) locate(ref string) []string {
	if at, known := b.located[ref]; known {
		return at
	}
	target, at := b.find(ref)
	var to []string
	switch target.(type) {
	case *object:
		to = b.placeOf(at, target)
	case jsontext.Value:
		if isLiteral(target, "true") || isLiteral(target, "false") {
			to = b.placeOf(at, target)
		}
	}
	if b.located == nil {
		b.located = map[string][]string{}
	}
	b.located[ref] = to
	return to
}

// placeOf returns where the schema at a place of the original is in the form.
func (b *builder) placeOf(at []string, target any) []string {
	to := make([]string, 0, len(at)+1)
	v := b.root
	for i := 0; i < len(at); {
		o := objectOf(v)
		if o == nil {
			return b.move(at, target)
		}
		value := o.get(at[i])
		keyword := at[i]
		switch h := holdingOf(keyword, value); {
		case h == oneSchema:
			if _, isTuple := o.get("items").(*array); keyword == "additionalItems" && isTuple {
				keyword = "items"
			}
			to = append(to, keyword)
			v, i = value, i+1
			continue
		case h == noSchema || i+1 == len(at):
			return b.move(at, target)
		case h == aMap:
			name := at[i+1]
			if keyword == "properties" || keyword == "dependencies" || keyword == "dependentSchemas" {
				name = nameIn(b.sent, name)
			}
			to = append(to, keyword, name)
		case keyword == "items":
			to = append(to, "prefixItems", at[i+1])
		default:
			to = append(to, keyword, at[i+1])
		}
		v, _ = follow(value, at[i+1:i+2])
		i += 2
	}
	return to
}

// move gives a schema outside of schemas a place in the form.
func (b *builder) move(at []string, schema any) []string {
	name := "moved_" + strconv.Itoa(len(b.moved)+1)
	if o := objectOf(b.root); o != nil {
		for defs := objectOf(o.get("$defs")); defs != nil && defs.has(name); {
			name += "_"
		}
	}
	b.moved, b.changed = append(b.moved, movedSchema{name, schema}), true
	return []string{"$defs", name}
}
