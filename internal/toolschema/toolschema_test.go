package toolschema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/toolschema"
)

func ExampleSchema_Form() {
	s := toolschema.New([]byte(`{"oneOf": [{"type": "object", "required": ["url"]}, {"type": "object", "required": ["path"]}]}`))
	form := s.Form(toolschema.Full)
	description, parameters := form.Function("Reads a file.")
	fmt.Println(description)
	fmt.Println(string(parameters))
	fmt.Println(form.Original(`{"input": {"path": "a.txt"}}`))
	// Output:
	// Reads a file.
	// {"type":"object","properties":{"input":{"oneOf":[{"type":"object","required":["url"],"properties":{}},{"type":"object","required":["path"],"properties":{}}]}},"required":["input"]}
	// {"path":"a.txt"}
}

// formTests are schemas as servers and programs write them, and the full form of each.
var formTests = []struct {
	name, give, want string
	note             string // what is added to the description
	args, sent       string // arguments for the schema, and for the form; both empty means that they are the same
}{
	{name: "nothing to change", give: `{ "type":"object", "properties": {"b":{"type":"integer"},"a":{}}, "required":["b"] }`, want: `{ "type":"object", "properties": {"b":{"type":"integer"},"a":{}}, "required":["b"] }`},
	{name: "no properties", give: `{"type":"object"}`, want: `{"type":"object","properties":{}}`},
	{name: "no parameters", give: ``, want: `{"type":"object","properties":{}}`},
	{name: "closed without properties", give: `{"type":"object","additionalProperties":false}`, want: `{"type":"object","additionalProperties":false,"properties":{}}`},
	{name: "null", give: `null`, want: `{"type":"object","properties":{}}`},
	{name: "anything", give: `{}`, want: `{"type":"object","properties":{}}`},
	{name: "true", give: `true`, want: `{"type":"object","properties":{}}`},
	{name: "false", give: `false`, want: `{"type":"object","properties":{"input":{"not":{}}},"required":["input"]}`, args: `1`, sent: `{"input":1}`},
	{name: "no JSON", give: `{"type":`, want: `{"type":"object","properties":{}}`},
	{name: "a name twice", give: `{"type":"object","type":"object"}`, want: `{"type":"object","properties":{}}`},
	{name: "no type", give: `{"properties":{"a":{"type":"string"}}}`, want: `{"type":"object","properties":{"a":{"type":"string"}}}`},
	{name: "object or null", give: `{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}`, want: `{"type":"object","properties":{"a":{"type":["string","null"]}}}`},
	{name: "properties that are no object", give: `{"type":"object","properties":["a"],"required":true}`, want: `{"type":"object","properties":{}}`},
	{name: "an array", give: `{"type":"array","items":{"type":"string"}}`, want: `{"type":"object","properties":{"input":{"type":"array","items":{"type":"string"}}},"required":["input"]}`, args: `["a"]`, sent: `{"input":["a"]}`},
	{name: "a text", give: `{"type":"string"}`, want: `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`, args: `"a"`, sent: `{"input":"a"}`},
	{name: "identity", give: `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/a","$comment":"c","type":"object","properties":{"$comment":{"type":"string","$comment":"d"}}}`,
		want: `{"type":"object","properties":{"comment_b89aa426fe":{"type":"string"}}}`, args: `{"$comment":1.0}`, sent: `{"comment_b89aa426fe":1.0}`},
	{name: "arrays without items", give: `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"object"}}}`, want: `{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":"object","properties":{}}}}`},
	{name: "schemas that are true or false", give: `{"type":"object","properties":{"a":true,"b":false},"additionalProperties":true}`, want: `{"type":"object","properties":{"a":{},"b":{"not":{}}},"additionalProperties":true}`},
	{name: "draft 4", give: `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"id":{"type":"integer","minimum":0,"exclusiveMinimum":true},"n":{"type":"number","maximum":1,"exclusiveMaximum":false}}}`,
		want: `{"type":"object","properties":{"id":{"type":"integer","exclusiveMinimum":0},"n":{"type":"number","maximum":1}}}`},
	{name: "draft 7 tuple", give: `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},true],"additionalItems":{"type":"integer"}},"b":{"$ref":"#/properties/a/items/0"},"c":{"$ref":"#/properties/a/additionalItems"}}}`,
		want: `{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"},{}],"items":{"type":"integer"}},"b":{"$ref":"#/properties/a/prefixItems/0"},"c":{"$ref":"#/properties/a/items"}}}`},
	{name: "unknown types", give: `{"type":"object","properties":{"a":{"type":"any"},"b":{"type":"STRING"},"c":{"type":["integer"]},"d":{"type":["string","file"]}}}`,
		want: `{"type":"object","properties":{"a":{},"b":{"type":"string"},"c":{"type":"integer"},"d":{}}}`},
	{name: "one of two properties", give: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`,
		want: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		note: `The arguments must also match this JSON Schema: {"oneOf":[{"required":["a"]},{"required":["b"]}]}`},
	{name: "if and then", give: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"]},"else":{"not":{"required":["b"]}}}`,
		want: `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		note: `The arguments must also match this JSON Schema: {"if":{"properties":{"a":{"const":"x"}}},"then":{"required":["b"]},"else":{"not":{"required":["b"]}}}`},
	{name: "alternatives", give: `{"description":"d","anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"$ref":"#/$defs/B"}],"$defs":{"B":{"type":"object","properties":{"b":{"$ref":"#/anyOf/0"}}}}}`,
		want: `{"type":"object","properties":{"input":{"description":"d","anyOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"$ref":"#/$defs/B"}]}},"required":["input"],"$defs":{"B":{"type":"object","properties":{"b":{"$ref":"#/properties/input/anyOf/0"}}}}}`,
		args: `{"a":"x"}`, sent: `{"input":{"a":"x"}}`},
	{name: "all of", give: `{"allOf":[{"$ref":"#/definitions/A"},{"properties":{"input":{"type":"string"}}}],"definitions":{"A":{"type":"object","properties":{"a":{"$ref":"#"}}}}}`,
		want: `{"type":"object","properties":{"input_":{"allOf":[{"$ref":"#/definitions/A"},{"properties":{"input":{"type":"string"}}}]}},"required":["input_"],"definitions":{"A":{"type":"object","properties":{"a":{"$ref":"#/properties/input_"}}}}}`,
		args: `{"input":"x"}`, sent: `{"input_":{"input":"x"}}`},
	{name: "values", give: `{"type":"object","enum":[{"a":1},{"b":2}]}`, want: `{"type":"object","properties":{"input":{"type":"object","enum":[{"a":1},{"b":2}]}},"required":["input"]}`, args: `{"a":1}`, sent: `{"input":{"a":1}}`},
	{name: "a reference at the top", give: `{"$schema":"s","$ref":"#/definitions/Node","definitions":{"Node":{"type":"object","properties":{"next":{"$ref":"#/definitions/Node"},"top":{"$ref":"#"}},"required":["next"]}}}`,
		want: `{"definitions":{"Node":{"type":"object","properties":{"next":{"$ref":"#/definitions/Node"},"top":{"$ref":"#"}},"required":["next"]}},"type":"object","properties":{"next":{"$ref":"#/definitions/Node"},"top":{"$ref":"#"}},"required":["next"]}`},
	{name: "a reference to itself", give: `{"$ref":"#"}`, want: `{"type":"object","properties":{}}`},
	{name: "references in a circle", give: `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, want: `{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{}}`},
	{name: "references by name and address", give: `{"$id":"https://example.com/s","type":"object","properties":{"a":{"$ref":"#item"},"b":{"$ref":"https://example.com/s#/$defs/x"},"c":{"$ref":"https://example.com/other"},"d":{"$dynamicRef":"#item"}},"$defs":{"x":{"$anchor":"item","type":"string"}}}`,
		want: `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"},"c":{},"d":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`},
	{name: "references into unknown keywords", give: `{"type":"object","properties":{"p":{"$ref":"#/components/schemas/P"}},"components":{"schemas":{"P":{"type":"object","properties":{"p":{"$ref":"#/components/schemas/P"}}}}}}`,
		want: `{"type":"object","properties":{"p":{"$ref":"#/$defs/moved_1"}},"components":{"schemas":{"P":{"type":"object","properties":{"p":{"$ref":"#/components/schemas/P"}}}}},"$defs":{"moved_1":{"type":"object","properties":{"p":{"$ref":"#/$defs/moved_1"}}}}}`},
	{name: "names", give: `{"type":"object","properties":{"a.b":{"type":"string"},"a b":{"type":"string"},"$top":{"$ref":"#/properties/a%20b"},"":{"type":"object","properties":{"ü":{"enum":[{"a b":1}]}}}},"required":["$top","a b"],"dependentRequired":{"$top":["a b"]},"additionalProperties":false}`,
		want: `{"type":"object","properties":{"a.b":{"type":"string"},"a_b_c8687a08aa":{"type":"string"},"top_81bf98e409":{"$ref":"#/properties/a_b_c8687a08aa"},"property_e3b0c44298":{"type":"object","properties":{"property_607474ca47":{"enum":[{"a_b_c8687a08aa":1}]}}}},"required":["top_81bf98e409","a_b_c8687a08aa"],"dependentRequired":{"top_81bf98e409":["a_b_c8687a08aa"]},"additionalProperties":false}`,
		args: `{"a b":"x","$top":"a b","":{"ü":{"a b":1}},"a.b":"y"}`, sent: `{"a_b_c8687a08aa":"x","top_81bf98e409":"a b","property_e3b0c44298":{"property_607474ca47":{"a_b_c8687a08aa":1}},"a.b":"y"}`},
	{name: "names that other keywords match", give: `{"type":"object","properties":{"a b":{}},"patternProperties":{" ":{"type":"string"}}}`, want: `{"type":"object","properties":{"a b":{}},"patternProperties":{" ":{"type":"string"}}}`},
	{name: "large numbers", give: `{"type":"object","properties":{"a":{"enum":[12345678901234567890,1.50]}},"$comment":"c"}`, want: `{"type":"object","properties":{"a":{"enum":[12345678901234567890,1.50]}}}`},
}

func TestFullForms(t *testing.T) {
	t.Parallel()
	for _, tt := range formTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			form := toolschema.New(json.RawMessage(tt.give)).Form(toolschema.Full)
			note, parameters := form.Function("")
			require.Equal(t, tt.want, string(parameters))
			require.Equal(t, tt.note, note)
			if tt.sent == "" {
				tt.args = `{ "b": 1.50, "input": 2 }`
				tt.sent = tt.args
			}
			require.Equal(t, tt.sent, form.Sent(tt.args))
			require.Equal(t, tt.args, form.Original(tt.sent))
		})
	}
}

