package specfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/specfile"
)

// TestCommonMistakesAreExplained checks the messages about mistakes that newcomers make, and
// that independent mistakes of one file are reported together. The text starts on line 5.
func TestCommonMistakesAreExplained(t *testing.T) {
	t.Parallel()
	const star = `a * without quotes begins an alias, which is not supported; put it in quotes: "*"`
	rule := func(words string) string { return "policy: {rules: [{from: intake, to: fraud, " + words + "}]}" }
	tests := []struct {
		name, text string
		want       []string
	}{
		{"a star before a comma", "policy: {rules: [{from: *, to: fraud, mode: full}]}", []string{"5:25: " + star}},
		{"a star before a brace", "policy: {rules: [{from: intake, mode: full, to: *}]}", []string{"5:49: " + star}},
		{"a star before a blank", "policy: {rules: [{from: * , mode: full, to: fraud}]}", []string{"5:25: " + star}},
		{"a star on a line of its own", "policy:\n  rules:\n    - from: *\n      to: fraud\n      mode: full", []string{"7:13: " + star}},
		{"a star before a comment", "policy:\n  rules:\n    - {mode: full, to: fraud,\n       from: * # all\n      }", []string{"8:14: " + star}},
		{"a star at the end", "messages:\n  - {from: user, text: x,\n     to: *}", []string{"7:10: " + star}},
		{"two stars on a line, and more", "bogus: 1\npolicy: {rules: [{from: *, to: *, mod: full}]}", []string{
			"5:1: unknown key \"bogus\" in the file; known here: name, model, provider, baseURL, apiKey, headers, maxConcurrency, timeoutMs, maxTokenBudget, offline and 32 more",
			"6:25: " + star, "6:32: " + star, `6:35: policy: rule *→*: unknown key "mod" in a rule; did you mean mode?`,
		}},
		{"a star in a list", rule("block: [*]"), []string{"5:52: " + star, `5:52: policy: rule intake→fraud: block: "*": it would block everything; write mode minimal`}},
		{"an alias", "policy: {default: *x}", []string{`5:19: anchors and aliases are not supported; write the value out where it is needed, or use agentDefaults, taskDefaults or schemas; put a text that begins with & or * in quotes`}},

		{"a pattern with no name of one", "policy: {redact: {patterns: [{name: Staff No, regexp: \"[0-9]{6}\"}]}}", []string{`5:37: policy: pattern "Staff No": not a name of a pattern; write a name of lower-case letters, digits and dashes that begins with a letter and has 32 at most`}},
		{"everybody retold", "policy: {rules: [{from: \"*\", to: \"*\", translate: {summarize: {maxTokens: 5}}}]}", []string{`5:50: policy: rule *→*: a rule from * to * may not translate; write it in a rule with a name`}},
		{"several producers", "policy: {rules: [{from: [intake, fraud], to: letters, mode: full}]}", []string{`5:25: policy: rule 1: from: a list where a text belongs; write one rule for each pair, or "*" for all`}},
		{"several readers", "policy: {rules: [{from: intake, to: [fraud, letters], mode: full}]}", []string{`5:37: policy: rule 1: to: a list where a text belongs; write one rule for each pair, or "*" for all`}},
		{"several readers of an entry", "policy: {endorse: [{name: e, from: intake, to: [fraud, letters], reason: r}]}", []string{`5:48: policy: endorser "e": to: a list where a text belongs; write one entry for each pair`}},
		{"no producer", "policy: {rules: [{from: , to: fraud, mode: full}]}", []string{`5:24: policy: rule 1: from: nothing where a text belongs; write one`}},
		{"two rules on a line", "policy: {rules: [{from: intake, to: fraud, mode: full}, {from: intake, to: fraud, mode: full}]}", []string{`5:57: policy: rule intake→fraud: there is already a rule for this pair, in column 18 of this line; make one rule of the two`}},
		{"a star to reveal", rule(`reveal: {iban: ["*"]}`), []string{`5:60: policy: rule intake→fraud: reveal: iban: "*": a path begins with a slash; name the member: [/iban]; [""] is the whole value`}},
		{"two stars to reveal", rule(`reveal: {iban: ["**"]}`), []string{`5:60: policy: rule intake→fraud: reveal: iban: "**": a path begins with a slash; name the member: [/iban]; [""] is the whole value`}},
		{"rules that are nothing", "policy:\n  rules:", []string{`6:9: policy: rules: nothing where a list belongs; write a line that begins with - for each, or [a, b]; or leave the key out`}},
		{"a policy that is nothing", "policy:", []string{`5:8: policy: nothing where a mapping belongs; write key: value lines below it, or {key: value}; or leave the key out`}},

		{"an unknown input", "assert: [input clam never reaches letters]", []string{`5:10: assertion "input clam never reaches letters": no input "clam"; did you mean "claim"?`}},
		{"an unknown task", "assert: [task Q never reaches letters]", []string{`5:10: assertion "task Q never reaches letters": no task "Q"; write one of A, B`}},
		{"an unknown reader", "assert: [task A never reaches leters]", []string{`5:10: assertion "task A never reaches leters": no reader "leters"; did you mean "letters"?`}},
		{"a coordinator that is not asked", "assert: [task A never reaches coordinator]", []string{`5:10: assertion "task A never reaches coordinator": no reader "coordinator"; write one of intake, fraud, letters, user`}},
		{"an input and a reader", "policy: {assert: [input clam never reaches leters]}", []string{
			`5:19: assertion "input clam never reaches leters": no input "clam"; did you mean "claim"?`,
			`5:19: assertion "input clam never reaches leters": no reader "leters"; did you mean "letters"?`,
		}},

		{"a bad path and what is wrong beside it", rule("mode: full, allow: [a]"), []string{
			`5:63: policy: rule intake→fraud: allow has no effect with mode: full; write mode: scoped, or leave allow out`,
			`5:64: policy: rule intake→fraud: allow: "a": a path begins with a slash; write /a`,
		}},
		{"all at once", `policy:
  rules:
    - {from: intake, to: fraud, mode: full, allow: [a]}
    - {from: intake, to: fraud, mode: fulll}
    - {from: "*", to: letters, reveal: {ibam: [/iban]}, translate: {fields: [x], recast: system}}
  redact: {kinds: [foo], patterns: [{name: Staff No, regexp: a}, {name: b}]}
  endorse:
    - {name: e, from: intake, to: fraud, reason: 5}
    - {name: e, from: intake, to: fraud, reason: r}
assert: [input nope never reaches fraud]`, []string{
			`7:52: policy: rule intake→fraud: allow has no effect with mode: full; write mode: scoped, or leave allow out`,
			`7:53: policy: rule intake→fraud: allow: "a": a path begins with a slash; write /a`,
			`8:7: policy: rule intake→fraud: there is already a rule for this pair, in line 7; make one rule of the two`,
			`8:39: policy: rule intake→fraud: mode: unknown word "fulll"; did you mean full? known are full, scoped, minimal`,
			`9:40: policy: rule *→letters: reveal is for one pair of agents; write it in a rule with a name on both sides; to the user nothing personal is redacted`,
			`9:41: policy: rule *→letters: reveal: unknown kind "ibam"; did you mean iban? known are card, iban, email, phone, ssn, ip, mac`,
			`9:78: policy: rule *→letters: fields: "x": a path begins with a slash; write /x`,
			`9:90: policy: rule *→letters: only a rule for one pair puts context into a system prompt; name both sides`,
			`10:20: policy: kinds: unknown kind "foo"; write one of card, iban, email, phone, ssn, ip, mac`,
			`10:44: policy: pattern "Staff No": not a name of a pattern; write a name of lower-case letters, digits and dashes that begins with a letter and has 32 at most`,
			`10:66: policy: patterns[1]: regexp: it is missing; write regexp: 'CASE-[0-9]+'`,
			`12:50: policy: endorser "e": reason: the number 5 where a text belongs; put it in quotes`,
			`13:7: policy: endorser "e": "e" is for this pair too; make one of the two`,
			`13:14: policy: endorser "e": another entry has this name; give each a name of its own`,
			`14:10: assertion "input nope never reaches fraud": no input "nope"; write one of claim`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, saidOf(t, fmt.Sprintf(governed, "dependsOn: [A], uses: [claim]")+tt.text+"\n"))
		})
	}
}

