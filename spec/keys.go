package spec

import (
	"slices"
	"strings"
)

// Status says what becomes of a key.
type Status string

// What becomes of a key.
const (
	Works    Status = "works"    // it does what it says
	NotBuilt Status = "notBuilt" // its machinery does not exist yet: an error, unless the value asks for nothing
	Refused  Status = "refused"  // a key of the original that would change what a run does and that nothing here can honour: an error
	Idle     Status = "idle"     // a key of the original that has no effect here: a warning
)

// A Word is a key that a file may have: the reference of the format in one
// line. See [Vocabulary].
type Word struct {
	Place  string // where it may stand: spec, team, orchestrator, agent, agentDefaults, task, taskDefaults, input, dependency, use, endpoint
	Key    string
	Kind   string // what may be written
	Status Status
	Says   string // what it is for, or why it is not taken and what to write instead
}

// Vocabulary returns every key that files may have, place by place. What is
// not here is an error.
func Vocabulary() []Word {
	var words []Word
	for _, p := range allPlaces {
		for i := range p.keys {
			k := &p.keys[i]
			words = append(words, Word{p.name, k.name, k.kind.name, k.status, k.says})
		}
	}
	return words
}

// A key is one row of the table: what the loader knows of a key, and all that
// it needs to know to accept, check, refuse or pass over it.
type key struct {
	name   string
	kind   kind
	status Status
	asks   func(n *node) bool // of NotBuilt and Refused: whether the value asks for anything; nil: all but null does
	says   string
}

// instead says what to write in the place of a key that is not built yet: what
// stands behind the semicolon of its description.
func (k *key) instead() string {
	_, rest, _ := strings.Cut(strings.ReplaceAll(k.says, "`", ""), "; ")
	switch {
	case rest == "":
		return "remove it"
	case strings.HasPrefix(rest, "or "):
		return "remove it, " + rest
	}
	return "remove it; " + rest
}

// A place is an object of a file and the keys that it may have.
type place struct {
	name  string
	a     string // in messages: "an agent"
	keys  []key
	index map[string]int
	shows []string // keys of a typical one, for who wrote something else there
}

func newPlace(name, a string, keys ...key) *place {
	p := &place{name: name, a: a, keys: keys, index: make(map[string]int, len(keys))}
	for i, k := range keys {
		p.index[k.name] = i
	}
	return p
}

// without returns a place of another name that lacks some keys.
func (p *place) without(name, a string, keys ...string) *place {
	var rest []key
	for _, k := range p.keys {
		if !slices.Contains(keys, k.name) {
			rest = append(rest, k)
		}
	}
	return newPlace(name, a, rest...)
}

// like gives a place the keys of a typical one.
func (p *place) like(keys ...string) *place {
	p.shows = keys
	return p
}

var allPlaces = []*place{
	specPlace, teamPlace, orchestratorPlace, agentPlace, agentDefaultsPlace, taskPlace, taskDefaultsPlace,
	inputPlace, dependencyPlace, usePlace, endpointPlace,
}

// schedulingStrategies are those of the original; see also checkStrategy.
var schedulingStrategies = []string{"round-robin", "least-busy", "capability-match", "dependency-first", "composite"}

