package callinfo

import (
	"strings"

	"github.com/runteam/runteam/llm"
)

// Finish says why a model ended its reply.
type Finish string

// The reasons, in one word for all endpoints.
const (
	Stopped   Finish = "stop"      // the reply is complete
	Truncated Finish = "truncated" // a limit on tokens ended the reply
	Filtered  Finish = "filtered"  // the provider withheld the reply or the rest of it
	Refused   Finish = "refused"   // the model declined to answer
	ToolUse   Finish = "tool use"  // the model waits for the results of its tool calls
	Failed    Finish = "failed"    // the endpoint failed while it wrote the reply
	Unknown   Finish = "unknown"   // the endpoint gave a reason that this package does not know
)

// finishes maps what endpoints report, in lower case, to the reason. The words are
// those of the API references of OpenAI, Anthropic (stop_reason), Gemini
// (FinishReason), Mistral (model_length), DeepSeek (insufficient_system_resource),
// Cohere, Hugging Face (eos_token), Together (eos), Amazon Bedrock, Zhipu
// (sensitive, network_error) and vLLM (abort).
var finishes = map[string]Finish{
	"": Stopped, "stop": Stopped, "eos": Stopped, "eos_token": Stopped, "end_turn": Stopped, "stop_sequence": Stopped,
	"complete": Stopped, "completed": Stopped,

	"length": Truncated, "max_tokens": Truncated, "max_output_tokens": Truncated, "model_length": Truncated,
	"model_context_window_exceeded": Truncated, "context_length_exceeded": Truncated,

	"content_filter": Filtered, "content_filtered": Filtered, "guardrail_intervened": Filtered, "safety": Filtered,
	"recitation": Filtered, "blocklist": Filtered, "prohibited_content": Filtered, "spii": Filtered, "language": Filtered,
	"error_toxic": Filtered, "sensitive": Filtered,

	"refusal": Refused,

	"tool_calls": ToolUse, "tool_use": ToolUse, "function_call": ToolUse,

	"error": Failed, "network_error": Failed, "insufficient_system_resource": Failed, "abort": Failed,
	"malformed_function_call": Failed, "malformed_model_output": Failed,
}

// FinishOf returns why the model ended its reply. A reply without a finish reason
// counts as complete. A stop with a Refusal is a refusal.
func FinishOf(res *llm.Response) Finish {
	f, ok := finishes[strings.ToLower(res.FinishReason)]
	switch {
	case !ok:
		return Unknown
	case f == Stopped && res.Refusal != "":
		return Refused
	}
	return f
}
