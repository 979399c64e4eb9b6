package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A namer runs a task for each person that a planner found, or that are an input, and remembers what
// subscribers and agents got.
type namer struct {
	people string // the list, as JSON
	input  bool   // it is an input
	policy *handoff.Policy
	label  label.Classification // of the list
	user   label.Classification
	ttl    time.Duration
	fails  string // the item whose task fails
	resume string // the ID of the run that is resumed; empty for a new one

	mu      sync.Mutex
	events  []event.Event
	prompts []string
}

// peopleSchema is that of a result with a list of people.
const peopleSchema = `{"type": "object", "required": ["people"], "properties": {"people": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": ["string", "number"]}}}}}}`

func (n *namer) run(t require.TestingT, change func(o *team.RunOptions)) (*team.Result, error) {
	says := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if p.Receipt().Agent == "planner" {
			return agent.Reply{Text: `{"people": ` + n.people + `}`}, nil
		}
		n.prompts = append(n.prompts, p.Text())
		if n.fails != "" && strings.Contains(p.Text(), n.fails) {
			return agent.Reply{}, errors.New("no answer")
		}
		return agent.Reply{Text: "done"}, nil
	})
	members := []team.Member{{Name: "planner", Agent: says}, {Name: "mailer", Agent: says}}
	for i := range members {
		members[i].Backend.Version, members[i].Accepts, members[i].Produces = "1", label.Secret, new(label.Secret)
	}
	policy := handoff.Policy{}
	if n.policy != nil {
		policy = *n.policy
	}
	if n.label == label.Secret {
		from := "planner"
		if n.input {
			from = handoff.User
		}
		policy.Rules = append(policy.Rules, handoff.PairRule{From: from, To: "mailer", Mode: handoff.Full}, handoff.PairRule{From: "mailer", To: "mailer", Mode: handoff.Full})
	}
	tm, err := team.New(team.Config{Policy: &policy, Agents: members})
	require.NoError(t, err)
	list := task.ForEach{Task: "Plan", Path: "/people", Key: "/id", MaxItems: 5}
	specs := []task.Spec{{Title: "Plan", Description: "d", Assignee: "planner", OutputSchema: []byte(peopleSchema), Classification: n.label, TTL: n.ttl}}
	o := &team.RunOptions{UserAccepts: &n.user, Subscribers: []func(event.Event){func(e event.Event) { n.events = append(n.events, e) }}}
	if n.input {
		list.Task, list.Input, specs = "", "people", nil
		o.Inputs = []team.Input{{Name: "people", Text: `{"people": ` + n.people + `}`, Classification: n.label, TTL: n.ttl}}
	}
	specs = append(specs, task.Spec{Title: "Mail", Description: "d", Assignee: "mailer", ForEach: &list},
		task.Spec{Title: "Report", Description: "d", Assignee: "mailer", DependsOn: []task.Ref{{Each: "Mail"}}})
	if change != nil {
		change(o)
	}
	if n.resume != "" {
		o.Tasks = specs
		return tm.Resume(context.Background(), n.resume, o)
	}
	return tm.RunTasks(context.Background(), specs, o)
}

// names returns what the instances are known by in a result; their titles, if it has no names.
func names(res *team.Result) (all []string) {
	for i := range res.Tasks {
		title := res.Tasks[i].Title
		if !strings.Contains(title, "[") {
			continue
		}
		if name := res.ItemName(title); name != "" {
			title = name
		}
		all = append(all, title)
	}
	return all
}

