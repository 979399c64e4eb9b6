package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

const (
	strictSchema = `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`
	openSchema   = `{"properties":{"a":{"type":"string"}},"type":"object"}`
	listSchema   = `{"items":{"type":"string"},"type":"array"}`
)

// asking returns a request for JSON of a schema.
func asking(schema string) llm.Request {
	req := hello
	req.Schema = json.RawMessage(schema)
	return req
}

// formOf names the response_format of a request.
func formOf(t *testing.T, body string) string {
	t.Helper()
	var got struct {
		Format *struct {
			Type   string
			Schema *struct {
				Name   string
				Strict bool
				Schema json.RawMessage
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	switch f := got.Format; {
	case f == nil:
		return "none"
	case f.Type == "json_object" && f.Schema == nil:
		return "object"
	default:
		require.Equal(t, "json_schema", f.Type)
		require.Equal(t, "answer", f.Schema.Name)
		require.True(t, strings.HasPrefix(string(f.Schema.Schema), `{"`), "the schema is sent as it is")
		if f.Schema.Strict {
			return "strict"
		}
		return "schema"
	}
}

// forms returns the response formats of requests.
func forms(t *testing.T, bodies []string) []string {
	t.Helper()
	var all []string
	for _, b := range bodies {
		all = append(all, formOf(t, b))
	}
	return all
}

// TestFormat checks what is sent for each setting and each kind of schema.
func TestFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		output               string
		strict, open, listed string // what is sent for a schema within strict mode, another object, and a list
	}{
		{"", "strict", "schema", "schema"},
		{"auto", "strict", "schema", "schema"},
		{"schema", "strict", "schema", "schema"},
		{"object", "object", "object", "none"},
		{"prompt", "none", "none", "none"},
	}
	for _, tt := range tests {
		var got bodies
		m := modelOf(t, openai.Config{Model: "m", StructuredOutput: tt.output, BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
			got.record(r)
			answer(w, r)
		})})
		for schema, want := range map[string]string{strictSchema: tt.strict, openSchema: tt.open, listSchema: tt.listed} {
			res, err := m.Call(t.Context(), asking(schema), nil)
			require.NoError(t, err)
			require.Empty(t, res.Warnings)
			require.Equal(t, []string{want}, forms(t, got.taken()), "%s: %s", tt.output, schema)
		}
		_, err := m.Call(t.Context(), hello, nil)
		require.NoError(t, err)
		require.NotContains(t, got.taken()[0], "response_format", "nothing asks for JSON")
	}
	_, err := openai.New(openai.Config{Model: "m", BaseURL: "http://h/v1", StructuredOutput: "json"})
	require.ErrorContains(t, err, `StructuredOutput "json": write auto, schema, object or prompt`)
}

