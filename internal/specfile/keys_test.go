package specfile_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// samples holds a value for each key that works, other than its default.
var samples = map[string]string{
	"spec.name": "claims", "spec.model": "m", "spec.provider": "openai", "spec.baseURL": "http://localhost:1/v1", "spec.apiKey": "\"${KEY}\"",
	"spec.headers": "{X-A: b}", "spec.maxConcurrency": "3", "spec.timeoutMs": "1000", "spec.offline": "script.yaml",
	"spec.inputs": "{claim: {text: other}}", "spec.params": "{p: v}", "spec.schemas": "{s: {type: object}}",
	"spec.agentDefaults": "{model: d}", "spec.taskDefaults": "{maxRetries: 3}", "spec.agents": "[{name: a}, {name: b}]",
	"spec.tasks": "[{title: X, description: x}]", "spec.output": "First", "spec.endpoints": "{\"http://localhost:1/v1\": {accepts: public}}",
	"spec.sharedMemory": "true", "spec.schedulingStrategy": "capability-match", "spec.strictAssignees": "true",
	"spec.goal": "Another goal.", "spec.coordinator": "{maxTurns: 2}", "spec.mode": "auto", "spec.messages": "[{from: user, to: a, text: other}]",
	"spec.maxContextBytes": "1000", "spec.maxMessageBytes": "3000", "spec.maxPromptBytes": "2000", "agent.maxContextBytes": "1000", "agent.maxPromptBytes": "2000",
	"dependency.maxContextBytes": "1000", "input.maxContextBytes": "1000", "input.cut": "true", "input.from": "{run: r, task: t}", "from.run": "r2", "from.task": "t2", "coordinator.maxContextBytes": "1000",
	"spec.maxTokenBudget": "1000", "spec.maxCostBudget": "0.25", "spec.policy": "{default: scoped}", "spec.assert": "[notes never reaches a]", "spec.description": "Settles claims.",
	"policy.file": "testdata/policy.yaml", "policy.default": "scoped", "policy.rules": "[{from: a, to: a, block: [x]}]", "policy.redact": "{kinds: [ip]}", "policy.declassify": "[]", "policy.endorse": "[]",
	"policy.renew": "[]", "policy.assert": "[notes never reaches a]",
	"rule.name": "r", "rule.from": "user", "rule.to": "coordinator", "rule.mode": "scoped", "rule.allow": "[/x]", "rule.block": "[x]", "rule.maxClassification": "public",
	"rule.redact": "{kinds: [mac]}", "rule.reveal": "{iban: [/x]}", "rule.translate": "{recast: user}",
	"translate.fields": "[/x]", "translate.filter": "[x]", "translate.summarize": "{maxTokens: 5}", "translate.recast": "system",
	"summarize.maxTokens": "5", "summarize.by": "model", "redact.kinds": "[ip]", "redact.patterns": "[{name: q, regexp: x1}]", "pattern.name": "q", "pattern.regexp": "x2",
	"declassify.name": "other", "declassify.from": "user", "declassify.to": "user", "declassify.paths": "[/x]", "declassify.lowerTo": "internal",
	"declassify.reason": "other", "declassify.approve": "ed", "declassify.unsafeText": "true",
	"endorse.name": "other", "endorse.from": "user", "endorse.to": "coordinator", "endorse.reason": "other",
	"renew.name": "other", "renew.from": "user", "renew.to": "coordinator", "renew.ttlMs": "7", "renew.reason": "other",
	"goal.text": "Another goal.", "goal.file": "prompt.md", "goal.classification": "public",
	"coordinator.model": "m", "coordinator.provider": "openai", "coordinator.baseURL": "http://localhost:1/v1", "coordinator.apiKey": "\"${KEY}\"",
	"coordinator.headers": "{X-A: b}", "coordinator.systemPrompt": "{file: prompt.md}", "coordinator.instructions": "Be brief.",
	"coordinator.accepts": "public", "coordinator.mayGrant": "[memory, inputs, tools]", "coordinator.mayPlan": "[when, repeat, forEach, verify]", "coordinator.approve": "ed", "coordinator.maxPromptBytes": "1000", "coordinator.maxTurns": "3",
	"coordinator.maxTokens": "100", "coordinator.maxTokenBudget": "1000", "coordinator.maxCostBudget": "0.25", "coordinator.temperature": "0", "coordinator.topP": "0.5", "coordinator.maxTokensKey": "max_tokens", "coordinator.systemRole": "developer",
	"coordinator.frequencyPenalty": "-2", "coordinator.presencePenalty": "0.5", "coordinator.seed": "0", "coordinator.stop": "\"\\n\"", "coordinator.reasoningEffort": "high",
	"coordinator.extraBody": "{min_p: 0.1}", "spec.structuredOutput": "schema", "agent.structuredOutput": "object", "coordinator.structuredOutput": "prompt", "coordinator.timeoutMs": "1000",
	"spec.tools": "{x: {mcp: {command: c}, allow: [t]}}", "tool.mcp": "{command: other}", "tool.allow": "[u]", "tool.accepts": "public", "tool.produces": "confidential", "tool.effect": "none",
	"tool.repeatable": "true", "tool.approve": "ed", "tool.stateless": "true", "tool.shared": "true", "tool.timeoutMs": "1000", "tool.maxOutputBytes": "1000", "tool.readable": "[/usr]", "tool.origins": "[\"https://example.com\"]",
	"mcp.type": "stdio", "mcp.command": "other", "mcp.args": "[x]", "mcp.env": "{A: b}", "mcp.cwd": "sub", "mcp.confine": "true", "mcp.reason": "It opens windows.", "mcp.readable": "[/usr]", "mcp.url": "http://localhost:1/mcp", "mcp.headers": "{X-A: b}",
	"agent.tools": "[glob]", "agent.toolPreset": "readonly", "agent.allowUntrusted": "[bash]", "orchestrator.defaultToolPreset": "full",
	"coordinator.callTimeoutMs": "1000", "coordinator.disallowedTools": "[bash]",
	"spec.edges": "[{from: b, to: a}]", "edge.from": "b", "edge.to": "c", "edge.bidirectional": "true", "edge.delegate": "true", "edge.files": "[\"src/**\"]", "edge.transfer": "true", "edge.maxClassification": "public",
	"message.from": "user", "message.to": "b", "message.text": "other", "message.classification": "public", "message.ttlMs": "1000",
	"requires.requiredTools": "[bash]", "requires.requiredCapabilities": "[other]", "requires.requiredBackend": "process", "requires.requiredProvider": "openai",
	"spec.reuse": "true", "spec.prices": "{m: {input: 1, output: 2}}", "price.input": "0.15", "price.output": "0.6", "price.cachedInput": "0.1", "price.reasoning": "3",
	"agent.reuse": "never", "task.reuse": "never", "coordinator.reuse": "never",
	"spec.chat": "{agent: a}", "chat.agent": "a", "chat.inputs": "[claim]",
	"spec.team": "{agents: [{name: a}]}", "spec.orchestrator": "{defaultModel: o}",
	"team.name": "other", "team.agents": "[{name: a}, {name: b}]", "team.sharedMemory": "true", "team.maxConcurrency": "2",
	"orchestrator.defaultModel": "m", "orchestrator.defaultProvider": "openai", "orchestrator.defaultBaseURL": "http://localhost:1/v1",
	"orchestrator.defaultApiKey": "\"${KEY}\"", "orchestrator.maxConcurrency": "3", "orchestrator.schedulingStrategy": "capability-match",
	"orchestrator.strictAssignees": "true", "orchestrator.maxTokenBudget": "1000", "orchestrator.maxCostBudget": "0.25",
	"agent.name": "other", "agent.model": "m", "agent.provider": "openai", "agent.baseURL": "http://localhost:1/v1", "agent.apiKey": "\"${KEY}\"",
	"agent.headers": "{X-A: b}", "agent.systemPrompt": "{file: prompt.md}", "agent.description": "d", "agent.capabilities": "[c]",
	"agent.accepts": "confidential", "agent.produces": "confidential", "agent.outputTags": "[t]", "agent.maxSessionMs": "1000",
	"agent.handoff": "minimal", "agent.allowedContextFields": "[/x]", "agent.blockedContextFields": "[notes]", "agent.translate": "{fields: [/x]}", "agent.maxContextTokens": "5000", "policy.hideIdentity": "true", "policy.translateByModel": "false", "rule.note": "checked by legal", "agent.maxParallel": "2", "agent.maxTurns": "3", "agent.maxTokens": "100", "agent.maxTokenBudget": "1000", "agent.maxCostBudget": "0.25", "agent.temperature": "0", "agent.topP": "0.5",
	"agent.textToolCalls": "true", "agent.maxTokensKey": "max_completion_tokens", "agent.systemRole": "merge", "agent.frequencyPenalty": "1.5", "agent.presencePenalty": "0", "agent.seed": "-9007199254740992",
	"agent.stop": "[END, \" \"]", "agent.reasoningEffort": "low", "agent.extraBody": "{chat_template_kwargs: {enable_thinking: false}, user: u}",
	"agent.timeoutMs": "1000", "agent.callTimeoutMs": "1000", "agent.outputSchema": "{type: object}", "agent.disallowedTools": "[bash]",
	"agent.spawn": "{max: 2}", "spawn.max": "2", "spawn.depth": "2", "spawn.timeoutMs": "1000", "spawn.maxTurns": "3", "spawn.files": "[\"src/**\"]",
	"agent.loopDetection": "{onLoopDetected: terminate}", "loopDetection.maxRepetitions": "2", "loopDetection.loopDetectionWindow": "9", "loopDetection.onLoopDetected": "warn",
	"task.title": "Other", "task.description": "{file: prompt.md}", "task.key": "k", "task.status": "pending", "task.assignee": "a", "task.dependsOn": "[First]",
	"task.value": "5", "task.template": "text", "task.file": "prompt.md",
	"task.uses": "[claim]", "task.tools": "[]", "task.dependencyPayload": "both", "task.memoryScope": "all", "task.classification": "public",
	"task.requiredTags": "[t]", "task.ttlMs": "1000", "task.maxRetries": "2", "task.retryDelayMs": "0", "task.retryBackoff": "1.5",
	"task.acceptTruncated": "true", "task.timeoutMs": "1000", "task.onTimeout": "suspend", "task.onFailure": "continue", "task.outputSchema": "{file: schema.json}", "task.role": "r", "task.requires": "{requiredTools: [bash]}", "task.priority": "high", "task.metadata": "{a: 1}",
	"input.file": "prompt.md", "input.text": "other", "input.classification": "public", "input.ttlMs": "1000",
	"task.needToKnow": "[/x]", "dependency.need": "[/x]", "use.need": "[/x]", "use.reveal": "{iban: [\"\"]}",
	"task.provenance": "{from: coordinator}", "provenance.from": "user", "provenance.run": "r", "provenance.envelope": "e",
	"provenance.createdAt": "\"2026-01-31T09:30:00Z\"", "provenance.expiresAt": "\"2026-01-31T09:30:00.5Z\"",
	"input.dir": "testdata/folder", "input.exclude": "[b.txt]", "task.workspace": "{input: claim}", "workspace.input": "claim", "workspace.need": "[/a.txt]", "workspace.task": "First", "workspace.round": "previous", "workspace.files": "[src/**]", "workspace.maxBytes": "1000", "workspace.maxFiles": "100", "workspace.maxOutputs": "5", "workspace.maxOutputBytes": "500", "workspace.maxTotalOutputBytes": "900", "use.at": "here", "dependency.files": "[src/**]", "dependency.onConflict": "both", "task.outputFiles": "[\"*.md\"]",
	"task.repeat": "{maxRounds: 2, until: {task: A, path: /x, exists: true}, output: A, tasks: [{title: A, description: d}]}", "task.forEach": "{task: First, path: /x, maxItems: 3}", "input.format": "csv",
	"repeat.maxRounds": "5", "repeat.until": "{task: A, path: /y, exists: true}", "repeat.output": "B", "repeat.tasks": "[{title: B, description: d}]", "repeat.onLimit": "fail", "repeat.onRepeat": "continue",
	"forEach.input": "claim", "forEach.files": "[\"*.md\"]", "forEach.tasks": "[{title: A, description: d}]", "forEach.output": "A", "forEach.maxParallel": "2", "forEach.task": "Second", "forEach.path": "/y", "forEach.key": "/email", "forEach.as": "query", "forEach.maxItems": "7", "forEach.onOverflow": "first", "dependency.each": "First", "dependency.round": "previous",
	"task.verify": "{judges: [a]}", "verify.judges": "[a, a]", "verify.mode": "lens", "verify.quorum": "1", "verify.maxRounds": "3", "verify.onDissent": "keep",
	"judge.agent": "b", "judge.lens": "tone", "judge.uses": "[claim]", "judge.dependsOn": "[First]", "judge.tools": "[]",
	"task.when": "{task: First, path: /x, exists: true}", "dependency.oneOf": "[First, Third]",
	"condition.task": "Second", "condition.path": "/y", "condition.equals": "null", "condition.in": "[1, b]", "condition.gte": "0.5", "condition.lte": "-2", "condition.exists": "false",
	"condition.any": "[{task: First, path: /z, lte: 1}]", "condition.not": "{task: First, path: /z, gte: 1}",
	"dependency.task": "Third", "dependency.as": "both", "dependency.optional": "true",
	"use.name": "other", "endpoint.accepts": "public", "endpoint.requestsPerMinute": "60", "endpoint.tokensPerMinute": "10000", "endpoint.maxConcurrency": "4", "endpoint.textToolCalls": "true",
	"spec.fallback": "[{model: f}]", "agent.fallback": "[{model: f}]", "coordinator.fallback": "[{model: f}]",
	"fallback.model": "m", "fallback.provider": "openai", "fallback.baseURL": "http://localhost:1/v1", "fallback.apiKey": "\"${KEY}\"", "fallback.headers": "{X-A: b}",
	"agent.backend": "{kind: process, command: sh}", "backend.kind": "process", "backend.command": "bash", "backend.args": "[-c, x]", "backend.env": "{A: \"${KEY}\"}",
	"backend.cwd": "data", "backend.readable": "[/usr]", "backend.input": "none", "backend.confine": "true", "backend.repeatable": "true", "backend.users": "[ann@example.org]",
	"fallback.maxTokensKey": "max_tokens", "fallback.systemRole": "merge", "fallback.extraBody": "{user: u}", "fallback.structuredOutput": "prompt",
}

