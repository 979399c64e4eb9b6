package specfile

// The keys of who does the work.

// structuredOutput is the kind of the forms in which a request asks for JSON.
var structuredOutput = words("auto", "schema", "object", "prompt")

// requestKeys are the keys for the settings of the model calls of an agent or of the
// coordinator.
var requestKeys = []row{
	{"maxTokens", count, "bound on one reply; else the endpoint's"},
	{"maxTokensKey", words("max_tokens", "max_completion_tokens"), "name under which maxTokens is sent; unless set, `max_completion_tokens` for api.openai.com and `max_tokens` elsewhere; if the endpoint refuses it, the other one is sent"},
	{"temperature", number(0, 100), "else the endpoint's; left out with a warning if the endpoint does not accept it for the model"},
	{"topP", number(0, 1), "as temperature"},
	{"frequencyPenalty", number(-2, 2), "from -2 to 2; as temperature"},
	{"presencePenalty", number(-2, 2), "from -2 to 2; as temperature"},
	{"seed", seedNumber, "makes replies repeatable if the model supports that; left out as temperature"},
	{"stop", stopTexts, "texts at which a reply ends; the reply does not contain them; most endpoints accept up to 4"},
	{"reasoningEffort", oneLine, "how long a reasoning model thinks, with a value that it knows, such as `low`, `medium` or `high`; left out as temperature"},
	{"systemRole", words("system", "developer", "merge"), "role of the system prompt; `merge` puts it at the start of the first message, for models without a system prompt; unless set, `system`, and `merge` with a warning once the endpoint refused that"},
	{"structuredOutput", structuredOutput, "form in which its requests ask for JSON; else the spec's; see Structured output"},
	{"extraBody", extraBody, "members added to each request, for settings without a key; a member that runteam writes itself is an error; variables are not replaced; see Extra members"},
}

var agentPlace = newPlace("agent", "an agent", []row{
	{"name", oneLine, "required; letters, digits, `.`, `_`, `-` and spaces, at most 64"},
	{"model", envText, "else the spec's"},
	{"provider", provider, "`openai`, the default; what `requiredProvider` of a task is compared with"},
	{"baseURL", envText, "else the spec's"},
	{"apiKey", secret, "else the spec's, if that is for the same host"},
	{"headers", headers, "headers of its model calls"},
	{"systemPrompt", textOrFile, "who the agent is; `${params.NAME}` stands for a parameter"},
	{"description", textOrFile, "what it is good at, in a sentence or two: the coordinator reads it, assignment compares its words with those of a task, and plans show it"},
	{"capabilities", texts, "words for what it can do: a task's `requires` may ask for them, assignment and the coordinator go by them"},
	{"accepts", classification, "the most sensitive label that it may read; `internal` unless set"},
	{"produces", classification, "the most sensitive label that it may write; `accepts` unless set"},
	{"handoff", modeWord, "what it gets of what other agents make where no rule of the policy states a mode; it narrows `default` of the policy and never widens it"},
	{"outputTags", texts, "tags that its results may carry"},
	{"maxSessionMs", millis, "longest time that the agent may work on one attempt; 0 means none"},
	{"maxContextBytes", byteLimit, "limit on one piece of context in its prompts; else the spec's"},
	{"maxPromptBytes", byteLimit, "limit on its prompts; else the spec's"},
	{"maxParallel", count, "attempts at the same time; as many as the run allows unless set"},
	{"maxTurns", count, "model calls for one prompt; 10 unless set"},
	{"maxTokenBudget", count, "bound on the tokens of all its model calls in a run, in addition to that of the run; see Budgets"},
	{"maxCostBudget", costBudget, "bound on the cost of all its model calls in a run, in addition to that of the run; see Budgets"},
	{"timeoutMs", millis, "bound on the work for one prompt; 0 means none"},
	{"callTimeoutMs", millis, "bound on one model call; 5 minutes unless set"},
	{"fallback", fallbackList, "connections to use in this order if its own fails; each is a reader of its prompts; else the spec's: see fallback"},
	{"outputSchema", schema, "JSON Schema of its results, for tasks without one: inline, `{file: PATH}`, or a name of `schemas`"},
	{"reuse", never, "`never`: its answers are never taken from an earlier run, even in a run that reuses results"},
	{"disallowedTools", texts, "tools that it must not have; it has none"},
}).notBuilt([]other{
	{"tools", asksIfFilled, "tools that it may call; or write `tools: []`"},
	{"toolPreset", nil, "a set of tools"},
	{"customTools", asksIfFilled, "tools that a program brings"},
	{"mcp", asksIfFilled, "servers of tools"},
	{"loopDetection", nil, "an end to repetition; maxTurns bounds the calls"},
	{"backend", nil, "an agent that is a process"},
}).refused([]other{
	{"thinking", nil, "reasoning settings of one provider; write reasoningEffort, or the provider's settings in extraBody"},
	{"topK", nil, "not a setting of the OpenAI API; write extraBody: {top_k: …} for an endpoint that accepts it"},
	{"minP", nil, "not a setting of the OpenAI API; write extraBody: {min_p: …} for an endpoint that accepts it"},
	{"adapter", nil, "a client that a program brings; use provider openai and a baseURL"},
	{"egressPolicy", nil, "bounds on connections; name its baseURL, and what that may read under endpoints"},
	{"permissionBoundary", asksIfFilled, "a limit on what an agent may do; write accepts, and what its endpoint may read under endpoints"},
	{"history", asksIfFilled, "earlier messages of an agent; write what it needs to know as an input"},
	{"credentials", asksIfFilled, "secrets for tools, of which it has none; keep them out of the file"},
	{"region", nil, "for a provider that is not OpenAI-compatible"},
	{"beforeRun", nil, "a function of a program; write an agent in Go"},
	{"afterRun", nil, "a function of a program; write an agent in Go"},
}).idle([]other{
	{"contextStrategy", nil, "an agent's conversation is one prompt and its answer: there is nothing to shorten"},
	{"maxToolOutputChars", nil, "about tools, of which it has none"},
	{"compressToolResults", nil, "about tools, of which it has none"},
	{"parallelToolCalls", nil, "about tools, of which it has none"},
	{"preserveReasoningAsText", nil, "reasoning is not kept"},
	{"compressReasoningText", nil, "reasoning is not kept"},
	{"costTier", nil, "a note for routing; assignment compares capabilities, descriptions and load"},
	{"latencyClass", nil, "a note for routing; assignment compares capabilities, descriptions and load"},
	{"onToolCall", nil, "a function of a program; it has no tools"},
	{"cwd", nil, "folder of tools for files, of which it has none"},
}).with(requestKeys, "timeoutMs").needing("name").like("name", "systemPrompt", "model")