// An instance is known by the key of its item. What could be mistaken for another name, or breaks a
// line, is escaped; where it is not clear who is meant, the position stays.
func TestItemsAreNamedByTheirKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 10_000)
	for name, tt := range map[string]struct {
		people string
		want   []string
		warns  string
	}{
		"texts":              {`[{"id": "ann@x.org"}, {"id": " Bo "}]`, []string{"Mail[ann@x.org]", "Mail[Bo]"}, ""},
		"numbers":            {`[{"id": 2}, {"id": 1.5}, {"id": "1"}]`, []string{"Mail[id=2]", "Mail[id=1.5]", "Mail[id=1]"}, ""},
		"equal keys":         {`[{"id": "a"}, {"id": "b"}, {"id": "A"}]`, []string{"Mail[1]", "Mail[b]", "Mail[3]"}, "2 of 3 items are named by position (equal keys: 2)"},
		"equal number, text": {`[{"id": 7}, {"id": "7"}]`, []string{"Mail[1]", "Mail[2]"}, "2 of 2 items are named by position (equal keys: 2)"},
		"empty keys":         {`[{"id": ""}, {"id": " \t"}, {"id": "c"}]`, []string{"Mail[1]", "Mail[2]", "Mail[c]"}, "2 of 3 items are named by position (empty keys: 2)"},
		"brackets":           {`[{"id": "a][2"}, {"id": "b#2"}, {"id": "say \"c\""}]`, []string{`Mail["a][2"]`, `Mail["b#2"]`, `Mail["say \"c\""]`}, ""},
		"other lines":        {`[{"id": "a\nMail[2]"}, {"id": "\u001b[2Jb"}, {"id": "\u202ec"}]`, []string{`Mail["a\nMail[2]"]`, `Mail["\x1b[2Jb"]`, `Mail["\u202ec"]`}, ""},
		"long keys":          {`[{"id": "` + long + `"}, {"id": "b"}]`, []string{"Mail[" + strings.Repeat("é", 39) + "…]", "Mail[b]"}, ""},
		"equal when cut":     {`[{"id": "` + long + `1"}, {"id": "` + long + `2"}]`, []string{"Mail[1]", "Mail[2]"}, "2 of 2 items are named by position (equal keys: 2)"},
		"a secret":           {`[{"id": "ghp_` + strings.Repeat("a1B2c3D4e5", 4)[:36] + `"}, {"id": "b"}]`, []string{"Mail[1]", "Mail[b]"}, "1 of 2 items are named by position (redacted or withheld keys: 1)"},
	} {
		for _, input := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", input), func(t *testing.T) {
				t.Parallel()
				n := &namer{people: tt.people, input: input, user: label.Confidential}
				res, err := n.run(t, nil)
				require.NoError(t, err)
				require.Equal(t, tt.want, names(res))
				if tt.warns == "" {
					require.Empty(t, res.Warnings)
				} else {
					require.Len(t, res.Warnings, 1, "one for the list")
					require.Contains(t, res.Warnings[0], map[bool]string{false: "key /id of /people of Plan: ", true: "key /id of /people of input people: "}[input]+tt.warns)
				}
				for i, want := range tt.want {
					of, ok := res.Task(want)
					require.True(t, ok)
					require.Equal(t, fmt.Sprintf("Mail[%d]", i+1), of.Title, "the title is the identity")
				}
				for _, e := range n.events[slices.IndexFunc(n.events, func(e event.Event) bool { return e.Type == "task_ready" && strings.HasPrefix(e.Title, "Mail[") }):] { // before that, the names are not known
					if at := slices.IndexFunc(tt.want, func(want string) bool { of, _ := res.Task(want); return of.ID == e.Task }); at >= 0 && tt.want[at] != e.Title && e.Title != "" {
						require.Equal(t, tt.want[at], e.Name, e.Type)
					}
				}
				ruled, after := 0, false // decisions about the list for the caller; after the result of a planner is one
				for _, e := range n.events {
					h, is := e.Data.(event.Handoff)
					if is && e.Agent == handoff.User && (input && h.Kind == handoff.Input || h.From == "planner") {
						ruled++
					}
					after = after || e.Name != "" && ruled < len(res.Tasks)-len(tt.want)
				}
				require.Equal(t, len(res.Tasks)-len(tt.want), ruled, "the keys are one decision")
				require.False(t, after, "it is recorded before a name is used")
				require.Len(t, n.prompts, len(tt.want)+1)
				for i, want := range tt.want {
					if want != fmt.Sprintf("Mail[%d]", i+1) {
						require.NotContains(t, strings.Join(n.prompts, "\n"), want)
					}
				}
			})
		}
	}
}

