package specfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// A Table has the keys of a file that is not a spec, so that it is read and checked as a spec is.
type Table struct {
	byName map[string]*place
	root   *place
}

// NewTable returns a table from a text in the form of keys.txt. Its first object is the file. A
// description of a key that ends with ", such as EXAMPLE" says what to write where the key is missing.
func NewTable(text string) *Table {
	byName, all := readPlaces(text)
	for _, p := range all {
		for i := range p.keys {
			if _, example, ok := strings.Cut(p.keys[i].says, ", such as "); ok {
				p.keys[i].kind.one = example
			}
		}
	}
	return &Table{byName, all[0]}
}

// A Document is a file that a [Table] was used to read. It collects what is wrong with it.
type Document struct {
	wrong report
	table *Table
}

// Read reads a file. The value is nil if it is not an object.
func (t *Table) Read(path string, text []byte) (*Document, *Value) {
	d := &Document{table: t}
	whole, err := readText(bytes.NewReader(text), limitFor(path), int64(len(text)))
	hint := "write " + strings.Join(names(t.root, Works), ": and ") + ":"
	switch {
	case errors.Is(err, errEmpty):
		d.wrong.found = []finding{{Problem: Problem{File: path, Message: "the file is empty", Hint: hint, Err: err}}}
		return d, nil
	case err != nil:
		d.wrong.found = []finding{{Problem: Problem{File: path, Message: err.Error(), Err: err}}}
		return d, nil
	}
	src := newSource(path, "", whole)
	src.other = true
	n, bad := parse(src)
	for _, f := range bad {
		d.wrong.badAtAs(src, f.at, f.condition(n != nil), f.hint, "%s", f.message)
	}
	switch {
	case n == nil:
		return d, nil
	case n.is == isNull:
		d.wrong.badAt(src, 0, hint, "the file is empty")
		return d, nil
	}
	f := d.wrong.read(n, t.root, "", nil)
	if f == nil {
		return d, nil
	}
	return d, &Value{d: d, node: n, fields: f}
}

// Err returns an [*Error] with all that was found to be wrong so far, or nil.
func (d *Document) Err() error {
	if len(d.wrong.found) == 0 {
		return nil
	}
	return &Error{locate(d.wrong.found)}
}

// Warnings returns what is accepted but probably unintended.
func (d *Document) Warnings() []Problem { return locate(d.wrong.warned) }

// A Value is a valid value of a document. A nil Value is one that is not there.
type Value struct {
	d      *Document
	node   *node
	in     string // the object that it is in, such as `roles[0]: `
	name   string // in that object, such as users[2]
	fields *fields
}

// Get returns the value of a key of an object; nil if it has none or an invalid one.
func (v *Value) Get(key string) *Value {
	n := v.fields.own(key)
	if n == nil {
		return nil
	}
	return &Value{d: v.d, node: n, in: v.in, name: key}
}

// Has reports whether an object has a key, or probably a misspelling of it; its value may be invalid.
func (v *Value) Has(key string) bool {
	return v.node.get(key) != nil || misspelled(v.node, key, v.fields.place)
}

// Text returns a text; true or false of a boolean, and nothing of nil.
func (v *Value) Text() string {
	if v == nil {
		return ""
	}
	return v.node.text
}

// Items returns the items of a list.
func (v *Value) Items() (items []*Value) {
	if v == nil {
		return nil
	}
	for i, part := range v.node.parts() {
		items = append(items, &Value{d: v.d, node: part, in: v.in, name: fmt.Sprintf("%s[%d]", v.name, i)})
	}
	return items
}

// Objects returns the items of the list of a key that are objects, with their keys checked. What is
// wrong with others is reported.
func (v *Value) Objects(key string) (objects []*Value) {
	list := v.Get(key)
	for _, item := range list.Items() {
		item.in, item.name = v.in+item.name+": ", ""
		v.d.wrong.subject = func() string { return item.in }
		item.fields = v.d.wrong.read(item.node, v.d.table.byName[v.fields.place.keys[v.fields.place.index[key]].kind.each], "", nil)
		v.d.wrong.subject = nil
		if item.fields != nil {
			objects = append(objects, item)
		}
	}
	return objects
}

// Bad reports what is wrong with the value, and what to write instead.
func (v *Value) Bad(hint, format string, args ...any) {
	v.d.wrong.bad(v.node, hint, "%s", v.message(format, args))
}

// Warn notes what is probably unintended.
func (v *Value) Warn(hint, format string, args ...any) {
	v.d.wrong.warn(v.node, hint, "%s", v.message(format, args))
}

// message returns a message about the value.
func (v *Value) message(format string, args []any) string {
	name := v.name
	if name != "" {
		name += ": "
	}
	return v.in + name + fmt.Sprintf(format, args...)
}

// At returns the line and the column of the value, for messages.
func (v *Value) At() string {
	line, column := v.node.src.place(v.node.at)
	return fmt.Sprintf("line %d, column %d", line, column)
}
