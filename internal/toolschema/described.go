package toolschema

import (
	"fmt"
	"slices"
)

// describedForm returns the form that allows any object, or anything under one property if the
// schema allows no object. Its description has the schema.
func describedForm(root any) *Form {
	b := newBuilder(root, func(string) bool { return true })
	b.build()
	b.setReferences()
	raw := clipped(appendValue(nil, b.top), maxSchemaNote)
	f := &Form{}
	top := &object{[]member{{"type", text("object")}, {"properties", &object{}}}}
	if types := typesOf(b.top); len(types) > 0 && !slices.Contains(types, "object") {
		f.wrapper = unused(root, "input")
		top.set("properties", &object{[]member{{f.wrapper, &object{}}}})
		top.set("required", listOfTexts([]string{f.wrapper}))
		raw = fmt.Sprintf("The value of %s must match this JSON Schema: %s", f.wrapper, raw)
	} else {
		raw = "The arguments must match this JSON Schema: " + raw
	}
	f.parameters = appendValue(nil, top)
	f.describe(top, raw)
	return f
}
