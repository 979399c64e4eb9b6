package specfile

// The keys of what may cross between the members of a team.

var policyPlace = newPlace("policy", "the policy",
	key{"default", modeWord, Works, nil, "what a grant between two agents delivers where no rule states a mode; `full` unless set"},
	key{"rules", list.of("rule"), Works, nil, "rules for pairs; their order makes no difference: see rule"},
	key{"redact", mapping.of("redact"), Works, nil, "what is taken out on every edge to an agent, beside what always is: see redact"},
	key{"declassify", list.of("declassify"), Works, nil, "parts that may cross below their label: see declassify"},
	key{"endorse", list.of("endorse"), Works, nil, "results that are vouched for: see endorse"},
	key{"renew", list.of("renew"), Works, nil, "results that may be read beyond their expiry: see renew"},
	key{"assert", assertions, Works, nil, "what must never come to whom, as the file's own `assert`; both lists count"},
).like("default", "rules")

var rulePlace = newPlace("rule", "a rule",
	key{"name", nameText, Works, nil, "shown in plans and records; else `FROM→TO`"},
	key{"from", ruleSide, Works, nil, "required; who made it: name of an agent, `user` (for inputs), `coordinator`, or `\"*\"` for anyone"},
	key{"to", ruleSide, Works, nil, "required; who reads it: name of an agent, `user` (for results), `coordinator`, or `\"*\"` for every agent and the coordinator"},
	key{"mode", modeWord, Works, nil, "what crosses; `scoped` with `allow`, else the rule states none"},
	key{"allow", allowPaths, Works, nil, "what may cross, with `mode: scoped`"},
	key{"block", blockPaths, Works, nil, "what must not cross in any mode; a bare name counts at any depth"},
	key{"maxClassification", classification, Works, nil, "nothing above this label crosses; no bound unless set"},
	key{"redact", mapping.of("redact"), Works, nil, "what is taken out beside what always is: see redact"},
	key{"reveal", revealed, Works, nil, "personal data that crosses in clear, by kind, and where: `{iban: [/iban]}`; only in a rule with a name on both sides, for an agent to read"},
	key{"translate", mapping.of("translate"), Works, nil, "how what crosses is retold: see translate"},
).needing("from", "to").like("from", "to", "mode")

var translatePlace = newPlace("translate", "translate",
	key{"fields", allowPaths, Works, nil, "keep only these parts of a structured value; all unless set"},
	key{"filter", blockPaths, Works, nil, "take these parts out"},
	key{"summarize", summary, Works, nil, "bound on what is delivered: see summarize"},
	key{"recast", words("user", "system"), Works, nil, "`system` puts endorsed context into the system prompt, in a rule for one pair; `user` unless set"},
)

var summarizePlace = newPlace("summarize", "summarize",
	key{"maxTokens", count, Works, nil, "required; the bound, at an estimate of four bytes a token"},
	key{"by", words("excerpt", "model"), Works, nil, "`excerpt`, the default, delivers head and tail; `model` has the reader's own agent retell it, in a session of its own"},
).needing("maxTokens")

var redactPlace = newPlace("redact", "redact",
	key{"kinds", personalKinds, Works, nil, "built-in kinds beside those that are always taken out on the way to an agent"},
	key{"patterns", filledList.of("pattern"), Works, nil, "kinds of your own: see pattern"},
)

var patternPlace = newPlace("pattern", "a pattern",
	key{"name", neededText, Works, nil, "required; stands in the place of what is found, as `[REDACTED:name]`: `a-z`, `0-9` and `-`, at most 32"},
	key{"regexp", neededText, Works, nil, "required; what is found, in RE2 syntax; it must not match the empty text, and compiles to at most 1000 instructions (`a{1,40}` takes 80)"},
).needing("name", "regexp")

var declassifyPlace = newPlace("declassify", "a declassifier",
	key{"name", neededText, Works, nil, "required; shown in plans and records; no other entry of the policy may have it"},
	key{"from", entrySide, Works, nil, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	key{"to", entrySide, Works, nil, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	key{"paths", allowPaths, Works, nil, "required; the parts that cross, each bounded by the `outputSchema` of what `from` makes; nothing else does then"},
	key{"lowerTo", words("public", "internal", "confidential"), Works, nil, "required; the label that they cross with"},
	key{"reason", neededText, Works, nil, "required; why it is safe, for whoever reads the policy"},
	key{"unsafeText", boolean, Works, nil, "`true` allows parts that no schema bounds, which can carry anything that `from` has read: a warning"},
).needing("name", "from", "to", "paths", "lowerTo", "reason")

var endorsePlace = newPlace("endorse", "an endorser",
	key{"name", neededText, Works, nil, "required; shown in plans and records; no other entry of the policy may have it"},
	key{"from", entrySide, Works, nil, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	key{"to", entrySide, Works, nil, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	key{"reason", neededText, Works, nil, "required; why it can be trusted, for whoever reads the policy"},
).needing("name", "from", "to", "reason")

var renewPlace = newPlace("renew", "a renewal",
	key{"name", neededText, Works, nil, "required; shown in plans and records; no other entry of the policy may have it"},
	key{"from", entrySide, Works, nil, "required; who made it: an agent, `user` (for inputs) or `coordinator`"},
	key{"to", entrySide, Works, nil, "required; who reads it: an agent, `user` (for results) or `coordinator`"},
	key{"ttlMs", millis, Works, nil, "required; how long after it was made it may be read, above 0"},
	key{"reason", neededText, Works, nil, "required; why it is still true, for whoever reads the policy"},
).needing("name", "from", "to", "ttlMs", "reason")
