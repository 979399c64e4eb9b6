package specfile

import (
	"slices"
	"strings"
	"sync"
)

// synonyms are words that people write instead of a key or of a kind of backend: those of other
// tools, and short forms. If keys of a place share a word, the first in the table of the place is meant.
// Letter case, "_" and "-" are ignored.
var synonyms = sync.OnceValue(func() map[string][]string {
	all := make(map[string][]string)
	for line := range strings.Lines(strings.TrimSpace(synonymTable)) {
		key, words, _ := strings.Cut(line, ":")
		all[key] = strings.Fields(strings.ToLower(words))
	}
	return all
})

const synonymTable = `
agents: members roster crew workers
tasks: steps jobs nodes graph workflow
prices: pricing costs cost rates
inputs: files documents data context sources
params: parameters vars variables args env
agentDefaults: defaults
schemas: definitions types
output: result answer final completion
input: prompt list items in over of rows source
reuse: cache caching memoize
offline: script mock
goal: objective mission query question request
coordinator: planner manager supervisor leader lead managerAgent conductor
messages: mail inbox
edges: handoffs links channels connections
mode: routing executionMode
maxTokenBudget: tokenBudget budget tokenLimit maxTotalTokens
maxCostBudget: costBudget maxCost costLimit maxBudgetUsd maxBudget maxUsd
cachedInput: cached cacheRead inputCached cachedInputTokens
reasoning: thinking reasoningOutput
strictAssignees: strict
instructions: instruction guidance guidelines rules
mayGrant: grants grant allow permissions
mayPlan: constructs mayUse planning
maxPromptBytes: maxPrompt contextWindow
maxMessageBytes: maxMessage messageLimit maxMessageSize
maxContextBytes: maxContext maxPayloadBytes maxInputBytes
cut: truncate allowTruncation
capabilities: skills abilities expertise tags
memoryScope: memory scope sharedMemory
requires: requirements require
schedulingStrategy: strategy scheduling scheduler assignment assignmentStrategy
requiredTools: tools tool
requiredCapabilities: capabilities skills abilities
requiredBackend: backend runtime
requiredProvider: provider
name: title id role input
model: llm engine
baseURL: url endpoint host base apiBase
apiKey: key token secret
systemPrompt: prompt system instructions instruction persona backstory
title: name task
description: prompt instructions instruction text goal ask do what
assignee: agent agents assignedTo assign worker owner who by
dependsOn: depends dependencies deps needs need after from upstream inputsFrom
when: if condition conditions runIf onlyIf
verify: judge judges verification consensus
judges: judge reviewers verifiers agents
quorum: threshold majority minAccept
onDissent: onReject onRejection dissent
agent: name judge assignee
equals: is eq equal value
in: among values
gte: min minimum atLeast ge
lte: max maximum atMost le
any: or anyOf
oneOf: anyOf alternatives either
uses: inputs input files documents context use with
dependencyPayload: payload as
maxRetries: retries retry attempts maxAttempts
retryDelayMs: retryDelay delay delayMs wait
retryBackoff: backoff factor
timeoutMs: timeout deadline maxTime timeLimit
ttlMs: ttl expires
outputSchema: schema format responseFormat jsonSchema responseSchema
classification: label level sensitivity
accepts: clearance reads
maxConcurrency: concurrency parallel parallelism maxParallel workers
maxParallel: concurrency parallel parallelism maxConcurrency
maxTurns: turns maxIterations iterations maxSteps
maxTokens: tokens maxOutputTokens maxCompletionTokens
defaultModel: model
defaultProvider: provider
defaultBaseURL: baseURL
defaultApiKey: apiKey
temperature: temp
maxTokensKey: maxTokensField maxTokensParam tokensKey
stop: stopSequences stopWords stopSequence
seed: randomSeed
reasoningEffort: effort reasoning
extraBody: extra extraParams modelKwargs providerOptions
task: title name key id
file: path from source
text: value content contents inline body message
policy: policies governance
rules: rule edges pairs handoffs
assert: asserts assertions invariants
declassify: declassifiers declassifier lower
endorse: endorsers endorser endorsements
renew: renewals renewal
handoff: handoffMode handoffPolicy
allow: allowed only include permit whitelist allowlist
block: blocked deny exclude except forbid blacklist blocklist denylist
maxClassification: ceiling maxLabel classification max
lowerTo: classification label level becomes
reason: why because justification comment
regexp: regex pattern expression re
summarize: summary summarise shorten
unsafeText: unsafe freeText
needToKnow: needsToKnow
paths: path fields parts
need: needs paths path fields parts
from: sender source by producer
process: command program shell exec executable cli subprocess
person: human user people manual
to: reader recipient receiver target recipients
`

// synonym returns the key of a place for which a word is a synonym, or "".
func synonym(word string, p *place) string {
	word = plainWord(word)
	for _, k := range p.keys {
		if k.status == Works && slices.Contains(synonyms()[k.name], word) {
			return k.name
		}
	}
	return ""
}

// meantWord returns which of several words was most likely meant by another one: one for which it is
// a synonym, one with a similar spelling, or "".
func meantWord(word string, known []string) string {
	for _, k := range known {
		if slices.Contains(synonyms()[k], plainWord(word)) {
			return k
		}
	}
	return nearestOf(word, known...)
}

func plainWord(s string) string {
	return strings.ToLower(withoutSeparators.Replace(s))
}
