package specfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/gate"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

const fullPolicy = `assert: [internal_notes never reaches letters]
inputs: {claim: {text: "{}"}}
agentDefaults: {handoff: scoped}
agents: [{name: intake, handoff: full}, {name: fraud}, {name: letters, handoff: minimal}]
taskDefaults: {needToKnow: [/facts]}
tasks:
  - title: A
    assignee: intake
    uses: [{name: claim, need: [/text, /sum], reveal: {iban: [/iban], email: [""]}}]
    description: a
  - {title: B, assignee: fraud, description: b, dependsOn: [{task: A, need: [""]}]}
  - {title: C, assignee: letters, description: c, dependsOn: [B], needToKnow: [/score]}
policy:
  default: full
  rules:
    - name: facts
      from: intake
      to: fraud
      mode: scoped
      allow: [/facts/*, ""]
      block: [internal_notes, /a/0]
      maxClassification: confidential
      redact: {kinds: [ip, mac], patterns: [{name: ticket, regexp: "TCK-[0-9]{6}"}]}
      reveal: {iban: [/iban]}
      translate: {fields: [/facts], filter: [ssn], summarize: {maxTokens: 20, by: model}, recast: system}
    - {from: "*", to: letters, maxClassification: public}
    - {from: user, to: "*", translate: {summarize: {maxTokens: 5, by: excerpt}}}
    - {from: fraud, to: letters, allow: [/score]}
  redact: {kinds: [ip], patterns: [{name: case, regexp: "C-[0-9]+"}]}
  declassify:
    - {name: score, from: fraud, to: letters, paths: [/score], lowerTo: public, reason: a number, unsafeText: true}
  endorse: [{name: checked, from: fraud, to: letters, reason: read}]
  renew:
    - {name: rates, from: intake, to: fraud, ttlMs: 1500, reason: they hold}
  assert:
    - input claim/notes never derives into letters
`

