package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

var (
	price = []task.Spec{{Title: "Price", Description: "Convert the price.", Assignee: "clerk", Uses: []task.Use{{Name: "claim"}}}}
	claim = []plan.Input{{Name: "claim", Text: "canary price 100 EUR", Classification: label.Confidential}}
)

func ratesTool() *tool.Tool {
	return &tool.Tool{
		Name: "rates", Description: "Rates of a currency in a year.",
		Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": [], "properties": {
			"currency": {"enum": ["EUR", "USD", "JPY"]}, "year": {"type": "integer", "minimum": 2000, "maximum": 2100}, "note": {"type": "string"}}}`),
		Run:     func(context.Context, tool.Call) (tool.Result, error) { panic("a plan called a tool") },
		Options: tool.Options{Effect: tool.None},
	}
}

// lowers returns an entry that lowers arguments of the tool rates.
func lowers(paths ...task.Path) *handoff.Policy {
	return &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "rates-only", From: "clerk", To: "tool:rates", Reason: "bounded"}, Paths: paths, LowerTo: label.Internal}}}
}

// confidential returns a team whose clerk reads a confidential input and has a tool.
func confidential(t testing.TB, f *tool.Tool, p *handoff.Policy) roster {
	t.Helper()
	return governed(t, p, plan.Member{Name: "clerk", Agent: asksModel, Accepts: label.Confidential, Tools: []*tool.Tool{f}})
}

// All calls together may carry only a little, and each attempt makes its own.
func TestDeclassifiedArgumentsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := ratesTool()
	f.Parameters = json.RawMessage(strings.Replace(string(f.Parameters), `{"type": "string"}`, `{"type": "string", "pattern": "^[0-9]{32}$"}`, 1))
	r := confidential(t, f, lowers("/note"))
	for retries, want := range map[int]string{0: "", 9: "at most 1024 are allowed"} {
		tasks := []task.Spec{price[0]}
		tasks[0].MaxRetries = retries
		p, err := r.plan(tasks, &plan.Options{Inputs: claim, UserAccepts: new(label.Confidential)})
		if want == "" {
			require.NoError(t, err)
			require.Contains(t, task.Problems(p.Warnings).Error(), "can carry 224 bytes of input \"claim\" below its label")
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestPlanShowsWhatADeclassifierDeliversToATool(t *testing.T) {
	t.Parallel()
	r := confidential(t, ratesTool(), lowers("/currency", "/year"))
	for _, tt := range []struct {
		text  string
		holds bool
	}{
		{"input claim never reaches tool:rates", true},
		{"input claim never derives into tool:rates", false},
		{`task Price never reaches tool:rates`, true},
		{`task Price never derives into tool:rates`, false},
	} {
		p, err := r.plan(price, &plan.Options{Inputs: claim, UserAccepts: new(label.Confidential), Assert: asserting(t, tt.text)})
		require.NoError(t, err)
		require.Equal(t, tt.holds, p.Broken().Err() == nil, "%s: %v", tt.text, p.Broken().Err())
		if !tt.holds {
			require.ErrorContains(t, p.Broken().Err(), "declassified by rates-only")
		}
		text, err := json.Marshal(p)
		require.NoError(t, err)
		require.Contains(t, string(text), `"lowered":[{"by":"rates-only","from":"clerk","result":"arguments of Price","to":"tool:rates","label":"confidential","lowerTo":"internal",`+
			`"paths":[{"path":"/currency","bytes":16},{"path":"/year","bytes":16}],"bytes":32}]`)
		require.Contains(t, string(text), `"disclosed":[{"producer":"clerk","of":"input \"claim\"","results":["arguments of Price"],"bytes":32}]`)
	}
}

// disclosing is a team whose agent "judge" reads secrets and whose results are
// lowered for the agents "letters" and "mail" and for the user.
func disclosing(t *testing.T, unsafe bool, paths ...task.Path) roster {
	t.Helper()
	judge, other := cleared("judge", label.Secret), cleared("other", label.Secret)
	policy := &handoff.Policy{}
	for _, from := range []string{"judge", "other"} {
		policy.Rules = append(policy.Rules, handoff.PairRule{From: handoff.User, To: from, Mode: handoff.Full})
		for _, to := range []string{"letters", "mail", handoff.User} {
			policy.Declassify = append(policy.Declassify, handoff.Declassifier{Entry: handoff.Entry{Name: from + "-to-" + to, From: from, To: to, Reason: "r"}, Paths: paths, LowerTo: label.Internal, UnsafeText: unsafe})
		}
	}
	r, err := newRoster(plan.Config{Agents: []plan.Member{judge, other, member("letters"), member("mail")}, Policy: policy})
	require.NoError(t, err)
	return r
}

func secrets() *plan.Options {
	return &plan.Options{Inputs: []plan.Input{{Name: "one", Text: "x", Classification: label.Secret}, {Name: "two", Text: "y", Classification: label.Secret}}}
}

func warnedOf(p *plan.Plan, text string) bool {
	for _, w := range p.Warnings {
		if strings.Contains(w.Message, text) {
			return true
		}
	}
	return false
}

// judging is a task whose result has n lists, each of which carries 1,280 bytes.
func judging(agent, title, input string, n int) task.Spec {
	var props []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"l%d": {"type": "array", "maxItems": 64, "items": {"type": "string", "pattern": "^[0-9a-f]{40}$"}}`, i))
	}
	s := by(agent, spec(title))
	s.OutputSchema = []byte(`{"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0, "maximum": 65535}, "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, ` + strings.Join(append(props, `"x": {}`), ", ") + `}, "additionalProperties": false}`)
	s.Uses = []task.Use{{Name: input}}
	return s
}

