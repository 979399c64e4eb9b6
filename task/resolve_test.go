package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// spec returns a spec that is fine.
func spec(title string, dependsOn ...string) task.Spec {
	return task.Spec{Title: title, Description: "Do it.", DependsOn: task.On(dependsOn...)}
}

func TestResolveFillsInDefaults(t *testing.T) {
	t.Parallel()
	tasks, err := task.Resolve([]task.Spec{spec(" Score \n"), spec("Write", "score")}, at)
	require.NoError(t, err)
	require.Equal(t, task.Task{
		ID: task.NewID("score"), Status: task.Pending, CreatedAt: at, UpdatedAt: at,
		Spec: task.Spec{Title: "Score", Description: "Do it.", MemoryScope: task.ScopeDependencies, RetryDelay: time.Second, RetryBackoff: 2, Priority: task.Normal},
	}, tasks[0])
	require.Equal(t, []task.Ref{{Task: string(task.NewID("score")), As: task.Output}}, tasks[1].DependsOn)
}

func TestResolveKeepsSpecFields(t *testing.T) {
	t.Parallel()
	s := task.Spec{
		Key: "write-1", Title: "Write", Description: "Write it in 2026.", Source: provenance.Source{Params: []provenance.Param{{Name: "year", Start: 12, End: 16}}, Origin: provenance.Position{File: "team.yaml", Line: 3, Column: 5}},
		Assignee: "letters", Requires: &task.Requires{Capabilities: []string{"letters"}}, DependsOn: []task.Ref{{Task: "Score", As: task.Both, Optional: true}}, Uses: []task.Use{{Name: "claim"}},
		MemoryScope: task.ScopeAll, Classification: label.Secret, RequiredTags: []string{"facts"},
		OutputSchema: json.RawMessage(`{}`), TTL: time.Hour, MaxRetries: 3, RetryDelay: time.Minute, RetryBackoff: 1.5,
		Timeout: time.Second, Role: "writer", Priority: task.High, Metadata: map[string]any{"n": 1, "maxTokens": 5},
	}
	none := spec("Score")
	none.RetryDelay, none.MaxRetries = task.NoDelay, -4
	tasks, err := task.Resolve([]task.Spec{s, none}, at)
	require.NoError(t, err)
	require.Equal(t, task.Task{
		ID: task.NewID("Write"), Status: task.Pending, CreatedAt: at, UpdatedAt: at,
		Spec: task.Spec{Key: s.Key, Title: s.Title, Description: s.Description, Source: provenance.Source{Params: s.Source.Params, Origin: s.Source.Origin}, Assignee: s.Assignee, Requires: s.Requires,
			DependsOn: []task.Ref{{Task: string(task.NewID("Score")), As: task.Both, Optional: true}}, Uses: s.Uses,
			MemoryScope: s.MemoryScope, Classification: s.Classification, RequiredTags: s.RequiredTags, OutputSchema: s.OutputSchema, TTL: s.TTL, MaxRetries: 3, RetryDelay: time.Minute, RetryBackoff: 1.5, Timeout: time.Second, Role: s.Role, Priority: s.Priority, Metadata: s.Metadata},
	}, tasks[0])
	require.Zero(t, tasks[1].RetryDelay)
	require.Zero(t, tasks[1].MaxRetries)
}

func TestResolveFindsReferences(t *testing.T) {
	t.Parallel()
	first := spec("Übersicht der Fälle")
	first.Key = "facts"
	for _, ref := range []string{
		"Übersicht der Fälle", " übersicht der fälle ", "U\u0308BERSICHT der fälle", "facts", "FACTS",
		string(task.NewID("übersicht der fälle")), strings.ToUpper(string(task.NewID("übersicht der fälle"))),
	} {
		tasks, err := task.Resolve([]task.Spec{spec("Write", ref), first}, at)
		require.NoError(t, err, ref)
		require.Equal(t, string(tasks[1].ID), tasks[0].DependsOn[0].Task, ref)
	}
}