var specPlace = newPlace("spec", "the file",
	key{"name", oneLine, Works, nil, "name of the team; else `team.name`, else the name of the file"},
	key{"model", envText, Works, nil, "model of the agents that name none; `--model` overrides it"},
	key{"provider", provider, Works, nil, "`openai`, which also is the default: any OpenAI-compatible endpoint"},
	key{"baseURL", envText, Works, nil, "endpoint of the agents that name none; else `OPENAI_BASE_URL`, else api.openai.com"},
	key{"apiKey", secret, Works, nil, "key for that endpoint, best as `${NAME}`; it is sent to no other host than that of the `baseURL` beside it"},
	key{"headers", headers, Works, nil, "headers of model calls; an agent's own are added to them; like apiKey they go to no other host than that of the `baseURL` beside them"},
	key{"maxConcurrency", count, Works, nil, "how many tasks run at the same time; 5 unless set"},
	key{"timeoutMs", millis, Works, nil, "bound on the whole run; 0 means none"},
	key{"offline", path, Works, nil, "script that `--offline` answers from, inside the folder of the spec"},
	key{"inputs", mapping, Works, nil, "named texts from outside, by name: see input"},
	key{"params", mapping, Works, nil, "one-line values for `${params.NAME}` in descriptions and prompts; without a value (null) `--param` must give one"},
	key{"schemas", mapping, Works, nil, "JSON Schemas by name, each inline or `{file: PATH}`"},
	key{"agentDefaults", mapping, Works, nil, "what agents do not say themselves: see agentDefaults"},
	key{"taskDefaults", mapping, Works, nil, "what tasks do not say themselves: see taskDefaults"},
	key{"agents", list, Works, nil, "the roster: see agent"},
	key{"tasks", list, Works, nil, "the graph: see task; without it the file is a roster"},
	key{"output", oneLine, Works, nil, "title, key or id of the task whose result is the answer; else the tasks that nothing depends on"},
	key{"endpoints", mapping, Works, nil, "what each endpoint may read, by base URL: see endpoint"},
	key{"sharedMemory", boolean, Works, nil, "accepted for the original's sake: results are kept either way, and no task reads them without a dependency"},
	key{"schedulingStrategy", words(schedulingStrategies...), Works, nil, "who gets a task without an assignee; only `round-robin` is built, so another one is an error if a task has no assignee"},
	key{"strictAssignees", boolean, Works, nil, "an unknown assignee is an error in any case; `false` is a warning"},
	key{"team", mapping, Works, nil, "the roster as the original writes it: see team"},
	key{"orchestrator", mapping, Works, nil, "settings as the original writes them: see orchestrator"},
	key{"goal", anything, NotBuilt, nil, "a goal instead of tasks; write tasks"},
	key{"coordinator", anything, NotBuilt, nil, "who plans the tasks for a goal; write tasks"},
	key{"mode", anything, NotBuilt, nil, "whether a simple goal may go to one agent alone; write tasks"},
	key{"policy", anything, NotBuilt, asksIfFilled, "rules for pairs of agents; a declared dependency is granted whole, and nothing else is"},
	key{"assert", anything, NotBuilt, asksIfFilled, "what must never reach whom"},
	key{"declassify", anything, NotBuilt, asksIfFilled, "lowering of labels; it will stand in policy"},
	key{"messages", anything, NotBuilt, asksIfFilled, "messages between agents; declare a dependency instead"},
	key{"mcp", anything, NotBuilt, asksIfFilled, "servers of tools"},
	key{"tools", anything, NotBuilt, asksIfFilled, "tools for agents"},
	key{"maxTokenBudget", anything, NotBuilt, nil, "bound on the tokens of a run"},
	key{"maxCostBudget", anything, NotBuilt, nil, "bound on the cost of a run"},
	key{"checkpoint", anything, NotBuilt, nil, "snapshots to resume from"},
)

var teamPlace = newPlace("team", "team",
	key{"name", oneLine, Works, nil, "name of the team"},
	key{"agents", list, Works, nil, "the roster: see agent"},
	key{"sharedMemory", boolean, Works, nil, "as in the spec"},
	key{"maxConcurrency", count, Works, nil, "how many tasks run at the same time; of this and the file's own the smaller one counts"},
	key{"sharedMemoryStore", anything, Refused, nil, "a store that a program brings; no file can"},
)