// TestUnquotedStarIsExplained checks when the hint is given, also for a file with
// many of them.
func TestUnquotedStarIsExplained(t *testing.T) {
	t.Parallel()
	_, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [{name: *}]\n")})
	require.ErrorIs(t, err, specfile.ErrSyntax)
	_, err = specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [" + strings.Repeat("*, ", 5000) + "]\n")})
	require.ErrorContains(t, err, "and 1 more")
}

// TestRevealIsShownAsWritten checks that excerpts show the paths of a reveal, whose
// keys are kinds, with the caret where the problem is, and nothing else behind a
// key that sounds like a credential.
func TestRevealIsShownAsWritten(t *testing.T) {
	t.Parallel()
	text := "agents: [{name: a}, {name: b}]\npolicy: {rules: [{from: a, to: b, reveal: {token: [/iban, \"\", swordfish], password: hunter2, card: x}}]}\nheaders: {reveal: {a: /hunter3}}\n"
	_, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text)})
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	carets := 0
	for _, p := range bad.Problems {
		lines := strings.Split(p.Excerpt, "\n")
		for i, line := range lines[1:] {
			if at := strings.IndexByte(line, '^'); at >= 0 && p.Line == 2 {
				carets++
				word, _, _ := strings.Cut(p.Message[strings.Index(p.Message, "reveal: ")+len("reveal: "):], " ")
				word = map[string]string{"card:": "x"}[word] + strings.TrimSuffix(word, "card:")
				require.True(t, strings.HasPrefix(string([]rune(lines[i])[at:]), word), "%s at\n%s", word, p.Excerpt)
			}
		}
		for _, hidden := range []string{"swordfish", "hunter"} {
			require.NotContains(t, p.Error(), hidden)
		}
	}
	require.Equal(t, 3, carets)
	require.Contains(t, err.Error(), `{token: [/iban, "", [hidden]], password: [hidden], card: x}}]`)
}
