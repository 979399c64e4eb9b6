package assign_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A fitted team is a roster and tasks with the agents that a person chose for them.
type fitted struct {
	Team   string         `json:"team"`
	Agents []assign.Agent `json:"agents"`
	Tasks  []struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		Want        string `json:"want"`
	} `json:"tasks"`
}

// TestFitChoosesLikeAPerson counts the tasks of eight teams, in four languages,
// that go to the agent that a person chose for them. The count is a lower bound for
// changes of how fit is measured.
func TestFitChoosesLikeAPerson(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/fits.json")
	require.NoError(t, err)
	var teams []fitted
	require.NoError(t, json.Unmarshal(data, &teams))
	found, all := 0, 0
	for _, team := range teams {
		specs := make([]task.Spec, len(team.Tasks))
		for i, one := range team.Tasks {
			specs[i] = task.Spec{Title: one.Title, Description: one.Description}
		}
		g, err := graph.Resolve(specs, time.Time{})
		require.NoError(t, err)
		chosen, err := assign.Tasks(g, make([]label.Classification, g.Len()), team.Agents, assign.CapabilityMatch)
		require.NoError(t, err)
		for i, who := range chosen {
			if team.Agents[who].Name == team.Tasks[i].Want {
				found++
			} else {
				t.Logf("%s: %q goes to %s, not to %s", team.Team, team.Tasks[i].Title, team.Agents[who].Name, team.Tasks[i].Want)
			}
		}
		all += len(specs)
	}
	require.Equal(t, 61, all)
	require.GreaterOrEqual(t, found, 54)
	t.Log(found)
}
