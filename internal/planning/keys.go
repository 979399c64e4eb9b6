package planning

import (
	"slices"
	"strings"
)

// A key is a key of a planned task: its description for the coordinator, and its reader.
type key struct {
	name  string
	says  string
	grant func(Grants) bool // whether a coordinator with these grants may write it; nil means always
	read  func(r *reader, v any)

	schema func(r *Rules) any // JSON Schema of its value
}

// allowed reports whether a coordinator with these grants may write the key.
func (k *key) allowed(g Grants) bool { return k.grant == nil || k.grant(g) }

// keys are those that every planned task may have, in the order in which they are listed and read.
var keys = []key{
	{"title", "one line of at most 200 characters; other tasks refer to this one by it, so each title is used once", nil, (*reader).title, always(ofType("string"))},
	{"description", "what the agent must do, complete without other texts, at most 16 KiB", nil, (*reader).description, always(ofType("string"))},
	{"assignee", "the name of an agent, as in the roster; without it an agent is chosen", nil, (*reader).assignee, func(r *Rules) any { return oneOf(r.Agents) }},
	{"dependsOn", "a list of titles: the tasks whose results this one needs", nil, (*reader).dependsOn, dependsOnSchema},
	{"uses", "a list of names: the inputs that this task needs", func(g Grants) bool { return g.Inputs }, (*reader).uses, func(r *Rules) any { return listOf(oneOf(r.Inputs)) }},
	{"tools", "a list of names: the tools of its agent, as in the roster, that the task may call; without it the task has none", func(g Grants) bool { return g.Tools }, (*reader).tools, func(r *Rules) any { return listOf(oneOf(r.tools(""))) }},
	{"memoryScope", `"all" if the task needs a digest of all results so far, else "dependencies", which is the default`, func(g Grants) bool { return g.Memory }, (*reader).memoryScope, always(oneOf([]string{"dependencies", "all"}))},
	{"role", "a few words about the role of the agent, at most 200 characters", nil, (*reader).role, always(ofType("string"))},
	{"priority", `"low", "normal", "high" or "critical": which of the tasks that could run is started first`, nil, (*reader).priority, always(oneOf([]string{"low", "normal", "high", "critical"}))},
	{"maxRetries", "how often the task is repeated after a failure, 0 to 10; 0 is the default", nil, (*reader).maxRetries, always(ofType("integer"))},
	{"retryDelayMs", "milliseconds before the first retry; 1000 is the default", nil, (*reader).retryDelay, always(ofType("number"))},
	{"retryBackoff", "factor from one wait to the next, 1 to 1000; 2 is the default", nil, (*reader).retryBackoff, always(ofType("number"))},
	{"requires", `an object of what the agent must have, for tasks without an assignee: "requiredCapabilities" (a list), "requiredBackend" and "requiredProvider" (texts)`, nil, (*reader).requires, always(requirements)},
}

// keysOf returns the keys of a task in a plan with these constructs.
func keysOf(c Constructs) []key { return append(slices.Clip(keys), constructKeys(c)...) }

// known returns those of the keys that a coordinator with these grants may write.
func known(keys []key, g Grants) (names []string) {
	for i := range keys {
		if keys[i].allowed(g) {
			names = append(names, keys[i].name)
		}
	}
	return names
}

// isKey reports whether a key is one of a list.
func isKey(keys []key, name string) bool {
	return slices.ContainsFunc(keys, func(k key) bool { return k.name == name })
}

// fixed are keys that tasks have elsewhere and no plan sets, with what to do about it.
var fixed = map[string]string{
	"verify": "remove it, and plan a task that checks the result", // unless Constructs.Verify
	"id":     "remove it: tasks are named by their titles",
	"key":    "remove it: tasks are named by their titles",
	"status": "remove it: every task begins pending",
	"result": "remove it: results come from agents",
}

// meant are words that plans of other tools have for a key, without `_`, `-`
// and upper case.
var meant = map[string]string{
	"name": "title", "task": "title", "taskname": "title", "tasktitle": "title",
	"prompt": "description", "instruction": "description", "instructions": "description", "goal": "description", "details": "description",
	"agent": "assignee", "agentname": "assignee", "assignedto": "assignee", "worker": "assignee", "owner": "assignee",
	"dependencies": "dependsOn", "deps": "dependsOn", "depends": "dependsOn", "needs": "dependsOn", "after": "dependsOn", "prerequisites": "dependsOn",
	"input": "uses", "inputs": "uses", "context": "uses", "files": "uses",
	"memory": "memoryScope", "scope": "memoryScope",
	"retries": "maxRetries", "retrydelay": "retryDelayMs", "backoff": "retryBackoff",
	"tool": "tools", "toolnames": "tools", "allowedtools": "tools", "requiredtools": "tools", "capabilities": "requires",
}

// plain returns a word as the keys of meant are written.
func plain(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(word))
}