// TestRefusedResponseFormats reads the words with which endpoints refuse a
// response_format. The user gets the answer to the strongest form that the endpoint
// accepts, with a warning, and later calls begin with it.
func TestRefusedResponseFormats(t *testing.T) {
	t.Parallel()
	const (
		noSchemas  = "strict, schema"
		schemaOnly = "object"
	)
	tests := []struct {
		provider, refuses string // forms that it refuses
		status            int
		body              string
		sent              string // in the first call
		same, other       string // in the next calls: of the same schema, of another one
	}{
		{"OpenAI: older model", noSchemas, 400, `{"error":{"message":"Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model. Learn more about supported models at the Structured Outputs guide: https://platform.openai.com/docs/guides/structured-outputs","type":"invalid_request_error","param":null,"code":null}}`,
			"strict, schema, object", "object", "object"},
		{"OpenAI: schema in strict mode", "strict", 400, `{"error":{"message":"Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.","type":"invalid_request_error","param":"response_format","code":null}}`,
			"strict, schema", "schema", "strict"},
		{"OpenAI: unknown argument", noSchemas + ", object", 400, `{"error":{"message":"Unrecognized request argument supplied: response_format","type":"invalid_request_error","param":null,"code":null}}`,
			"strict, schema, object, none", "none", "none"},
		{"Azure: older version", noSchemas, 400, `{"error":{"code":"BadRequest","message":"response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later"}}`,
			"strict, schema, object", "object", "object"},
		{"Groq: model without schemas", noSchemas, 400, "{\"error\":{\"message\":\"This model does not support response format `json_schema`. See supported models at https://console.groq.com/docs/structured-outputs#supported-models\",\"type\":\"invalid_request_error\",\"param\":\"response_format\"}}",
			"strict, schema, object", "object", "object"},
		{"Groq: older interface", noSchemas, 400, `{"error":{"message":"'response_format' : one of the following must be satisfied[('response_format.type' : value is not one of the allowed values ['text']) OR ('response_format.type' : value is not one of the allowed values ['json_object'])]","type":"invalid_request_error"}}`,
			"strict, schema, object", "object", "object"},
		{"Groq: keyword", noSchemas, 400, `{"error":{"message":"invalid schema for response format: response_format/json_schema/next_step: minItems is not supported","type":"invalid_request_error"}}`,
			"strict, schema, object", "object", "strict"},
		{"Groq: the model wrote no JSON", noSchemas, 400, `{"error":{"message":"Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"json_validate_failed","failed_generation":"hi"}}`,
			"strict, schema, object", "strict, schema, object", "strict"},
		{"DeepSeek", noSchemas, 400, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`,
			"strict, schema, object", "object", "object"},
		{"DeepSeek: deserialization", noSchemas, 422, "Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` is unavailable now at line 1 column 12440",
			"strict, schema, object", "object", "object"},
		{"Mistral", noSchemas, 422, `{"object":"error","message":{"detail":[{"type":"literal_error","loc":["body","response_format","type"],"msg":"Input should be 'text' or 'json_object'","input":"json_schema","ctx":{"expected":"'text' or 'json_object'"}}]},"type":"invalid_request_error","param":null,"code":null}`,
			"strict, schema, object", "object", "object"},
		{"FastAPI: unknown field", noSchemas + ", object", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","response_format"],"msg":"Extra inputs are not permitted","input":{"type":"json_object"}}]}`,
			"strict, schema, object, none", "none", "none"},
		{"vLLM: keyword", noSchemas, 400, `{"object":"error","message":"The provided JSON schema contains features not supported by xgrammar.","type":"BadRequestError","param":null,"code":400}`,
			"strict, schema, object", "object", "strict"},
		{"vLLM: grammar", noSchemas, 400, `{"object":"error","message":"Grammar error: Failed to convert the JSON schema to a grammar","type":"BadRequestError","param":null,"code":400}`,
			"strict, schema, object", "object", "strict"},
		{"vLLM: without a backend", noSchemas + ", object", 400, `{"error":{"message":"Structured outputs are not supported with this configuration","type":"BadRequestError","code":400}}`,
			"strict, schema, object, none", "none", "none"},
		{"llama.cpp: keyword", noSchemas, 400, `{"error":{"code":400,"message":"JSON schema conversion failed:\nUnrecognized schema: {}","type":"invalid_request_error"}}`,
			"strict, schema, object", "object", "strict"},
		{"llama.cpp: older version", noSchemas, 500, `{"error":{"code":500,"message":"response_format type must be one of \"text\" or \"json_object\", but got: json_schema","type":"server_error"}}`,
			"strict, schema, object", "object", "object"},
		{"LM Studio: json_object", schemaOnly + ", " + noSchemas, 400, `{"error":"'response_format.type' must be 'json_schema' or 'text'"}`,
			"strict, schema, object, none", "none", "none"},
		{"Ollama", noSchemas, 500, `{"error":{"message":"invalid JSON schema in format","type":"api_error","param":null,"code":null}}`,
			"strict, schema, object", "object", "strict"},
		{"Gemini: keyword", noSchemas, 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"additionalProperties\" at 'generation_config.response_schema': Cannot find field.","status":"INVALID_ARGUMENT"}}]`,
			"strict, schema, object", "object", "strict"},
		{"Gemini: states", noSchemas, 400, `[{"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving.","status":"INVALID_ARGUMENT"}}]`,
			"strict, schema, object", "object", "strict"},
		{"Gemini: without a reason", noSchemas, 400, `[{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}]`,
			"strict, schema, object", "object", "strict"},
		{"Anthropic", noSchemas, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"output_config.format.schema: For 'object' type, property 'a' is not supported"}}`,
			"strict, schema, object", "object", "strict"},
		{"OpenRouter: no provider", noSchemas, 404, `{"error":{"message":"No endpoints found that can handle the requested parameters. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing","code":404}}`,
			"strict, schema, object", "object", "object"},
		{"gateway: not implemented", noSchemas + ", object", 501, `{"error":{"message":"response_format is not implemented"}}`,
			"strict, schema, object, none", "none", "none"},
		{"gateway: under status 200", noSchemas, 200, `{"error":{"message":"json_schema is not supported","code":400}}`,
			"strict, schema, object", "object", "object"},
	}
	for _, tt := range tests {
		t.Run(tt.provider, func(t *testing.T) {
			t.Parallel()
			var got bodies
			m := model(t, func(w http.ResponseWriter, r *http.Request) {
				if f := formOf(t, got.record(r)); strings.Contains(", "+tt.refuses+",", ", "+f+",") {
					sayJSON(tt.status, tt.body)(w, r)
					return
				}
				sayJSON(200, whole)(w, r)
			})
			const another = `{"additionalProperties":false,"properties":{},"required":[],"type":"object"}`
			for i, schema := range []string{strictSchema, strictSchema, another} {
				res, err := m.Call(t.Context(), asking(schema), nil)
				require.NoError(t, err)
				sent := forms(t, got.taken())
				want := []string{tt.sent, tt.same, tt.other}[i]
				require.Equal(t, want, strings.Join(sent[:strings.Count(want, ",")+1], ", "), "call %d", i+1)
				last := sent[len(sent)-1]
				require.Equal(t, last != "strict", len(res.Warnings) == 1, "call %d: %s: %v", i+1, last, res.Warnings)
				if len(res.Warnings) > 0 {
					require.Contains(t, res.Warnings[0], "response_format: the endpoint refused")
				}
			}
		})
	}
}