// silent are the keys that change nothing by themselves, on purpose: what they
// say is so in any case, or only others make use of it.
var silent = []string{
	"spec.team", "spec.provider", "spec.sharedMemory", "spec.strictAssignees", "spec.params", "spec.schemas",
	"team.sharedMemory", "orchestrator.defaultProvider", "orchestrator.strictAssignees",
	"agent.provider", "agent.disallowedTools", "agentDefaults.provider", "agentDefaults.disallowedTools",
	"coordinator.provider", "coordinator.disallowedTools", "fallback.provider", "mcp.type", "backend.kind",
	"task.status",
	"endpoint.textToolCalls", // no agent is there
}

// ofPolicy are the places of a policy.
var ofPolicy = []string{"policy", "rule", "translate", "summarize", "redact", "pattern", "declassify", "endorse", "renew"}

// policyWith writes a policy with one more key.
func policyWith(place, key, value string) string {
	if place == "policy" && key == "file" {
		return "policy: {file: " + value + "}\n"
	}
	in := func(what string, words ...string) string {
		return "{" + with(what, place, key, value, words...) + "}"
	}
	summarize := in("summarize", "maxTokens: 9")
	translate := in("translate", "summarize: "+summarize)
	redact := in("redact", "patterns: ["+in("pattern", "name: p", "regexp: x1")+"]")
	rule := in("rule", "from: a", "to: a", "redact: "+redact, "translate: "+translate)
	return "policy: " + in("policy", "rules: ["+rule+"]",
		"declassify: ["+in("declassify", "name: d", "from: a", "to: a", "paths: [/n]", "lowerTo: public", "reason: r")+"]",
		"endorse: ["+in("endorse", "name: e", "from: a", "to: a", "reason: r")+"]",
		"renew: ["+in("renew", "name: n", "from: a", "to: a", "ttlMs: 5", "reason: r")+"]") + "\n"
}

