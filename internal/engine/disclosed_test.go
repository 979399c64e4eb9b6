package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// disclosing is a team whose agent "judge" reads secrets and whose results are
// lowered for the agents "letters" and "mail" and for the user.
func disclosing(t *testing.T, unsafe bool, paths ...task.Path) *engine.Team {
	t.Helper()
	judge, other := cleared("judge", label.Secret, never(t)), cleared("other", label.Secret, never(t))
	policy := &handoff.Policy{}
	for _, from := range []string{"judge", "other"} {
		policy.Rules = append(policy.Rules, handoff.PairRule{From: handoff.User, To: from, Mode: handoff.Full})
		for _, to := range []string{"letters", "mail", handoff.User} {
			policy.Declassify = append(policy.Declassify, handoff.Declassifier{Entry: handoff.Entry{Name: from + "-to-" + to, From: from, To: to, Reason: "r"}, Paths: paths, LowerTo: label.Internal, UnsafeText: unsafe})
		}
	}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{judge, other, member("letters", never(t)), member("mail", never(t))}, Policy: policy})
	require.NoError(t, err)
	return tm
}

// judged is a task whose result has n lists, each of which carries 1,280 bytes.
func judged(agent, title, input string, n int) task.Spec {
	var props []string
	for i := range n {
		props = append(props, fmt.Sprintf(`"l%d": {"type": "array", "maxItems": 64, "items": {"type": "string", "pattern": "^[0-9a-f]{40}$"}}`, i))
	}
	s := by(agent, spec(title))
	s.OutputSchema = []byte(`{"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0, "maximum": 65535}, "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, ` + strings.Join(append(props, `"x": {}`), ", ") + `}, "additionalProperties": false}`)
	s.Uses = []task.Use{{Name: input}}
	return s
}

func secrets() *engine.RunOptions {
	return &engine.RunOptions{Inputs: []engine.Input{{Name: "one", Text: "x", Classification: label.Secret}, {Name: "two", Text: "y", Classification: label.Secret}}}
}

// TestDeclassifiersAreBoundedTogether is about twenty bounded lists that carried
// 25,600 bytes of a secret without a warning.
func TestDeclassifiersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	var lists []task.Path
	for i := range 20 {
		lists = append(lists, task.Path(fmt.Sprintf("/l%d/**", i)))
	}
	specs := []task.Spec{judged("judge", "Judge", "one", 20), by("letters", spec("Write", "Judge"))}
	_, err := disclosing(t, false, lists...).Plan(specs, secrets())
	requireFaults(t, err, fault{"/policy/declassify/0/paths", `what "judge" makes can carry 25600 bytes of input "one" below its label, in 1 result, by all declassifiers together: at most 1024 are allowed: bound the values`, task.ErrInvalid})

	p, err := disclosing(t, true, lists...).Plan(specs, secrets())
	require.NoError(t, err)
	require.Equal(t, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 25600}}, p.Disclosed)
	require.True(t, warnedOf(p, "25600 bytes"))
}

func warnedOf(p *engine.Plan, text string) bool {
	for _, w := range p.Warnings {
		if strings.Contains(w.Message, text) {
			return true
		}
	}
	return false
}

func TestDisclosuresAreCountedBySourceAndProducer(t *testing.T) {
	t.Parallel()
	letters, mail := by("letters", spec("Write", "Judge")), by("mail", spec("Send", "Judge"))
	again := by("letters", spec("Write again", "Judge again"))
	tries := judged("judge", "Judge", "one", 0)
	tries.MaxRetries = 5
	tests := []struct {
		name  string
		paths []task.Path
		specs []task.Spec
		want  []engine.PlannedDisclosure
		warns bool
	}{
		{"one reader", []task.Path{"/sum"}, []task.Spec{judged("judge", "Judge", "one", 0), letters}, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"several readers get the same value", []task.Path{"/sum"}, []task.Spec{judged("judge", "Judge", "one", 0), letters, mail}, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"retries make one value", []task.Path{"/sum"}, []task.Spec{tries, letters}, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}}, false},
		{"tasks that read one secret add up", []task.Path{"/hash", "/sum"}, []task.Spec{judged("judge", "Judge", "one", 0), judged("judge", "Judge again", "one", 0), letters, again}, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge", "Judge again"}, Bytes: 68}}, true},
		{"tasks that read several do not", []task.Path{"/hash", "/sum"}, []task.Spec{judged("judge", "Judge", "one", 0), judged("judge", "Judge again", "two", 0), letters, again}, []engine.PlannedDisclosure{{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 34}}, false},
		{"producers are told apart", []task.Path{"/sum"}, []task.Spec{judged("judge", "Judge", "one", 0), judged("other", "Judge again", "one", 0), letters, again}, []engine.PlannedDisclosure{
			{Producer: "judge", Of: `input "one"`, Results: []string{"Judge"}, Bytes: 2}, {Producer: "other", Of: `input "one"`, Results: []string{"Judge again"}, Bytes: 2},
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := disclosing(t, false, tt.paths...).Plan(tt.specs, secrets())
			require.NoError(t, err)
			require.Equal(t, tt.want, p.Disclosed)
			require.Equal(t, tt.warns, warnedOf(p, "below its label"))
		})
	}
	t.Run("what a task reads of another one", func(t *testing.T) {
		t.Parallel()
		tm := disclosing(t, false, "/sum")
		second := judged("judge", "Judge again", "one", 0)
		second.Uses, second.DependsOn = nil, task.On("Judge")
		first := judged("other", "Judge", "one", 0)
		_, err := tm.Plan([]task.Spec{first, second, again}, secrets())
		requireFaults(t, err, fault{"/tasks/1/dependsOn/0", "secret flows only by a rule", nil})
	})
	t.Run("a declassifier in the plan", func(t *testing.T) {
		t.Parallel()
		p, err := disclosing(t, false, "/sum").Plan([]task.Spec{judged("judge", "Judge", "one", 0), letters}, secrets())
		require.NoError(t, err)
		require.Equal(t, []engine.PlannedLowering{
			{By: "judge-to-letters", From: "judge", Result: "Judge", To: "letters", Task: "Write", Label: label.Secret, LowerTo: label.Internal, Paths: []flow.LoweredPath{{Path: "/sum", Bytes: 2}}, Bytes: 2},
			{By: "judge-to-user", From: "judge", Result: "Judge", To: "user", Label: label.Secret, LowerTo: label.Internal, Paths: []flow.LoweredPath{{Path: "/sum", Bytes: 2}}, Bytes: 2},
		}, p.Lowered)
	})
}
