package scripted_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/scripted"
)

// planned is a task as a plan writes it.
type planned struct {
	Title, Description, Assignee string
	DependsOn                    []string
}

func TestPlansWithoutAScript(t *testing.T) {
	t.Parallel()
	for _, user := range []string{planningPrompt, repairPrompt} {
		var plan []planned
		text := answerOf(t, nil, coordinatorSystem+"\n\n## Output schema\n{\"type\": \"string\"}", user)
		require.NoError(t, json.Unmarshal([]byte(text), &plan), text)
		require.Len(t, plan, 3, "three at most")
		for i, p := range plan {
			require.Equal(t, []string{"analyst", "Letter writer", "critic"}[i], p.Assignee)
			require.Equal(t, fmt.Sprintf("OFFLINE task %d of 3: Find out why margins fell. ## Background - 2025: 12 %% ### F…", i+1), p.Title)
			require.Contains(t, p.Description, "OFFLINE: no model made this plan.")
			require.Contains(t, p.Description, "Find out why margins fell. ## Background - 2025")
			require.NotContains(t, p.Description, "\n")
		}
		require.Empty(t, plan[0].DependsOn)
		require.Empty(t, plan[1].DependsOn)
		require.Equal(t, []string{plan[0].Title, plan[1].Title}, plan[2].DependsOn)
	}
	one := answerOf(t, nil, "## Team Roster\n\n[{\"name\":\"a\"}]", "## Goal\n\n<b>")
	require.JSONEq(t, `[{"title": "OFFLINE task 1 of 1: <b>", "description": "OFFLINE: no model made this plan. Do what you can for this goal: <b>", "assignee": "a"}]`, one)
	require.Contains(t, one, "<b>", "as people read it")
	require.Contains(t, answerOf(t, nil, "no roster", planningPrompt), "OFFLINE: no model wrote this. Sections received:\n- Goal")
}

// TestPlansWithoutAScriptAreAlwaysValid holds, for any goal and roster, what
// every reader of a plan asks for.
func TestPlansWithoutAScriptAreAlwaysValid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zé][a-z0-9 ._-]{0,20}[a-z0-9]`), 1, 6, rapid.ID).Draw(t, "names")
		goal := "g" + strings.NewReplacer("## ", "", "[", "", "#", "").Replace(texts().Draw(t, "goal"))
		agents := make([]map[string]string, len(names))
		for i, n := range names {
			agents[i] = map[string]string{"name": n}
		}
		roster, err := json.Marshal(agents)
		require.NoError(t, err)
		h, err := scripted.New(nil, false)
		require.NoError(t, err)
		var plan []planned
		require.NoError(t, json.Unmarshal([]byte(said(t, h, "## Team Roster\n\n"+string(roster), "## Goal\n\n"+goal)), &plan))
		require.Len(t, plan, min(len(names), 3))
		titles := map[string]bool{}
		for i, p := range plan {
			require.Equal(t, names[i], p.Assignee)
			require.False(t, titles[p.Title], "twice")
			require.Equal(t, p.Title, oneline.Of(p.Title), "one clean line")
			require.LessOrEqual(t, len([]rune(p.Title)), 200)
			require.Equal(t, p.Title, strings.TrimSpace(p.Title))
			require.NotContains(t, p.Description, "\n")
			for _, d := range p.DependsOn {
				require.True(t, titles[d])
			}
			titles[p.Title] = true
		}
		require.Len(t, plan[len(plan)-1].DependsOn, len(plan)-1)
	})
}

func TestAnswersWithoutAScriptToACoordinator(t *testing.T) {
	t.Parallel()
	require.Equal(t, "OFFLINE: no model wrote this. Sections received:\n- Original Goal\n- Task Results (part 2 of 3): Analyse (completed by analyst)\n- Your Task", answerOf(t, nil, "", digestPrompt))
	require.JSONEq(t, `{"a":"OFFLINE"}`, answerOf(t, nil, "## Output schema\n"+`{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, synthesisPrompt))
}