// specWith writes a spec with one more key; an empty key gives the spec without it.
func specWith(place, key, value string) string {
	extra := map[string]string{}
	if key != "" {
		extra[place] = ", " + key + ": " + value
		if place == "spec" || place == "team" || place == "orchestrator" {
			extra[place] = key + ": " + value + "\n"
		}
	}
	entry := func(in, start string) string {
		if in == place && (strings.HasPrefix(start, key+":") || place == "dependency" && (key == "oneOf" || key == "each")) {
			return key + ": " + value // in the place of the one that is there
		}
		return start + extra[in]
	}
	strip := func(s string) string { return strings.TrimPrefix(s, ", ") }
	top := map[string]string{
		"agents": "agents: [{" + entry("agent", "name: a") + "}]\n",
		"tasks": "tasks:\n  - {title: First, description: First., outputSchema: {type: object}}\n" +
			"  - title: Second\n    dependsOn: [{" + entry("dependency", "task: First") + "}]\n    uses: [{" + entry("use", "name: claim") + "}]\n    description: Second.\n" +
			"  - {" + task3(place, key, value) + "}\n",
		"inputs":      "inputs: {claim: {" + entry("input", "text: claim") + "}}\n",
		"goal":        "goal: {" + entry("goal", "text: Goal.") + "}\n",
		"coordinator": "coordinator: {" + entry("coordinator", "maxTurns: 7") + "}\n",
		"chat":        "chat: {" + entry("chat", "agent: coordinator") + "}\n",
		"messages":    "messages: [{" + with("message", place, key, value, "from: b", "to: a", "text: Hi.") + "}]\n",
		"edges":       "edges: [{" + with("edge", place, key, value, "from: a", "to: b") + "}]\n",
		"endpoints":   "endpoints: {\"http://localhost:2/v1\": {" + strip(extra["endpoint"]) + "}}\n",
		"defaults":    "agentDefaults: {" + strip(extra["agentDefaults"]) + "}\ntaskDefaults: {" + strip(extra["taskDefaults"]) + "}\n",
	}
	if slices.Contains(ofPolicy, place) {
		top["policy"] = policyWith(place, key, value)
	}
	if place == "price" {
		top["prices"] = "prices: {m: {" + with("price", place, key, value, "input: 1", "output: 2") + "}}\n"
	}
	if place == "fallback" {
		top["agents"] = "agents: [{name: a, fallback: [{" + with("fallback", place, key, value, "model: g") + "}]}]\n"
	}
	switch {
	case place == "spawn":
		top["agents"] = "agents: [{name: a, spawn: {" + with("spawn", place, key, value, "max: 4") + "}}]\n"
	case place == "loopDetection":
		top["agents"] = "agents: [{name: a, loopDetection: {" + with("loopDetection", place, key, value, "maxRepetitions: 4") + "}}]\n"
	case place == "tool" && key == "origins":
		top["tools"], top["agents"] = "tools: {http_get: {origins: "+value+"}}\n", "agents: [{name: a, tools: [http_get]}]\n"
	case place == "tool" && key == "readable":
		top["tools"], top["agents"] = "tools: {bash: {readable: "+value+"}}\n", "agents: [{name: a, tools: [bash]}]\n"
	case place == "tool":
		top["tools"], top["agents"] = "tools: {s: {"+with("tool", place, key, value, "mcp: {command: c}", "allow: [t]")+"}}\n", "agents: [{name: a, tools: [s]}]\n"
	case place == "mcp":
		where := "command: c"
		if key == "url" || key == "headers" {
			where = "url: http://localhost:2/mcp"
		}
		switch key {
		case "reason":
			where += ", confine: false"
		case "readable":
			where += ", confine: true"
		}
		top["tools"], top["agents"] = "tools: {s: {mcp: {"+with("mcp", place, key, value, where)+"}, allow: [t]}}\n", "agents: [{name: a, tools: [s]}]\n"
	case key == "allowUntrusted" && place == "agent":
		top["agents"] = "agents: [{name: a, toolPreset: full, allowUntrusted: " + value + "}]\n"
	case key == "allowUntrusted" && place == "agentDefaults":
		top["agents"] = "agents: [{name: a, toolPreset: full}]\n"
	}
	if place == "backend" {
		confine := "confine: false"
		if key == "readable" {
			confine = "confine: true"
		}
		top["agents"] = "agents: [{name: a, backend: {" + with("backend", place, key, value, "kind: process", "command: sh", confine) + "}}]\n"
		if key == "users" {
			top["agents"] = "agents: [{name: a, backend: {" + with("backend", place, key, value, "kind: person") + "}}]\n"
		}
	}
	if place == "goal" && key == "file" {
		top["goal"] = "goal: {file: " + value + "}\n"
	}
	if place == "input" && key == "from" {
		top["inputs"] = "inputs: {claim: {from: " + value + "}}\n"
	}
	if place == "input" && key == "dir" {
		top["inputs"] = "inputs: {claim: {dir: " + value + "}}\n"
	}
	if place == "input" && key == "exclude" || place == "workspace" || place == "use" && key == "at" || key == "workspace" {
		top["inputs"] = "inputs: {claim: {" + with("input", place, key, value, "dir: testdata/folder") + "}}\n"
	}
	if place == "from" {
		top["inputs"] = "inputs: {claim: {from: {" + with("from", place, key, value, "run: r", "task: t") + "}}}\n"
	}
	if place == "input" && key == "file" {
		top["inputs"] = "inputs: {claim: {file: " + value + "}}\n"
	}
	switch {
	case place == "spec" && key == "agentDefaults", place == "spec" && key == "taskDefaults":
		top["defaults"] = ""
	case place == "spec" && key == "team":
		top["agents"] = ""
	case place == "team":
		top["agents"] = "team:\n  agents: [{name: a}]\n  " + extra["team"]
		if key == "agents" {
			top["agents"] = "team:\n  " + extra["team"]
		}
	case place == "orchestrator":
		top["endpoints"] += "orchestrator:\n  " + extra["orchestrator"]
	}
	if place == "spec" {
		delete(top, key)
	}
	if place == "spec" && key == "output" {
		top["goal"] = "" // the two contradict
	}
	var text strings.Builder
	text.WriteString(extra["spec"])
	for _, part := range []string{"goal", "coordinator", "chat", "agents", "tasks", "inputs", "messages", "edges", "prices", "endpoints", "defaults", "tools", "policy"} {
		text.WriteString(top[part])
	}
	return text.String()
}

