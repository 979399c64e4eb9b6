package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
)

// TestTruncatedPromptIsAWarning checks for which prompts and counts a reply has a
// warning that the endpoint may have cut the prompt.
func TestTruncatedPromptIsAWarning(t *testing.T) {
	t.Parallel()
	text := func(words string, n int) string { return strings.Repeat(words+" ", n/len([]rune(words))) }
	english := text("The adjuster reads the claim, and asks for the invoices that are missing.", 40_000)
	tests := []struct {
		name, prompt, usage string
		want                bool
	}{
		{"Ollama: English, cut to 2048 tokens", english, `{"prompt_tokens":2048,"completion_tokens":2}`, true},
		{"Ollama: English, cut to 4096 tokens", english, `{"prompt_tokens":4096,"completion_tokens":2}`, true},
		{"English, whole", english, `{"prompt_tokens":9000,"completion_tokens":2}`, false},
		{"English, few tokens for each word", english, `{"prompt_tokens":5200,"completion_tokens":2}`, false},
		{"Chinese, cut to 2048 tokens", text("理赔员阅读索赔并询问缺少的发票", 20_000), `{"prompt_tokens":2048,"completion_tokens":2}`, true},
		{"Chinese, whole", text("理赔员阅读索赔并询问缺少的发票", 20_000), `{"prompt_tokens":11000,"completion_tokens":2}`, false},
		{"Hindi, whole: 3 bytes for a character", text("समायोजक दावे को पढ़ता है और छूटे हुए चालान माँगता है", 20_000), `{"prompt_tokens":5500,"completion_tokens":2}`, false},
		{"Thai, whole", text("ผู้ปรับอ่านการเรียกร้องและขอใบแจ้งหนี้ที่ขาดหายไป", 20_000), `{"prompt_tokens":6500,"completion_tokens":2}`, false},
		{"indented JSON: many spaces in one token", strings.Repeat("                                {\n", 1000), `{"prompt_tokens":2100,"completion_tokens":2}`, false},
		{"rules of dashes", strings.Repeat(strings.Repeat("-", 100)+"\n", 400), `{"prompt_tokens":900,"completion_tokens":2}`, false},
		{"OpenAI: cached tokens are part of the count", english, `{"prompt_tokens":9000,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8900}}`, false},
		{"gateway: cached tokens are counted apart", english, `{"prompt_tokens":100,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8900}}`, false},
		{"gateway: counts of Anthropic", english, `{"prompt_tokens":100,"completion_tokens":2,"cache_read_input_tokens":6000,"cache_creation_input_tokens":2900}`, false},
		{"DeepSeek: hits and misses", english, `{"prompt_tokens":9000,"completion_tokens":2,"prompt_cache_hit_tokens":8960,"prompt_cache_miss_tokens":40}`, false},
		{"not counted", english, `{"prompt_tokens":0,"completion_tokens":2}`, false},
		{"nothing counted but cached tokens", english, `{"completion_tokens":2,"cache_read_input_tokens":7}`, false},
		{"a short prompt", text("word", 3000), `{"prompt_tokens":7,"completion_tokens":2}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			half := len([]rune(tt.prompt)) / 2
			req := llm.Request{System: string([]rune(tt.prompt)[:half]), Messages: []llm.Message{{Role: llm.User, Text: string([]rune(tt.prompt)[half:])}}}
			res, err := model(t, sayJSON(200, usageOf(tt.usage))).Call(t.Context(), req, nil)
			require.NoError(t, err)
			if !tt.want {
				require.Empty(t, res.Warnings)
				return
			}
			require.Len(t, res.Warnings, 1)
			require.Contains(t, res.Warnings[0], "num_ctx")
			stream := fmt.Sprintf(`data: {"choices":[],"usage":%s}`, tt.usage)
			res, err = model(t, events(chunkHi, chunkYou, chunkEnd, stream, done)).Call(t.Context(), req, func(llm.Delta) error { return nil })
			require.NoError(t, err)
			require.Len(t, res.Warnings, 1)
		})
	}
}
