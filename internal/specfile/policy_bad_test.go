package specfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

// governed is a spec whose policy starts on line 5; %s stands for more of task B.
const governed = `inputs: {claim: {text: "{}"}}
agents: [{name: intake}, {name: fraud}, {name: letters}]
tasks: [{title: A, assignee: intake, description: a},
  {title: B, assignee: fraud, description: b, %s}]
`

// saidOf returns what is said of a text, as the command prints it, without excerpts.
func saidOf(t *testing.T, text string) []string {
	t.Helper()
	_, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
	if err == nil {
		return nil
	}
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	var all []string
	for _, p := range bad.Problems {
		require.NotEmpty(t, p.Excerpt)
		all = append(all, fmt.Sprintf("%d:%d: %s; %s", p.Line, p.Column, p.Message, p.Hint))
	}
	return all
}

// Requirement: G2.
func TestPolicyProblemsHavePositions(t *testing.T) {
	t.Parallel()
	rule := func(words string) string { return "policy: {rules: [{from: intake, to: fraud, " + words + "}]}" }
	lower := func(words string) string { return "policy: {declassify: [{" + words + "}]}" }
	const depends = "dependsOn: [A]"
	tests := []struct{ name, task, policy, want string }{
		{"an unknown default", depends, "policy: {default: scopd}", `5:19: policy: default: unknown word "scopd"; did you mean scoped? known are full, scoped, minimal`},
		{"an unknown mode", depends, rule("mode: minimum"), `5:50: policy: rule intake→fraud: mode: unknown word "minimum"; did you mean minimal? known are full, scoped, minimal`},
		{"an unknown key", depends, "policy: {rulez: []}", `5:10: policy: unknown key "rulez" in the policy; did you mean rules?`},
		{"an unknown key of a rule", depends, rule("mode: full, alow: [/a]"), `5:56: policy: rule intake→fraud: unknown key "alow" in a rule; did you mean allow?`},
		{"an unknown producer", depends, "policy: {rules: [{from: intak, to: fraud, mode: full}]}", `5:25: policy: rule intak→fraud: unknown agent "intak"; did you mean "intake"?`},
		{"an unknown reader", depends, "policy: {rules: [{from: intake, to: Fraud, mode: full}]}", `5:37: policy: rule intake→Fraud: unknown agent "Fraud"; did you mean "fraud"?`},
		{"no reader", depends, "policy: {rules: [{from: intake, mode: full}]}", `5:18: policy: rule 1: to: it is missing; write to: writer, the name of another agent, or "*" for every agent`},
		{"an empty reader", depends, "policy: {rules: [{from: intake, to: \"\", mode: full}]}", `5:37: policy: rule 1: to: it is empty; write to: writer, or the name of another agent`},
		{"a rule that is a text", depends, "policy: {rules: [intake to fraud]}", `5:18: policy: rule 1: the text "intake to fraud" where a rule belongs; write {from: …, to: …, mode: …}`},
		{"a rule that says nothing", depends, "policy: {rules: [{from: intake, to: fraud}]}", `5:18: policy: rule intake→fraud: it says nothing; give it a mode, allow, block, maxClassification, redact, reveal or translate`},
		{"two rules for a pair", depends, "policy:\n  rules:\n    - {from: intake, to: fraud, mode: full}\n    - {from: intake, to: fraud, block: [x]}", `8:7: policy: rule intake→fraud: there is already a rule for this pair, in line 7; make one rule of the two`},
		{"two rules of a name", depends, "policy:\n  rules:\n    - {name: r, from: intake, to: fraud, mode: full}\n    - {name: r, from: intake, to: letters, block: [x]}", `8:14: policy: rule "r": the rule in line 7 has this name too; give each rule a name of its own, or none`},
		{"a name that is none", depends, rule("mode: full, name: \"a\\nb\""), `5:62: policy: rule "a\nb": name: not a name: '\n' at byte 1: use letters, digits, '.', '_', '-' and spaces; write another name, or leave the key out`},
		{"full and allow", depends, rule("mode: full, allow: [/a]"), `5:63: policy: rule intake→fraud: allow has no effect with mode: full; write mode: scoped, or leave allow out`},
		{"minimal and allow", depends, rule("mode: minimal, allow: [/a]"), `5:66: policy: rule intake→fraud: allow has no effect with mode: minimal; write mode: scoped, or leave allow out`},
		{"minimal and need", "dependsOn: [{task: A, need: [/a]}]", rule("mode: minimal"), `4:75: task "B": "intake" to "fraud": it needs parts of what intake→fraud (-:5) lets through by heading and status only; leave need out, or change the rule`},
		{"minimal and the task's need", depends + ", needToKnow: [/a]", rule("mode: minimal"), `4:75: task "B": "intake" to "fraud": it needs parts of what intake→fraud (-:5) lets through by heading and status only; leave needToKnow out, or change the rule`},
		{"scoped without a list", depends, rule("mode: scoped"), `4:59: task "B": "intake" to "fraud": intake→fraud (-:5) is scoped without a list, so it grants nothing here; write allow: [/path] in a rule for the pair, need: [/path] on the dependency, or mode: minimal`},
		{"allow and need disjoint", "dependsOn: [{task: A, need: [/a]}]", rule("allow: [/b]"), `4:75: task "B": "intake" to "fraud": nothing that it needs may be delivered by intake→fraud (-:5); let need, allow and block leave something in common`},
		{"allow and the task's need disjoint", depends + ", needToKnow: [/a]", rule("allow: [/b]"), `4:75: task "B": "intake" to "fraud": nothing that it needs may be delivered by intake→fraud (-:5); let need, allow and block leave something in common`},
		{"an input of which nothing is left", "uses: [{name: claim, need: [/a]}]", "policy: {rules: [{from: user, to: fraud, allow: [/b]}]}", `4:74: task "B": "user" to "fraud": nothing that it needs may be delivered by user→fraud (-:5); let need, allow and block leave something in common`},
		{"all that is allowed is blocked", depends, rule("allow: [/a], block: [A]"), `5:64: policy: rule intake→fraud: everything that it allows it also blocks; let allow and block leave something, or write mode: minimal`},
		{"no pointer", depends, rule("allow: [/a, b]"), `5:56: policy: rule intake→fraud: allow: "b": a path begins with a slash; write /b`},
		{"a number in allow", depends, rule("allow: [/a/0]"), `5:52: policy: rule intake→fraud: allow: "/a/0": "0" is the number of one array element; write /a/*`},
		{"a block of everything", depends, rule("block: [/**]"), `5:52: policy: rule intake→fraud: block: "/**": it would block everything; write mode minimal`},
		{"one path without a list", depends, rule("allow: /a"), `5:51: policy: rule intake→fraud: allow: the text "/a" where a list of paths belongs; write a list such as [/score, /facts/**]`},
		{"a number for a path", depends, rule("allow: [5]"), `5:52: policy: rule intake→fraud: allow[0]: the number 5 where a text belongs; put it in quotes`},
		{"an empty allow", depends, rule("allow: []"), `5:51: policy: rule intake→fraud: allow: the list is empty; write paths, or mode: minimal`},
		{"an empty block", depends, rule("block: []"), `5:51: policy: rule intake→fraud: block: the list is empty; name something, or leave the key out`},
		{"an empty need", "dependsOn: [{task: A, need: []}]", "", `4:75: task "B": need: the list is empty; write paths, or [""] for the whole`},
		{"an empty needToKnow", depends + ", needToKnow: []", "", `4:75: task "B": needToKnow: the list is empty; write paths, or [""] for the whole`},
		{"a need that is no pointer", "dependsOn: [{task: A, need: [a]}]", "", `4:76: task "B": need: "a": a path begins with a slash; write /a`},
		{"a need of an input that is no pointer", "uses: [{name: claim, need: [/a/**/b]}]", "", `4:75: task "B": need: "/a/**/b": "**" stands at the end of a path only; write "*" for one segment`},
		{"everybody with a mode", depends, "policy: {rules: [{from: \"*\", to: \"*\", mode: minimal}]}", `5:45: policy: rule *→*: a rule from * to * may not state a mode; leave mode and allow out; policy.default says what grants deliver`},
		{"everybody with a list", depends, "policy: {rules: [{from: \"*\", to: \"*\", allow: [/a]}]}", `5:46: policy: rule *→*: a rule from * to * may not state a mode; leave mode and allow out; policy.default says what grants deliver`},
		{"the coordinator with a block", depends, "policy: {rules: [{from: coordinator, to: fraud, block: [a]}]}", `5:56: policy: rule coordinator→fraud: what the coordinator writes for agents has no parts; leave mode, allow and block out; maxClassification and redact count for it`},
		{"an unknown label", depends, rule("maxClassification: confidental"), `5:63: policy: rule intake→fraud: maxClassification: unknown word "confidental"; did you mean confidential? known are public, internal, confidential, secret`},
		{"an unknown kind", depends, rule("redact: {kinds: [mak]}"), `5:61: policy: rule intake→fraud: kinds: unknown kind "mak"; did you mean mac? known are card, iban, email, phone, ssn, ip, mac`},
		{"an unknown kind for all", depends, "policy: {redact: {kinds: [ip, address]}}", `5:31: policy: kinds: unknown kind "address"; write one of card, iban, email, phone, ssn, ip, mac`},
		{"a secret kind", depends, rule("redact: {kinds: [ip, token]}"), `5:65: policy: rule intake→fraud: kinds: token is always redacted; leave it out`},
		{"no kind", depends, rule("redact: {kinds: []}"), `5:60: policy: rule intake→fraud: kinds: the list is empty; name something, or leave the key out`},
		{"a pattern that does not compile", depends, rule("redact: {patterns: [{name: case, regexp: \"(\"}]}"), "5:85: policy: rule intake→fraud: pattern \"case\": error parsing regexp: missing closing ): `(`; write it in RE2 syntax, and in quotes"},
		{"a pattern of the empty text", depends, "policy: {redact: {patterns: [{name: case, regexp: \"a*\"}]}}", `5:51: policy: pattern "case": can match the empty text; ask for a character at least`},
		{"a pattern with the name of a kind", depends, rule("redact: {patterns: [{regexp: a, name: iban}]}"), `5:82: policy: rule intake→fraud: pattern "iban": this is a built-in kind; choose another name`},
		{"a pattern without a regexp", depends, rule("redact: {patterns: [{name: case}]}"), `5:64: policy: rule intake→fraud: patterns[0]: regexp: it is missing; write regexp: 'CASE-[0-9]+'`},
		{"two patterns of a name", depends, "policy:\n  redact: {patterns: [{name: case, regexp: a1}]}\n  rules:\n    - {from: intake, to: fraud, redact: {patterns: [{name: case, regexp: a2}]}}", `8:60: policy: pattern "case": another one has this name and another regexp; give each pattern a name of its own`},
		{"a pattern twice", depends, rule("redact: {patterns: [{name: case, regexp: a1}, {name: case, regexp: a1}]}"), `5:97: policy: pattern "case": duplicate name; join the two by |`},
		{"revealed by one side", depends, "policy: {rules: [{from: \"*\", to: fraud, reveal: {iban: [/a]}}]}", `5:49: policy: rule *→fraud: reveal is for one pair of agents; write it in a rule with a name on both sides; to the user nothing personal is redacted`},
		{"revealed to the user", depends, "policy: {rules: [{from: fraud, to: user, reveal: {iban: [/a]}}]}", `5:50: policy: rule fraud→user: reveal is for one pair of agents; write it in a rule with a name on both sides; to the user nothing personal is redacted`},
		{"a secret revealed", depends, rule("reveal: {token: [/a]}"), `5:53: policy: rule intake→fraud: reveal: token is a secret: no edge reveals it; leave it out`},
		{"an unknown kind revealed", depends, rule("reveal: {ibam: [/a]}"), `5:53: policy: rule intake→fraud: reveal: unknown kind "ibam"; did you mean iban? known are card, iban, email, phone, ssn, ip, mac`},
		{"revealed nowhere", depends, rule("reveal: {iban: []}"), `5:59: policy: rule intake→fraud: reveal: iban: the list is empty; write where it may be: [/path], or [""] for the whole`},
		{"revealed at no pointer", depends, rule("reveal: {iban: [a]}"), `5:60: policy: rule intake→fraud: reveal: iban: "a": a path begins with a slash; write /a`},
		{"revealed without a list", depends, rule("reveal: {iban: /a}"), `5:59: policy: rule intake→fraud: reveal: iban: the text "/a" where a list of paths belongs; write where it may be: [/path], or [""] for the whole`},
		{"a secret of an input revealed", "uses: [{name: claim, reveal: {password: [\"\"]}}]", "", `4:77: task "B": reveal: password is a secret: no edge reveals it; leave it out`},
		{"an unknown kind of an input", "uses: [{name: claim, reveal: {mail: [\"\"]}}]", "", `4:77: task "B": reveal: unknown kind "mail"; did you mean email? known are card, iban, email, phone, ssn, ip, mac`},
		{"recast to system by everybody", depends, "policy: {rules: [{from: \"*\", to: fraud, translate: {recast: system}}]}", `5:61: policy: rule *→fraud: only a rule for one pair puts context into a system prompt; name both sides`},
		{"an unknown role", depends, rule("translate: {recast: tool}"), `5:64: policy: rule intake→fraud: recast: unknown word "tool"; write one of user, system`},
		{"a translation of nothing", depends, rule("translate: {}"), `5:55: policy: rule intake→fraud: it says nothing; give it fields, filter, summarize or recast`},
		{"a bound that is a number alone", depends, rule("translate: {summarize: 5}"), `5:67: policy: rule intake→fraud: summarize: the number 5 where a mapping belongs; write {maxTokens: 200}`},
		{"a summary without a bound", depends, rule("translate: {summarize: {by: model}}"), `5:67: policy: rule intake→fraud: summarize: maxTokens: it is missing; write maxTokens: 200`},
		{"a bound of no tokens", depends, rule("translate: {summarize: {maxTokens: 0}}"), `5:79: policy: rule intake→fraud: maxTokens: the number 0 where a whole number of at least 1 belongs; write a number such as 4, without quotes, or leave the key out`},
		{"a filter that is none", depends, rule("translate: {filter: [\"a*\"]}"), `5:65: policy: rule intake→fraud: filter: "a*": "*" stands for a whole segment, not for a part of "a*"; write "*" or the name`},
		{"no field", depends, rule("translate: {fields: []}"), `5:64: policy: rule intake→fraud: fields: the list is empty; write paths, or mode: minimal`},
		{"a declassifier of nobody", depends, lower("name: d, from: intake, paths: [/a], lowerTo: public, reason: r"), `5:23: policy: declassifier "d": to: it is missing; write to: writer, the name of another agent, user, coordinator or tool:NAME`},
		{"a declassifier for everybody", depends, lower("name: d, from: intake, to: \"*\", paths: [/a], lowerTo: public, reason: r"), `5:51: policy: declassifier "d": it is for everybody; name one agent: each pair needs an entry of its own`},
		{"a declassifier for a stranger", depends, lower("name: d, from: intake, to: leters, paths: [/a], lowerTo: public, reason: r"), `5:51: policy: declassifier "d": unknown agent "leters"; did you mean "letters"?`},
		{"a declassifier without a reason", depends, lower("name: d, from: intake, to: fraud, paths: [/a], lowerTo: public"), `5:23: policy: declassifier "d": reason: it is missing; write reason: a score names nobody`},
		{"a declassifier with a blank reason", depends, lower("name: d, from: intake, to: fraud, paths: [/a], lowerTo: public, reason: \" \""), `5:96: policy: declassifier "d": reason: it is empty; write reason: why it is safe`},
		{"a declassifier without a label", depends, lower("name: d, from: intake, to: fraud, paths: [/a], reason: r"), `5:23: policy: declassifier "d": lowerTo: it is missing; write lowerTo: public, internal or confidential`},
		{"a declassifier to secret", depends, lower("name: d, from: intake, to: fraud, paths: [/a], lowerTo: secret, reason: r"), `5:80: policy: declassifier "d": lowerTo: unknown word "secret"; write one of public, internal, confidential`},
		{"a declassifier of nothing", depends, lower("name: d, from: intake, to: fraud, paths: [], lowerTo: public, reason: r"), `5:65: policy: declassifier "d": paths: the list is empty; write the paths that are safe: [/path]`},
		{"a declassifier of the whole", depends, lower("name: d, from: intake, to: fraud, paths: [/a, \"\"], lowerTo: public, reason: r"), `5:65: policy: declassifier "d": it would lower a whole value, which may be free text; name paths that the schema makes a number, a boolean, an enum or a bounded pattern, or set unsafeText: true`},
		{"two entries of a name", depends, "policy:\n  declassify:\n    - {name: d, from: intake, to: fraud, paths: [/a], lowerTo: public, reason: r, unsafeText: true}\n  endorse:\n    - {name: d, from: intake, to: fraud, reason: r}", `9:14: policy: endorser "d": another entry has this name; give each a name of its own`},
		{"two endorsers for a pair", depends, "policy:\n  endorse:\n    - {name: d, from: intake, to: fraud, reason: r}\n    - {name: e, from: intake, to: fraud, reason: r}", `8:7: policy: endorser "e": "d" is for this pair too; make one of the two`},
		{"a renewal of no time", depends, "policy: {renew: [{name: d, from: intake, to: fraud, ttlMs: 0, reason: r}]}", `5:60: policy: renewal "d": ttlMs must be at least 1; write how long after its making the context may be read`},
		{"a renewal without a time", depends, "policy: {renew: [{name: d, from: intake, to: fraud, reason: r}]}", `5:18: policy: renewal "d": ttlMs: it is missing; write ttlMs: 60000, which is a minute`},
		{"an assertion that is none", depends, "assert: [notes never reaches letters, notes reaches letters]", `5:39: assert: "notes reaches letters": the word never is missing; write X never reaches B, or X never derives into B`},
		{"an assertion of the policy that is none", depends, "policy: {assert: [notes]}", `5:19: policy: assert: "notes": the word never is missing; write X never reaches B, or X never derives into B`},
		{"an assertion that is a mapping", depends, "assert: [{notes: letters}]", `5:10: assert[0]: a mapping where a text belongs; put it in quotes`},
		{"a declassifier of the file", depends, "declassify: [{name: d}]", `5:1: declassify: not supported: write it in policy; remove it`},
		{"a mode of an agent", depends, "agentDefaults: {handoff: ful}", `5:26: agentDefaults: handoff: unknown word "ful"; did you mean full? known are full, scoped, minimal`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, []string{tt.want}, saidOf(t, fmt.Sprintf(governed, tt.task)+tt.policy+"\n"))
		})
	}
}