// with writes the keys of an object, one of them anew if the place is meant.
func with(in, place, key, value string, words ...string) string {
	if in == place && key != "" {
		words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, key+":") })
		words = append(words, key+": "+value)
	}
	return strings.Join(words, ", ")
}

// task3 is the task to which keys are added.
func task3(place, key, value string) string {
	words := []string{"title: Third", "description: Third."}
	if place == "repeat" || place == "task" && key == "repeat" || place == "forEach" && key == "tasks" {
		words = words[:1]
	}
	if place == "repeat" {
		words = append(words, "repeat: {"+with("repeat", place, key, value, "maxRounds: 2", "until: {task: A, path: /x, exists: true}", "output: A", "tasks: [{title: A, description: d}]")+"}")
	}
	if place == "forEach" {
		of := []string{"task: First", "path: /x", "maxItems: 3"}
		switch key {
		case "input":
			of = of[2:]
		case "files":
			of = []string{"input: claim", "maxItems: 3"}
		case "output":
			words, of = words[:1], append(of, "tasks: [{title: A, description: d}]")
		case "tasks":
			of = append(of, "output: A")
		}
		words = append(words, "forEach: {"+with("forEach", place, key, value, of...)+"}")
	}
	if place == "verify" || place == "judge" {
		words = append(words, "verify: {"+with("verify", place, key, value, "judges: [{"+with("judge", place, key, value, "agent: a")+"}]")+"}")
	}
	if place == "requires" {
		words = append(words, "requires: {"+key+": "+value+"}")
	}
	if place == "workspace" {
		of := []string{"input: claim"}
		if key == "files" {
			of = append(of, "task: First")
		}
		words = append(words, "workspace: {"+with("workspace", place, key, value, of...)+"}")
	}
	if place == "dependency" && key == "files" {
		words = append(words, "outputFiles: [\"**\"]")
	}
	if place == "condition" {
		words = append(words, "when: {"+with("condition", place, key, value, "task: First", "path: /x", "equals: 7")+"}")
	}
	if place == "provenance" {
		words = append(words, "provenance: {"+with("provenance", place, key, value, "from: coordinator")+"}")
	}
	if place == "task" && key == "dependencyPayload" {
		words = append(words, "dependsOn: [First]")
	}
	return with("task", place, key, value, words...)
}