var orchestratorPlace = newPlace("orchestrator", "orchestrator",
	key{"defaultModel", envText, Works, nil, "as `model` of the spec"},
	key{"defaultProvider", provider, Works, nil, "as `provider` of the spec"},
	key{"defaultBaseURL", envText, Works, nil, "as `baseURL` of the spec"},
	key{"defaultApiKey", secret, Works, nil, "as `apiKey` of the spec"},
	key{"maxConcurrency", count, Works, nil, "as in the spec"},
	key{"schedulingStrategy", words(schedulingStrategies...), Works, nil, "as in the spec"},
	key{"strictAssignees", boolean, Works, nil, "as in the spec"},
	key{"maxTokenBudget", anything, NotBuilt, nil, "bound on the tokens of a run"},
	key{"maxCostBudget", anything, NotBuilt, nil, "bound on the cost of a run"},
	key{"checkpoint", anything, NotBuilt, nil, "snapshots to resume from"},
	key{"modelRouting", anything, NotBuilt, asksIfFilled, "models by phase; write a model for each agent"},
	key{"onApproval", anything, NotBuilt, nil, "approval of each round"},
	key{"onPlanReady", anything, NotBuilt, nil, "approval of the plan"},
	key{"onTaskDispatch", anything, NotBuilt, nil, "approval of each task"},
	key{"defaultToolPreset", anything, NotBuilt, nil, "tools for agents that name none"},
	key{"egressPolicy", anything, Refused, nil, "bounds on connections; name each agent's baseURL, and what it may read under endpoints"},
	key{"estimateCost", anything, Refused, nil, "a function of a program; no file can hold one"},
	key{"defaultCwd", anything, Idle, nil, "folder of tools for files; agents have no tools yet"},
	key{"maxDelegationDepth", anything, Idle, nil, "bound on delegation; agents cannot delegate yet"},
	key{"onProgress", anything, Idle, nil, "a function of a program; the command prints progress itself"},
	key{"onTrace", anything, Idle, nil, "a function of a program"},
	key{"onAgentStream", anything, Idle, nil, "a function of a program"},
)