func TestPolicyIsReadAsWritten(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(fullPolicy)})
	require.NoError(t, err)
	at := func(line, column int) provenance.Position {
		return provenance.Position{File: "-", Line: line, Column: column}
	}
	require.Equal(t, &handoff.Policy{
		Default: handoff.Full,
		Rules: []handoff.PairRule{
			{
				ID: "facts", From: "intake", To: "fraud", Mode: handoff.Scoped, Allow: []task.Path{"/facts/*", ""}, Block: []task.Path{"internal_notes", "/a/0"},
				Ceiling: new(label.Confidential), Redact: handoff.Redaction{Kinds: []redact.Kind{redact.IP, redact.MAC}, Patterns: []redact.Pattern{{Name: "ticket", Regexp: "TCK-[0-9]{6}"}}},
				Reveal:    map[redact.Kind][]task.Path{redact.IBAN: {"/iban"}},
				Translate: &handoff.Translation{Fields: []task.Path{"/facts"}, Filter: []task.Path{"ssn"}, MaxTokens: 20, ByModel: true, Recast: gate.RecastSystem},
				Origin:    at(16, 7),
			},
			{From: "*", To: "letters", Ceiling: new(label.Public), Origin: at(26, 7)},
			{From: "user", To: "*", Translate: &handoff.Translation{MaxTokens: 5}, Origin: at(27, 7)},
			{From: "fraud", To: "letters", Allow: []task.Path{"/score"}, Origin: at(28, 7)},
		},
		Redact:     handoff.Redaction{Kinds: []redact.Kind{redact.IP}, Patterns: []redact.Pattern{{Name: "case", Regexp: "C-[0-9]+"}}},
		Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "score", From: "fraud", To: "letters", Reason: "a number", Origin: at(31, 7)}, Paths: []task.Path{"/score"}, LowerTo: label.Public, UnsafeText: true}},
		Endorse:    []handoff.Endorser{{Entry: handoff.Entry{Name: "checked", From: "fraud", To: "letters", Reason: "read", Origin: at(32, 13)}}},
		Renew:      []handoff.Renewal{{Entry: handoff.Entry{Name: "rates", From: "intake", To: "fraud", Reason: "they hold", Origin: at(34, 7)}, TTL: 1500 * time.Millisecond}},
	}, f.Config.Policy)
	require.Len(t, f.Run.Assert, 2, "those of the file, then those of its policy")
	require.Equal(t, []string{"internal_notes never reaches letters", "input claim/notes never derives into letters"}, []string{f.Run.Assert[0].Text, f.Run.Assert[1].Text})
	for i, line := range []string{":1", ":36"} {
		require.True(t, strings.HasSuffix(f.Run.Assert[i].Line, line), f.Run.Assert[i].Line)
		located := f.Locate(task.Problems{{Pointer: fmt.Sprintf("/assert/%d", i), Message: "broken"}})
		require.Contains(t, located.Error(), line+":", "problems of assertions are located")
	}
	require.Equal(t, []handoff.Mode{handoff.Full, handoff.Scoped, handoff.Minimal}, []handoff.Mode{f.Agents[0].Member.Handoff, f.Agents[1].Member.Handoff, f.Agents[2].Member.Handoff})
	require.Equal(t, []task.Use{{Name: "claim", Need: []task.Path{"/text", "/sum"}, Reveal: map[string][]task.Path{"iban": {"/iban"}, "email": {""}}}}, f.Tasks[0].Uses)
	require.Equal(t, []task.Ref{{Task: "A", Need: []task.Path{""}}}, f.Tasks[1].DependsOn)
	require.Equal(t, []task.Ref{{Task: "B"}}, f.Tasks[2].DependsOn)
	require.Equal(t, []task.Path{"/facts"}, f.Tasks[1].NeedToKnow, "of taskDefaults")
	require.Equal(t, []task.Path{"/score"}, f.Tasks[2].NeedToKnow)
	require.Len(t, f.Warnings, 1)
	require.Equal(t, `policy: declassifier "score": unsafeText: what it lets through can carry anything that "fraud" has read`, f.Warnings[0].Message)
	require.Equal(t, []int{31, 111}, []int{f.Warnings[0].Line, f.Warnings[0].Column})
}

// TestPolicySaysTheSameInBothLanguages checks that YAML and JSON make the same.
func TestPolicySaysTheSameInBothLanguages(t *testing.T) {
	t.Parallel()
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(fullPolicy), &value))
	data, err := json.Marshal(value)
	require.NoError(t, err)
	one, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(fullPolicy)})
	require.NoError(t, err)
	two, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(string(data))})
	require.NoError(t, err)
	require.Equal(t, policyOf(t, one), policyOf(t, two))
}

func TestSavedPlansKeepThePolicy(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(fullPolicy)})
	require.NoError(t, err)
	requireReloads(t, f, specfile.Options{})
}

// TestNoPolicyIsNone checks that what says nothing is as if it were not there.
func TestNoPolicyIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "policy: {}\n", "assert: []\n"} {
		f, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader("agents: [{name: a}]\n" + text)})
		require.NoError(t, err)
		require.Nil(t, f.Config.Policy)
		require.Empty(t, f.Run.Assert)
	}
}

func TestPolicyBelongsToTheFileOfTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const policy = "policy: {rules: [{from: a, to: b, mode: minimal}]}\n"
	write(t, dir, "tasks.yaml", policy+"tasks: [{title: T, description: d}]\n", "team.yaml", "agents: [{name: a}, {name: b}]\n",
		"governed.yaml", "agents: [{name: a}, {name: b}]\nassert: [x never reaches a]\n"+policy, "orchestrator.yaml", policy)
	f, err := check(specfile.Options{Path: dir + "/tasks.yaml", Team: dir + "/team.yaml"})
	require.NoError(t, err, "its rules name who comes with Options.Team")
	require.Len(t, f.Config.Policy.Rules, 1)
	f, err = check(specfile.Options{Team: dir + "/governed.yaml"})
	require.NoError(t, err, "the only file is that of the run")
	require.Len(t, f.Config.Policy.Rules, 1)
	require.Len(t, f.Run.Assert, 1)

	_, err = check(specfile.Options{Path: dir + "/tasks.yaml", Team: dir + "/governed.yaml"})
	require.Equal(t, []string{"2:1: assert: the file of Options.Team brings a team only", "3:1: policy: the file of Options.Team brings a team only"}, messages(t, err))
	_, err = check(specfile.Options{Path: dir + "/team.yaml", Orchestrator: dir + "/orchestrator.yaml"})
	require.Equal(t, []string{`1:1: unknown key "policy" in orchestrator`}, messages(t, err))
	require.ErrorContains(t, err, "policy is a key of the file")
}