// fingerprint is everything that a file says, as text.
func fingerprint(t *testing.T, f *specfile.File) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(f.Description)
	agents := f.Agents
	if c := f.Coordinator; c != nil {
		accepts := "-"
		if c.Accepts != nil {
			accepts = c.Accepts.String()
		}
		fmt.Fprintln(&b, c.SystemPrompt, c.Instructions, accepts, c.MayGrant, c.MayPlan, c.Approve, c.MaxContextBytes, c.MaxPromptBytes, c.MaxTokenBudget, c.MaxCostBudget, c.Reuse)
		agents = append(slices.Clone(agents), specfile.Agent{Connection: c.Connection})
	}
	for _, g := range []*engine.Goal{f.Goal, f.Run.Answer} {
		if g != nil {
			fmt.Fprintln(&b, g.Text, g.Source.Params, g.Classification)
		}
	}
	for i := range f.Config.Edges {
		e := &f.Config.Edges[i]
		fmt.Fprintln(&b, e.From, e.To, e.Bidirectional, e.Delegate, e.Files, e.Transfer, e.Max())
	}
	for i := range f.Run.Messages {
		m := &f.Run.Messages[i]
		fmt.Fprintln(&b, m.From, m.To, m.Text, m.Classification, m.TTL)
	}
	for _, a := range agents {
		a.Member.Origin = provenance.Position{}
		if p := a.Process; p != nil {
			fmt.Fprintln(&b, p.Command, p.Args, p.Env, p.Secrets, p.Dir, p.Input, p.Timeout, *cmp.Or(p.Confine, new(false)), p.Repeatable)
		}
		for _, c := range append([]specfile.Connection{a.Connection}, a.Fallback...) {
			fmt.Fprintf(&b, "%s %q %v %v %v %v %v %v\n", c, c.APIKey.Reveal(), c.Headers, c.MaxTurns, c.MaxTokens, deref(c.Temperature), deref(c.TopP), []any{c.Timeout, c.CallTimeout,
				c.MaxTokensKey, c.SystemRole, deref(c.FrequencyPenalty), deref(c.PresencePenalty), c.Seed != nil, c.Stop, c.ReasoningEffort, string(c.ExtraBody), c.StructuredOutput})
		}
		fmt.Fprintln(&b, withoutPointers(&a.Member))
		fmt.Fprintf(&b, "%+v\n", a.Member)
	}
	fmt.Fprintln(&b, policyOf(t, f))
	for _, s := range f.Tasks {
		s.Source.Origin = provenance.Position{}
		when, err := json.Marshal(s.When)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n", when)
		s.When = nil
		if s.Repeat != nil || s.ForEach != nil {
			text, err := json.Marshal([]any{s.Repeat, s.ForEach})
			require.NoError(t, err)
			fmt.Fprintf(&b, "%s\n", text)
			s.Repeat, s.ForEach = nil, nil
		}
		if s.Requires != nil {
			fmt.Fprintf(&b, "%+v\n", *s.Requires)
			s.Requires = nil
		}
		if s.Source.Record != nil {
			fmt.Fprintf(&b, "%+v\n", *s.Source.Record)
			s.Source.Record = nil
		}
		fmt.Fprintf(&b, "%+v %#v\n", s, s.Tools)
	}
	for i := range f.Run.Inputs {
		in := f.Run.Inputs[i] // an input prints its size only
		fmt.Fprintln(&b, in.Name, in.Text, in.Classification, in.TTL, in.MaxContextBytes, in.Cut, in.ListFormat, in.Envelope)
	}
	fmt.Fprintf(&b, "%v %+v %s %s %v %v %v %v", f.Run.Output, []any{f.Run.MaxConcurrency, f.Run.Timeout, f.Run.MaxTokenBudget, f.Run.MaxCostBudget, f.Run.Strategy, f.Run.Auto}, f.Name, filepath.Base(f.Offline), f.Config.Endpoints, f.Config.MaxContextBytes, f.Config.MaxPromptBytes, f.Config.MaxMessageBytes)
	fmt.Fprintln(&b, specfile.Servers(f))
	prices, err := json.Marshal(f.Config.Prices)
	require.NoError(t, err)
	fmt.Fprintln(&b, f.Run.Reuse, string(prices), f.Limits)
	if f.Chat != nil {
		fmt.Fprintln(&b, *f.Chat)
	}
	return b.String()
}

