package specfile

import "encoding/json"

// A schemaText is a JSON Schema of the key schemas.
type schemaText struct {
	raw json.RawMessage // nil if it could not be read
}

// readSchemas reads the named schemas of all files.
func (r *reader) readSchemas(layers []*layer) {
	for _, y := range layers {
		n := y.spec.own("schemas")
		if n == nil {
			continue
		}
		for i, name := range n.kids.keys {
			value := &n.kids.nodes[i]
			if _, twice := r.schemas[name]; twice {
				r.badAt(n.src, n.kids.keyAt[i], ErrInvalid, "keep one of them", "schemas: another file has %s too", quote(name))
				continue
			}
			if value.is != isObject && value.is != isBool {
				r.bad(value, ErrInvalid, schema.hint, "schemas: %s: %s where a JSON Schema or {file: PATH} belongs", quote(name), value.describe())
				r.schemas[name] = &schemaText{}
				continue
			}
			r.schemas[name] = &schemaText{raw: r.inlineSchema(value)}
		}
	}
}

// schema returns the schema that a value is, or that it names.
func (r *reader) schema(n *node) json.RawMessage {
	switch {
	case n == nil:
		return nil
	case n.is == isText:
		s, known := r.schemas[n.text]
		if !known {
			hint := "declare it under schemas, or write the schema itself"
			if best := nearestOf(n.text, sortedKeys(r.schemas)...); best != "" {
				hint = "did you mean " + best + "?"
			}
			r.bad(n, ErrUnknown, hint, "outputSchema: no schema %s", quote(n.text))
			return nil
		}
		return s.raw
	}
	return r.inlineSchema(n)
}

// inlineSchema returns a schema that is written out or stands in a file.
func (r *reader) inlineSchema(n *node) json.RawMessage {
	if isFileRef(n) {
		src := r.readFile(&n.kids.nodes[0], maxText)
		if src == nil {
			return nil
		}
		r.places.files[n] = src
		if n = r.parsed(src); n == nil {
			return nil
		}
	}
	raw, err := n.appendJSON(nil)
	if err != nil {
		r.bad(n, ErrInvalid, "", "outputSchema: %v", err)
		return nil
	}
	return raw
}

// parsed reads a file of its own as YAML or JSON, once.
func (r *reader) parsed(src *source) *node {
	if n, known := r.places.trees[src]; known {
		return n
	}
	src.prose = false
	n, bad := parse(src)
	for _, f := range bad {
		r.badAt(src, f.at, ErrSyntax, f.hint, "%s", f.message)
	}
	if n != nil && n.is != isObject && n.is != isBool {
		r.bad(n, ErrInvalid, schema.hint, "%s where a JSON Schema belongs", n.describe())
		n = nil
	}
	if r.places.trees == nil {
		r.places.trees = make(map[*source]*node)
	}
	r.places.trees[src] = n
	return n
}
