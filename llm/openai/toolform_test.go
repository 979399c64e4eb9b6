package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// A sentFunction is a tool as a server reads it.
type sentFunction struct {
	Name, Description string
	Parameters        map[string]any
}

// functionsIn returns the tools of a request.
func functionsIn(t require.TestingT, body string) (list []sentFunction) {
	var request struct {
		Tools []struct{ Function sentFunction }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &request))
	for _, tool := range request.Tools {
		list = append(list, tool.Function)
	}
	return list
}

// hasKeyword reports whether a schema has a keyword at any depth.
func hasKeyword(v any, keywords ...string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if slices.Contains(keywords, key) || hasKeyword(member, keywords...) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasKeyword(item, keywords...) })
	}
	return false
}

// withTools returns a request with tools that have these schemas: s__a, s__b and so on.
func withTools(schemas ...string) llm.Request {
	req := llm.Request{Messages: hello.Messages}
	for i, s := range schemas {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprintf("s__%c", 'a'+i), Description: "A tool.", Parameters: json.RawMessage(s)})
	}
	return req
}

// calling answers with a call.
func calling(name, arguments string) http.HandlerFunc {
	return sayJSON(200, `{"choices":[{"message":{"tool_calls":[{"id":"c1","type":"function","function":{"name":`+quoted(name)+`,"arguments":`+quoted(arguments)+`}}]},"finish_reason":"tool_calls"}]}`)
}

// TestToolsAreObjectsWithProperties calls a server that takes no other schemas, as OpenAI.
func TestToolsAreObjectsWithProperties(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, stream bool) {
		var sent bodies
		m := model(t, func(w http.ResponseWriter, r *http.Request) {
			for _, f := range functionsIn(t, sent.record(r)) {
				if _, ok := f.Parameters["properties"].(map[string]any); !ok || f.Parameters["type"] != "object" || hasKeyword(f.Parameters, "$schema") {
					sayJSON(400, `{"error":{"message":"Invalid schema for function '`+f.Name+`': object schema missing properties"}}`)(w, r)
					return
				}
			}
			calling("s__a", "")(w, r)
		})
		res, err := m.Call(t.Context(), withTools(`{"type":"object"}`, ``, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","additionalProperties":false}`), emitting(stream))
		require.NoError(t, err)
		require.Equal(t, []llm.ToolCall{{ID: "c1", Name: "s__a"}}, res.ToolCalls)
		require.Empty(t, res.Warnings)
		require.Len(t, sent.taken(), 1)
	})
}

// emitting returns a function that asks for a stream, or nil.
func emitting(stream bool) func(llm.Delta) error {
	if stream {
		return func(llm.Delta) error { return nil }
	}
	return nil
}