// Names are unique, one clean line each, and never the position of another item.
func TestNamesOfAnyKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.OneOf(
			rapid.Custom(func(t *rapid.T) any { return rapid.StringN(0, 60, -1).Draw(t, "text") }),
			rapid.Custom(func(t *rapid.T) any {
				return rapid.SampledFrom([]string{"1", "2", "01", "a", "A", "[1]", "1]#1["}).Draw(t, "text")
			}),
			rapid.Custom(func(t *rapid.T) any { return rapid.IntRange(-3, 3).Draw(t, "number") }),
		), 1, 5).Draw(t, "keys")
		people := make([]map[string]any, len(keys))
		for i, key := range keys {
			people[i] = map[string]any{"id": key}
		}
		raw, err := json.Marshal(people)
		require.NoError(t, err)
		n := &namer{people: string(raw), input: true, user: label.Confidential}
		res, err := n.run(t, nil)
		require.NoError(t, err)
		seen := map[string]bool{}
		for i, name := range names(res) {
			require.False(t, seen[name], name)
			seen[name] = true
			require.NotContains(t, name, "\n")
			of, ok := res.Task(name)
			require.True(t, ok)
			require.Equal(t, fmt.Sprintf("Mail[%d]", i+1), of.Title, name)
		}
	})
}

// A key that the caller may not see, or only in part, is in nothing that the caller gets.
func TestNamesPassTheGateToTheCaller(t *testing.T) {
	t.Parallel()
	const canary = "ann@canary.example"
	rule := func(r handoff.PairRule) *handoff.Policy {
		r.From, r.To = "planner", handoff.User
		return &handoff.Policy{Rules: []handoff.PairRule{r}}
	}
	for name, n := range map[string]*namer{
		"secret":              {label: label.Secret, user: label.Secret},
		"a secret input":      {label: label.Secret, user: label.Secret, input: true},
		"it expires":          {user: label.Confidential, ttl: time.Hour},
		"an input expires":    {user: label.Confidential, ttl: time.Hour, input: true},
		"blocked":             {user: label.Confidential, policy: rule(handoff.PairRule{Block: []task.Path{"/people/*/id"}})},
		"one of them blocked": {user: label.Confidential, policy: rule(handoff.PairRule{Block: []task.Path{"/people/0/id"}})},
		"redacted":            {user: label.Confidential, policy: rule(handoff.PairRule{Redact: handoff.Redaction{Kinds: []redact.Kind{redact.Email}}})},
		"minimal":             {user: label.Confidential, policy: rule(handoff.PairRule{Mode: handoff.Minimal})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n.people = `[{"id": "` + canary + `"}, {"id": "bo@canary.example"}]`
			res, err := n.run(t, nil)
			require.NoError(t, err)
			require.Equal(t, []string{"Mail[1]", "Mail[2]"}, names(res))
			require.Len(t, res.Warnings, 1, "the check says it, or the run if only that knows")
			require.Contains(t, res.Warnings[0], "by position")
			for _, e := range n.events {
				require.Empty(t, e.Name)
				raw, err := json.Marshal(e)
				require.NoError(t, err)
				require.NotContains(t, string(raw), canary)
			}
		})
	}
}

// Who waits for an instance that failed says so by its name, and in prompts by its title.
func TestNamesOfFailedItems(t *testing.T) {
	t.Parallel()
	n := &namer{people: `[{"id": "ann"}, {"id": "bo"}]`, fails: "bo", user: label.Confidential}
	res, err := n.run(t, nil)
	require.ErrorContains(t, err, `task "Mail[bo]": no answer`)
	require.Equal(t, "Mail[2]", res.Errors[0].Title)
	require.NotContains(t, res.Errors[0].LogValue().String(), "Mail[bo]", "a log has no name")
	at := slices.IndexFunc(n.events, func(e event.Event) bool { return e.Title == "Report" })
	require.Positive(t, at)
	because := ""
	for _, e := range n.events {
		switch data := e.Data.(type) {
		case event.TaskSkipped:
			because = data.Because
		case event.TaskFailed:
			because = max(because, data.Because)
		}
	}
	require.Equal(t, "Mail[bo]", because)
}