// TestDeclassifiersAreBoundedTogether is about twenty bounded lists that carried
// 25,600 bytes of a secret without a warning.
func TestDeclassifiersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	var lists []task.Path
	for i := range 20 {
		lists = append(lists, task.Path(fmt.Sprintf("/l%d/**", i)))
	}
	specs := []task.Spec{judging("judge", "Judge", "one", 20), by("letters", spec("Write", "Judge"))}
	_, err := disclosing(t, false, lists...).plan(specs, secrets())
	requireFaults(t, err, fault{"/policy/declassify/0/paths", `what "judge" makes can carry 25600 bytes of input "one" below its label, in 1 result, by all declassifiers together: at most 1024 are allowed: bound the values`, task.ErrInvalid})

	p, err := disclosing(t, true, lists...).plan(specs, secrets())
	require.NoError(t, err)
	require.Equal(t, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 25600}}, p.Disclosed)
	require.True(t, warnedOf(p, "25600 bytes"))
}

func TestDisclosuresAreCountedBySourceAndProducer(t *testing.T) {
	t.Parallel()
	letters, mail := by("letters", spec("Write", "Judge")), by("mail", spec("Send", "Judge"))
	again := by("letters", spec("Write again", "Judge again"))
	tries := judging("judge", "Judge", "one", 0)
	tries.MaxRetries = 5
	tests := []struct {
		name  string
		paths []task.Path
		specs []task.Spec
		want  []plan.PlannedDisclosure
		warns bool
	}{
		{"one reader", []task.Path{"/sum"}, []task.Spec{judging("judge", "Judge", "one", 0), letters}, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"several readers get the same value", []task.Path{"/sum"}, []task.Spec{judging("judge", "Judge", "one", 0), letters, mail}, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"retries make one value", []task.Path{"/sum"}, []task.Spec{tries, letters}, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"tasks that read one secret add up", []task.Path{"/hash", "/sum"}, []task.Spec{judging("judge", "Judge", "one", 0), judging("judge", "Judge again", "one", 0), letters, again}, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge", "Judge again"}, Bytes: 68}}, true},
		{"tasks that read several do not", []task.Path{"/hash", "/sum"}, []task.Spec{judging("judge", "Judge", "one", 0), judging("judge", "Judge again", "two", 0), letters, again}, []plan.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 34}}, false},
		{"producers are told apart", []task.Path{"/sum"}, []task.Spec{judging("judge", "Judge", "one", 0), judging("other", "Judge again", "one", 0), letters, again}, []plan.PlannedDisclosure{
			{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}, {Producer: "other", Of: `input "one"`, Results: []string{"Judge again"}, Bytes: 2},
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := disclosing(t, false, tt.paths...).plan(tt.specs, secrets())
			require.NoError(t, err)
			require.Equal(t, tt.want, p.Disclosed)
			require.Equal(t, tt.warns, warnedOf(p, "below its label"))
		})
	}
	t.Run("what a task reads of another one", func(t *testing.T) {
		t.Parallel()
		r := disclosing(t, false, "/sum")
		second := judging("judge", "Judge again", "one", 0)
		second.Uses, second.DependsOn = nil, task.On("Judge")
		first := judging("other", "Judge", "one", 0)
		_, err := r.plan([]task.Spec{first, second, again}, secrets())
		requireFaults(t, err, fault{"/tasks/1/dependsOn/0", "secret flows only by a rule", nil})
	})
	t.Run("a declassifier in the plan", func(t *testing.T) {
		t.Parallel()
		p, err := disclosing(t, false, "/sum").plan([]task.Spec{judging("judge", "Judge", "one", 0), letters}, secrets())
		require.NoError(t, err)
		require.Equal(t, []plan.PlannedLowering{
			{By: "judge-to-letters", From: "judge", Result: "Judge", To: "letters", Task: "Write", Label: label.Secret, LowerTo: label.Internal, Paths: []flow.LoweredPath{{Path: "/sum", Bytes: 2}}, Bytes: 2},
			{By: "judge-to-user", From: "judge", Result: "Judge", To: "user", Label: label.Secret, LowerTo: label.Internal, Paths: []flow.LoweredPath{{Path: "/sum", Bytes: 2}}, Bytes: 2},
		}, p.Lowered)
	})
}