// TestOnlyTheWireSeesForms checks that arguments are sent in the form of the schema that is sent,
// and returned in the form of the tool's own.
func TestOnlyTheWireSeesForms(t *testing.T) {
	t.Parallel()
	const schema = `{"anyOf":[{"type":"object","properties":{"a b":{"type":"integer"}},"required":["a b"]}]}`
	tests := []struct{ name, reply, want, history, sent string }{
		{"in the form", `{"input": {"a_b_c8687a08aa": 1}}`, `{"a b":1}`, `{"a b":1}`, `{"input":{"a_b_c8687a08aa":1}}`},
		{"in the tool's own form", `{"a b": 1}`, `{"a b":1}`, `{"a b":1}`, `{"input":{"a_b_c8687a08aa":1}}`},
		{"cut", `{"input": {"a_b`, `{"input": {"a_b`, ``, `{}`},
		{"nothing", ``, ``, `{}`, `{"input":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			m := model(t, func(w http.ResponseWriter, r *http.Request) {
				sent.record(r)
				calling("s__a", tt.reply)(w, r)
			})
			req := withTools(schema)
			req.Messages = append(slices.Clone(req.Messages),
				llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "c0", Name: "s__a", Arguments: tt.history}, {ID: "c1", Name: "other", Arguments: `{"a b":1}`}}},
				llm.Message{Role: llm.ToolResult, Text: "1", ToolCallID: "c0"}, llm.Message{Role: llm.ToolResult, Text: "1", ToolCallID: "c1"})
			res, err := m.Call(t.Context(), req, nil)
			require.NoError(t, err)
			require.Equal(t, []llm.ToolCall{{ID: "c1", Name: "s__a", Arguments: tt.want}}, res.ToolCalls)
			require.Empty(t, res.Warnings)
			body := sent.taken()[0]
			require.Contains(t, body, quoted(tt.sent))
			require.Contains(t, body, quoted(`{"a b":1}`), "the call of another tool")
		})
	}
}

// TestRefusedSchemas sends tools to servers that refuse a schema, in the words of real providers.
func TestRefusedSchemas(t *testing.T) {
	t.Parallel()
	const plain = `{"type":"object","properties":{"a":{"type":"string"}}}`
	const odd = `{"type":"object","properties":{"a":{"type":"string","pattern":"^x$","description":"An x."}},"additionalProperties":false}`
	refused := func(keywords ...string) func(f sentFunction) bool {
		return func(f sentFunction) bool { return hasKeyword(f.Parameters, keywords...) }
	}
	always := func(f sentFunction) bool { return f.Name == "s__b" }
	tests := []struct {
		name    string
		refused func(f sentFunction) bool
		error   string // %[1]d is the index of the refused tool, %[2]s its name
		want    string // the parameters of s__b that are accepted; empty if it is left out
		tries   int    // requests until then
	}{
		{"OpenAI", refused("additionalProperties"), `{"error":{"message":"Invalid schema for function '%[2]s': In context=(), 'additionalProperties' is not permitted.","type":"invalid_request_error","param":"tools[%[1]d].function.parameters","code":"invalid_function_parameters"}}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"^x$","description":"An x."}}}`, 2},
		{"Gemini", refused("additionalProperties", "pattern"), `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"pattern\" at 'tools[0].function_declarations[%[1]d].parameters.properties[0].value': Cannot find field.","status":"INVALID_ARGUMENT"}}]`,
			`{"type":"object","properties":{"a":{"type":"string","description":"An x. (pattern: \"^x$\")"}}}`, 3},
		{"Anthropic", refused("pattern", "a"), `{"type":"error","error":{"type":"invalid_request_error","message":"tools.%[1]d.custom.input_schema.properties: Property keys should match pattern"}}`,
			`{"type":"object","properties":{}}`, 4},
		{"FastAPI", refused("additionalProperties"), `{"detail":[{"loc":["body","tools",%[1]d,"function","parameters"],"msg":"extra fields not permitted","type":"value_error.extra"}]}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"^x$","description":"An x."}}}`, 2},
		{"a name in other words", refused("pattern"), `{"error":{"message":"the tool %[2]s cannot be used"}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"An x. (pattern: \"^x$\")"}}}`, 3},
		{"no name", refused("additionalProperties"), `{"error":{"message":"a schema has an unknown keyword"}}`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"^x$","description":"An x."}}}`, 2},
		{"no reason", refused("additionalProperties"), `[{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}]`,
			`{"type":"object","properties":{"a":{"type":"string","pattern":"^x$","description":"An x."}}}`, 2},
		{"llama.cpp", refused("pattern"), `{"error":{"code":500,"message":"JSON schema conversion failed: Pattern must start with '^' and end with '$'","type":"server_error"}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"An x. (pattern: \"^x$\")"}}}`, 3},
		{"every form", always, `{"error":{"message":"Invalid schema for function '%[2]s'"}}`, "", 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			var m *openai.Model
			m = model(t, refusing(&sent, func(body string) (int, string) {
				for i, f := range functionsIn(t, body) {
					if tt.refused(f) && f.Name == "s__b" {
						said := strings.NewReplacer("%[1]d", fmt.Sprint(i), "%[2]s", f.Name).Replace(tt.error)
						if strings.Contains(said, `"code":500`) {
							return 500, said
						}
						return 400, said
					}
				}
				return 0, ""
			}))
			req := withTools(plain, odd, plain)
			for n := range 2 {
				res, err := m.Call(t.Context(), req, nil)
				require.NoError(t, err)
				require.Equal(t, good.Text, res.Text)
				all := sent.taken()
				require.Len(t, all, []int{tt.tries, 1}[n], "the accepted form is remembered")
				functions := functionsIn(t, all[len(all)-1])
				require.Contains(t, strings.Join(res.Warnings, "\n"), "s__b")
				if tt.want == "" {
					require.Len(t, functions, 2, "the others work")
					require.Contains(t, res.Warnings[0], "works without it")
					continue
				}
				require.Len(t, functions, 3)
				raw, err := json.Marshal(functions[1].Parameters)
				require.NoError(t, err)
				require.JSONEq(t, tt.want, string(raw))
				if tt.want == `{"type":"object","properties":{}}` {
					require.Contains(t, functions[1].Description, `"pattern":"^x$"`)
				}
				raw, err = json.Marshal(functions[0].Parameters)
				require.NoError(t, err)
				require.JSONEq(t, plain, string(raw))
			}
		})
	}
}

