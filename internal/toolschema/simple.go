package toolschema

import (
	"slices"
)

// Limits of a simple form, in which references are replaced by their targets.
const (
	maxSimpleDepth = 16
	minSimpleNodes = 1000 // and twice those of the full form
)

// A simplifier makes a simple form from a full one.
type simplifier struct {
	top   *object // of the full form
	level Level
	nodes int // schemas that may be added
}

// simplify returns the parameters of the level Known or Unbounded for those of the level Full.
func simplify(top *object, level Level) *object {
	s := &simplifier{top: top, level: level, nodes: minSimpleNodes}
	walk(top, func(*object) { s.nodes += 2 })
	out := s.schema(top, nil, 0)
	out.set("type", text("object"))
	if !out.has("properties") {
		out.set("properties", &object{})
	}
	return out
}

// schema returns the simple form of a schema. within are the schemas that it is in.
func (s *simplifier) schema(v any, within []*object, depth int) *object {
	o := objectOf(v)
	if o == nil {
		return &object{}
	}
	whole, within := s.resolved(o, within)
	if s.nodes--; whole == nil || s.nodes <= 0 || depth > maxSimpleDepth {
		return outline(o, s.top)
	}
	return s.node(whole, within, depth)
}

// outline returns a schema that says no more than the type.
func outline(o, top *object) *object {
	for range 16 {
		ref, ok := textOf(o.get("$ref"))
		if !ok || o.has("type") {
			break
		}
		to := target(top, ref)
		if to == nil {
			break
		}
		o = to
	}
	out := &object{}
	if types := typesOf(o); len(types) == 1 && types[0] != "null" {
		out.set("type", text(types[0]))
	}
	complete(out)
	if d, ok := textOf(o.get("description")); ok {
		out.set("description", text(d))
	}
	return out
}

// resolved returns a schema with what $ref and allOf add to it in it, and the schemas that it is in.
// It returns nil for one that is in itself.
func (s *simplifier) resolved(o *object, within []*object) (*object, []*object) {
	if slices.Contains(within, o) {
		return nil, nil
	}
	within = append(slices.Clip(within), o)
	if !o.has("$ref") && !o.has("allOf") {
		return o, within
	}
	out := &object{slices.Clone(o.members)}
	var parts []any
	if ref, ok := textOf(out.remove("$ref")); ok {
		parts = append(parts, target(s.top, ref))
	}
	parts = append(parts, listOf(out.remove("allOf"))...)
	for _, part := range parts {
		p := objectOf(part)
		if p == nil {
			continue
		}
		if s.nodes--; s.nodes <= 0 || len(within) > 4*maxSimpleDepth {
			return nil, nil
		}
		more, in := s.resolved(p, within)
		if more == nil {
			return nil, nil
		}
		within = in
		merge(out, more)
	}
	return out, within
}

// merge adds to a schema what another says that must also hold. Where both say something, what the
// first says stays, except for properties.
func merge(to, from *object) {
	for _, m := range from.members {
		i := to.index(m.name)
		switch {
		case m.name == "$defs" || m.name == "definitions":
		case i < 0:
			to.members = append(to.members, m)
		case m.name == "properties":
			all := &object{slices.Clone(objectOf(to.members[i].value).members)}
			for _, p := range objectOf(m.value).members {
				if !all.has(p.name) {
					all.members = append(all.members, p)
				}
			}
			to.members[i].value = all
		case m.name == "required":
			names := append(texts(to.members[i].value), texts(m.value)...)
			to.members[i].value = listOfTexts(texts(listOfTexts(names)))
		case m.name == "items" && isEmpty(to.members[i].value):
			to.members[i].value = m.value
		}
	}
}

// isEmpty reports whether a schema allows anything.
func isEmpty(v any) bool {
	o := objectOf(v)
	return o != nil && len(o.members) == 0
}