func TestResolveReportsProblems(t *testing.T) {
	t.Parallel()
	with := func(change func(*task.Spec)) []task.Spec {
		s := spec("Score")
		change(&s)
		return []task.Spec{s}
	}
	metadata := func(key string, value any) []task.Spec {
		return with(func(s *task.Spec) { s.Metadata = map[string]any{key: value} })
	}
	keyed := func(key, title string) task.Spec { s := spec(title); s.Key = key; return s }
	tests := []struct {
		name    string
		give    []task.Spec
		pointer string
		want    string // of the text of the problem
		is      error
	}{
		{"empty title", []task.Spec{spec(" ")}, "/tasks/0/title", "task 1: title: not a title: it is empty", naming.ErrTitle},
		{"long title", []task.Spec{spec(strings.Repeat("a", 201))}, "/tasks/0/title", "201 characters", naming.ErrTitle},
		{"two lines", []task.Spec{spec("a\nb")}, "/tasks/0/title", `task "a\nb": title: not a title: it has a line break (U+000A) at byte 1`, naming.ErrTitle},
		{"bidi", []task.Spec{spec("a\u202eb")}, "/tasks/0/title", `task "a\u202eb"`, naming.ErrTitle},
		{"invalid UTF-8", []task.Spec{spec("a\xff")}, "/tasks/0/title", "UTF-8", naming.ErrTitle},
		{"duplicate title", []task.Spec{spec("Score"), spec(" SCORE")}, "/tasks/1/title", `task "SCORE": title: task 1 has the title "Score" too`, task.ErrDuplicate},
		{"no description", with(func(s *task.Spec) { s.Description = "\n" }), "/tasks/0/description", `description: it is empty`, task.ErrInvalid},
		{"binary description", with(func(s *task.Spec) { s.Description = "\xfe" }), "/tasks/0/description", "UTF-8", task.ErrInvalid},
		{"bad key", with(func(s *task.Spec) { s.Key = "Ab" }), "/tasks/0/key", `key: 'A' at byte 0`, task.ErrInvalid},
		{"long key", with(func(s *task.Spec) { s.Key = strings.Repeat("a", 65) }), "/tasks/0/key", "65 characters", task.ErrInvalid},
		{"duplicate key", []task.Spec{keyed("k", "a"), keyed("k", "b")}, "/tasks/1/key", `task "a" has the key "k" too`, task.ErrDuplicate},
		{"bad assignee", with(func(s *task.Spec) { s.Assignee = "a/b" }), "/tasks/0/assignee", "assignee: not a name", naming.ErrName},
		{"reserved assignee", with(func(s *task.Spec) { s.Assignee = "User" }), "/tasks/0/assignee", "reserved name", naming.ErrReserved},
		{"bad role", with(func(s *task.Spec) { s.Role = "a\nb" }), "/tasks/0/role", "line break", naming.ErrTitle},
		{"unknown scope", with(func(s *task.Spec) { s.MemoryScope = "team" }), "/tasks/0/memoryScope", `unknown word "team": write one of dependencies, all`, task.ErrInvalid},
		{"unknown priority", with(func(s *task.Spec) { s.Priority = "hihg" }), "/tasks/0/priority", `unknown word "hihg": did you mean high?`, task.ErrInvalid},
		{"unknown label", with(func(s *task.Spec) { s.Classification = 9 }), "/tasks/0/classification", "classification(9)", task.ErrInvalid},
		{"unknown form", []task.Spec{spec("a"), {Title: "b", Description: "x", DependsOn: []task.Ref{{Task: "a", As: "text"}}}},
			"/tasks/1/dependsOn/0/as", `dependsOn[0]: as: unknown word "text": write one of output, structured, both`, task.ErrInvalid},
		{"negative delay", with(func(s *task.Spec) { s.RetryDelay = -time.Second }), "/tasks/0/retryDelayMs", "the retry delay -1s is negative", task.ErrInvalid},
		{"small factor", with(func(s *task.Spec) { s.RetryBackoff = 0.5 }), "/tasks/0/retryBackoff", "the retry backoff factor 0.5 is out of range", task.ErrInvalid},
		{"NaN factor", with(func(s *task.Spec) { s.RetryBackoff = math.NaN() }), "/tasks/0/retryBackoff", "NaN", task.ErrInvalid},
		{"infinite factor", with(func(s *task.Spec) { s.RetryBackoff = math.Inf(1) }), "/tasks/0/retryBackoff", "+Inf", task.ErrInvalid},
		{"negative timeout", with(func(s *task.Spec) { s.Timeout = -1 }), "/tasks/0/timeoutMs", "negative", task.ErrInvalid},
		{"negative life", with(func(s *task.Spec) { s.TTL = -1 }), "/tasks/0/ttlMs", "negative", task.ErrInvalid},
		{"parameter outside", with(func(s *task.Spec) { s.Source.Params = []provenance.Param{{Start: 2, End: 99}} }), "/tasks/0/params/0", "bytes 2 to 99", task.ErrInvalid},
		{"parameters overlap", with(func(s *task.Spec) { s.Source.Params = []provenance.Param{{Start: 0, End: 3}, {Start: 2, End: 4}} }), "/tasks/0/params/1", "after byte 3", task.ErrInvalid},
		{"bad input name", with(func(s *task.Spec) { s.Uses = []task.Use{{Name: "a:b"}} }), "/tasks/0/uses/0", "not a name", naming.ErrName},
		{"input twice", with(func(s *task.Spec) { s.Uses = []task.Use{{Name: "a"}, {Name: "A"}} }), "/tasks/0/uses/1", `"A" is named before: remove it`, task.ErrDuplicate},
		{"item of no list", with(func(s *task.Spec) { s.Uses = []task.Use{{Name: "a", Item: "/0"}} }), "/tasks/0/uses/0", "only an instance of a task has an item", task.ErrInvalid},
		{"bad tag", with(func(s *task.Spec) { s.RequiredTags = []string{"a\nb"} }), "/tasks/0/requiredTags/0", "line break", naming.ErrTitle},
		{"tag twice", with(func(s *task.Spec) { s.RequiredTags = []string{"a", "a"} }), "/tasks/0/requiredTags/1", "named before", task.ErrDuplicate},
		{"schema is no JSON", with(func(s *task.Spec) { s.OutputSchema = json.RawMessage("{") }), "/tasks/0/outputSchema", "not JSON", task.ErrInvalid},

		{"unknown task", []task.Spec{spec("Score"), spec("Write", "Scoer")}, "/tasks/1/dependsOn/0", `task "Write": dependsOn[0]: no task "Scoer": did you mean "Score"?`, task.ErrUnknown},
		{"unknown, nothing near", []task.Spec{spec("Write", "Banana")}, "/tasks/0/dependsOn/0", `no task "Banana": write the title, the key or the id of a task`, task.ErrUnknown},
		{"nearest key", []task.Spec{keyed("facts", "Extract"), spec("Write", "fcats")}, "/tasks/1/dependsOn/0", `did you mean "facts"?`, task.ErrUnknown},
		{"empty reference", []task.Spec{spec("Write", " ")}, "/tasks/0/dependsOn/0", "it names no task", task.ErrUnknown},
		{"title or key", []task.Spec{keyed("score", "a"), spec("Score"), spec("Write", "score")}, "/tasks/2/dependsOn/0",
			`"score" names several tasks: task 2 by its title, task "a" by its key`, task.ErrAmbiguous},
		{"title or id", []task.Spec{spec("a"), spec(string(task.NewID("a"))), spec("Write", string(task.NewID("a")))}, "/tasks/2/dependsOn/0", `names several tasks`, task.ErrAmbiguous},
		{"itself", []task.Spec{spec("Write", "write")}, "/tasks/0/dependsOn/0", "it depends on itself", task.ErrSelf},
		{"twice", []task.Spec{spec("a"), spec("b", "a", "A")}, "/tasks/1/dependsOn/1", `"a" is named before`, task.ErrDuplicate},
		{"cycle", []task.Spec{spec("c"), spec("a", "b"), spec("b", "c", "a")}, "/tasks/1/dependsOn", `dependency cycle: a -> b -> a`, task.ErrCycle},

		{"metadata key", metadata("1a", 1), "/tasks/0/metadata/1a", `metadata: "1a": not a key`, task.ErrInvalid},
		{"metadata pointer is escaped", metadata("a/b~", 1), "/tasks/0/metadata/a~1b~0", "not a key", task.ErrInvalid},
		{"long metadata key", metadata(strings.Repeat("a", 65), 1), "/tasks/0/metadata/" + strings.Repeat("a", 65), "not a key", task.ErrInvalid},
		{"reserved metadata key", metadata("OMA.x", 1), "/tasks/0/metadata/OMA.x", "reserved", task.ErrInvalid},
		{"credential", metadata("apiKey", "x"), "/tasks/0/metadata/apiKey", "credential", task.ErrInvalid},
		{"long metadata", metadata("a", strings.Repeat("ä", 1025)), "/tasks/0/metadata/a", "1025 characters", task.ErrInvalid},
		{"metadata list", metadata("a", []string{}), "/tasks/0/metadata/a", "it is a []string: write a string, a number, a boolean or a list of them", task.ErrInvalid},
		{"metadata null", metadata("a", nil), "/tasks/0/metadata/a", "it has no value", task.ErrInvalid},
		{"metadata NaN", metadata("a", math.NaN()), "/tasks/0/metadata/a", "NaN", task.ErrInvalid},
		{"metadata number", metadata("a", json.Number("x")), "/tasks/0/metadata/a", "number", task.ErrInvalid},
		{"metadata UTF-8", metadata("a", "\xff"), "/tasks/0/metadata/a", "UTF-8", task.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tasks, err := task.Resolve(tt.give, at)
			require.Nil(t, tasks)
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok)
			require.Len(t, problems, 1, "%v", err)
			require.Equal(t, tt.pointer, problems[0].Pointer)
			require.ErrorIs(t, err, tt.is)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestResolveAcceptsMetadata(t *testing.T) {
	t.Parallel()
	s := spec("a")
	s.Metadata = map[string]any{"maxTokens": 5, "passenger": true, "keyboard": 1.5, "secretary": "x", "n": json.Number("12"), "u": uint8(3), "f": float32(1)}
	_, err := task.Resolve([]task.Spec{s}, at)
	require.NoError(t, err)
	s.Metadata = map[string]any{}
	for i := range 17 {
		s.Metadata[fmt.Sprintf("k%d", i)] = i
	}
	_, err = task.Resolve([]task.Spec{s}, at)
	require.ErrorContains(t, err, "17 entries, more than 16")
}

func TestCredentialLikeMetadataKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"password", "dbPassword", "API_KEY", "api-key", "apikey", "x.secret", "accessToken", "auth.bearer", "privateKey", "AWS_SECRET_ACCESS_KEY"} {
		s := spec("a")
		s.Metadata = map[string]any{key: "x"}
		_, err := task.Resolve([]task.Spec{s}, at)
		require.ErrorContains(t, err, "credential", key)
	}
}

