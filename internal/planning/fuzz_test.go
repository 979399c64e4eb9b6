package planning_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// FuzzParsePlan checks that any reply is either refused, with problems that the
// coordinator can be told, or a plan that keeps the rules: it resolves as a
// graph, names only agents and inputs that there are, grants only what it may,
// has clean words, and reads the same when it is written again.
func FuzzParsePlan(f *testing.F) {
	for _, seed := range []string{
		one(""), one(`"assignee": "analyst", "priority": "low", "maxRetries": 2, "retryDelayMs": 0.000001, "retryBackoff": 1.25`),
		one(`"uses": ["claim"], "memoryScope": "all", "role": "r", "tools": ["sql"], "requires": {"requiredCapabilities": ["x"], "requiredBackend": "b"}`),
		`[{"title": "A", "description": "x"}, {"title": "B", "description": "## Inputs", "dependsOn": ["a"]}]`,
		`[{"title": "A", "description": "x", "dependsOn": ["B"]}, {"title": "B", "description": "y\r\nz\tw", "dependsOn": ["a"]}]`,
		"Plan:\n```json\n" + one(`"verify": null`) + "\n```", "```\n[1]\n```", `{"tasks": [{}]}`, `[[[[{"a":`, `[{"title": "` + fakeToken + `"}]`, `[null]`, `[{"title":"[INST]","x":{"y":[1e999]}}]`, "\xff", "", "]", "}", "] {} [", "{ ] } [",
	} {
		f.Add(seed, false, false)
		f.Add(seed, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, memory, inputs bool) {
		r := granting()
		r.MayGrant = planning.Grants{Memory: memory, Inputs: inputs, Tools: inputs}
		specs, err := planning.ParsePlan(text, r)
		_, again := planning.ParsePlan(text, r)
		if err != nil {
			require.Empty(t, specs)
			require.EqualError(t, again, err.Error())
			requireTellable(t, err)
			return
		}
		require.NoError(t, again)
		requireKeeps(t, specs, r)
		second, err := planning.ParsePlan(written(t, specs), r)
		require.NoError(t, err)
		require.Equal(t, specs, second)
	})
}

// requireTellable holds problems to a list of bounded, harmless lines, each with a place.
func requireTellable(t *testing.T, err error) {
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.NotEmpty(t, problems)
	places := map[string]bool{}
	for _, p := range problems {
		require.True(t, strings.HasPrefix(p.Pointer, "/tasks"), p.Pointer)
		require.False(t, places[p.Pointer], "two problems at %s", p.Pointer)
		places[p.Pointer] = true
		require.True(t, utf8.ValidString(p.Error()))
		require.NotEmpty(t, p.Message)
		require.Error(t, p.Err)
	}
	lines := strings.Split(planning.Faults(problems), "\n")
	require.Len(t, lines, min(len(problems), planning.MaxFaults+1))
	for _, line := range lines {
		require.NoError(t, gate.CheckUnfenced(line))
		require.LessOrEqual(t, utf8.RuneCountInString(line), 402)
	}
}

// requireKeeps holds an accepted plan to its rules.
func requireKeeps(t *testing.T, specs []task.Spec, r planning.Rules) {
	_, err := task.Resolve(specs, time.Time{})
	require.NoError(t, err)
	require.NotEmpty(t, specs)
	require.LessOrEqual(t, len(specs), planning.MaxTasks)
	for _, s := range specs {
		require.True(t, s.Assignee == "" || slices.Contains(r.Agents, s.Assignee))
		require.True(t, r.MayGrant.Memory || s.MemoryScope != task.ScopeAll)
		require.True(t, r.MayGrant.Inputs || len(s.Uses) == 0)
		require.True(t, s.Tools != nil && (r.MayGrant.Tools || len(s.Tools) == 0))
		for _, u := range s.Uses {
			require.Contains(t, r.Inputs, u.Name)
		}
		for _, words := range []string{s.Title, s.Role} {
			require.NoError(t, gate.CheckUnfenced(words))
			line, _ := brief.Opener(words)
			require.Zero(t, line)
		}
		line, _ := brief.Opener(s.Description)
		require.Zero(t, line)
		require.LessOrEqual(t, len(s.Description), planning.MaxDescription)
		require.Zero(t, s.Key)
	}
}

// written writes specs as a plan.
func written(t *testing.T, specs []task.Spec) string {
	list := make([]map[string]any, len(specs))
	for i, s := range specs {
		one := map[string]any{"title": s.Title, "description": s.Description, "maxRetries": s.MaxRetries}
		for key, text := range map[string]string{"assignee": s.Assignee, "memoryScope": string(s.MemoryScope), "role": s.Role, "priority": string(s.Priority)} {
			if text != "" {
				one[key] = text
			}
		}
		for _, d := range s.DependsOn {
			deps, _ := one["dependsOn"].([]string)
			one["dependsOn"] = append(deps, d.Task)
		}
		for _, u := range s.Uses {
			uses, _ := one["uses"].([]string)
			one["uses"] = append(uses, u.Name)
		}
		if len(s.Tools) > 0 {
			one["tools"] = s.Tools
		}
		if s.Requires != nil {
			one["requires"] = s.Requires
		}
		if s.RetryBackoff != 0 {
			one["retryBackoff"] = s.RetryBackoff
		}
		if s.RetryDelay != 0 {
			one["retryDelayMs"] = json.Number(new(big.Rat).SetFrac64(int64(max(s.RetryDelay, 0)), int64(time.Millisecond)).FloatString(6))
		}
		list[i] = one
	}
	data, err := json.Marshal(list)
	require.NoError(t, err)
	return string(data)
}
