package planning

import "encoding/json"

// PlanSchema returns a JSON Schema of the plans that the rules allow, for endpoints that
// can enforce one. [ParsePlan] checks more: the schema uses only the keywords that most
// endpoints support.
func PlanSchema(r Rules) string {
	raw, _ := json.Marshal(tasksSchema(&r, keysOf(r.MayPlan))) // nothing in it can fail
	return string(raw)
}

// tasksSchema returns a schema of lists of tasks with these keys.
func tasksSchema(r *Rules, keys []key) any {
	item := object{Properties: map[string]any{}, Required: []string{"title", "description"}}
	if isKey(keys, "repeat") {
		item.Required = item.Required[:1] // a loop has no description
	}
	for _, k := range keys {
		if k.allowed(r.MayGrant) {
			item.Properties[k.name] = k.schema(r)
		}
	}
	return listOf(item)
}

// An object is a schema of an object with these properties and no others.
type object struct {
	Properties map[string]any
	Required   []string
}

// MarshalJSON writes the schema.
func (o object) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"type": "object", "properties": o.Properties, "required": append([]string{}, o.Required...), "additionalProperties": false})
}

// ofType returns a schema of the values of a type.
func ofType(name string) any { return map[string]any{"type": name} }

// listOf returns a schema of lists.
func listOf(items any) any { return map[string]any{"type": "array", "items": items} }

// oneOf returns a schema of texts: one of the words, or any text if there are none.
func oneOf(words []string) any {
	if len(words) == 0 {
		return ofType("string")
	}
	return map[string]any{"type": "string", "enum": words}
}

// anyOf returns a schema of the values of any of the schemas.
func anyOf(schemas ...any) any { return map[string]any{"anyOf": schemas} }

// always returns the schema of a key that is the same under all rules.
func always(schema any) func(*Rules) any { return func(*Rules) any { return schema } }

// requirements is the schema of requires.
var requirements = object{Properties: map[string]any{
	"requiredCapabilities": listOf(ofType("string")),
	"requiredBackend":      ofType("string"), "requiredProvider": ofType("string"),
}}