func TestResolveReportsEverythingAtOnceInTheOrderOfTheText(t *testing.T) {
	t.Parallel()
	bad := spec("Two", "nowhere", "two")
	bad.Description, bad.Priority = "", "x"
	_, err := task.Resolve([]task.Spec{spec("One", "Three"), bad, spec("Three", "one"), spec("two"), spec("x\ny")}, at)
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	var pointers []string
	for _, p := range problems {
		pointers = append(pointers, p.Pointer)
	}
	require.Equal(t, []string{
		"/tasks/0/dependsOn",
		"/tasks/1/description", "/tasks/1/priority", "/tasks/1/dependsOn/0", "/tasks/1/dependsOn/1",
		"/tasks/3/title",
		"/tasks/4/title",
	}, pointers)
	require.Len(t, strings.Split(err.Error(), "\n"), len(problems))
}

func TestResolveNamesEveryCycle(t *testing.T) {
	t.Parallel()
	_, err := task.Resolve([]task.Spec{
		spec("start", "d"),                       // only depends on a cycle
		spec("b", "a"), spec("a", "b", "bridge"), // one cycle
		spec("bridge", "c"),                            // between two
		spec("c", "d"), spec("d", "e"), spec("e", "c"), // another
		spec("end"),
	}, at)
	problems, _ := errors.AsType[task.Problems](err)
	require.Len(t, problems, 2)
	require.ErrorContains(t, problems[0], "dependency cycle: b -> a -> b: remove one of these dependencies")
	require.ErrorContains(t, problems[1], "dependency cycle: c -> d -> e -> c")
	cycle, ok := errors.AsType[*task.CycleError](problems[1])
	require.True(t, ok)
	require.Equal(t, []task.ID{task.NewID("c"), task.NewID("d"), task.NewID("e")}, cycle.Path)
}