// withoutPointers takes what a member refers to out of it, and returns it as text: addresses differ.
func withoutPointers(m *engine.Member) (all []string) {
	for _, one := range m.Tools {
		all = append(all, fmt.Sprintln(one.Name, one.Accepts, one.Level(), one.Effect, one.Repeatable, one.Approve, one.Stateful, one.Timeout, one.MaxOutput, one.Description, one.Readable))
		if one.Program != nil {
			all = append(all, fmt.Sprintf("%+v\n", *one.Program))
		}
	}
	if m.Produces != nil {
		all = append(all, fmt.Sprintln("produces", *m.Produces))
	}
	if m.LoopDetection != nil {
		all = append(all, fmt.Sprintf("%+v\n", *m.LoopDetection))
	}
	if m.Translate != nil {
		all = append(all, fmt.Sprintf("%+v\n", *m.Translate))
	}
	if m.Spawn != nil {
		all = append(all, fmt.Sprintf("%+v\n", *m.Spawn))
	}
	m.Tools, m.Produces, m.LoopDetection, m.Translate, m.Spawn = nil, nil, nil, nil, nil
	return all
}

// policyOf is what a policy says and what is asserted, wherever it stands.
func policyOf(t require.TestingT, f *specfile.File) string {
	var words []string
	for _, a := range f.Run.Assert {
		words = append(words, a.Text)
	}
	data, err := json.Marshal(f.Config.Policy)
	require.NoError(t, err)
	words = append(words, regexp.MustCompile(`"Origin":{[^}]*}`).ReplaceAllString(string(data), "")) // the places differ
	return strings.Join(words, "\n")
}