// TestSimplerForms checks the forms for endpoints that refuse the one before.
func TestSimplerForms(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, known, unbounded string }{
		{
			"types with null", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"enum":["x",null]},"c":{"anyOf":[{"type":"integer"},{"type":"null"}],"title":"Number"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":{"type":"string","enum":["x"],"nullable":true},"c":{"description":"Number","nullable":true,"type":"integer"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"(may be null)"},"b":{"type":"string","enum":["x"],"description":"(may be null)"},"c":{"description":"Number (may be null)","type":"integer"}}}`,
		},
		{
			"several types", `{"type":"object","properties":{"a":{"type":["string","array"],"items":{"type":"string"},"maxLength":9}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","maxLength":9},{"type":"array","items":{"type":"string"}}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string","description":"(maxLength: 9)"},{"type":"array","items":{"type":"string"},"description":"(maxLength: 9)"}]}}}`,
		},
		{
			"keywords that Gemini does not know", `{"type":"object","properties":{"a":{"const":"x"},"b":{"type":"number","exclusiveMinimum":0,"multipleOf":2,"default":4,"examples":[2]},"c":{"type":"object","additionalProperties":{"type":"string"}},"d":{"enum":[1,2]},"e":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"required":["a","z"],"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"number","description":"(exclusiveMinimum: 0; multipleOf: 2; default: 4)"},"c":{"type":"object","properties":{},"description":"(additionalProperties: {\"type\":\"string\"})"},"d":{"type":"number","description":"(enum: [1,2])"},"e":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"]}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"number","description":"(exclusiveMinimum: 0; multipleOf: 2; default: 4)"},"c":{"type":"object","properties":{},"description":"(additionalProperties: {\"type\":\"string\"})"},"d":{"type":"number","description":"(enum: [1,2])"},"e":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"required":["a"]}`,
		},
		{
			"format, pattern and bounds", `{"type":"object","properties":{"a":{"type":"string","format":"date","pattern":"^2","minLength":1,"description":"A day."},"b":{"type":"array","maxItems":2,"items":{"type":"integer","minimum":0}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","format":"date","pattern":"^2","minLength":1,"description":"A day."},"b":{"type":"array","maxItems":2,"items":{"type":"integer","minimum":0}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"A day. (format: \"date\"; pattern: \"^2\"; minLength: 1)"},"b":{"type":"array","items":{"type":"integer","description":"(minimum: 0)"},"description":"(maxItems: 2)"}}}`,
		},
		{
			"what stands beside alternatives", `{"type":"object","properties":{"a":{"type":"object","description":"d","properties":{"x":{"type":"string"}},"required":["x"],"oneOf":[{"required":["y"],"properties":{"y":{"type":"null"}}},{"properties":{"z":{"type":"array"}}}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"object","required":["y","x"],"properties":{"y":{"nullable":true},"x":{"type":"string"}},"description":"d"},{"type":"object","properties":{"z":{"type":"array","items":{}},"x":{"type":"string"}},"description":"d","required":["x"]}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"object","required":["y","x"],"properties":{"y":{"description":"(may be null)"},"x":{"type":"string"}},"description":"d"},{"type":"object","properties":{"z":{"type":"array","items":{}},"x":{"type":"string"}},"description":"d","required":["x"]}]}}}`,
		},
		{
			"references", `{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/A"}],"description":"An A."},"b":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"description":"d"}}}`,
			`{"type":"object","properties":{"a":{"type":"object","description":"An A.","properties":{"n":{"type":"integer"}},"required":["n"]},"b":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"description":"d"}}}`,
			`{"type":"object","properties":{"a":{"type":"object","description":"An A.","properties":{"n":{"type":"integer"}},"required":["n"]},"b":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"description":"d"}}}`,
		},
		{
			"recursion", `{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}}}`,
			`{"type":"object","properties":{"children":{"type":"array","items":{"type":"object","properties":{}}}}}`,
			`{"type":"object","properties":{"children":{"type":"array","items":{"type":"object","properties":{}}}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := toolschema.New(json.RawMessage(tt.give))
			_, known := s.Form(toolschema.Known).Function("")
			require.Equal(t, tt.known, string(known))
			_, unbounded := s.Form(toolschema.Unbounded).Function("")
			require.Equal(t, tt.unbounded, string(unbounded))
		})
	}
}

// TestDescribedForms checks the form without a schema, and where its description is.
func TestDescribedForms(t *testing.T) {
	t.Parallel()
	form := toolschema.New(json.RawMessage(`{"$schema":"s","anyOf":[{"type":"object","properties":{"a b":{"type":"string"}}}]}`)).Form(toolschema.Described)
	description, parameters := form.Function("Reads.")
	require.Equal(t, `{"type":"object","properties":{}}`, string(parameters))
	require.Equal(t, "Reads.\n\n"+`The arguments must match this JSON Schema: {"anyOf":[{"type":"object","properties":{"a b":{"type":"string"}}}]}`, description)
	require.Equal(t, `{"a b":"x"}`, form.Original(`{"a b":"x"}`))

	form = toolschema.New(json.RawMessage(`{"type":"array"}`)).Form(toolschema.Described)
	description, parameters = form.Function("")
	require.Equal(t, `{"type":"object","properties":{"input":{}},"required":["input"]}`, string(parameters))
	require.Equal(t, `The value of input must match this JSON Schema: {"type":"array","items":{}}`, description)

	long := strings.Repeat("long ", 200)
	description, parameters = form.Function(long)
	require.Equal(t, long, description, "OpenAI takes 1024 bytes")
	require.JSONEq(t, `{"type":"object","properties":{"input":{}},"required":["input"],"description":"The value of input must match this JSON Schema: {\"type\":\"array\",\"items\":{}}"}`, string(parameters))
}

// TestArgumentsThatAreNotInTheForm checks that arguments which follow the schema in place of the
// form, or neither, are left to the schema.
func TestArgumentsThatAreNotInTheForm(t *testing.T) {
	t.Parallel()
	form := toolschema.New(json.RawMessage(`{"anyOf":[{"type":"object","properties":{"a b":{"type":"string"}}}]}`)).Form(toolschema.Full)
	for _, arguments := range []string{``, `{}`, `{"a b":"x"}`, `{"input":{},"other":1}`, `{"input":`, `[]`, `"text"`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		require.Equal(t, arguments, form.Original(arguments))
	}
}

// TestPlainSchemas checks schemas of earlier drafts and of OpenAPI.
func TestPlainSchemas(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"draft 4", `{"id":"a","type":"object","properties":{"a b":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}`, `{"type":"object","properties":{"a b":{"type":"integer","exclusiveMinimum":0}}}`},
		{"nullable", `{"type":"object","properties":{"a":{"type":"string","nullable":true,"enum":["x"]},"b":{"type":["integer","null"],"nullable":true},"c":{"nullable":false,"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]},"b":{"type":["integer","null"]},"c":{"type":"string"}}}`},
		{"names of definitions", `{"type":"object","properties":{"a":{"$ref":"#n"}},"$defs":{"n":{"$anchor":"n"}},"anyOf":[{"required":["a"]}]}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{}},"anyOf":[{"required":["a"]}]}`},
		{"no JSON", `{`, `{`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, string(toolschema.Plain(json.RawMessage(tt.give))))
		})
	}
}

// TestLargeSchemas checks schemas that no provider takes: each form is made, and is bounded where
// it repeats things.
func TestLargeSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 400) + `{}` + strings.Repeat(`}}`, 400)
	var wide, twice strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&wide, `,"property%d":{"type":"string","minLength":1,"description":%q,"pattern":"^[a-z]{1,64}$"}`, i, strings.Repeat("d", 80))
	}
	for i := range 40 { // each refers to the next twice
		fmt.Fprintf(&twice, `,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1)
	}
	for name, raw := range map[string]string{
		"2 MB":               `{"type":"object","properties":{` + wide.String()[1:] + `}}`,
		"deep":               deep,
		"deeper than JSON":   strings.Repeat(`{"not":`, 20_000) + `{}` + strings.Repeat(`}`, 20_000),
		"exponential":        `{"$ref":"#/$defs/d0","$defs":{` + twice.String()[1:] + `}}`,
		"exponential all of": `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.ReplaceAll(twice.String()[1:], `"type":"object","properties":{"a":`, `"allOf":[`)[0:0] + chain(40) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := toolschema.New(json.RawMessage(raw))
			for l := range toolschema.Levels {
				_, parameters := s.Form(l).Function("")
				requireParameters(t, parameters)
				require.LessOrEqual(t, len(parameters), 3*len(raw)+200_000)
			}
		})
	}
}