func TestResolveSurvivesHugeCycles(t *testing.T) {
	slowtest.Only(t)
	for _, n := range []int{100_000, 130_000} { // below and above what the library is trusted with
		specs := shape("chain", n)
		specs[0].DependsOn = task.On(specs[n-1].Title)
		_, err := task.Resolve(specs, at)
		cycle, ok := errors.AsType[*task.CycleError](err)
		require.True(t, ok)
		require.Len(t, cycle.Path, n)
		require.EqualError(t, cycle, fmt.Sprintf("dependency cycle: Task number 0 -> Task number %d -> Task number %d -> Task number %d -> Task number %d -> (%d more) -> "+
			"Task number 3 -> Task number 2 -> Task number 1 -> Task number 0", n-1, n-2, n-3, n-4, n-8))
	}
}

func TestResolveNamesSmallCyclesUnderneathManyTasks(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	specs := shape("chain", 130_000)
	specs[0].DependsOn = task.On("a", "c")
	specs = append(specs, spec("a", "b"), spec("b", "a"), spec("c", "d"), spec("d", "c"))
	_, err := task.Resolve(specs, at)
	problems, _ := errors.AsType[task.Problems](err)
	require.Len(t, problems, 2)
	require.ErrorContains(t, problems[1], "c -> d -> c")
}