var agentDefaultsPlace = agentPlace.without("agentDefaults", "agentDefaults", "name")

var coordinatorPlace = newPlace("coordinator", "the coordinator", []row{
	{"model", envText, "else the spec's; `--model coordinator=M` overrides it"},
	{"provider", provider, "`openai`, the default"},
	{"baseURL", envText, "else the spec's"},
	{"apiKey", secret, "else the spec's, if that is for the same host"},
	{"headers", headers, "headers of its model calls"},
	{"systemPrompt", textOrFile, "who it is, before its duties, which are always there; `${params.NAME}` stands for a parameter"},
	{"instructions", textOrFile, "what to heed, added to its duties; no parameters stand there"},
	{"accepts", classification, "the most sensitive label that it may read; as much as you may see unless set, and never more"},
	{"mayGrant", wordList("memory", "inputs"), "what its plans may grant beside dependencies: `memory` (`memoryScope: all`), `inputs` (`uses`; it reads their names and labels); nothing unless set"},
	{"maxContextBytes", byteLimit, "limit on one piece of context in its prompts; else the spec's"},
	{"maxPromptBytes", byteLimit, "limit on its prompts; else the spec's; results that do not fit are answered in parts"},
	{"maxTurns", count, "model calls for one prompt; 10 unless set"},
	{"maxTokenBudget", count, "bound on the tokens of its own model calls in a run, in addition to that of the run; see Budgets"},
	{"maxCostBudget", costBudget, "bound on the cost of its own model calls in a run, in addition to that of the run; see Budgets"},
	{"timeoutMs", millis, "bound on the work for one prompt; 0 means none"},
	{"callTimeoutMs", millis, "bound on one model call; 5 minutes unless set"},
	{"fallback", fallbackList, "connections to use in this order if its own fails; each is a reader of its prompts; else the spec's: see fallback"},
	{"reuse", never, "`never`: its plans and answers are never taken from an earlier run, even in a run that reuses results"},
	{"disallowedTools", texts, "tools that it must not have; it has none"},
}).with(requestKeys, "timeoutMs").likewise(agentPlace).like("model", "instructions")