// TestAllProblemsOfAFileAreReported checks that problems of the policy
// stand among those of the rest, and that none follows from another.
//
// Requirement: G2.
func TestAllProblemsOfAFileAreReported(t *testing.T) {
	t.Parallel()
	got := saidOf(t, `bogus: 1
agents: [{name: a}, {name: b, handoff: no}]
policy:
  rules:
    - {from: a, to: b, mode: fulll, allow: [x]}
    - {from: a, to: c, allow: [/x], block: [/x]}
    - {from: a, to: b}
tasks: [{title: T, description: d, dependsOn: [U]}]
`)
	require.Equal(t, []string{
		`1:1: unknown key "bogus" in the file; known here: name, model, provider, baseURL, apiKey, headers, maxConcurrency, timeoutMs, maxTokenBudget, offline and 32 more`,
		`2:40: agent "b": handoff: unknown word "no"; write one of full, scoped, minimal`,
		`5:30: policy: rule a→b: mode: unknown word "fulll"; did you mean full? known are full, scoped, minimal`,
		`5:45: policy: rule a→b: allow: "x": a path begins with a slash; write /x`,
		`6:21: policy: rule a→c: unknown agent "c"; write one of user, coordinator, a, b`,
		`6:44: policy: rule a→c: everything that it allows it also blocks; let allow and block leave something, or write mode: minimal`,
		`7:7: policy: rule a→b: it says nothing; give it a mode, allow, block, maxClassification, redact, reveal or translate`,
		`7:7: policy: rule a→b: there is already a rule for this pair, in line 5; make one rule of the two`,
		`8:48: task "T": dependsOn[0]: no task "U"; write the title, the key or the id of a task`,
	}, got)
	require.Equal(t, []string{`1:10: agent 1: name: it is missing; write name: writer`}, saidOf(t, "agents: [{}]\npolicy: {rules: [{from: a, to: b, mode: full}]}\n"), "it may be the one")
	require.Equal(t, []string{`1:1: a team needs at least one agent; write agents, with one that has a name`},
		saidOf(t, "tasks: [{title: T, description: d}]\npolicy: {rules: [{from: a, to: b, mode: full}]}\n"))
}