func deref(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// TestEveryKey checks every key as its table describes it: a key that works changes
// the outcome, what is not built yet or refused is an error at its line and by its
// name, and what is idle is a warning that changes nothing.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "script.yaml", "x", "prompt.md", "A prompt.", "schema.json", `{"type": "array"}`, "testdata/folder/a.txt", "a", "testdata/folder/b.txt", "b", "testdata/policy.yaml", "policy: {default: scoped}")
	without := fingerprint(t, must(t, dir, "base", specWith("", "", "")))
	withPolicy := fingerprint(t, must(t, dir, "base", specWith("policy", "", "")))
	withFallback := fingerprint(t, must(t, dir, "base", specWith("fallback", "", "")))
	withTool := fingerprint(t, must(t, dir, "base", specWith("tool", "", "")))
	withBackend := fingerprint(t, must(t, dir, "base", specWith("backend", "", "")))
	for _, w := range specfile.Vocabulary() {
		id := w.Place + "." + w.Key
		base := without
		if slices.Contains(ofPolicy, w.Place) {
			base = withPolicy
		}
		if w.Place == "fallback" {
			base = withFallback
		}
		if w.Place == "tool" || w.Place == "mcp" {
			base = withTool
		}
		if w.Place == "backend" {
			base = withBackend
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, w.Says)
			sample := samples[id]
			if sample == "" {
				sample = samples[strings.Replace(id, "Defaults.", ".", 1)]
			}
			switch w.Status {
			case specfile.Works:
				require.NotEmpty(t, sample, "give this key a sample")
				text := specWith(w.Place, w.Key, sample)
				got := must(t, dir, id, text)
				for _, warning := range got.Warnings {
					require.Regexp(t, "no task uses it|nothing uses|no planned task can have its tools|no effect: the tasks are written|not called|may overdraw it|unsafeText|no agent has it|no agent has the model", warning.Message)
				}
				if slices.Contains(silent, id) {
					require.Equal(t, base, fingerprint(t, got))
					return
				}
				require.NotEqual(t, base, fingerprint(t, got), "it works, so it must change something:\n%s", text)
			case specfile.Refused:
				_, err := specfile.Load(at(t, dir, id, specWith(w.Place, w.Key, "5")))
				require.ErrorIs(t, err, specfile.ErrRefused)
				require.Regexp(t, `\d: .*`+w.Key+": not supported: ", strings.Join(messages(t, err), "\n"))
				got := must(t, dir, id+"-null", specWith(w.Place, w.Key, "null"))
				require.Equal(t, base, fingerprint(t, got), "nothing asks for nothing")
			case specfile.Idle:
				got := must(t, dir, id, specWith(w.Place, w.Key, "5"))
				require.Len(t, got.Warnings, 1)
				require.Contains(t, got.Warnings[0].Message, w.Key+": no effect here")
				require.Equal(t, base, fingerprint(t, got))
			default:
				t.Fatalf("status %q", w.Status)
			}
		})
	}
}

// at writes a spec and returns the options that load it.
func at(t *testing.T, dir, name, text string) specfile.Options {
	t.Helper()
	write(t, dir, name+".yaml", text)
	return specfile.Options{Path: filepath.Join(dir, name+".yaml"), Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted, Result: earlier}
}

