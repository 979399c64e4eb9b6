package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm"
)

// TestPlansAreAskedForAsJSON checks that the endpoint of a coordinator is requested
// to hold plans, corrected ones too, to their schema, and answers to none.
func TestPlansAreAskedForAsJSON(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var formats []string
	model := llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		format := ""
		if req.Schema != nil {
			format = string(req.Schema)
		}
		formats = append(formats, format)
		switch text := req.Messages[0].Text; {
		case strings.Contains(text, "## Your previous plan"):
			return llm.Response{Text: `[{"title": "Find", "description": "Find it.", "assignee": "analyst"}]`}, nil
		case strings.Contains(text, "\n## Goal\n"):
			return llm.Response{Text: `[{"title": "Find", "description": "Find it.", "assignee": "anlyst"}]`}, nil
		}
		return llm.Response{Text: "the answer"}, nil
	})
	tm := led(t, agent.New(model, agent.Options{}), member("analyst", says("found")))
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Find it."}, nil)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, []engine.StepKind{engine.StepPlan, engine.StepRepair, engine.StepSynthesis}, kinds(res))
	require.Len(t, formats, 3)
	require.JSONEq(t, formats[0], formats[1])
	require.Contains(t, formats[0], `"assignee":{"enum":["analyst"],"type":"string"}`)
	require.NotContains(t, formats[0], `"uses"`)
	require.Empty(t, formats[2])
}