// A run that is resumed or reuses results has the same names.
func TestNamesAfterAResume(t *testing.T) {
	t.Parallel()
	for _, resumes := range []bool{true, false} {
		j := journal.InMemory()
		defer j.Close()
		n := &namer{people: `[{"id": "ann"}, {"id": "bo"}]`, fails: "bo", user: label.Confidential}
		_, err := n.run(t, func(o *team.RunOptions) { o.Journal, o.RunID = j, "r1" })
		require.Error(t, err)
		n.fails, n.events, n.prompts = "", nil, nil
		if resumes {
			n.resume = "r1"
		}
		res, err := n.run(t, func(o *team.RunOptions) { o.Journal, o.Reuse = j, !resumes })
		require.NoError(t, err)
		require.Equal(t, []string{"Mail[ann]", "Mail[bo]"}, names(res))
		require.Len(t, n.prompts, 2, "bo and the report")
	}
}

// After a list is reordered or gets items, a run that reuses results asks only for what is new, and
// each item keeps its name: no prompt has a position.
func TestNamedItemsAreReusedInAnyOrder(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	rapid.Check(t, func(t *rapid.T) {
		j, known := journal.InMemory(), map[string]bool{}
		defer j.Close()
		for k := range 3 {
			ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID[string]).Draw(t, "ids")
			var people, fresh, want []string
			for _, id := range ids {
				people, want = append(people, fmt.Sprintf(`{"id": %q}`, id)), append(want, "Mail["+id+"]")
				if !known[id] {
					fresh = append(fresh, id)
				}
				known[id] = true
			}
			n := &namer{people: "[" + strings.Join(people, ",") + "]", input: true, user: label.Confidential}
			res, err := n.run(t, func(o *team.RunOptions) { o.Journal, o.RunID, o.Reuse = j, fmt.Sprint("run", k), true })
			require.NoError(t, err)
			require.Equal(t, want, names(res))
			asked := slices.DeleteFunc(n.prompts, func(text string) bool { return !strings.Contains(text, `"id"`) })
			require.Len(t, asked, len(fresh))
		}
	})
}

// Items of nested lists, and rounds, are named from the outside to the inside; so is a loop for an
// item.
func TestNamesOfNestedItems(t *testing.T) {
	t.Parallel()
	tm := agentsNamed(t, `{"people":[{"id":"x"},{"id":"x"}],"ok":true}`, "a")
	schema := []byte(`{"type": "object", "required": ["people", "ok"], "properties": {"ok": {"type": "boolean"}, "people": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}}}}`)
	write := task.Spec{Title: "Write", Description: "d", Assignee: "a", OutputSchema: schema}
	point := task.Spec{Title: "Point", Description: "d", Assignee: "a", ForEach: &task.ForEach{Task: "Write", Path: "/people", Key: "/id", As: "point", MaxItems: 2}}
	loop := task.Spec{Title: "Loop", Repeat: &task.Repeat{MaxRounds: 2, OnRepeat: "continue", Until: task.Equals("Write", "/ok", true), Output: "Write", Tasks: []task.Spec{write, point}}}
	specs := []task.Spec{{Title: "All", ForEach: &task.ForEach{Input: "people", Key: "/id", MaxItems: 2, Output: "Loop", Tasks: []task.Spec{loop}}}}
	res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{Inputs: []team.Input{{Name: "people", Text: "id\nann\nbo\n", ListFormat: "csv"}}})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"Write[ann]#1", "Point[ann]#1[1]", "Point[ann]#1[2]", "Loop[ann]", "Write[bo]#1", "Point[bo]#1[1]", "Point[bo]#1[2]", "Loop[bo]",
	}, names(res))
}