// ofType are the keywords for values of one type.
var ofType = map[string][]string{
	"string": {"enum", "format", "pattern", "minLength", "maxLength"},
	"number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"},
	"array": {"items", "minItems", "maxItems"}, "object": {"properties", "required", "minProperties", "maxProperties"},
}

// A treatment is what a simple form does with a keyword.
type treatment int

const (
	dropped treatment = iota // as are all keywords without an effect
	kept
	said    // in the description
	isBound // kept by Known, and said by Unbounded
	closing // said unless it is true or false
)

// treatments are those of the keywords that [simplifier.keyword] does not know.
var treatments = map[string]treatment{
	"description": kept,
	"format":      isBound, "pattern": isBound, "minLength": isBound, "maxLength": isBound, "minimum": isBound, "maximum": isBound,
	"minItems": isBound, "maxItems": isBound, "minProperties": isBound, "maxProperties": isBound,
	"additionalProperties": closing, "unevaluatedProperties": closing, "unevaluatedItems": closing,
	"patternProperties": said, "propertyNames": said, "dependencies": said, "dependentSchemas": said, "dependentRequired": said,
	"not": said, "if": said, "then": said, "else": said, "multipleOf": said, "uniqueItems": said, "exclusiveMinimum": said, "exclusiveMaximum": said,
	"contains": said, "minContains": said, "maxContains": said, "default": said, "contentEncoding": said, "contentMediaType": said, "contentSchema": said,
}

// A simpleNode is the simple form of one schema while it is made.
type simpleNode struct {
	*simplifier
	from, out *object
	within    []*object
	depth     int
	types     []string // without null
	nullable  bool
	choices   []any
	left      remark
}

// node returns the simple form of a schema without references.
func (s *simplifier) node(o *object, within []*object, depth int) *object {
	n := &simpleNode{simplifier: s, from: o, out: &object{}, within: within, depth: depth}
	n.setTypes()
	for _, m := range o.members {
		n.keyword(m)
	}
	if title, ok := textOf(o.get("title")); ok && !n.out.has("description") {
		n.out.set("description", text(title))
	}
	choices := n.choices
	if len(n.types) > 1 && choices == nil {
		choices = alternatives(n.out, n.types)
	} else {
		choices = n.simpleChoices()
	}
	switch {
	case n.nullable && s.level == Known:
		n.out.set("nullable", literalTrue)
	case n.nullable:
		n.left.parts = append(n.left.parts, "may be null")
	}
	n.left.on(n.out)
	switch {
	case len(choices) == 1:
		merge(n.out, objectOf(choices[0]))
	case len(choices) > 1 && depth > 0 && s.distribute(n.out, choices):
		return &object{[]member{{"anyOf", &array{choices}}}}
	case len(choices) > 1:
		n.out.set("anyOf", &array{choices})
	}
	complete(n.out)
	return n.out
}

// complete gives an object properties, and an array items: OpenAI and Gemini require them.
func complete(o *object) {
	switch t, _ := textOf(o.get("type")); {
	case t == "object":
		o.put("properties", &object{})
	case t == "array":
		o.put("items", &object{})
	}
}

// distribute adds to each alternative what stands beside it, where Gemini takes nothing
// (cloud.google.com/vertex-ai/generative-ai/docs/model-reference/function-calling). It reports whether
// that is not too much.
func (s *simplifier) distribute(beside *object, choices []any) bool {
	size := 0
	walk(beside, func(*object) { size += len(choices) })
	if s.nodes < size {
		return false
	}
	s.nodes -= size
	for _, c := range choices {
		merge(objectOf(c), beside)
		complete(objectOf(c))
	}
	return true
}

// setTypes sets the type, which Gemini requires.
func (n *simpleNode) setTypes() {
	for _, t := range typesOf(n.from) {
		if t == "null" {
			n.nullable = true
		} else {
			n.types = append(n.types, t)
		}
	}
	if len(n.types) == 0 && !n.nullable {
		switch {
		case n.from.has("properties"):
			n.types = []string{"object"}
		case n.from.has("items"), n.from.has("prefixItems"):
			n.types = []string{"array"}
		}
	}
	if len(n.types) == 1 {
		n.out.set("type", text(n.types[0]))
	}
}

