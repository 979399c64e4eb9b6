package planning_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// deciding returns the rules of a plan that may have these constructs.
func deciding(c planning.Constructs) planning.Rules {
	r := rules
	r.MayPlan = c
	return r
}

var everyConstruct = planning.Constructs{When: true, Repeat: true, ForEach: true, Verify: true}

// decisive is a plan with every construct.
const decisive = `[
	{"title": "List", "description": "List them.", "outputSchema": {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}, "found": {"type": "array", "items": {"type": "string"}}}, "required": ["kind"]}},
	{"title": "Read", "description": "Read it.", "forEach": {"task": "List", "path": "/found", "as": "source", "maxItems": 3, "onOverflow": "first", "maxParallel": 2}, "when": {"task": "List", "path": "/kind", "in": ["a"]}},
	{"title": "Other", "description": "Say so.", "when": "else"},
	{"title": "Draft", "repeat": {"maxRounds": 2, "onLimit": "fail", "onRepeat": "continue", "until": [{"task": "Check", "path": "/good", "equals": true}], "output": "Write", "tasks": [
		{"title": "Write", "description": "Write it.", "dependsOn": [{"task": "Check", "round": "previous", "optional": true}, {"each": "Read", "optional": true}, {"oneOf": ["Other", "List"]}]},
		{"title": "Check", "description": "Check it.", "dependsOn": ["Write"], "outputSchema": {"type": "object", "properties": {"good": {"type": "boolean"}}, "additionalProperties": false}}
	]}},
	{"title": "Send", "description": "Send it.", "dependsOn": ["Draft"], "verify": {"mode": "lens", "quorum": 1, "judges": ["analyst", {"agent": "Letter writer", "lens": "tone", "dependsOn": ["List", {"task": "Other", "optional": true}]}]}}
]`

func TestParsePlanReadsConstructs(t *testing.T) {
	t.Parallel()
	specs, err := planning.ParsePlan(decisive, deciding(everyConstruct))
	require.NoError(t, err)
	none := []string{}
	require.Equal(t, []task.Spec{
		{Title: "List", Description: "List them.", Tools: none, OutputSchema: json.RawMessage(`{"properties":{"found":{"items":{"type":"string"},"type":"array"},"kind":{"enum":["a","b"]}},"required":["kind"],"type":"object"}`)},
		{Title: "Read", Description: "Read it.", Tools: none, When: task.In("List", "/kind", "a"), ForEach: &task.ForEach{Task: "List", Path: "/found", As: "source", MaxItems: 3, OnOverflow: "first", MaxParallel: 2}},
		{Title: "Other", Description: "Say so.", Tools: none, When: task.Otherwise()},
		{Title: "Draft", Repeat: &task.Repeat{MaxRounds: 2, OnLimit: "fail", OnRepeat: "continue", Until: task.All(task.Equals("Check", "/good", true)), Output: "Write", Tasks: []task.Spec{
			{Title: "Write", Description: "Write it.", Tools: none, DependsOn: []task.Ref{{Task: "Check", Round: task.Previous, Optional: true}, {Each: "Read", Optional: true}, {OneOf: []string{"Other", "List"}}}},
			{Title: "Check", Description: "Check it.", Tools: none, DependsOn: task.On("Write"), OutputSchema: json.RawMessage(`{"additionalProperties":false,"properties":{"good":{"type":"boolean"}},"type":"object"}`)},
		}}},
		{Title: "Send", Description: "Send it.", Tools: none, DependsOn: task.On("Draft"), Verify: &task.Verify{Mode: "lens", Quorum: 1, MaxRounds: 2, Judges: []task.Judge{
			{Agent: "analyst", Tools: none}, {Agent: "Letter writer", Lens: "tone", DependsOn: []task.Ref{{Task: "List"}, {Task: "Other", Optional: true}}, Tools: none},
		}}},
	}, specs)
}

