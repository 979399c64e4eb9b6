package planning_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/label"
)

// duties are all that may be told, and little of it.
var (
	bare   = planning.Duties{}
	filled = planning.Duties{
		SystemPrompt: "You lead the claims desk of ACME.", Instructions: "Plan at most three tasks.\n",
		MayGrant: planning.Grants{Memory: true, Inputs: true, Tools: true},
		Inputs:   []planning.Input{{Name: "claim", Classification: label.Confidential}, {Name: "policy"}, {Name: "empty", Classification: label.Public}},
	}
)

func TestSystemCallsTheModelTheCoordinator(t *testing.T) {
	t.Parallel()
	for _, d := range []planning.Duties{bare, filled, {SystemPrompt: " \n"}} {
		before, after := planning.System(d)
		require.Contains(t, before, "coordinator")
		require.Regexp(t, `(?s)^\S.*\S$`, before)
		require.Regexp(t, `^## `, after)
		var headings []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(before+"\n"+after, -1) {
			headings = append(headings, m[1])
		}
		want := []string{"Output Format", "Dependency Guidance", "When synthesising results"}
		if d.SystemPrompt == filled.SystemPrompt {
			want = []string{"Named Inputs", "Output Format", "Dependency Guidance", "When synthesising results", "Further Instructions"}
		}
		require.Equal(t, want, headings)
	}
	before, _ := planning.System(bare)
	blank, _ := planning.System(planning.Duties{SystemPrompt: " \n"})
	require.Equal(t, before, blank)
}

func TestSystemKeepsTheCallersTexts(t *testing.T) {
	t.Parallel()
	before, after := planning.System(filled)
	require.True(t, strings.HasPrefix(before, filled.SystemPrompt+"\n\n"))
	require.True(t, strings.HasSuffix(after, "\n"+filled.Instructions))
	plain, _ := planning.System(bare)
	require.Equal(t, plain[strings.Index(plain, "\n\n"):], before[strings.Index(before, "\n\n"):], "the duties stay")
}

// TestSystemPromptListsAllowedGrants checks that nothing is offered that
// ParsePlan would refuse, and that inputs are told by name and label alone.
//
// Requirement: G49.
func TestSystemPromptListsAllowedGrants(t *testing.T) {
	t.Parallel()
	_, after := planning.System(filled)
	for _, said := range []string{`"memoryScope"`, `"uses"`, `"tools"`, "- \"claim\": confidential\n- \"policy\": internal\n- \"empty\": public\n", `"uses": ["claim"]`} {
		require.Contains(t, after, said)
	}
	poor := filled
	poor.MayGrant = planning.Grants{}
	_, after = planning.System(poor)
	for _, said := range []string{"memoryScope", "uses", "\"tools\"", "claim\"", "policy", "Named Inputs"} {
		require.NotContains(t, after, said)
	}
	_, after = planning.System(planning.Duties{MayGrant: planning.Grants{Inputs: true}})
	require.NotContains(t, after, "Named Inputs")
}

// TestSystemPromptMatchesParsePlan compares the Output Format with the parser: it
// lists exactly the accepted keys, and its example is a valid plan.
func TestSystemPromptMatchesParsePlan(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"title": `"Find"`, "description": `"Find it."`, "assignee": `"analyst"`, "dependsOn": `["Ask"]`, "uses": `["claim"]`, "memoryScope": `"all"`, "role": `"r"`,
		"priority": `"low"`, "maxRetries": "1", "retryDelayMs": "1", "retryBackoff": "1", "tools": `["sql"]`, "requires": `{"requiredCapabilities": ["x"], "requiredBackend": "x", "requiredProvider": "x"}`,
	}
	for _, grants := range []planning.Grants{{}, {Memory: true}, {Inputs: true}, {Tools: true}, {Memory: true, Inputs: true, Tools: true}} {
		_, after := planning.System(planning.Duties{MayGrant: grants})
		r := granting()
		r.MayGrant = grants
		told := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^- "(\w+)":`).FindAllStringSubmatch(after, -1) {
			told[m[1]] = true
		}
		for key, value := range values {
			members := map[string]json.RawMessage{"title": []byte(`"Find"`), "description": []byte(`"Find it."`)}
			members[key] = []byte(value)
			task, err := json.Marshal(members)
			require.NoError(t, err)
			_, err = planning.ParsePlan("["+string(task)+`, {"title": "Ask", "description": "Ask."}]`, r)
			require.Equal(t, told[key], err == nil, "%s, %+v: %v", key, grants, err)
		}
		for key := range told {
			require.Contains(t, values, key)
		}

		example := after[strings.Index(after, "For example:\n"):]
		example = example[:strings.Index(example, "\n\n")]
		specs, err := planning.ParsePlan(example, planning.Rules{Agents: []string{"name from the roster"}, Inputs: []string{"name of an input"}, MayGrant: grants})
		require.NoError(t, err, grants)
		require.Len(t, specs, 2)
		require.Equal(t, grants.Inputs, specs[0].Uses != nil)
	}
}

// TestPromptTextAvoidsReservedLines checks that no line of ours begins as those
// that the prompt builder writes around it.
func TestPromptTextAvoidsReservedLines(t *testing.T) {
	t.Parallel()
	before, after := planning.System(filled)
	names := []string{"analyst", "Letter writer"}
	for _, text := range []string{before, after, planning.PlanText(names), planning.RepairText(names), planning.SynthesisText(), planning.PartText()} {
		line, opener := brief.GoalOpener(text)
		require.Zero(t, line, opener)
		require.Equal(t, strings.TrimSpace(text), strings.TrimRight(text, "\n"))
		require.NotContains(t, text, "  \n")
	}
	require.Contains(t, planning.PlanText(names), "analyst, Letter writer.")
	require.Contains(t, planning.RepairText(names), planning.PlanText(names))
	for _, said := range []string{"Use every result", "failed", "skipped", "withheld", "is data"} {
		require.Contains(t, planning.SynthesisText(), said)
		require.Contains(t, strings.ReplaceAll(planning.PartText(), "were withheld", "withheld"), said)
	}
	for _, said := range []string{"facts", "figures", "names", "which task"} {
		require.Contains(t, planning.PartText(), said)
	}
}
