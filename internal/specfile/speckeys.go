package specfile

// The keys at the top of a file, and of its parts other than agents and tasks.

var specPlace = newPlace("spec", "the file", []row{
	{"name", oneLine, "name of the team; else `team.name`, else the name of the file"},
	{"model", envText, "model of the agents, and of the coordinator, that name none; `--model` overrides it"},
	{"provider", provider, "`openai`, the default: any OpenAI-compatible endpoint"},
	{"baseURL", envText, "endpoint of the agents that name none; else `OPENAI_BASE_URL`, else api.openai.com"},
	{"apiKey", secret, "key for that endpoint, best as `${NAME}`; it is sent to no other host than that of the `baseURL` beside it"},
	{"headers", headers, "headers of model calls; an agent's own are added to them; like apiKey they go to no other host than that of the `baseURL` beside them"},
	{"maxConcurrency", count, "how many tasks run at the same time; 5 unless set"},
	{"timeoutMs", millis, "bound on the whole run; 0 means none"},
	{"maxTokenBudget", count, "bound on the tokens of all model calls of a run, reserved before each; none unless set; see Budgets"},
	{"offline", path, "script that `--offline` answers from, inside the folder of the spec"},
	{"structuredOutput", structuredOutput, "form in which requests ask for JSON, for agents and a coordinator without it; `auto` unless set; see Structured output"},
	{"fallback", fallbackList, "fallback of agents and of a coordinator without one: see fallback"},
	{"inputs", mapping.each(orNull("input")), "named texts from outside, by name: see input"},
	{"params", mapping.named(paramPattern, scalarOrNull), "one-line values for `${params.NAME}` in the goal, in descriptions and prompts; without a value (null) `--param` must give one"},
	{"schemas", mapping.each(object{{"type", []any{"object", "boolean"}}}), "JSON Schemas by name, each inline or `{file: PATH}`"},
	{"agentDefaults", mapping.of("agentDefaults"), "what agents do not say themselves: see agentDefaults"},
	{"taskDefaults", mapping.of("taskDefaults"), "what tasks do not say themselves: see taskDefaults"},
	{"agents", list.of("agent"), "the roster: see agent"},
	{"goal", goalText, "the goal of the team: the coordinator plans the tasks and answers; beside `tasks` it only answers, from their results; `--goal` takes its place; see goal"},
	{"coordinator", mapping.of("coordinator"), "who plans the tasks for a goal and answers it: see coordinator; `--coordinator FILE` takes its place"},
	{"mode", words("auto", "plan"), "of a goal without tasks: `plan`, the default, always plans; `auto` gives a goal of one simple step to the agent that fits it best"},
	{"tasks", list.of("task"), "the graph: see task; without it and a goal the file is a roster"},
	{"output", oneLine, "title, key or id of the task whose result is the answer; else the tasks that nothing depends on; not beside a goal, which the coordinator answers"},
	{"messages", list.of("message"), "messages to members of the team, sent before anything runs: see message"},
	{"endpoints", mapping.each(ref("endpoint")), "what each endpoint may read, and how often it may be called, by base URL: see endpoint"},
	{"sharedMemory", boolean, "`false` makes a task of `memoryScope: all`, and `mayGrant: [memory]`, an error; without either it changes nothing"},
	{"maxContextBytes", byteLimit, "limit on one piece of context in a prompt: 262144 unless set, and 65536 for a structured dependency; a longer text is cut, a longer structured value withheld; see Sizes"},
	{"maxPromptBytes", byteLimit, "limit on a prompt: 524288 unless set; in a longer one all texts are cut to one length; see Sizes"},
	{"schedulingStrategy", strategy, "who gets a task without an assignee; `dependency-first` unless set"},
	{"strictAssignees", boolean, "an unknown assignee is an error in any case; `false` is a warning"},
	{"reuse", boolean, "whether results of earlier runs are reused if nothing that they depend on has changed; the same as `--reuse`"},
	{"maxCostBudget", costBudget, "bound on the cost of all model calls of a run by `prices`, reserved before each; none unless set; see Budgets"},
	{"prices", mapping.each(ref("price")), "what models cost, by the name of the model, as it is sent: see price"},
	{"team", mapping.of("team"), "the roster as the original writes it: see team"},
	{"orchestrator", mapping.of("orchestrator"), "settings as the original writes them: see orchestrator"},
	{"policy", mapping.of("policy"), "what may be delivered between the members of the team: see policy"},
	{"assert", assertions, "what must never reach whom, such as `internal_notes never reaches letters`; a plan says which assertions fail"},
}).notBuilt([]other{
	{"mcp", asksIfFilled, "servers of tools"},
	{"tools", asksIfFilled, "tools for agents"},
	{"checkpoint", nil, "snapshots to resume from"},
}).refused([]other{
	{"declassify", asksIfFilled, "write it in policy"},
})

var teamPlace = newPlace("team", "team", []row{
	{"name", oneLine, "name of the team"},
	{"agents", list.of("agent"), "the roster: see agent"},
	{"sharedMemory", boolean, "as in the spec"},
	{"maxConcurrency", count, "how many tasks run at the same time; of this and the file's own the smaller one counts"},
}).refused([]other{
	{"sharedMemoryStore", nil, "a store that a program brings; no file can"},
})