// TestErrorsThatDoNotRefuseTheFormat checks that other errors do not change how a
// call asks for JSON, and cost no second request.
func TestErrorsThatDoNotRefuseTheFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		kind   string
	}{
		{"a setting", 400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature","code":"unsupported_value"}}`, callfault.BadRequest},
		{"the prompt is too long", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens (129000 in the messages, 1000 in the response_format)","code":"context_length_exceeded"}}`, callfault.PromptTooLong},
		{"the prompt is refused", 400, `{"error":{"message":"Your input was flagged by the content filter"}}`, callfault.BadRequest},
		{"no key", 401, `{"error":{"message":"response_format needs a key"}}`, callfault.Unauthorized},
		{"too often", 429, `{"error":{"message":"too many requests with response_format"}}`, callfault.RateLimited},
		{"no reason, out of order", 500, `{"error":{"message":""}}`, callfault.ServerError},
		{"no such path", 404, ``, callfault.NotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got bodies
			m := model(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					got.record(r)
				}
				sayJSON(tt.status, tt.body)(w, r)
			})
			_, err := m.Call(t.Context(), asking(strictSchema), nil)
			var e *llm.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, tt.kind, e.Kind)
			require.Len(t, got.taken(), 1)
		})
	}
}

// TestArraySchemaIsNotSentAsJSONObject checks that json_object, which makes every
// answer an object, is left out for a schema that allows other values.
func TestArraySchemaIsNotSentAsJSONObject(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{listSchema, `{"const":true}`, `{"type":["object","null"]}`, `{"enum":["yes","no"]}`} {
		var got bodies
		m := model(t, func(w http.ResponseWriter, r *http.Request) {
			if formOf(t, got.record(r)) == "schema" {
				sayJSON(400, `{"error":{"message":"Invalid schema for response_format 'answer': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.","param":"response_format"}}`)(w, r)
				return
			}
			answer(w, r)
		})
		for _, want := range [][]string{{"schema", "none"}, {"none"}} {
			_, err := m.Call(t.Context(), asking(schema), nil)
			require.NoError(t, err)
			require.Equal(t, want, forms(t, got.taken()))
		}
		_, err := m.Call(t.Context(), asking(strictSchema), nil)
		require.NoError(t, err)
		require.Equal(t, []string{"strict"}, forms(t, got.taken()), "other schemas are not affected")
	}
}

// TestOpenAIGetsObjectSchemasOnly checks that OpenAI gets no schema of a list, which it
// refuses.
func TestOpenAIGetsObjectSchemasOnly(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{"auto": "none", "schema": "schema"} {
		var got bodies
		m := modelOf(t, openai.Config{Model: "m", APIKey: openai.NewKey(fakeKey), StructuredOutput: output, HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got.record(r)
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(whole)), Request: r}, nil
		})}})
		for schema, want := range map[string]string{listSchema: want, openSchema: "schema"} {
			res, err := m.Call(t.Context(), asking(schema), nil)
			require.NoError(t, err)
			require.Empty(t, res.Warnings)
			require.Equal(t, []string{want}, forms(t, got.taken()))
		}
	}
}