// TestParsePlanRefusesConstructs checks that each construct needs its own permission.
func TestParsePlanRefusesConstructs(t *testing.T) {
	t.Parallel()
	give := map[string]planning.Constructs{
		`"when": {"task": "Ask", "path": "/x", "equals": 1}`:      {When: true},
		`"dependsOn": [{"oneOf": ["Ask", "Tell"]}]`:               {When: true},
		`"forEach": {"task": "Ask", "path": "/x", "maxItems": 2}`: {ForEach: true},
		`"dependsOn": [{"each": "Ask"}]`:                          {ForEach: true},
		`"repeat": {"maxRounds": 2, "until": {"task": "A", "path": "/x", "equals": 1}, "output": "A", "tasks": [{"title": "A", "description": "x"}]}`:    {Repeat: true},
		`"repeat": {"maxRounds": 2, "tasks": [{"title": "A", "description": "x", "dependsOn": [{"task": "A", "round": "previous", "optional": true}]}]}`: {Repeat: true},
		`"verify": {"judges": ["analyst"]}`:                {Verify: true},
		`"outputSchema": {"type": "object"}`:               {When: true, Repeat: true, ForEach: true},
		`"dependsOn": [{"task": "Ask", "optional": true}]`: everyConstruct,
	}
	for members, needs := range give {
		for _, may := range []planning.Constructs{{}, {When: true}, {Repeat: true}, {ForEach: true}, {Verify: true}} {
			_, err := planning.ParsePlan(one(members), deciding(may))
			refused := err != nil && regexp.MustCompile(`unknown key|a plan does not set it|an object where a text belongs`).MatchString(err.Error())
			allowed := may.When && needs.When || may.Repeat && needs.Repeat || may.ForEach && needs.ForEach || may.Verify && needs.Verify
			require.Equal(t, !allowed, refused, "%s, %+v: %v", members, may, err)
		}
	}
}

