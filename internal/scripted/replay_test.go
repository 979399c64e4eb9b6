package scripted_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/llm"
)

// asked is one call of a test: a prompt, and what the model makes of it.
type asked struct {
	system, user string
	text         string
	usage        llm.Usage
	err          error
}

func (a asked) request() llm.Request {
	return llm.Request{System: a.system, Messages: []llm.Message{{Role: llm.User, Text: a.user}}}
}

// model answers as the call says.
func (a asked) model() llm.Model {
	return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: a.text, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: a.usage}, a.err
	})
}

// record makes calls one after the other and returns the file of the recording.
func record(t require.TestingT, calls []asked) string {
	r := scripted.Recorder{Now: func() time.Time { return time.Unix(0, 0) }}
	for _, c := range calls {
		res, err := r.Model(c.model()).Call(context.Background(), c.request(), nil)
		require.Equal(t, c.err, err)
		require.Equal(t, c.text, res.Text, "the run gets what the model said")
	}
	var b bytes.Buffer
	_, err := r.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

// replay makes the calls against the recording, over HTTP, and holds each
// answer to what was recorded.
func replay(t require.TestingT, file string, calls []asked) {
	s, err := scripted.Parse("recorded.yaml", []byte(file))
	require.NoError(t, err, file)
	h, err := scripted.New(s, false)
	require.NoError(t, err, file)
	for i, c := range calls {
		body, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]any{
			{"role": "system", "content": c.system}, {"role": "user", "content": c.user},
		}})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body)))
		if e, failed := errors.AsType[*llm.Error](c.err); failed {
			require.Equal(t, e.Status, w.Code, "call %d of\n%s", i+1, file)
			continue
		}
		var got struct {
			Choices []struct{ Message struct{ Content string } }
			Usage   struct {
				Input  int `json:"prompt_tokens"`
				Output int `json:"completion_tokens"`
			}
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Len(t, got.Choices, 1, "call %d of\n%s", i+1, file)
		require.Equal(t, c.text, got.Choices[0].Message.Content, "call %d of\n%s", i+1, file)
		require.Equal(t, c.usage, llm.Usage{InputTokens: got.Usage.Input, OutputTokens: got.Usage.Output})
	}
}

func TestRecordingReadsLikeAScript(t *testing.T) {
	t.Parallel()
	got := record(t, []asked{
		{system: "You plan.", user: planningPrompt, text: "[\n  {}\n]", usage: llm.Usage{InputTokens: 7, OutputTokens: 1}},
		{system: "You read.", user: "# Task: Extract facts\n\nRead.", err: &llm.Error{Kind: callfault.ServerError, Status: 503, Message: "over \"capacity\""}},
		{system: "You read.", user: "# Task: Extract facts\n\nRead.", text: "two\nlines \n\twith {{ this }}\r\n\n", usage: llm.Usage{InputTokens: 10, OutputTokens: 5}},
		{system: "You write.\nWell.", user: "Hello", text: "hi"},
		{system: "You write.", user: "# Task: Write", text: "a letter\n"},
	})
	require.Equal(t, `# Recorded by runteam: what models and people answered, unabridged. As sensitive as the run.
replies:
  - coordinator: plan
    usage: {input: 7, output: 1}
    text: |-
      [
        {}
      ]
  - task: "Extract facts"
    times: 1
    status: 503
    body: |-
      {"error":{"message":"over \"capacity\""}}
  - task: "Extract facts"
    usage: {input: 10, output: 5}
    text: |-
      two
      lines{{" "}}
      	with {{"{{"}} this }}{{"\r\n\n"}}
  - task: "Write"
    usage: {input: 0, output: 0}
    text: |
      a letter
  - system: "You write."
    usage: {input: 0, output: 0}
    text: "hi"
`, got)
}

func TestRecordingsAnswerByteForByte(t *testing.T) {
	t.Parallel()
	users := rapid.SampledFrom([]string{
		"# Task: A", "# Task: a \n\nmore", "# Task: B\n\n## Goal\n\nx\n\n## Your Task", "# Task: \u212a", "# Task: k", "# Task: \r", "# Task:", "hello", "",
		planningPrompt, repairPrompt, synthesisPrompt, digestPrompt, strings.Replace(digestPrompt, "part 2", "part 1", 1),
	})
	systems := rapid.SampledFrom([]string{
		"", "You are A.", "You are a.", "You are A.\nYou are B.", "You are B.", " \n", "you", strings.Repeat("é", 80) + "1", strings.Repeat("é", 80) + "2", "\x00\r\n\u2028",
	})
	call := rapid.Custom(func(t *rapid.T) asked {
		c := asked{user: users.Draw(t, "user"), system: systems.Draw(t, "system")}
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			c.err = &llm.Error{Kind: callfault.ServerError, Status: rapid.IntRange(500, 599).Draw(t, "status"), Message: rapid.String().Draw(t, "message")}
			return c
		}
		c.text = texts().Draw(t, "text")
		c.usage = llm.Usage{InputTokens: rapid.IntRange(0, 99).Draw(t, "in"), OutputTokens: rapid.IntRange(0, 99).Draw(t, "out")}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		calls := rapid.SliceOfN(call, 0, 12).Draw(t, "calls")
		file := record(t, calls)
		replay(t, file, calls)
		require.Equal(t, file, record(t, calls), "equal runs, equal bytes")
		require.NotRegexp(t, `(?m)^ +text: ".*\\n`, file, "several lines are a block")
	})
}

func FuzzRecording(f *testing.F) {
	for _, text := range []string{"", "plain", "{{ . }}", "a {{{", "{ \n", " lead", "trail \t\n\n", "\r\n", "a\n\n\nb\n", "\x00\x01", "---\n...\n", "\u2028\ufeff\u0085", "\n", "\xff"} {
		f.Add(text, "# Task: x", "You are y.")
	}
	f.Fuzz(func(t *testing.T, text, user, system string) {
		text, user, system = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(user, "?"), strings.ToValidUTF8(system, "?")
		calls := []asked{
			{system: system, user: user, text: text}, {system: system + "\nand z", user: user, text: "2" + text}, {system: system, user: "# Task: " + user, text: text + "3"},
			{system: system, user: user, text: text + text},
		}
		replay(t, record(t, calls), calls)
	})
}

func TestRecordingKeepsLongAndStrangeTexts(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	everything := make([]rune, 0, 70_000)
	for r := rune(0); r <= 0x11000; r++ {
		if r < 0xd800 || r > 0xdfff {
			everything = append(everything, r)
		}
	}
	var calls []asked
	for i, text := range []string{
		strings.Repeat("one long line, ", 30_000), strings.Repeat("many lines\n", 20_000), strings.Repeat("\n", 20_000), strings.Repeat("a\n\n\n\n", 5_000) + "b",
		strings.Repeat("{", 1_001), strings.Repeat("[{", 5_000), strings.Repeat("\x01", 10_000), string(everything),
	} {
		calls = append(calls, asked{user: fmt.Sprintf("# Task: %d", i), text: text})
	}
	file := record(t, calls)
	require.Greater(t, len(file), 1<<20, "as recordings of long runs are")
	path := filepath.Join(t.TempDir(), "recorded.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	_, err := scripted.ReadFile("", path)
	require.NoError(t, err)
	replay(t, file, calls)
}
