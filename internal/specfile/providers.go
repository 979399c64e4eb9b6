package specfile

import (
	"github.com/runteam/runteam/internal/naming"

	"fmt"
	"slices"
	"strings"
	"sync"
)

// providerOrigins are the variables that hold the keys of well-known providers,
// with the origins of the providers' own OpenAI-compatible endpoints. A key may
// go there without consent.
var providerOrigins = sync.OnceValue(func() map[string][]string {
	all := make(map[string][]string)
	for line := range strings.Lines(strings.TrimSpace(providerTable)) {
		fields := strings.Fields(line)
		all[fields[0]] = fields[1:]
	}
	return all
})

const providerTable = `
ANTHROPIC_API_KEY https://api.anthropic.com
ARK_API_KEY https://ark.cn-beijing.volces.com
CEREBRAS_API_KEY https://api.cerebras.ai
CHEAPER_INFERENCE_API_KEY https://api.cheaperinference.com
DASHSCOPE_API_KEY https://dashscope.aliyuncs.com https://dashscope-intl.aliyuncs.com
DEEPSEEK_API_KEY https://api.deepseek.com
FIREWORKS_API_KEY https://api.fireworks.ai
GEMINI_API_KEY https://generativelanguage.googleapis.com
GITHUB_TOKEN https://models.github.ai
GOOGLE_API_KEY https://generativelanguage.googleapis.com
GROQ_API_KEY https://api.groq.com
HF_TOKEN https://router.huggingface.co
HUNYUAN_API_KEY https://tokenhub.tencentmaas.com https://api.hunyuan.cloud.tencent.com
MIMO_API_KEY https://api.xiaomimimo.com
MINIMAX_API_KEY https://api.minimax.io https://api.minimaxi.com
MISTRAL_API_KEY https://api.mistral.ai
MOONSHOT_API_KEY https://api.moonshot.ai https://api.moonshot.cn
NVIDIA_API_KEY https://integrate.api.nvidia.com
OPENAI_API_KEY https://api.openai.com
OPENROUTER_API_KEY https://openrouter.ai
PERPLEXITY_API_KEY https://api.perplexity.ai
QINIU_API_KEY https://api.qnaigc.com
SAMBANOVA_API_KEY https://api.sambanova.ai
TOGETHER_API_KEY https://api.together.xyz https://api.together.ai
XAI_API_KEY https://api.x.ai
`

const (
	openAIKey    = "OPENAI_API_KEY"
	openAIBase   = "OPENAI_BASE_URL"
	openAIOrigin = "https://api.openai.com"
)

// isKnown reports whether a variable may go to an origin without consent: the
// key of a provider to that provider, OPENAI_API_KEY and OPENAI_BASE_URL to the
// origin that OPENAI_BASE_URL names.
func (e *environment) isKnown(name, origin string) bool {
	if origin == "" {
		return false
	}
	if slices.Contains(providerOrigins()[name], origin) {
		return true
	}
	if name != openAIKey && name != openAIBase {
		return false
	}
	value, _ := e.lookup(openAIBase)
	named, err := originOf(value)
	return err == nil && named == origin
}

// compatible are the OpenAI-compatible endpoints of the providers that files of
// the original name, with the variable that holds the key.
var compatible = map[string]struct{ baseURL, key string }{
	"anthropic":        {"https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"},
	"cheaperinference": {"https://api.cheaperinference.com/v1", "CHEAPER_INFERENCE_API_KEY"},
	"deepseek":         {"https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"},
	"doubao":           {"https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"},
	"gemini":           {"https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"},
	"grok":             {"https://api.x.ai/v1", "XAI_API_KEY"},
	"hunyuan":          {"https://tokenhub.tencentmaas.com/v1", "HUNYUAN_API_KEY"},
	"mimo":             {"https://api.xiaomimimo.com/v1", "MIMO_API_KEY"},
	"minimax":          {"https://api.minimax.io/v1", "MINIMAX_API_KEY"},
	"openrouter":       {"https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"},
	"qiniu":            {"https://api.qnaigc.com/v1", "QINIU_API_KEY"},
}

// checkProviders warns of models of Anthropic that are asked for at OpenAI. The original calls Anthropic where a file names
// no provider.
func (r *reader) checkProviders() {
	if base, _ := r.lookup(openAIBase); strings.TrimSpace(base) != "" || r.places.setting("provider") != nil || r.places.setting("baseURL") != nil {
		return
	}
	var names []string
	var first *node
	for i := range r.file.Agents {
		f := r.places.agents[i]
		if f == nil || !strings.HasPrefix(r.file.Agents[i].Model, "claude") || f.get("provider") != nil || f.get("baseURL") != nil {
			continue
		}
		if names = append(names, quote(r.file.Agents[i].Member.Name)); first == nil {
			first = f.node
		}
	}
	if first != nil {
		r.warn(first, providerHint("provider", "anthropic"), "provider: the models of %s are asked for at %s, since none is set", naming.List(names), openAIOrigin)
	}
}

// providerHint says what to write instead of a provider that is not built in. The key is provider,
// or defaultProvider of an orchestrator.
func providerHint(key, name string) string {
	base, secret := "baseURL", "apiKey"
	if key != "provider" {
		base, secret = "defaultBaseURL", "defaultApiKey"
	}
	if c, known := compatible[strings.ToLower(strings.TrimSpace(name))]; known {
		return fmt.Sprintf("write %s: openai, %s: %s and %s: ${%s}", key, base, c.baseURL, secret, c.key)
	}
	return fmt.Sprintf("write %s: openai, and as %s an OpenAI-compatible endpoint of that provider", key, base)
}