// chain returns definitions of which each is all of the next, twice.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf(`"d%d":{}`, n)
}

// requireParameters checks that every provider takes parameters for an object.
func requireParameters(t require.TestingT, parameters []byte) {
	var top map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(parameters, &top), "%s", parameters)
	require.Equal(t, `"object"`, string(top["type"]))
	var properties map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(top["properties"], &properties))
	require.NotNil(t, properties)
	for _, keyword := range []string{"$schema", "$id", "$comment", "anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref"} {
		require.NotContains(t, top, keyword)
	}
}

// FuzzForm holds: no form panics, each is an object with properties, and arguments survive it.
func FuzzForm(f *testing.F) {
	for _, tt := range formTests {
		f.Add([]byte(tt.give), tt.args)
	}
	f.Fuzz(func(t *testing.T, raw []byte, arguments string) {
		s := toolschema.New(raw)
		for l := range toolschema.Levels {
			form := s.Form(l)
			description, parameters := form.Function("d")
			requireParameters(t, parameters)
			require.NotEmpty(t, description)
			sent := form.Sent(arguments)
			if json.Valid([]byte(arguments)) {
				require.True(t, json.Valid([]byte(sent)))
			}
			_ = form.Original(arguments)
		}
	})
}

// BenchmarkForms makes the forms of 64 tools, as a model does once. It takes 1.5 ms of one busy core.
func BenchmarkForms(b *testing.B) {
	raw := json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{` +
		`"owner":{"type":"string","description":"Repository owner"},"repo":{"type":"string","description":"Repository name"},` +
		`"state":{"type":"string","enum":["open","closed","all"],"description":"Filter by state"},"labels":{"type":"array","items":{"type":"string"},"description":"Filter by labels"},` +
		`"sort":{"type":["string","null"],"description":"Sort order"},"page":{"type":"number","description":"Page number for pagination (min 1)","minimum":1},` +
		`"perPage":{"type":"number","description":"Results per page for pagination (min 1, max 100)","minimum":1,"maximum":100},` +
		`"assignee":{"$ref":"#/$defs/user"}},"required":["owner","repo"],"additionalProperties":false,"$defs":{"user":{"type":"object","properties":{"login":{"type":"string"}}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		for range 64 {
			toolschema.New(raw).Form(toolschema.Full)
		}
	}
}