// TestRefusalsOfManyToolsEnd checks that a call with 64 tools ends soon if the endpoint refuses each
// of them, names one at a time, or none.
func TestRefusalsOfManyToolsEnd(t *testing.T) {
	t.Parallel()
	schemas := make([]string, 64)
	for i := range schemas {
		schemas[i] = fmt.Sprintf(`{"type":"object","properties":{"a%d":{"type":"string","pattern":"^x$"}},"additionalProperties":false}`, i)
	}
	tests := []struct {
		name    string
		refused func(f sentFunction) bool
		error   string
		ok      bool
		tries   int
	}{
		{"a keyword, by name", func(f sentFunction) bool { return hasKeyword(f.Parameters, "additionalProperties") }, "Invalid schema for function '%s'", true, 4},
		{"a keyword, without a name", func(f sentFunction) bool { return hasKeyword(f.Parameters, "additionalProperties") }, "Invalid schema", true, 2},
		{"each, by name", func(sentFunction) bool { return true }, "Invalid schema for function '%s'", false, 16},
		{"each, without a name", func(sentFunction) bool { return true }, "Invalid schema", false, 44},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			m := model(t, refusing(&sent, func(body string) (int, string) {
				functions := functionsIn(t, body)
				if i := slices.IndexFunc(functions, tt.refused); i >= 0 {
					return 400, `{"error":{"message":` + quoted(strings.Replace(tt.error, "%s", functions[i].Name, 1)) + `}}`
				}
				return 0, ""
			}))
			res, err := m.Call(t.Context(), withTools(schemas...), nil)
			require.Len(t, sent.taken(), tt.tries)
			if tt.ok {
				require.NoError(t, err)
				require.Equal(t, []string{"tools: the endpoint refused the schemas of s__a, s__b, s__c, s__d, s__e, s__f, s__g, s__h and 56 others, which were sent in a simpler form"}, res.Warnings)
			} else {
				require.ErrorContains(t, err, "Invalid schema")
			}
		})
	}
}

// TestLongDescriptions checks that a description which is too long is cut, and that the schema stays.
func TestLongDescriptions(t *testing.T) {
	t.Parallel()
	var sent bodies
	m := model(t, refusing(&sent, func(body string) (int, string) {
		for i, f := range functionsIn(t, body) {
			if len(f.Description) > 1024 {
				return 400, fmt.Sprintf(`{"error":{"message":"Invalid 'tools[%d].function.description': string too long. Expected a string with maximum length 1024, but got a string with length %d instead.","type":"invalid_request_error","param":"tools[%d].function.description","code":"string_above_max_length"}}`, i, len(f.Description), i)
			}
		}
		return 0, ""
	}))
	req := withTools(`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"b":{"type":"string"}}}`)
	req.Tools[1].Description = strings.Repeat("ü", 1000)
	res, err := m.Call(t.Context(), req, nil)
	require.NoError(t, err)
	require.Len(t, res.Warnings, 1)
	all := sent.taken()
	require.Len(t, all, 2)
	functions := functionsIn(t, all[1])
	require.Equal(t, "A tool.", functions[0].Description)
	require.True(t, strings.HasSuffix(functions[1].Description, "ü…"))
	require.Contains(t, functions[1].Parameters["properties"], "b")
}

// TestErrorsAboutCallsSimplifyNoSchema checks that what is said about calls, results or tools as
// such changes no schema.
func TestErrorsAboutCallsSimplifyNoSchema(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"Function call is missing a thought_signature in functionCall parts",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
		"Please ensure that the number of function response parts is equal to the number of function call parts",
		"this model does not support tools", "function calling is not enabled for s__a", "tools are not supported",
		"messages[2].content: s__a is no text", "messages.1.content does not match the schema", "Invalid 'tools': array too long. Expected an array with maximum length 128", "Unexpected role 'tool' after role 'user'", "the model is overloaded",
	} {
		var sent bodies
		m := model(t, refusing(&sent, func(string) (int, string) { return 400, `{"error":{"message":` + quoted(message) + `}}` }))
		_, err := m.Call(t.Context(), withTools(`{"type":"object","additionalProperties":false}`), nil)
		require.Error(t, err, message)
		require.Len(t, sent.taken(), 1, message)
	}
}