// TestEmptyStructuredAnswerNamesTheSetting checks the error of a server that accepts a
// response_format and writes nothing.
func TestEmptyStructuredAnswerNamesTheSetting(t *testing.T) {
	t.Parallel()
	const hint = "if all structured answers are empty, set structuredOutput to prompt"
	m := model(t, sayJSON(200, replyOf(`"content":""`)))
	_, err := m.Call(t.Context(), asking(strictSchema), nil)
	require.ErrorContains(t, err, hint)
	_, err = m.Call(t.Context(), hello, nil)
	require.Error(t, err)
	require.NotContains(t, err.Error(), hint)
}

// TestRefusedStructuredOutputSettingFails checks that schema and object fall back to nothing
// weaker, and that the error says what to set.
func TestRefusedStructuredOutputSettingFails(t *testing.T) {
	t.Parallel()
	for output, sent := range map[string][]string{"schema": {"strict", "schema"}, "object": {"object"}} {
		var got bodies
		m := modelOf(t, openai.Config{Model: "m", StructuredOutput: output, BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
			if formOf(t, got.record(r)) != "none" {
				sayJSON(400, `{"error":{"message":"response_format is not supported"}}`)(w, r)
				return
			}
			answer(w, r)
		})})
		for range 2 {
			_, err := m.Call(t.Context(), asking(strictSchema), nil)
			require.ErrorContains(t, err, fmt.Sprintf("response_format is not supported; structuredOutput is %s: set it to auto or prompt", output))
			require.Equal(t, sent, forms(t, got.taken()), "nothing was accepted, so nothing is remembered")
		}
		_, err := m.Call(t.Context(), hello, nil)
		require.NoError(t, err)
	}
}

// TestConcurrentCallsLearnFormats checks that calls at the same time all get
// their answers, and that a later call sends one request.
func TestConcurrentCallsLearnFormats(t *testing.T) {
	t.Parallel()
	var got bodies
	m := model(t, func(w http.ResponseWriter, r *http.Request) {
		if f := formOf(t, got.record(r)); f == "strict" || f == "schema" {
			sayJSON(400, `{"error":{"message":"This response_format type is unavailable now"}}`)(w, r)
			return
		}
		answer(w, r)
	})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := m.Call(t.Context(), asking(strictSchema), nil)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got.taken()
	_, err := m.Call(t.Context(), asking(strictSchema), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"object"}, forms(t, got.taken()))
}

// TestRefusedSchemasAreBounded checks that a model forgets refused schemas when there
// are very many, and then finds out again.
func TestRefusedSchemasAreBounded(t *testing.T) {
	t.Parallel()
	var got bodies
	refused := `{"error":{"message":"invalid schema for response_format"}}`
	m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		status, body := 200, whole
		if strings.Contains(got.record(r), `"strict":true`) {
			status, body = 400, refused
		}
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})}})
	sent := func(i int) []string {
		_, err := m.Call(t.Context(), asking(strings.Replace(strictSchema, `"a"`, fmt.Sprintf(`"a%d"`, i), 2)), nil)
		require.NoError(t, err)
		return forms(t, got.taken())
	}
	for i := range 1000 {
		require.Len(t, sent(i), 2)
	}
	require.Equal(t, []string{"schema"}, sent(0))
	require.Len(t, sent(1000), 2)
	require.Equal(t, []string{"schema"}, sent(1000))
	require.Equal(t, []string{"strict", "schema"}, sent(0), "it was forgotten")
}

