package toolschema

import (
	"slices"
)

// form makes the form. Its parameters are b.top.
func (b *builder) form() *Form {
	b.build()
	note := b.makeTop()
	b.setReferences()
	f := &Form{wrapper: b.wrapper, sent: b.sent, original: b.original}
	if note != "" {
		f.describe(b.top, note)
	}
	return f
}

// build makes b.top, which may still be anything but an object with properties.
func (b *builder) build() {
	b.inlineTop()
	b.top = objectOf(b.normalize(b.root, 0))
	for i := 0; i < len(b.moved); i++ {
		defs := objectOf(b.top.get("$defs"))
		if defs == nil {
			defs = &object{}
			b.top.set("$defs", defs)
		}
		m := b.moved[i]
		defs.members = append(defs.members, member{m.name, b.normalize(m.schema, 1)})
	}
}

// inlineTop replaces a schema that is nothing but a reference by its target. Pointers to the
// target and into it stay valid.
func (b *builder) inlineTop() {
	for range 16 { // a target may be a reference again
		o := objectOf(b.root)
		if o == nil {
			return
		}
		ref, ok := textOf(o.get("$ref"))
		if !ok {
			return
		}
		for _, m := range o.members {
			switch m.name {
			case "$ref", "$schema", "$id", "id", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated":
			default:
				if usualHolding(m.name) != noSchema || slices.Contains(combinations, m.name) || m.name == "type" && !isObjectType(m.value) || m.name == "required" {
					return
				}
			}
		}
		target, _ := b.find(ref)
		with := &object{}
		for _, m := range o.members {
			if m.name != "$ref" && m.name != "type" {
				with.members = append(with.members, m)
			}
		}
		if t := objectOf(target); t != nil && t != o {
			for _, m := range t.members {
				if !with.has(m.name) {
					with.members = append(with.members, m)
				}
			}
		}
		b.root, b.changed = with, true
	}
	if o := objectOf(b.root); o.has("$ref") { // it refers to itself
		o.remove("$ref")
	}
}

// isObjectType reports whether the value of a type keyword is object.
func isObjectType(v any) bool {
	name, _ := textOf(v)
	return name == "object"
}

// makeTop makes the form an object without combinations at its top. It returns what the
// description must say about those that only restrict its properties; any others are moved,
// together with all that stands beside them, into one property.
func (b *builder) makeTop() (note string) {
	types := typesOf(b.top)
	if len(types) > 0 && !slices.Contains(types, "object") {
		b.wrap()
		return ""
	}
	var found object
	for _, m := range b.top.members {
		if slices.Contains(combinations, m.name) {
			found.members = append(found.members, m)
		}
	}
	switch {
	case len(found.members) == 0:
	case b.restricts(&found):
		for _, m := range found.members {
			b.top.remove(m.name)
		}
		b.changed = true
		note = "The arguments must also match this JSON Schema: " + clipped(appendValue(nil, &found), maxNote)
	default:
		b.wrap()
		return ""
	}
	if len(types) != 1 {
		b.top.remove("type")
		b.top.members = slices.Insert(b.top.members, 0, member{"type", text("object")})
		b.changed = true
	}
	if !b.top.has("properties") {
		b.top.set("properties", &object{})
		b.changed = true
	}
	return note
}

// restricts reports whether combinations say nothing but which of the properties at the top
// belong together, and nothing refers to a schema in them.
func (b *builder) restricts(found *object) bool {
	properties := objectOf(b.top.get("properties"))
	if properties == nil || len(properties.members) == 0 || found.has("enum") || found.has("const") {
		return false
	}
	for _, r := range b.refs {
		if len(r.to) > 0 && found.has(r.to[0]) {
			return false
		}
	}
	ok := true
	walk(found, func(o *object) { // properties of properties count too: such schemas are long
		ok = ok && !o.has("$ref")
		if p := objectOf(o.get("properties")); p != nil {
			for _, m := range p.members {
				ok = ok && properties.has(m.name)
			}
		}
	})
	return ok
}

// wrap moves the schema into one property. Definitions stay where references find them.
func (b *builder) wrap() {
	b.wrapper = unused(b.root, "input")
	inner, top := &object{}, &object{}
	for _, m := range b.top.members {
		if m.name == "$defs" || m.name == "definitions" {
			top.members = append(top.members, m)
			continue
		}
		inner.members = append(inner.members, m)
	}
	top.members = append([]member{
		{"type", text("object")},
		{"properties", &object{[]member{{b.wrapper, inner}}}},
		{"required", listOfTexts([]string{b.wrapper})},
	}, top.members...)
	for i := range b.refs {
		r := &b.refs[i]
		if r.from == b.top {
			r.from = inner
		}
		if len(r.to) == 0 || r.to[0] != "$defs" && r.to[0] != "definitions" {
			r.to = append([]string{"properties", b.wrapper}, r.to...)
		}
	}
	b.top, b.changed = top, true
}

// setReferences writes the references, and removes those whose target is not in the form.
func (b *builder) setReferences() {
	known := map[string]bool{}
	for _, r := range b.refs {
		p := pointer(r.to)
		there, seen := known[p]
		if !seen {
			target, ok := follow(b.top, r.to)
			there = ok && objectOf(target) != nil
			known[p] = there
		}
		if there {
			r.from.set("$ref", text(p))
		} else {
			r.from.remove("$ref")
			b.changed = true
		}
	}
}

// namesMatter reports whether a schema has keywords that apply to names, so that they would not
// hold for other names.
func (b *builder) namesMatter() (matter bool) {
	if len(b.sent) > 0 {
		walk(b.root, func(o *object) {
			matter = matter || o.has("patternProperties") || o.has("propertyNames")
		})
	}
	return matter
}