func TestParsePlanRefusesBadConstructs(t *testing.T) {
	t.Parallel()
	at := func(key string) string { return "/tasks/0/" + key }
	inLoop := func(tasks string) string {
		return `[{"title": "L", "repeat": {"maxRounds": 2, "until": {"task": "A", "path": "/x", "equals": 1}, "output": "A", "tasks": ` + tasks + `}}]`
	}
	tests := []struct {
		name string
		give string
		want []says
	}{
		{"wrong types", one(`"when": 5, "forEach": [], "outputSchema": "text"`), []says{
			{at("outputSchema"), "outputSchema: a text where an object belongs", `write {"type": "object"`, task.ErrInvalid}, {at("when"), "when: a number where a condition belongs", `write {"task": title`, nil},
			{at("forEach"), "forEach: a list where an object belongs", `write {"task": title, "path": "/items"`, nil},
		}},
		{"unknown words in a condition", one(`"when": {"task": "A", "path": "/x", "eq": 1}`), []says{{at("when"), `when: unknown field "eq"`, `"equals"`, nil}}},
		{"a condition that compares nothing", one(`"when": {"task": "A", "path": "/x"}`), []says{{at("when"), "it compares nothing; write equals, in, gte, lte or exists", "", nil}}},
		{"a condition on no task", one(`"when": {"task": "Aks", "path": "/x", "equals": 1}`), []says{{at("when/task"), `"Aks"`, "", task.ErrUnknown}}},
		{"a text that passes for structure", one(`"when": {"task": "A", "path": "/x", "equals": "## Inputs"}`), []says{{at("when"), "reserved for the prompt's own lines", "reword it", nil}}},
		{"many values", one(`"when": {"task": "A", "path": "/x", "in": [` + strings.Repeat("1,", 64) + `1]}`), []says{{at("when"), "it compares with 65 values, at most 64", "compare with fewer values", nil}}},
		{"an unknown key of a list", one(`"forEach": {"task": "A", "paths": "/x", "maxItems": 1.5}`), []says{
			{at("forEach/paths"), `forEach: unknown key "paths"`, `did you mean "path"?`, planning.ErrUnknownKey}, {at("forEach/maxItems"), "maxItems: it is not a whole number", "from 1 to 1000", nil},
			{at("forEach/task"), `no task "A"`, "", task.ErrUnknown},
		}},
		{"a dependency on nothing", one(`"dependsOn": [{"optional": "yes"}, {"tasks": "A"}]`), []says{
			{at("dependsOn/0/optional"), "a text where true or false belongs", "write true", nil}, {at("dependsOn/0"), "dependsOn[0]: it names no task", `write {"task": title}`, nil},
			{at("dependsOn/1/tasks"), `unknown key "tasks"`, `did you mean "task"?`, nil}, {at("dependsOn/1"), "it names no task", "", nil},
		}},
		{"a schema with texts", one(`"outputSchema": {"type": "object", "description": "obey", "properties": {"` + fakeToken + `": {"enum": ["[INST]"]}}}`), []says{
			{at("outputSchema/description"), `outputSchema: unknown key "description"`, "write one of type, properties", planning.ErrUnknownKey}, {at("outputSchema/properties"), "outputSchema: ", "reword it", nil},
			{at("outputSchema/properties/" + fakeToken + "/enum"), "outputSchema: ", "reword it", nil},
		}},
		{"a large schema", one(`"outputSchema": {"required": ["` + strings.Repeat(`x", "`, planning.MaxDescription/4) + `"]}`), []says{{at("outputSchema/required"), "outputSchema: ", "", nil}, {at("outputSchema"), "at most 16384", "ask for fewer values", nil}}},
		{"a loop with a description", `[{"title": "L", "description": "x", "repeat": {"maxRounds": 2, "until": {"task": "A", "path": "/x", "equals": 1}, "output": "A", "tasks": [{"title": "A", "description": "x"}]}}]`, []says{
			{at("repeat"), "a loop does not have description", "set it in the tasks of the loop", nil},
		}},
		{"a loop without tasks", one(`"repeat": {"maxRounds": 200, "tasks": {}}`), []says{
			{at("repeat/maxRounds"), "200 is out of bounds", "from 1 to 100", nil}, {at("repeat/tasks"), "an object where a list of tasks belongs", "", nil},
		}},
		{"a loop in a loop", inLoop(`[{"title": "A", "description": "x", "repeat": {}}]`), []says{{at("repeat/tasks/0/repeat"), `unknown key "repeat"`, "", planning.ErrUnknownKey}}},
		{"bad tasks in a loop", inLoop(`[{"title": "A", "description": "x", "assignee": "anlyst", "dependsOn": ["B"]}, {"description": "x"}, 3]`), []says{
			{at("repeat/tasks/0/assignee"), "unknown agent", `did you mean "analyst"?`, planning.ErrUnknownAgent}, {at("repeat/tasks/1/title"), "title: it is missing", "", nil}, {at("repeat/tasks/2"), "a number where a task belongs", "", nil},
			{at("repeat/tasks/0/dependsOn/0"), `no task "B"`, "", task.ErrUnknown},
		}},
		{"a judge that is none", one(`"verify": {"judges": ["anlyst", {"lens": 3}, 5, {"agent": "analyst", "lens": "## Inputs", "grants": []}], "quorum": 0, "maxRounds": 101, "onDissent": "rejekt"}`), []says{
			{at("verify/judges/0"), `judges[0]: unknown agent "anlyst"`, `did you mean "analyst"?`, planning.ErrUnknownAgent}, {at("verify/judges/1/lens"), "lens: a number where a text belongs", "", nil},
			{at("verify/judges/2"), "judges[2]: a number where a text belongs", "", nil}, {at("verify/judges/3/grants"), `unknown key "grants"`, "", planning.ErrUnknownKey}, {at("verify/judges/3/lens"), "reserved for the prompt's own lines", "reword it", nil},
			{at("verify/maxRounds"), "101 is out of bounds", "from 1 to 100", nil}, {at("verify/quorum"), "0 is out of bounds", "how many judges must accept", nil},
			{at("verify/onDissent"), `onDissent: unknown word "rejekt"`, "did you mean reject?", nil}, {at("verify/judges/1"), "judges[1] names no agent", "write the name of an agent", nil},
		}},
		{"judges that are none", one(`"verify": {"judges": "analyst"}`), []says{{at("verify/judges"), "judges: a text where a list of judges belongs", `write ["name of an agent"]`, nil}}},
		{"no judges", one(`"verify": {}`), []says{{at("verify/judges"), "verify: there are no judges", "name agents", nil}}},
		{"many judges", one(`"verify": {"judges": [` + strings.Repeat(`"analyst",`, 20) + `"analyst"]}`), []says{{at("verify/judges"), "judges: 21 judges, at most 20", "name only those", nil}}},
		{"judges of a loop", strings.Replace(inLoop(`[{"title": "A", "description": "x"}]`), `{"title": "L", `, `{"title": "L", "verify": {"judges": ["analyst"]}, `, 1), []says{{at("verify"), "it has both repeat and verify", "in the task of the loop", nil}}},
		{"grants of a judge", one(`"verify": {"judges": [{"agent": "analyst", "uses": ["claim"], "tools": ["sql"]}]}`), []says{
			{at("verify/judges/0/tools"), "tools: a grant that this plan may not make", "remove it", planning.ErrGrant}, {at("verify/judges/0/uses"), "uses: a grant that this plan may not make", "remove it", planning.ErrGrant},
		}},
		{"an input of a judge for an item", one(`"forEach": {"task": "A", "path": "/x", "maxItems": 2}, "verify": {"judges": [{"agent": "analyst", "uses": ["item", "claim"]}]}`), []says{
			{at("verify/judges/0/uses/1"), "uses[1]: a grant that this plan may not make", "remove it", planning.ErrGrant}, {at("forEach/task"), `no task "A"`, "", task.ErrUnknown},
		}},
		{"a list in an input", one(`"forEach": {"input": "claim", "maxItems": 2, "files": ["## Inputs"]}`), []says{
			{at("forEach/files/0"), "reserved for the prompt's own lines", "reword it", nil}, {at("forEach/input"), "input: a grant that this plan may not make", "name a task whose result has the list", planning.ErrGrant},
		}},
		{"too many verdicts", one(`"forEach": {"task": "A", "path": "/x", "maxItems": 90}, "verify": {"judges": ["analyst", "analyst", "analyst"]}`) /* 90 × (1 + 2 × 5) = 990 */, []says{{at("forEach/task"), `no task "A"`, "", task.ErrUnknown}}},
		{"one verdict more", one(`"forEach": {"task": "A", "path": "/x", "maxItems": 91}, "verify": {"judges": ["analyst", "analyst", "analyst"]}`), []says{{"/tasks", "more than 1000 tasks", "lower maxRounds", planning.ErrPlan}}},
		{"many verdicts at once", one(`"forEach": {"task": "A", "path": "/x", "maxItems": 166}, "verify": {"judges": ["analyst", "analyst", "analyst"], "onDissent": "reject"}`) /* 166 × (1 + 5) = 996 */, []says{{at("forEach/task"), `no task "A"`, "", task.ErrUnknown}}},
		{"too many reads of judges", `[{"title": "A", "description": "x", "forEach": {"task": "A", "path": "/x", "maxItems": 300}}, {"title": "B", "description": "x", "verify": {"maxRounds": 20, "judges": [` + strings.Repeat(`{"agent": "analyst", "dependsOn": [{"each": "A"}]},`, 3) + `{"agent": "analyst", "dependsOn": [{"each": "A"}]}]}}]`, []says{{"/tasks", "24220 dependencies, at most 20000", "", planning.ErrPlan}}},
		{"too many items", `[{"title": "A", "description": "x"}, {"title": "B", "description": "x", "forEach": {"task": "A", "path": "/x", "maxItems": 1000}}]`, []says{{"/tasks", "all items of lists it has more than 1000 tasks", "lower maxRounds and maxItems", planning.ErrPlan}}},
		{"too many rounds", `[{"title": "L", "repeat": {"maxRounds": 100, "tasks": [` + strings.Repeat(`{"title": "A", "description": "x"},`, 10) + `{}]}}]`, []says{{"/tasks", "more than 1000 tasks", "", planning.ErrPlan}}},
		{"too many tasks in a loop", inLoop(`[` + strings.Repeat(`{"title": "A", "description": "x"},`, 2_000) + `{}]`), []says{{"/tasks", "more than 1000 tasks", "", planning.ErrPlan}}},
		{"too many reads", `[{"title": "A", "description": "x", "forEach": {"task": "A", "path": "/x", "maxItems": 500}, "dependsOn": [` + strings.Repeat(`{"each": "A"},`, 40) + `{"each": "A"}]}]`, []says{{"/tasks", "10250000 dependencies, at most 20000", "", planning.ErrPlan}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := planning.ParsePlan(tt.give, deciding(everyConstruct))
			requireProblems(t, err, tt.want)
			requireTellable(t, err)
		})
	}
}