// TestStrictMode checks which schemas are sent in strict mode: those within what
// OpenAI documents for it.
func TestStrictMode(t *testing.T) {
	t.Parallel()
	object := func(properties string, names ...string) string {
		required, _ := json.Marshal(append([]string{}, names...))
		return fmt.Sprintf(`{"type":"object","additionalProperties":false,"properties":{%s},"required":%s}`, properties, required)
	}
	nested := func(depth int) string {
		schema := object("")
		for range depth - 1 {
			schema = object(`"a":`+schema, "a")
		}
		return schema
	}
	of := func(member string) string { return object(`"a":`+member, "a") }
	var many []string
	var names []string
	for i := range 101 {
		names = append(names, fmt.Sprintf("p%d", i))
		many = append(many, fmt.Sprintf(`"p%d":{"type":"null"}`, i))
	}
	tests := []struct {
		name, schema string
		strict       bool
	}{
		{"no properties", object(""), true},
		{"a string", of(`{"type":"string","description":"d","title":"t"}`), true},
		{"a string or null", of(`{"type":["string","null"]}`), true},
		{"pattern and format", of(`{"type":"string","pattern":"^a","format":"date"}`), true},
		{"bounds", of(`{"type":"integer","minimum":1,"maximum":2,"multipleOf":1,"exclusiveMinimum":0,"exclusiveMaximum":3}`), true},
		{"enum", of(`{"type":"string","enum":["x","y"]}`), true},
		{"const", of(`{"type":"boolean","const":true}`), true},
		{"list", of(`{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":2}`), true},
		{"list of objects", of(`{"type":"array","items":` + object(`"b":{"type":"null"}`, "b") + `}`), true},
		{"anyOf", of(`{"anyOf":[{"type":"string"},` + object("") + `]}`), true},
		{"reference", strings.Replace(of(`{"$ref":"#/$defs/x"}`), "{", `{"$defs":{"x":{"type":"string"}},`, 1), true},
		{"$schema", strings.Replace(object(""), "{", `{"$schema":"https://json-schema.org/draft/2020-12/schema",`, 1), true},
		{"five levels", nested(5), true},
		{"six levels", nested(6), false},
		{"a hundred properties", object(strings.Join(many[:100], ","), names[:100]...), true},
		{"more properties", object(strings.Join(many, ","), names...), false},
		{"many values", of(`{"type":"integer","enum":[` + strings.Repeat("1,", 500) + `1]}`), false},
		{"long values", of(`{"type":"string","enum":["` + strings.Repeat("x", 15_000) + `"]}`), false},
		{"an optional property", object(`"a":{"type":"string"}`), false},
		{"a required property that is not there", object(`"a":{"type":"string"}`, "a", "b"), false},
		{"other properties", strings.Replace(object(""), "false", "true", 1), false},
		{"other properties by default", `{"type":"object","properties":{},"required":[]}`, false},
		{"other properties below", of(`{"type":"object"}`), false},
		{"other properties of an object or null", of(`{"type":["object","null"],"properties":{"b":{"type":"null"}},"required":["b"]}`), false},
		{"other properties in a list", of(`{"type":"array","items":{"type":"object"}}`), false},
		{"other properties in anyOf", of(`{"anyOf":[{"type":"object"}]}`), false},
		{"other properties in $defs", strings.Replace(object(""), "{", `{"$defs":{"x":{"type":"object"}},`, 1), false},
		{"list of anything", of(`{"type":"array"}`), false},
		{"no type", of(`{}`), false},
		{"true", of(`true`), false},
		{"enum without a type", of(`{"enum":["x"]}`), false},
		{"enum of lists", of(`{"type":"array","items":{"type":"null"},"enum":[[]]}`), false},
		{"unknown format", of(`{"type":"string","format":"uri"}`), false},
		{"minLength", of(`{"type":"string","minLength":1}`), false},
		{"default", of(`{"type":"string","default":"x"}`), false},
		{"allOf", of(`{"type":"string","allOf":[]}`), false},
		{"not", of(`{"type":"string","not":{"type":"null"}}`), false},
		{"patternProperties", strings.Replace(object(""), "{", `{"patternProperties":{},`, 1), false},
		{"anyOf at the root", strings.Replace(object(""), "{", `{"anyOf":[`+object("")+`],`, 1), false},
		{"a list at the root", listSchema, false},
		{"object or null at the root", strings.Replace(object(""), `"object"`, `["object","null"]`, 1), false},
	}
	var got bodies
	m := model(t, func(w http.ResponseWriter, r *http.Request) {
		got.record(r)
		answer(w, r)
	})
	for _, tt := range tests {
		_, err := m.Call(t.Context(), asking(tt.schema), nil)
		require.NoError(t, err, tt.name)
		want := "schema"
		if tt.strict {
			want = "strict"
		}
		require.Equal(t, []string{want}, forms(t, got.taken()), tt.name)
	}
}