var agentPlace = newPlace("agent", "an agent",
	key{"name", oneLine, Works, nil, "required; letters, digits, `.`, `_`, `-` and blanks, at most 64"},
	key{"model", envText, Works, nil, "else the spec's"},
	key{"provider", provider, Works, nil, "`openai`, which also is the default"},
	key{"baseURL", envText, Works, nil, "else the spec's"},
	key{"apiKey", secret, Works, nil, "else the spec's, if that is for the same host"},
	key{"headers", headers, Works, nil, "headers of its model calls"},
	key{"systemPrompt", textOrFile, Works, nil, "who the agent is; `${params.NAME}` stands for a parameter"},
	key{"description", textOrFile, Works, nil, "shown in plans"},
	key{"capabilities", texts, Works, nil, "shown in plans"},
	key{"accepts", classification, Works, nil, "the most sensitive label that it may read; `internal` unless set"},
	key{"produces", classification, Works, nil, "the most sensitive label that it may write; `accepts` unless set"},
	key{"outputTags", texts, Works, nil, "tags that its results may carry"},
	key{"maxSessionMs", millis, Works, nil, "bound on one attempt; 0 means none"},
	key{"maxParallel", count, Works, nil, "attempts at the same time; as many as the run allows unless set"},
	key{"maxTurns", count, Works, nil, "model calls for one prompt; 10 unless set"},
	key{"maxTokens", count, Works, nil, "bound on one reply; else the endpoint's"},
	key{"temperature", number(0, 100), Works, nil, "else the endpoint's"},
	key{"topP", number(0, 1), Works, nil, "else the endpoint's"},
	key{"timeoutMs", millis, Works, nil, "bound on the work for one prompt; 0 means none"},
	key{"callTimeoutMs", millis, Works, nil, "bound on one model call; 5 minutes unless set"},
	key{"outputSchema", schema, Works, nil, "JSON Schema of its results, for tasks without one: inline, `{file: PATH}`, or a name of `schemas`"},
	key{"disallowedTools", texts, Works, nil, "tools that it must not have; it has none"},
	key{"tools", anything, NotBuilt, asksIfFilled, "tools that it may call; or write `tools: []`"},
	key{"toolPreset", anything, NotBuilt, nil, "a set of tools"},
	key{"customTools", anything, NotBuilt, asksIfFilled, "tools that a program brings"},
	key{"mcp", anything, NotBuilt, asksIfFilled, "servers of tools"},
	key{"maxTokenBudget", anything, NotBuilt, nil, "bound on the tokens of one prompt; maxTokens bounds a reply"},
	key{"loopDetection", anything, NotBuilt, nil, "an end to repetition; maxTurns bounds the calls"},
	key{"backend", anything, NotBuilt, nil, "an agent that is a process"},
	key{"thinking", anything, Refused, nil, "reasoning settings of one provider"},
	key{"topK", anything, Refused, nil, "not sent to an OpenAI-compatible endpoint"},
	key{"minP", anything, Refused, nil, "not sent to an OpenAI-compatible endpoint"},
	key{"frequencyPenalty", anything, Refused, asksIfNotZero, "not sent; 0 is fine"},
	key{"presencePenalty", anything, Refused, asksIfNotZero, "not sent; 0 is fine"},
	key{"extraBody", anything, Refused, asksIfFilled, "requests hold what this reference names and nothing else"},
	key{"adapter", anything, Refused, nil, "a client that a program brings; use provider openai and a baseURL"},
	key{"egressPolicy", anything, Refused, nil, "bounds on connections; name its baseURL, and what that may read under endpoints"},
	key{"region", anything, Refused, nil, "for a provider that is not OpenAI-compatible"},
	key{"beforeRun", anything, Refused, nil, "a function of a program; write an agent in Go"},
	key{"afterRun", anything, Refused, nil, "a function of a program; write an agent in Go"},
	key{"contextStrategy", anything, Idle, nil, "an agent's conversation is one prompt and its answer: there is nothing to shorten"},
	key{"maxToolOutputChars", anything, Idle, nil, "about tools, of which it has none"},
	key{"compressToolResults", anything, Idle, nil, "about tools, of which it has none"},
	key{"parallelToolCalls", anything, Idle, nil, "about tools, of which it has none"},
	key{"preserveReasoningAsText", anything, Idle, nil, "reasoning is not kept"},
	key{"compressReasoningText", anything, Idle, nil, "reasoning is not kept"},
	key{"cwd", anything, Idle, nil, "folder of tools for files, of which it has none"},
).like("name", "systemPrompt", "model")

var agentDefaultsPlace = agentPlace.without("agentDefaults", "agentDefaults", "name")