// TestFaultsNumberTasksOfLoops checks that the coordinator learns which task of a loop is wrong.
func TestFaultsNumberTasksOfLoops(t *testing.T) {
	t.Parallel()
	_, err := planning.ParsePlan(`[{"title": "A", "description": "x"}, {"title": "L", "repeat": {"tasks": [{"title": "W", "description": "x", "priority": 1}, {"description": 2}]}}]`, deciding(everyConstruct))
	var problems task.Problems
	require.ErrorAs(t, err, &problems)
	lines := planning.Faults(problems)
	require.Contains(t, lines, "- task 2.1 \"W\": priority: a number where a text belongs")
	require.Contains(t, lines, "- task 2.2: description: a number where a text belongs")
}

// TestSystemPromptExplainsConstructs checks that the prompt explains what ParsePlan takes, and
// nothing else: each example is a valid plan that has the endpoint's schema.
func TestSystemPromptExplainsConstructs(t *testing.T) {
	t.Parallel()
	for may, grants := range allDuties() {
		decides := may.When || may.Repeat || may.ForEach
		_, after := planning.System(planning.Duties{MayPlan: may, MayGrant: grants})
		for said, want := range map[string]bool{
			`- "when"`: may.When, `"oneOf"`: may.When, `"round"`: may.Repeat, `- "repeat"`: may.Repeat, `- "forEach"`: may.ForEach, `"each"`: may.ForEach,
			`- "verify"`: may.Verify, "## Judges\n": may.Verify, `"agent": name, "dependsOn": [titles], "uses"`: may.Verify && (grants.Inputs || may.ForEach), `"tools": [names of its tools]`: may.Verify && grants.Tools,
			`"input": name`: may.ForEach && grants.Inputs, `- "outputSchema"`: decides, "## Conditions, Loops and Lists": decides, `"gte"`: may.When || may.Repeat, "Only title and description are required": !may.Repeat,
		} {
			require.Equal(t, want, strings.Contains(after, said), "%s, %+v", said, may)
		}
		r := planning.Rules{Agents: []string{"name from the roster"}, Inputs: []string{"name of an input"}, MayPlan: may, MayGrant: grants}
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(planning.PlanSchema(r)), &s))
		resolved, err := s.Resolve(nil)
		require.NoError(t, err)
		for _, example := range regexp.MustCompile(`(?s)For example:\n(\[\n.*?\n\])`).FindAllStringSubmatch(after, -1) {
			specs, err := planning.ParsePlan(example[1], r)
			require.NoError(t, err)
			_, _, err = task.Unroll(specs)
			require.NoError(t, err)
			var plan any
			require.NoError(t, json.Unmarshal([]byte(example[1]), &plan))
			require.NoError(t, resolved.Validate(plan))
		}
	}
}

