package toolschema

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deeply schemas are nested in a form; a deeper one allows anything.
const maxDepth = 64

// normalize returns a schema as an object that providers take inside of parameters.
func (b *builder) normalize(v any, depth int) any {
	o := objectOf(v)
	switch {
	case o == nil && isLiteral(v, "false"):
		b.changed = true
		return &object{[]member{{"not", &object{}}}}
	case o == nil || depth > maxDepth:
		b.changed = true
		return &object{}
	}
	out := &object{make([]member, 0, len(o.members)+1)}
	for _, m := range o.members {
		b.keyword(o, out, m, depth)
	}
	if slices.ContainsFunc(combinations, out.has) { // they have the properties
		return out
	}
	types := out.get("type")
	if hasType(types, "object") && !out.has("properties") {
		out.set("properties", &object{})
		b.changed = true
	}
	if hasType(types, "array") && !out.has("items") {
		out.set("items", &object{})
		b.changed = true
	}
	return out
}

// typesOf returns the types of a schema; none means all.
func typesOf(o *object) []string {
	if name, ok := textOf(o.get("type")); ok {
		return []string{name}
	}
	return texts(o.get("type"))
}

// hasType reports whether the value of a type keyword names a type.
func hasType(types any, name string) bool {
	if one, ok := textOf(types); ok {
		return one == name
	}
	return slices.ContainsFunc(listOf(types), func(item any) bool {
		text, _ := textOf(item)
		return text == name
	})
}

// isIdentity reports whether a keyword says what a schema is called. Providers refuse some of them,
// and references in a form are pointers.
func isIdentity(keyword string) bool {
	switch keyword {
	case "$schema", "$id", "$comment", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary":
		return true
	}
	return false
}

// keyword adds one member of a schema to its form.
func (b *builder) keyword(from, to *object, m member, depth int) {
	before := b.changed
	b.changed = true // unless the member stays as it is
	_, isText := textOf(m.value)
	switch {
	case isIdentity(m.name), m.name == "id" && isText: // of draft 4
		return
	case m.name == "$ref" || m.name == "$dynamicRef" || m.name == "$recursiveRef":
		b.reference(to, m, before)
		return
	case m.name == "type":
		b.types(to, m, before)
		return
	case m.name == "required":
		b.required(to, m, before)
		return
	case m.name == "enum" && len(listOf(m.value)) == 0:
		return
	case strings.HasSuffix(m.name, "imum") || strings.HasPrefix(m.name, "exclusiveM"):
		b.bound(from, to, m, before)
		return
	case m.name == "additionalItems":
		if _, isTuple := from.get("items").(*array); isTuple && !from.has("prefixItems") {
			to.put("items", b.normalize(m.value, depth+1))
		}
		return
	}
	b.changed = before
	isBool := isLiteral(m.value, "true") || isLiteral(m.value, "false")
	switch {
	case isBool && (m.name == "additionalProperties" || m.name == "unevaluatedProperties"): // true and false are common there
		to.put(m.name, m.value)
	case usualHolding(m.name) != noSchema:
		b.schemas(to, m, depth)
	case len(b.sent) > 0:
		to.put(m.name, b.renamedData(m))
	default:
		to.put(m.name, m.value)
	}
}

// reference adds a reference whose target is in the form.
func (b *builder) reference(to *object, m member, before bool) {
	ref, _ := textOf(m.value)
	at := b.locate(ref)
	if at == nil || ref == "" {
		return
	}
	b.refs = append(b.refs, reference{to, at})
	to.put("$ref", m.value) // setReferences writes it
	b.changed = before || m.name != "$ref" || pointer(at) != ref
}

// required adds the names that are required.
func (b *builder) required(to *object, m member, before bool) {
	list, names := listOf(m.value), texts(m.value)
	switch {
	case list != nil && len(names) == len(list) && len(b.sent) == 0:
		to.put(m.name, m.value)
		b.changed = before
	case len(names) > 0:
		to.put(m.name, b.renamedList(m.value))
	}
}