var taskPlace = newPlace("task", "a task",
	key{"title", anyText, Works, nil, "required; one line of at most 200 characters, by which other tasks name it"},
	key{"description", textOrFile, Works, nil, "required; what the agent must do; `${params.NAME}` stands for a parameter"},
	key{"key", oneLine, Works, nil, "short name, `a-z`, `0-9` and `-`"},
	key{"assignee", oneLine, Works, nil, "name of the agent; without one the agents get tasks in turn, with a warning unless `schedulingStrategy: round-robin` is written"},
	key{"dependsOn", list, Works, nil, "tasks whose results it is granted: titles, keys, ids, or see dependency"},
	key{"uses", list, Works, nil, "inputs that it is granted: names, or see use"},
	key{"dependencyPayload", words("output", "structured", "both"), Works, nil, "form of all its dependencies; `output` unless set"},
	key{"memoryScope", scope, Works, nil, "`dependencies`, which also is the default; `all` is not built yet"},
	key{"classification", classification, Works, nil, "label of the task's own text; `internal` unless set"},
	key{"requiredTags", texts, Works, nil, "tags that the result must carry"},
	key{"ttlMs", millis, Works, nil, "life of the result; 0 means unlimited"},
	key{"maxRetries", whole, Works, nil, "attempts after the first; 0 unless set, negative counts as 0"},
	key{"retryDelayMs", millis, Works, nil, "wait before the first retry; 1000 unless set"},
	key{"retryBackoff", number(1, 1000), Works, nil, "factor between two waits; 2 unless set"},
	key{"timeoutMs", millis, Works, nil, "bound on one attempt; 0 means none"},
	key{"outputSchema", schema, Works, nil, "JSON Schema of the result: inline, `{file: PATH}`, or a name of `schemas`"},
	key{"role", oneLine, Works, nil, "shown in plans and results"},
	key{"priority", words("low", "normal", "high", "critical"), Works, nil, "who goes first among tasks that are ready; `normal` unless set"},
	key{"metadata", scalars, Works, nil, "at most 16 texts, numbers and booleans, shown in results"},
	key{"needToKnow", anything, NotBuilt, nil, "parts of the results that it may read; all of each declared dependency is granted"},
	key{"verify", anything, NotBuilt, nil, "judges of the result; write a task that depends on it"},
	key{"requires", anything, NotBuilt, asksIfFilled, "what the agent must have; write an assignee"},
	key{"id", anything, Refused, nil, "ids are made from titles; write key for a short name"},
	key{"status", anything, Refused, asksIfNotPending, "every task begins pending"},
	key{"result", anything, Refused, nil, "results come from agents; give a text as an input"},
	key{"createdAt", anything, Idle, nil, "set when a run starts"},
	key{"updatedAt", anything, Idle, nil, "set during a run"},
).like("title", "assignee", "description")

var taskDefaultsPlace = taskPlace.without("taskDefaults", "taskDefaults",
	"title", "description", "key", "dependsOn", "id", "status", "result", "createdAt", "updatedAt")

var inputPlace = newPlace("input", "an input",
	key{"file", inputFile, Works, nil, "file of at most 4 MiB, inside the folder of the spec; `--input NAME=FILE` takes its place"},
	key{"text", anyText, Works, nil, "the text itself; without file and text `--input NAME=FILE` must give it"},
	key{"classification", classification, Works, nil, "label; `internal` unless set; it stays when `--input` brings the text"},
	key{"ttlMs", millis, Works, nil, "life from the start of the run; 0 means unlimited"},
)

var dependencyPlace = newPlace("dependency", "a dependency",
	key{"task", anyText, Works, nil, "required; title, key or id"},
	key{"as", words("output", "structured", "both"), Works, nil, "form of this one; else dependencyPayload"},
	key{"optional", boolean, Works, nil, "whether the task runs also without that result"},
	key{"need", anything, NotBuilt, asksIfNotWhole, "parts of the result; the whole is granted, so `[\"\"]` is fine"},
)

var usePlace = newPlace("use", "a used input",
	key{"name", oneLine, Works, nil, "required; name of an input"},
	key{"reveal", anything, NotBuilt, asksIfFilled, "personal data that may pass; none is taken out yet, secrets always are"},
)

var endpointPlace = newPlace("endpoint", "an endpoint",
	key{"accepts", classification, Works, nil, "the most sensitive label that may be sent there; without it `confidential`, on this machine `secret`"},
)

// asksIfFilled: an empty list, mapping or text, false and null ask for nothing.
func asksIfFilled(n *node) bool {
	switch n.is {
	case isNull:
		return false
	case isBool:
		return n.text == "true"
	case isText:
		return n.text != ""
	case isList, isObject:
		return n.len() > 0
	}
	return true
}

func asksIfNotZero(n *node) bool {
	f, ok := n.float()
	return n.is != isNull && (!ok || f != 0)
}

func asksIfNotPending(n *node) bool {
	return n.is != isNull && (n.is != isText || n.text != "pending")
}

// asksIfNotWhole: [""] is the whole value, which a dependency grants anyway.
func asksIfNotWhole(n *node) bool {
	return n.is != isNull && (n.is != isList || n.len() != 1 || n.kids.nodes[0].is != isText || n.kids.nodes[0].text != "")
}