// TestPointersIntoAPolicyHavePlaces checks problems of a policy that the team finds
// after the file was read, such as that no schema bounds a path.
func TestPointersIntoAPolicyHavePlaces(t *testing.T) {
	t.Parallel()
	f, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(fullPolicy)})
	require.NoError(t, err)
	for _, tt := range []struct{ pointer, want string }{
		{"/policy", "14:3"}, {"/policy/default", "14:12"}, {"/policy/rules/0", "16:7"}, {"/policy/rules/0/allow/1", "20:25"}, {"/policy/rules/0/block/1", "21:31"},
		{"/policy/rules/0/reveal/iban/0", "24:23"}, {"/policy/rules/0/translate/summarize/maxTokens", "25:75"}, {"/policy/rules/1/maxClassification", "26:51"},
		{"/policy/rules/3/mode", "28:41"}, {"/policy/rules/1/mode", "26:7"}, {"/policy/redact/kinds/0", "29:20"},
		{"/policy/declassify/0/paths/0", "31:55"}, {"/policy/renew/0/ttlMs", "34:53"}, {"/policy/bogus/3", "14:3"},
		{"/agents/0/handoff", "4:34"}, {"/agents/1/handoff", "3:26"}, {"/tasks/0/uses/0/need/1", "9:40"}, {"/tasks/0/uses/0/reveal/iban/0", "9:63"},
		{"/tasks/1/dependsOn/0/need/0", "11:78"}, {"/tasks/2/needToKnow/0", "12:80"}, {"/tasks/1/needToKnow", "5:28"},
	} {
		at := f.Place(tt.pointer)
		require.Equal(t, tt.want, fmt.Sprintf("%d:%d", at.Line, at.Column), tt.pointer)
	}
	one := f.Locate(task.Problem{Pointer: "/policy/declassify/0/paths/0", Message: "m", Err: handoff.ErrPolicy})
	require.ErrorIs(t, one, handoff.ErrPolicy)
	bad, ok := errors.AsType[*specfile.Error](one)
	require.True(t, ok)
	require.Equal(t, 31, bad.Problems[0].Line)
}

// TestUnboundedPathsHavePositions is about what only a plan can see.
//
// Requirement: G14.
func TestUnboundedPathsHavePositions(t *testing.T) {
	t.Parallel()
	const text = `agents: [{name: a, accepts: confidential}, {name: b}]
tasks:
  - {title: A, assignee: a, description: a, classification: confidential, outputSchema: {type: object, properties: {score: {type: number}, note: {type: string}}}}
  - {title: B, assignee: b, description: b, dependsOn: [A]}
policy:
  declassify:
    - {name: d, from: a, to: b, paths: [/score, %s], lowerTo: public, reason: r}
`
	got := saidOf(t, fmt.Sprintf(text, "/note"))
	require.Len(t, got, 1)
	require.Regexp(t, `^7:49: "d": the result of "A": /note is not bounded: `, got[0])
	require.Empty(t, saidOf(t, fmt.Sprintf(text, "/score")))
	require.Empty(t, saidOf(t, fmt.Sprintf(text, "/note], unsafeText: true, lowerTo: public, reason: r}\n#")))
}

func TestModeWithoutEffectIsAWarning(t *testing.T) {
	t.Parallel()
	const text = "agents: [{name: a, handoff: full}, {name: b, handoff: minimal}, {name: c, handoff: scoped}, {name: d}]\n"
	require.Empty(t, warningsOf(t, text))
	require.Empty(t, warningsOf(t, text+"policy: {default: full}\n"))
	require.Equal(t, []string{"1:29: handoff: no effect: default of the policy is scoped; leave it out, or widen default of the policy"}, warningsOf(t, text+"policy: {default: scoped}\n"))
	require.Len(t, warningsOf(t, text+"policy: {default: minimal}\n"), 2)
	require.Len(t, warningsOf(t, "agentDefaults: {handoff: full}\nagents: [{name: a}, {name: b}]\npolicy: {default: scoped}\n"), 1, "a default is said once")
}

// TestInvalidTeamChecksNoAssertion checks that an assertion is held
// against the team as it is written, with its policy, or not at all.
func TestInvalidTeamChecksNoAssertion(t *testing.T) {
	t.Parallel()
	const text = `agents: [{name: a%s}, {name: b}]
tasks:
  - {title: A, assignee: a, description: a, outputSchema: {type: object, properties: {note: {type: string}}, additionalProperties: false}}
  - {title: B, assignee: b, description: b, dependsOn: [A]}
policy: {rules: [{from: a, to: b, block: [note]}]}
assert: [note never reaches b]
`
	require.Empty(t, saidOf(t, fmt.Sprintf(text, "")))
	require.Len(t, saidOf(t, fmt.Sprintf(text, ", outputTags: [\"-\"]")), 1, "found by the team")
	require.Len(t, saidOf(t, fmt.Sprintf(text, ", accepts: bogus")), 1, "found by the loader")
}