// bound adds a bound of numbers. In draft 4, exclusiveMinimum is true or false, beside minimum.
func (b *builder) bound(from, to *object, m member, before bool) {
	other, isExclusive := strings.CutPrefix(m.name, "exclusiveM")
	switch {
	case isExclusive && isLiteral(m.value, "true") && isNumber(from.get("m"+other)):
		to.put(m.name, from.get("m"+other))
	case isExclusive && !isNumber(m.value), !isExclusive && isLiteral(from.get("exclusiveM"+m.name[1:]), "true"):
	default:
		to.put(m.name, m.value)
		b.changed = before
	}
}

// renamedData returns the value of a keyword that holds no schemas, with the names that are sent.
func (b *builder) renamedData(m member) any {
	switch {
	case holdsData(m.name):
		return renamed(m.value, b.sent)
	case m.name == "dependentRequired":
		return b.renamedLists(m.value)
	}
	return m.value
}

// renamedLists renames the names of members, and those in their lists.
func (b *builder) renamedLists(v any) any {
	o := objectOf(v)
	if o == nil {
		return v
	}
	out := &object{}
	for _, m := range o.members {
		out.members = append(out.members, member{nameIn(b.sent, m.name), b.renamedList(m.value)})
	}
	return out
}

func (b *builder) renamedList(v any) any {
	list := texts(v)
	for i := range list {
		list[i] = nameIn(b.sent, list[i])
	}
	return listOfTexts(list)
}

// types adds the type of a schema. A type that JSON Schema does not have says nothing.
func (b *builder) types(to *object, m member, before bool) {
	if name, ok := textOf(m.value); ok {
		lower := strings.ToLower(name)
		if isType(lower) {
			if lower == name {
				to.put("type", m.value)
				b.changed = before
			} else {
				to.put("type", text(lower))
			}
		}
		return
	}
	names := texts(m.value)
	known := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isType(name) })
	switch {
	case len(known) == 0, len(known) < len(listOf(m.value)) && len(known) < len(names): // another type may be meant
		return
	case len(known) == 1:
		to.put("type", text(known[0]))
	default:
		to.put("type", listOfTexts(known))
		b.changed = before || len(known) < len(listOf(m.value))
	}
}

// schemas adds the value of a keyword that holds schemas. A value of another form says nothing.
func (b *builder) schemas(to *object, m member, depth int) {
	switch holdingOf(m.name, m.value) {
	case oneSchema:
		to.put(m.name, b.normalize(m.value, depth+1))
		return
	case aList:
		list := &array{}
		for _, item := range listOf(m.value) {
			list.items = append(list.items, b.normalize(item, depth+1))
		}
		if m.name == "items" {
			m.name, b.changed = "prefixItems", true
		}
		if len(list.items) > 0 {
			to.put(m.name, list)
			return
		}
	case aMap:
		out := &object{}
		isNames := m.name == "properties" || m.name == "dependencies" || m.name == "dependentSchemas"
		for _, n := range objectOf(m.value).members {
			if isNames && len(b.sent) > 0 {
				n.name = nameIn(b.sent, n.name)
			}
			if _, isList := n.value.(*array); isList && m.name == "dependencies" {
				n.value = b.renamedList(n.value)
			} else {
				n.value = b.normalize(n.value, depth+1)
			}
			out.members = append(out.members, n)
		}
		b.changed = b.changed || isNames && len(b.sent) > 0
		to.put(m.name, out)
		return
	}
	b.changed = true
}

// allowNull adds null to the types and the values of a schema.
func (o *object) allowNull() {
	if types := typesOf(o); len(types) > 0 && !slices.Contains(types, "null") {
		o.set("type", listOfTexts(append(types, "null")))
	}
	if list, ok := o.get("enum").(*array); ok && !slices.ContainsFunc(list.items, func(v any) bool { return isLiteral(v, "null") }) {
		o.set("enum", &array{append(slices.Clip(list.items), jsontext.Value("null"))})
	}
}