// keyword adds one member of the schema.
func (n *simpleNode) keyword(m member) {
	switch m.name {
	case "nullable":
		n.nullable = n.nullable || isLiteral(m.value, "true")
	case "enum":
		n.values(listOf(m.value))
	case "const":
		n.values([]any{m.value})
	case "properties":
		list := &object{}
		for _, p := range objectOf(m.value).members {
			list.members = append(list.members, member{p.name, n.schema(p.value, n.within, n.depth+1)})
		}
		n.out.set(m.name, list)
	case "required":
		n.required(texts(m.value))
	case "prefixItems":
		n.left.add(m.name, m.value)
		n.out.set("items", &object{})
	case "items":
		if n.from.has("prefixItems") {
			n.left.add(m.name, m.value)
		} else {
			n.out.set(m.name, n.schema(m.value, n.within, n.depth+1))
		}
	case "anyOf", "oneOf":
		if n.choices == nil {
			n.choices = listOf(m.value)
		} else {
			n.left.add(m.name, m.value)
		}
	default:
		n.other(m)
	}
}

// other adds one of the other members.
func (n *simpleNode) other(m member) {
	switch t := treatments[m.name]; {
	case t == kept, t == isBound && n.level == Known:
		n.out.set(m.name, m.value)
	case t == said, t == isBound, t == closing && objectOf(m.value) != nil && !isEmpty(m.value):
		n.left.add(m.name, m.value)
	}
}

// values adds the values that the schema allows. Gemini takes texts only, and none that is empty.
func (n *simpleNode) values(list []any) {
	var names []any
	numbers, others := 0, 0
	for _, v := range list {
		name, isText := textOf(v)
		switch {
		case isLiteral(v, "null"):
			n.nullable = true
		case isText && name != "":
			names = append(names, v)
		case isNumber(v):
			numbers++
		default:
			others++
		}
	}
	switch {
	case numbers+others > 0:
		n.left.add("enum", &array{list})
		if others == 0 && len(names) == 0 && len(n.types) == 0 {
			n.types = []string{"number"}
			n.out.set("type", text("number"))
		}
	case len(names) > 0 && !n.out.has("enum"):
		n.out.set("enum", &array{names})
		if n.types = []string{"string"}; !n.out.has("type") {
			n.out.members = slices.Insert(n.out.members, 0, member{"type", text("string")})
		}
	}
}

// required adds the names that are required and known.
func (n *simpleNode) required(names []string) {
	properties := objectOf(n.from.get("properties"))
	names = slices.DeleteFunc(names, func(name string) bool { return properties == nil || !properties.has(name) })
	if len(names) > 0 {
		n.out.set("required", listOfTexts(names))
	}
}

// simpleChoices returns the simple forms of alternatives; none if one of them allows anything.
func (n *simpleNode) simpleChoices() (choices []any) {
	for _, c := range n.choices {
		if types := typesOf(objectOf(c)); len(types) == 1 && types[0] == "null" {
			n.nullable = true
			continue
		}
		choice := n.schema(c, n.within, n.depth+1)
		n.nullable = choice.remove("nullable") != nil || n.nullable
		if len(choice.members) == 0 {
			return nil
		}
		choices = append(choices, choice)
	}
	return choices
}

// alternatives moves what a schema of several types says about each type into a schema of that
// type.
func alternatives(out *object, types []string) (list []any) {
	for _, t := range types {
		choice := &object{[]member{{"type", text(t)}}}
		for _, name := range ofType[t] {
			if v := out.get(name); v != nil {
				choice.set(name, v)
			}
		}
		list = append(list, choice)
	}
	for _, t := range types {
		for _, name := range ofType[t] {
			out.remove(name)
		}
	}
	return list
}