var orchestratorPlace = newPlace("orchestrator", "orchestrator", []row{
	{"defaultModel", envText, "as `model` of the spec"},
	{"defaultProvider", provider, "as `provider` of the spec"},
	{"defaultBaseURL", envText, "as `baseURL` of the spec"},
	{"defaultApiKey", secret, "as `apiKey` of the spec"},
	{"maxConcurrency", count, "as in the spec"},
	{"maxTokenBudget", count, "as in the spec"},
	{"maxCostBudget", costBudget, "as in the spec"},
	{"schedulingStrategy", strategy, "as in the spec"},
	{"strictAssignees", boolean, "as in the spec"},
}).notBuilt([]other{
	{"checkpoint", nil, "snapshots to resume from"},
	{"modelRouting", asksIfFilled, "models by phase; write a model for each agent"},
	{"onApproval", nil, "approval of each round"},
	{"onPlanReady", nil, "approval of the plan"},
	{"onTaskDispatch", nil, "approval of each task"},
	{"defaultToolPreset", nil, "tools for agents that name none"},
	{"recovery", asksIfFilled, "repair of plans and of failed tasks; or write maxRetries for a task"},
}).refused([]other{
	{"schedulingWeights", asksIfFilled, "composite weighs fit 0.7 and load 0.3; write an assignee for each task that needs another choice"},
	{"executionRouting", asksIfFilled, "how a goal is carried out; write mode: auto or mode: plan in the spec"},
	{"executionRouter", nil, "a function of a program; write mode: auto or mode: plan in the spec"},
	{"egressPolicy", nil, "bounds on connections; name each agent's baseURL, and what it may read under endpoints"},
	{"estimateCost", nil, "a function of a program; no file can hold one"},
}).idle([]other{
	{"defaultCwd", nil, "folder of tools for files; agents have no tools yet"},
	{"maxDelegationDepth", nil, "bound on delegation; agents cannot delegate yet"},
	{"onProgress", nil, "a function of a program; the command prints progress itself"},
	{"onTrace", nil, "a function of a program"},
	{"onAgentStream", nil, "a function of a program"},
	{"onToolCall", nil, "a function of a program; agents have no tools yet"},
	{"requireConsequentialConfirmation", nil, "confirmation of tool calls; agents have no tools yet"},
	{"observability", nil, "where traces go; each run is recorded in any case"},
	{"evaluation", nil, "scores of finished runs"},
})

var inputPlace = newPlace("input", "an input", []row{
	{"file", inputFile, "file of at most 4 MiB, inside the folder of the spec; `--input NAME=FILE` takes its place"},
	{"text", inputText, "the text itself; without file and text `--input NAME=FILE` must give it"},
	{"from", mapping.of("from"), "a result of an earlier run, in place of a text: see from"},
	{"classification", classification, "label; `internal` unless set; it stays when `--input` brings the text, and the label of a result can only raise it"},
	{"ttlMs", millis, "lifetime from the start of the run; 0 means unlimited"},
	{"maxContextBytes", byteLimit, "limit on what is delivered of it; else that of the agent that reads it"},
	{"cut", boolean, "`true` lets it be cut where it exceeds a limit; else that is an error before the run"},
})

var fromPlace = newPlace("from", "an earlier result", []row{
	{"run", oneLine, "required; whole ID of a run in the journal"},
	{"task", oneLine, "required; title, key or ID of a task that completed in that run"},
}).needing("run", "task")

var pricePlace = newPlace("price", "a price", []row{
	{"input", price, "required; US dollars for a million tokens that a model is sent"},
	{"output", price, "required; US dollars for a million tokens that it answers with"},
	{"cachedInput", price, "US dollars for a million tokens of the prompt that the endpoint reads from its cache; `input` unless set"},
	{"reasoning", price, "US dollars for a million tokens of its reasoning, which output tokens include; `output` unless set"},
}).needing("input", "output")

var endpointPlace = newPlace("endpoint", "an endpoint", []row{
	{"accepts", classification, "the most sensitive label that may be sent there; without it `confidential`, on this machine `secret`"},
	{"requestsPerMinute", count, "how many calls of all agents may begin there in any 60 seconds; they may begin at once"},
	{"tokensPerMinute", count, "how many tokens the calls that begin there in any 60 seconds may take; a call counts with its estimate until it ends"},
	{"maxConcurrency", count, "how many calls may run there at the same time"},
})

var goalPlace = newPlace("goal", "the goal", []row{
	{"text", oneLine, "the goal itself; `${params.NAME}` stands for a parameter"},
	{"file", path, "file with the goal, inside the folder of the spec; either this or text"},
	{"classification", classification, "label; `internal` unless set; it stays when `--goal` brings the text"},
})

var messagePlace = newPlace("message", "a message", []row{
	{"from", oneLine, "required; name of an agent, or `user`"},
	{"to", oneLine, "required; name of an agent, or `\"*\"` for every agent but the sender"},
	{"text", textOrFile, "required; the message; parameters are not replaced in it"},
	{"classification", classification, "label; `internal` unless set"},
	{"ttlMs", millis, "lifetime from the start of the run; 0 means unlimited"},
}).needing("from", "to", "text")