// allDuties yields constructs and grants of coordinators.
func allDuties() iter.Seq2[planning.Constructs, planning.Grants] {
	return func(yield func(planning.Constructs, planning.Grants) bool) {
		for _, may := range []planning.Constructs{{}, {When: true}, {Repeat: true}, {ForEach: true}, {Verify: true}, {ForEach: true, Verify: true}, everyConstruct} {
			for _, grants := range []planning.Grants{{}, {Inputs: true}, {Tools: true}, {Memory: true, Inputs: true, Tools: true}} {
				if !yield(may, grants) {
					return
				}
			}
		}
	}
}

// TestParsePlanReadsGrantsOfConstructs checks lists of inputs, and what judges are granted, against
// the parser and the endpoint's schema.
func TestParsePlanReadsGrantsOfConstructs(t *testing.T) {
	t.Parallel()
	const text = `[{"title": "Read", "description": "Read it.", "forEach": {"input": "claim", "path": "/rows", "files": ["*.md"], "maxItems": 2}, "verify": {
		"judges": [{"agent": "analyst", "uses": ["item", "policy"], "tools": ["sql"]}], "onDissent": "keep"
	}}]`
	r := granting()
	r.MayPlan = everyConstruct
	specs, err := planning.ParsePlan(text, r)
	require.NoError(t, err)
	require.Equal(t, []task.Spec{{
		Title: "Read", Description: "Read it.", Tools: []string{}, ForEach: &task.ForEach{Input: "claim", Path: "/rows", Files: []string{"*.md"}, MaxItems: 2},
		Verify: &task.Verify{Judges: []task.Judge{{Agent: "analyst", Uses: []task.Use{{Name: "item"}, {Name: "policy"}}, Tools: []string{"sql"}}}, OnDissent: "keep"},
	}}, specs)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(planning.PlanSchema(r)), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	var plan any
	require.NoError(t, json.Unmarshal([]byte(text), &plan))
	require.NoError(t, resolved.Validate(plan))
	_, err = planning.ParsePlan(strings.Replace(text, `"sql"`, `"spell"`, 1), r)
	require.ErrorContains(t, err, `tools[0]: agent "analyst" does not have the tool "spell"`)
}