func TestResolveRefusesManyWrongReferencesQuickly(t *testing.T) {
	slowtest.Only(t)
	t.Parallel()
	specs := shape("chain", 50_000)
	for i := range specs[1:] {
		specs[i+1].DependsOn[0].Task += "x"
	}
	_, err := task.Resolve(specs, at)
	problems, _ := errors.AsType[task.Problems](err)
	require.Len(t, problems, len(specs)-1)
	require.ErrorContains(t, problems[0], "did you mean")
}

func TestResolveOfNothing(t *testing.T) {
	t.Parallel()
	tasks, err := task.Resolve(nil, at)
	require.NoError(t, err)
	require.Empty(t, tasks)
}

func FuzzResolve(f *testing.F) {
	f.Add("a", "b", "a", "b", "k")
	f.Add("A\n", "a\u2028", "", "\xff", "")
	f.Fuzz(func(t *testing.T, first, second, ref, other, key string) {
		specs := []task.Spec{spec(first, ref), spec(second, ref, other)}
		specs[0].Key = key
		tasks, err := task.Resolve(specs, at)
		if err != nil {
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok)
			for _, p := range problems {
				require.NoError(t, naming.CheckLine(p.Error()), "a problem is one clean line")
			}
			return
		}
		for i := range tasks {
			require.NoError(t, naming.CheckTitle(tasks[i].Title))
			require.Equal(t, task.NewID(specs[i].Title), tasks[i].ID)
		}
	})
}
