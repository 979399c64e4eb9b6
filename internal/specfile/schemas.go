package specfile

import "encoding/json"

// readSchemas reads the named schemas of all files.
func (r *reader) readSchemas(layers []*layer) {
	for _, y := range layers {
		n := y.spec.own("schemas")
		if n == nil {
			continue
		}
		for _, value := range n.parts() {
			name := value.key
			if _, twice := r.schemas[name]; twice {
				r.badKey(value, ErrInvalid, "keep one of them", "schemas: another file has %s too", quote(name))
				continue
			}
			if value.is != isObject && value.is != isBool {
				r.bad(value, schema.hint, "schemas: %s: %s where a JSON Schema or {file: PATH} belongs", quote(name), value.describe())
				r.schemas[name] = nil
				continue
			}
			r.schemas[name] = r.inlineSchema(value)
		}
	}
}

// schema returns the schema that a value contains or names.
func (r *reader) schema(n *node) json.RawMessage {
	switch {
	case n == nil:
		return nil
	case n.is == isText:
		raw, known := r.schemas[n.text]
		if !known {
			hint := nearHint(n.text, "declare it under schemas, or write the schema itself", sortedKeys(r.schemas)...)
			r.badAs(n, ErrUnknown, hint, "outputSchema: no schema %s", quote(n.text))
			return nil
		}
		return raw
	}
	return r.inlineSchema(n)
}

// inlineSchema returns a schema that is written inline or in a file.
func (r *reader) inlineSchema(n *node) json.RawMessage {
	if isFileRef(n) {
		src := r.readFile(&n.kids[0], maxText)
		if src == nil {
			return nil
		}
		r.named[n] = src
		if n = r.parsed(src); n == nil {
			return nil
		}
		if n.is != isObject && n.is != isBool {
			r.bad(n, schema.hint, "%s where a JSON Schema belongs", n.describe())
			return nil
		}
	}
	raw, err := n.appendJSON(nil)
	if err != nil {
		r.bad(n, "", "outputSchema: %v", err)
		return nil
	}
	return raw
}

// parsed parses a file as YAML or JSON, once.
func (l *loader) parsed(src *source) *node {
	if n, known := l.trees[src]; known {
		return n
	}
	src.prose = false
	n, bad := parse(src)
	for _, f := range bad {
		l.badAtAs(src, f.at, ErrSyntax, f.hint, "%s", f.message)
	}
	l.trees[src] = n
	return n
}
