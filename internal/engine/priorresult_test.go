package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// earlierResult is the result of a confidential task of another run.
func earlierResult(t *testing.T, ttl time.Duration) *envelope.Envelope {
	t.Helper()
	m := member("drafter", says("a confidential draft"))
	m.Accepts = label.Confidential
	s := by("drafter", spec("Draft"))
	s.Classification, s.TTL = label.Confidential, ttl
	return of(t, run(t, newTeam(t, m), nil, s), "Draft").Envelope
}

// A result of an earlier run keeps its label as an input, whatever the caller
// writes, and only readers that are cleared for it get it.
func TestResultsKeepTheirLabelAsInputs(t *testing.T) {
	t.Parallel()
	e := earlierResult(t, 0)
	cleared := member("cleared", echo)
	cleared.Accepts = label.Confidential
	tm := newTeam(t, cleared, member("open", never(t)))
	for own, want := range map[label.Classification]label.Classification{label.Public: label.Confidential, label.Internal: label.Confidential, label.Confidential: label.Confidential} {
		o := &engine.RunOptions{Inputs: []engine.Input{{Name: "draft", Envelope: e, Classification: own}}}
		s := by("cleared", readerOf(task.Use{Name: "draft"}))
		p, err := tm.Plan([]task.Spec{s}, o)
		require.NoError(t, err)
		require.Equal(t, want, p.Inputs[0].Classification)
		res, err := tm.RunTasks(t.Context(), []task.Spec{s}, o)
		require.NoError(t, err)
		require.Contains(t, of(t, res, "reader").Result, "a confidential draft")
		require.Equal(t, want, of(t, res, "reader").Label)
		require.Empty(t, o.Inputs[0].Text, "the caller's options stay as they are")

		_, err = tm.Plan([]task.Spec{by("open", readerOf(task.Use{Name: "draft"}))}, o)
		require.ErrorContains(t, err, "confidential")
	}
	secret := label.Secret
	p, err := tm.Plan([]task.Spec{by("cleared", spec("other"))}, &engine.RunOptions{Inputs: []engine.Input{{Name: "draft", Envelope: e, Classification: secret}}})
	require.NoError(t, err)
	require.Equal(t, secret, p.Inputs[0].Classification, "the caller may raise it")
}

// It expires when the result does.
func TestResultsExpireAsInputs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := earlierResult(t, time.Minute)
		m := member("reader", echo)
		m.Accepts = label.Confidential
		slow := member("slow", func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			time.Sleep(2 * time.Minute)
			return echo(ctx, p)
		})
		tm := newTeam(t, m, slow)
		o := &engine.RunOptions{Inputs: []engine.Input{{Name: "draft", Envelope: e, TTL: time.Hour}}}
		late := readerOf(task.Use{Name: "draft"})
		late.DependsOn = task.On("wait")
		res, err := tm.RunTasks(t.Context(), []task.Spec{by("slow", spec("wait")), late}, o)
		require.NoError(t, err)
		require.Equal(t, "CONTEXT_HELD", of(t, res, "reader").Error.Code, "it expired during the run")
		_, err = tm.Plan([]task.Spec{late, by("slow", spec("wait"))}, o)
		requireFaults(t, err, fault{"/inputs/draft", "run the task again", envelope.ErrExpired})
	})
}

func TestInputIsATextOrAResult(t *testing.T) {
	t.Parallel()
	m := member("reader", never(t))
	m.Accepts = label.Confidential
	_, err := newTeam(t, m).Plan([]task.Spec{readerOf(task.Use{Name: "draft"})}, &engine.RunOptions{Inputs: []engine.Input{{Name: "draft", Text: "x", Envelope: earlierResult(t, 0)}}})
	requireFaults(t, err, fault{"/inputs/draft", "leave one of them out", task.ErrInvalid})
	require.False(t, strings.Contains(err.Error(), "confidential draft"))
}
