package specfile

import "cmp"

// examples are what to write where a required key is missing, by key, or by place and key where that is
// clearer. Kinds that are a choice of words need none.
var examples = map[string]string{
	"agent": "writer, or the name of another agent",
	"from":  "writer, or the name of another agent",
	"to":    "writer, or the name of another agent",
	"name":  "notes",
	"task":  "Draft, or the title of another task",
	"title": "Draft",
	"text":  "the message",
	"path":  "/score",

	"output": "Draft, or the title of another task",
	"reason": "why it is safe",
	"regexp": "'CASE-[0-9]+'",

	"agent.name":          "writer",
	"declassify.name":     "score only",
	"endorse.name":        "reviewed",
	"renew.name":          "still current",
	"rule.to":             `writer, the name of another agent, or "*" for every agent`,
	"rule.from":           `writer, the name of another agent, or "*" for anyone`,
	"declassify.from":     "writer, the name of another agent, user or coordinator",
	"declassify.to":       "writer, the name of another agent, user, coordinator or tool:NAME",
	"endorse.from":        "writer, the name of another agent, user or coordinator",
	"endorse.to":          "writer, the name of another agent, user or coordinator",
	"renew.from":          "writer, the name of another agent, user or coordinator",
	"renew.to":            "writer, the name of another agent, user or coordinator",
	"declassify.paths":    "[/score]",
	"declassify.reason":   "a score names nobody",
	"endorse.reason":      "a person has checked it",
	"renew.reason":        "prices change once a day",
	"renew.ttlMs":         "60000, which is a minute",
	"message.from":        "writer, the name of another agent, or user",
	"message.to":          `writer, the name of another agent, or "*" for all others`,
	"pattern.name":        "case-number",
	"summarize.maxTokens": "200",
	"from.run":            "the ID of a run, as `runteam runs` lists it",
	"price.input":         "0.15",
	"price.output":        "0.60",
	"repeat.tasks":        "[{title: Draft, description: …}]",
	"repeat.until":        "{task: Check, path: /ok, equals: true}",
	"verify.judges":       "[editor, lawyer], the names of agents",
}

// exampleOf returns what to write where a key of a place is missing or empty.
func exampleOf(p *place, key string) string {
	own := ""
	if i, known := p.index[key]; known {
		own = p.keys[i].kind.one
	}
	return cmp.Or(examples[p.name+"."+key], own, examples[key])
}
