package openai_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
)

// A wordedRefusal is the error of an endpoint that refuses one form of a request.
type wordedRefusal struct {
	status int
	body   string
}

// wording returns a refusal with a message.
func wording(status int, message string) wordedRefusal {
	return wordedRefusal{status, `{"error":{"message":` + quoted(message) + `}}`}
}

// Whatever the words with which an endpoint refuses calls without a text, they are sent with the next form of it,
// and from then on at once.
func TestContentIsRefusedInManyWords(t *testing.T) {
	t.Parallel()
	for _, refusal := range []wordedRefusal{
		wording(400, `can only concatenate str (not "NoneType") to str`),
		wording(500, `can only concatenate str (not "NoneType") to str`),
		wording(500, `'NoneType' object is not iterable`),
		wording(500, `Value is not callable: null at row 58, column 33`),
		wording(400, `'dict object' has no attribute 'content'`),
		wording(500, `'dict object' has no attribute 'content'`),
		wording(400, "All non-assistant messages must contain 'content'"),
		wording(400, "messages.content is nil"),
		wording(422, "content cannot be undefined"),
		wording(400, "message at index 2 has no text"),
		wording(400, "invalid request: all elements in history must have a message."),
		{422, `{"error":"Input validation error: messages[1]: data did not match any variant of untagged enum MessageBody at line 1 column 234","error_type":"validation"}`},
		{422, `Failed to deserialize the JSON body into the target type: messages[1]: data did not match any variant of untagged enum MessageBody at line 1 column 234`},
		{400, `{"error":{"code":"1213","message":"未正常接收到prompt参数。"}}`},
		{400, `{"error":{"code":"1214","message":"messages 参数非法。请检查文档。"}}`},
		{400, `{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}`},
		wording(400, "Bad Request"),
		{400, ``},
	} {
		t.Run(refusal.body, func(t *testing.T) {
			t.Parallel()
			for form, accepted := range map[string]string{"null": `"content":null`, "empty": `"content":""`, "a space": `"content":" "`} {
				var sent bodies
				m := model(t, refusing(&sent, func(body string) (int, string) {
					if !regexp.MustCompile(`"role":"assistant",` + accepted).MatchString(body) {
						return refusal.status, refusal.body
					}
					return 0, ""
				}))
				for _, want := range []int{map[string]int{"null": 2, "empty": 3, "a space": 4}[form], 1} {
					res, err := m.Call(t.Context(), conversation(turn("call_1_1", nil)), nil)
					require.NoError(t, err, form)
					require.Empty(t, res.Warnings)
					require.Len(t, sent.taken(), want, form)
				}
			}
		})
	}
}

// A refusal that names another cause changes no content, whatever else it says.
func TestOtherCausesChangeNoContent(t *testing.T) {
	t.Parallel()
	for _, refusal := range []wordedRefusal{
		wording(400, "vendor_state is missing in a function call"),
		wording(400, "vendor is missing"),
		wording(400, "tool_choice: unexpected value"),
		wording(400, "An assistant message with 'tool_calls' must be followed by tool messages"),
		wording(400, "Please reduce the length of the messages"),
		wording(400, "Your credit balance is too low"),
		wording(400, "the model does not support tools"),
		wording(400, "roles must alternate"),
		wording(400, "stop: at most 4 sequences"),
		{400, `{"error":{"message":"not a number","param":"top_k"}}`},
		wording(500, "the server is overloaded"),
		wording(500, ""),
		wording(429, "slow down"),
	} {
		var sent bodies
		m := model(t, refusing(&sent, func(string) (int, string) { return refusal.status, refusal.body }))
		_, err := m.Call(t.Context(), conversation(turn("call_1_1", &llm.ProviderData{Endpoint: m.Endpoint(), Model: m.Name(), Message: json.RawMessage(`{"vendor":1}`)})), nil)
		require.Error(t, err, refusal.body)
		require.Len(t, sent.taken(), 1, refusal.body)
	}
}

// An endpoint that refuses a conversation without a reason gets it with each form of the content, and without the
// members that it had added; what did not help is not kept.
func TestMembersAreRefusedWithoutAReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		refused *regexp.Regexp
		calls   int
		status  int
	}{
		{"members", regexp.MustCompile(`"vendor"|"extra_content"`), 5, 400},
		{"members, and an empty text", regexp.MustCompile(`"vendor"|"extra_content"|"content":" ?"`), 5, 422},
		{"members, and no text", regexp.MustCompile(`"vendor"|"extra_content"|"role":"assistant","tool_calls"`), 6, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent bodies
			m := model(t, refusing(&sent, func(body string) (int, string) {
				if tt.refused.MatchString(body) {
					return tt.status, `{}`
				}
				return 0, ""
			}))
			d := &llm.ProviderData{Endpoint: m.Endpoint(), Model: m.Name(), Message: json.RawMessage(`{"vendor":1}`), Calls: []llm.ProviderCall{{Members: json.RawMessage(`{"extra_content":{"x":1}}`)}}}
			for _, want := range []int{tt.calls, 1} {
				res, err := m.Call(t.Context(), conversation(turn("call_1_1", d)), nil)
				require.NoError(t, err)
				require.Len(t, sent.taken(), want)
				require.Len(t, res.Warnings, 1)
				require.Contains(t, res.Warnings[0], "a member that it had added")
			}
		})
	}
	var sent bodies
	m := model(t, func(w http.ResponseWriter, r *http.Request) {
		sent.record(r)
		w.WriteHeader(400)
	})
	_, err := m.Call(t.Context(), conversation(turn("call_1_1", &llm.ProviderData{Endpoint: m.Endpoint(), Model: m.Name(), Message: json.RawMessage(`{"vendor":1}`)})), nil)
	require.Error(t, err)
	require.Len(t, sent.taken(), 8, "each form of the content, with the members and without")
}
