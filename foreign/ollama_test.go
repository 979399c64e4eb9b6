package foreign

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/middleware"
	"github.com/ollama/ollama/openai"
	"github.com/stretchr/testify/require"
)

// An ollama is a server with the middleware that translates between OpenAI's
// format and Ollama's. Behind it, the description of the task decides the answer, or a
// scripted endpoint does.
type ollama struct {
	answers map[string]func(*api.ChatRequest, *api.ChatResponse)
	script  string // the base URL of the scripted endpoint, if there is one
	mu      sync.Mutex
	seen    []api.ChatRequest
}

func (o *ollama) start(t *testing.T) string {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.POST("/v1/chat/completions", middleware.ChatMiddleware(), o.chat)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// chat answers as the chat handler of Ollama does.
func (o *ollama) chat(c *gin.Context) {
	var req api.ChatRequest
	if err := c.ShouldBindJSON(&req); err != nil {
		c.AbortWithStatusJSON(http.StatusBadRequest, gin.H{"error": err.Error()})
		return
	}
	o.mu.Lock()
	o.seen = append(o.seen, req)
	o.mu.Unlock()
	res := api.ChatResponse{
		Model: req.Model, CreatedAt: time.Now(), Message: api.Message{Role: "assistant"}, Done: true, DoneReason: "stop",
		Metrics: api.Metrics{PromptEvalCount: 20, EvalCount: 5},
	}
	if status, message := o.answer(&req, &res); status != http.StatusOK {
		c.JSON(status, gin.H{"error": message})
		return
	}
	if req.Stream != nil && *req.Stream { // first what the model says, then that it is done
		said := res
		said.Done, said.DoneReason, said.Metrics = false, "", api.Metrics{}
		c.JSON(http.StatusOK, said)
		res.Message = api.Message{Role: "assistant"}
	}
	c.JSON(http.StatusOK, res)
}

// answer completes the response to a request, or returns the status and the message of an
// error.
func (o *ollama) answer(req *api.ChatRequest, res *api.ChatResponse) (status int, message string) {
	if o.script != "" {
		return relay(o.script, req, res)
	}
	user := slices.IndexFunc(req.Messages, func(m api.Message) bool { return m.Role == "user" })
	for line := range strings.Lines(req.Messages[user].Content) {
		if answer, ok := o.answers[strings.TrimSpace(line)]; ok {
			answer(req, res)
			return http.StatusOK, ""
		}
	}
	return http.StatusNotFound, "model 'gpt-4o' not found"
}

// relay has the scripted endpoint at a base URL answer a request as Ollama understood it.
func relay(baseURL string, req *api.ChatRequest, res *api.ChatResponse) (status int, message string) {
	call := openai.ChatCompletionRequest{Model: req.Model, Tools: req.Tools}
	for _, m := range req.Messages {
		call.Messages = append(call.Messages, openai.Message{
			Role: m.Role, Content: m.Content, ToolCalls: openai.ToToolCalls(m.ToolCalls), ToolCallID: m.ToolCallID,
		})
	}
	body, err := json.Marshal(call)
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	got, err := http.Post(baseURL+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	defer got.Body.Close()
	var reply struct {
		openai.ChatCompletion
		openai.ErrorResponse
	}
	if err := json.NewDecoder(got.Body).Decode(&reply); err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	if got.StatusCode != http.StatusOK {
		return got.StatusCode, reply.Error.Message
	}
	said := reply.Choices[0].Message
	res.Message.Content, _ = said.Content.(string)
	res.PromptEvalCount, res.EvalCount = reply.Usage.PromptTokens, reply.Usage.CompletionTokens
	if res.Message.ToolCalls, err = openai.FromCompletionToolCall(said.ToolCalls); err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusOK, ""
}

func TestOllama(t *testing.T) {
	t.Parallel()
	o := &ollama{answers: map[string]func(*api.ChatRequest, *api.ChatResponse){
		"plain": func(_ *api.ChatRequest, res *api.ChatResponse) { res.Message.Content = "Hello there." },
		"reasoning": func(_ *api.ChatRequest, res *api.ChatResponse) {
			res.Message.Thinking, res.Message.Content = "Six times seven.", "42"
		},
		"reasoning in the text": func(_ *api.ChatRequest, res *api.ChatResponse) {
			res.Message.Content = "<think>\nSix times seven.\n</think>\n\n42"
		},
		"length": func(_ *api.ChatRequest, res *api.ChatResponse) {
			res.Message.Content, res.DoneReason = "It begins and", "length"
		},
		"tool beside": func(_ *api.ChatRequest, res *api.ChatResponse) {
			res.Message.Content = "Done."
			res.Message.ToolCalls = []api.ToolCall{{Function: api.ToolCallFunction{Name: "get_weather"}}}
		},
		"empty": func(_ *api.ChatRequest, _ *api.ChatResponse) {},
	}}
	server := o.start(t)
	for _, r := range []row{
		{name: "a text", say: "plain", result: "Hello there."},
		{name: "reasoning apart", say: "reasoning", result: "42"},
		{name: "reasoning in the text", say: "reasoning in the text", result: "42"},
		{name: "a truncated text", say: "length", agent: "maxTokens: 5", code: "ANSWER_TRUNCATED"},
		{name: "a tool call beside a text", say: "tool beside", result: "Done.", contains: []string{"the text beside the call is the answer"}},
		{name: "an empty text", say: "empty", code: "MODEL_EMPTY"},
		{name: "an unknown model", say: "unknown", code: "MODEL_UNKNOWN_MODEL", contains: []string{`model "gpt-4o"`}},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t, server)
		})
	}
}

// The schema of a task reaches Ollama as the format of the answer, and the settings
// of the agent as its options.
func TestOllamaGetsSchemaAndSettings(t *testing.T) {
	t.Parallel()
	o := &ollama{answers: map[string]func(*api.ChatRequest, *api.ChatResponse){
		"score": func(_ *api.ChatRequest, res *api.ChatResponse) { res.Message.Content = `{"score": 7}` },
	}}
	r := row{
		say: "score", task: "outputSchema: {type: object, properties: {score: {type: integer}}, required: [score]}",
		agent:  "temperature: 0, seed: 7, stop: [END], reasoningEffort: low",
		result: `{"score": 7}`,
	}
	r.run(t, o.start(t))
	require.Len(t, o.seen, 1)
	got := o.seen[0]
	var format struct{ Properties map[string]any }
	require.NoError(t, json.Unmarshal(got.Format, &format), string(got.Format))
	require.Contains(t, format.Properties, "score")
	require.EqualValues(t, 7, got.Options["seed"])
	require.EqualValues(t, 0, got.Options["temperature"])
	require.Equal(t, []any{"END"}, got.Options["stop"])
	require.Equal(t, "low", got.Think.String())
}