// earlier is a result of any task of any run.
func earlier(run, name string) (*envelope.Envelope, error) {
	return envelope.New(envelope.Header{ID: "e", Producer: "a", Task: task.ID(name), Run: run, CreatedAt: time.Unix(0, 0)}, envelope.Text("the result of "+name+" in "+run))
}

func must(t *testing.T, dir, name, text string) *specfile.File {
	t.Helper()
	f, err := specfile.Load(at(t, dir, name, text))
	require.NoError(t, err, text)
	if f.Name == name {
		f.Name = "base"
	}
	return f
}

// TestWrongTypesOfEveryKey checks that no key takes a value of any type, and
// that nothing panics on one.
func TestWrongTypesOfEveryKey(t *testing.T) {
	t.Parallel()
	values := []string{"{a: 5}", "[5]", "word", "-1.5", "5", "\"\"", "true", "[]", "[[]]", "{}", "{a: {}}", "{file: 5}", "null", ".inf", "99999999999999999999"}
	for i, w := range specfile.Vocabulary() {
		if w.Status != specfile.Works || i%slowtest.Every(5) > 0 {
			continue
		}
		wrong := 0
		for _, value := range values {
			text := specWith(w.Place, w.Key, value)
			_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
			if err != nil {
				wrong++
				require.NotEmpty(t, messages(t, err))
				if !slowtest.Enabled() {
					break
				}
			}
		}
		require.Positive(t, wrong, "%s.%s takes anything", w.Place, w.Key)
	}
}

// TestReferenceNamesEveryKey compares docs/reference/spec-file.md with the table.
func TestReferenceNamesEveryKey(t *testing.T) {
	const file = "../../docs/reference/spec-file.md"
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	doc := string(data)
	places := map[string][]specfile.Word{}
	for _, w := range specfile.Vocabulary() {
		places[w.Place] = append(places[w.Place], w)
	}
	table := regexp.MustCompile(`(?s)<!-- keys: (\w+) -->\n(.*?)<!-- end -->`)
	seen := map[string]bool{}
	fresh := table.ReplaceAllStringFunc(doc, func(part string) string {
		place := table.FindStringSubmatch(part)[1]
		seen[place] = true
		require.NotEmpty(t, places[place], "no such place: %s", place)
		return "<!-- keys: " + place + " -->\n" + render(places[place]) + "<!-- end -->"
	})
	for place := range places {
		require.True(t, seen[place], "docs/reference/spec-file.md has no table of %s", place)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(fresh), 0o644))
		return
	}
	require.Equal(t, fresh, doc, "run go test ./spec -update")
}

// render writes the rows of a place: what works, then the rest.
func render(words []specfile.Word) string {
	var b strings.Builder
	b.WriteString("| key | what may be written | |\n| --- | --- | --- |\n")
	for _, w := range words {
		if w.Status == specfile.Works {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", w.Key, w.Kind, w.Says)
		}
	}
	for _, group := range []struct {
		status specfile.Status
		title  string
	}{
		{specfile.Refused, "Not supported, so an error"}, {specfile.Idle, "Without effect, so a warning"},
	} {
		var keys []string
		for _, w := range words {
			if w.Status == group.status {
				keys = append(keys, fmt.Sprintf("`%s` (%s)", w.Key, w.Says))
			}
		}
		if len(keys) > 0 {
			fmt.Fprintf(&b, "\n%s: %s.\n", group.title, strings.Join(keys, "; "))
		}
	}
	return b.String()
}

// TestUnsupportedKeysWithoutEffectAreAccepted are fine: no one loses anything by them.
func TestUnsupportedKeysWithoutEffectAreAccepted(t *testing.T) {
	t.Parallel()
	f, err := load(t, `
policy: {}
assert: []
mcp: {}
tools: []
sharedMemory: true
agents: [{name: a, tools: [], mcp: [], customTools: [], history: [], extraBody: {}, disallowedTools: [bash]}]
tasks:
  - {title: A, description: a, assignee: a, memoryScope: dependencies, requires: {}, status: pending}
  - {title: B, description: b, assignee: a, dependsOn: [{task: A, need: [""]}], uses: [], requires: {requiredTools: []}}
`, specfile.Options{})
	require.NoError(t, err)
	require.Empty(t, f.Warnings)
	_, err = load(t, "agents: [{name: a, backend: {kind: person, command: x}, topK: 5}]", specfile.Options{})
	require.ErrorIs(t, err, specfile.ErrInvalid)
	require.ErrorIs(t, err, specfile.ErrRefused)
}

func TestProblemsAsJSON(t *testing.T) {
	t.Parallel()
	_, err := load(t, "agnets: []", specfile.Options{})
	bad := err.(*specfile.Error)
	data, jsonErr := json.Marshal(bad.Problems)
	require.NoError(t, jsonErr)
	var got []map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, []map[string]any{{"file": bad.Problems[0].File, "line": 1.0, "column": 1.0, "message": `unknown key "agnets" in the file`, "hint": "did you mean agents?"}}, got)
}