// TestPlanSchemaAllowsConstructs compares the endpoint's schema with the parser.
func TestPlanSchemaAllowsConstructs(t *testing.T) {
	t.Parallel()
	for _, may := range []planning.Constructs{{}, {When: true}, {Repeat: true}, {ForEach: true}, everyConstruct} {
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal([]byte(planning.PlanSchema(deciding(may))), &s))
		resolved, err := s.Resolve(nil)
		require.NoError(t, err)
		var plan any
		require.NoError(t, json.Unmarshal([]byte(decisive), &plan))
		err = resolved.Validate(plan)
		require.Equal(t, may == everyConstruct, err == nil, "%+v: %v", may, err)
	}
}

// TestConstructsAreTitledHarmlessly checks that lines of a schema are no longer than titles.
func TestConstructsAreTitledHarmlessly(t *testing.T) {
	t.Parallel()
	_, err := planning.ParsePlan(one(fmt.Sprintf(`"outputSchema": {"enum": [%q]}`, strings.Repeat("x", 201))), deciding(everyConstruct))
	requireProblems(t, err, []says{{"/tasks/0/outputSchema/enum", "201 characters, more than 200", "reword it", naming.ErrTitle}})
}

// FuzzParsePlanConstructs checks that any reply is either refused, with problems that the
// coordinator can be told, or a plan that can be written out within its bounds.
func FuzzParsePlanConstructs(f *testing.F) {
	f.Add(decisive)
	f.Add(`[{"title": "L", "repeat": {"maxRounds": 3, "until": {"any": [{"not": {"task": "A", "path": "/x", "gte": 1}}]}, "output": "A", "tasks": [{"title": "A", "description": "x", "when": "else"}]}}]`)
	f.Add(one(`"when": [{"task": "Find", "path": "/x", "exists": false}], "forEach": {"task": "Find", "path": "/x", "maxItems": 7}, "dependsOn": [{"each": "Find"}, "Find"]`))
	f.Add(one(`"verify": {"judges": ["analyst", {"agent": "analyst", "dependsOn": [{"task": "Find", "optional": true}], "uses": []}], "quorum": 1, "onDissent": "keep"}, "forEach": {"task": "Find", "path": "/x", "maxItems": 7}`))
	f.Add(one(`"outputSchema": {"properties": {"a": {"enum": [null, {}]}}, "items": true}, "repeat": null`))
	f.Fuzz(func(t *testing.T, text string) {
		specs, err := planning.ParsePlan(text, deciding(everyConstruct))
		if err != nil {
			require.Empty(t, specs)
			requireTellable(t, err)
			return
		}
		all, _, err := task.Unroll(specs)
		require.NoError(t, err)
		require.LessOrEqual(t, len(all), planning.MaxTasks)
		for i := range all {
			require.NoError(t, gate.CheckUnfenced(all[i].Title))
			require.NoError(t, gate.CheckUnfenced(string(all[i].OutputSchema)))
		}
	})
}
