package specfile

// The keys of what may be delivered between the members of a team.

var policyPlace = newPlace("policy", "the policy", []row{
	{"default", modeWord, "what a grant between two agents delivers where no rule states a mode; `full` unless set"},
	{"rules", list.of("rule"), "rules for pairs; their order makes no difference: see rule"},
	{"redact", mapping.of("redact"), "what is redacted on every edge to an agent, in addition to what always is: see redact"},
	{"declassify", list.of("declassify"), "parts that may be delivered below their label: see declassify"},
	{"endorse", list.of("endorse"), "results that are trusted: see endorse"},
	{"renew", list.of("renew"), "results that may be read beyond their expiry: see renew"},
	{"assert", assertions, "what must never reach whom, as the file's own `assert`; both lists count"},
}).like("default", "rules")

var rulePlace = newPlace("rule", "a rule", []row{
	{"name", nameText, "shown in plans and records; else `FROM→TO`"},
	{"from", ruleSide, "required; who made it: name of an agent, `user` (for inputs), `coordinator`, or `\"*\"` for anyone"},
	{"to", ruleSide, "required; who reads it: name of an agent, `user` (for results), `coordinator`, or `\"*\"` for every agent and the coordinator"},
	{"mode", modeWord, "what is delivered; `scoped` with `allow`, else the rule states none"},
	{"allow", allowPaths, "the parts that may be delivered, with `mode: scoped`"},
	{"block", blockPaths, "the parts that must not be delivered in any mode; a bare name counts at any depth"},
	{"maxClassification", classification, "nothing above this label is delivered; no bound unless set"},
	{"redact", mapping.of("redact"), "what is redacted in addition to what always is: see redact"},
	{"reveal", revealed, "personal data that is delivered unredacted, by kind and place: `{iban: [/iban]}`; only in a rule with a name on both sides, for an agent to read"},
	{"translate", mapping.of("translate"), "how what is delivered is translated: see translate"},
}).needing("from", "to").like("from", "to", "mode")

var translatePlace = newPlace("translate", "translate", []row{
	{"fields", allowPaths, "keep only these parts of a structured value; all unless set"},
	{"filter", blockPaths, "take these parts out"},
	{"summarize", summary, "bound on what is delivered: see summarize"},
	{"recast", words("user", "system"), "`system` puts endorsed context into the system prompt, in a rule for one pair; `user` unless set"},
})

var summarizePlace = newPlace("summarize", "summarize", []row{
	{"maxTokens", count, "required; the bound, at an estimate of four bytes a token"},
	{"by", words("excerpt", "model"), "`excerpt`, the default, delivers head and tail; `model` has the reader's own agent summarize it, in a session of its own"},
}).needing("maxTokens")

var redactPlace = newPlace("redact", "redact", []row{
	{"kinds", personalKinds, "built-in kinds in addition to those that are always redacted on the way to an agent"},
	{"patterns", filledList.of("pattern"), "kinds of your own: see pattern"},
})

var patternPlace = newPlace("pattern", "a pattern", []row{
	{"name", neededText, "required; stands in the place of what is found, as `[REDACTED:name]`: `a-z`, `0-9` and `-`, at most 32"},
	{"regexp", neededText, "required; what is found, in RE2 syntax; it must not match the empty text, and compiles to at most 1000 instructions (`a{1,40}` takes 80)"},
}).needing("name", "regexp")

var declassifyPlace = newPlace("declassify", "a declassifier", []row{
	{"name", neededText, "required; shown in plans and records; no other entry of the policy may have it"},
	{"from", entrySide, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	{"to", entrySide, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	{"paths", allowPaths, "required; the parts that are delivered, each bounded by the `outputSchema` of what `from` makes; nothing else is delivered then"},
	{"lowerTo", words("public", "internal", "confidential"), "required; the label that they are delivered with"},
	{"reason", neededText, "required; why it is safe, for whoever reads the policy"},
	{"unsafeText", boolean, "`true` allows parts that no schema bounds, which can carry anything that `from` has read: a warning"},
}).needing("name", "from", "to", "paths", "lowerTo", "reason")

var endorsePlace = newPlace("endorse", "an endorser", []row{
	{"name", neededText, "required; shown in plans and records; no other entry of the policy may have it"},
	{"from", entrySide, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	{"to", entrySide, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	{"reason", neededText, "required; why it can be trusted, for whoever reads the policy"},
}).needing("name", "from", "to", "reason")

var renewPlace = newPlace("renew", "a renewal", []row{
	{"name", neededText, "required; shown in plans and records; no other entry of the policy may have it"},
	{"from", entrySide, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	{"to", entrySide, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	{"ttlMs", millis, "required; how long after it was made it may be read, above 0"},
	{"reason", neededText, "required; why it is still true, for whoever reads the policy"},
}).needing("name", "from", "to", "ttlMs", "reason")
