package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
)

// TestEventsShowTheEndpointsOfTheTeam as they are configured, and no other
// address, no credential and nothing that the policy redacts.
func TestEventsShowTheEndpointsOfTheTeam(t *testing.T) {
	t.Parallel()
	const own = "http://10.0.0.5:8000/v1"
	tests := []struct{ name, endpoint, says, want string }{
		{"its own", own, "model \"m\" at " + own + ": cannot be reached", "model \"m\" at " + own + ": cannot be reached"},
		{"at the end", own, "see " + own, "see " + own},
		{"a path below", own, "no " + own + "/models.", "no " + own + "/models."},
		{"on this machine", "http://127.0.0.1:11434", "at http://127.0.0.1:11434; is it running?", "at http://127.0.0.1:11434; is it running?"},
		{"another address", own, "at " + own + " from 10.0.0.7", "at " + own + " from [REDACTED:ip]"},
		{"an address that begins so", "http://10.0.0.5", "at http://10.0.0.50/v1", "at http://[REDACTED:ip]/v1"},
		{"another port", "http://10.0.0.5", "at http://10.0.0.5:99/v1", "at http://[REDACTED:ip]:99/v1"},
		{"a credential in it", "http://10.0.0.5:8000/ghp_aB3dE5gH7jaB3dE5gH7jaB3dE5gH7jaB3dE5", "at http://10.0.0.5:8000/ghp_aB3dE5gH7jaB3dE5gH7jaB3dE5gH7jaB3dE5: no", "at http://[REDACTED:ip]:8000/[REDACTED:token]: no"},
		{"other personal data", own, "at " + own + ": mail a@example.com", "at " + own + ": mail [REDACTED:email]"},
		{"what the policy redacts", "http://10.0.0.5/host-77", "at http://10.0.0.5/host-77", "at http://[REDACTED:ip]/[REDACTED:machine]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			does := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errors.New(tt.says) })
			tm, err := engine.New(engine.Config{
				Agents: []engine.Member{{Name: "a", Agent: does, Backend: plan.Backend{Endpoint: tt.endpoint}}},
				Policy: &handoff.Policy{Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "machine", Regexp: "host-[0-9]+"}}}},
			})
			require.NoError(t, err)
			var said []string
			run(t, tm, &engine.RunOptions{Subscribers: []func(event.Event){func(e event.Event) {
				if e.Message != "" {
					said = append(said, e.Message)
				}
			}}}, spec("a"))
			require.Equal(t, []string{tt.want}, slices.Compact(said))
		})
	}
}
