package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// readerOf returns a task that is granted inputs.
func readerOf(uses ...task.Use) task.Spec {
	s := spec("reader")
	s.Uses = uses
	return s
}

// Inputs that fit one by one can be too large together.
func TestInputsThatDoNotFitTogether(t *testing.T) {
	t.Parallel()
	var inputs []engine.Input
	var uses []task.Use
	for i := range 5 {
		inputs = append(inputs, engine.Input{Name: fmt.Sprint("part ", i), Text: strings.Repeat("x", 120<<10)})
		uses = append(uses, task.Use{Name: inputs[i].Name})
	}
	tm := newTeam(t, member("reader", echo))
	_, err := tm.Plan([]task.Spec{readerOf(uses...)}, &engine.RunOptions{Inputs: inputs})
	requireFaults(t, err, fault{"/tasks/0/uses/0", "raise maxPromptBytes", brief.ErrTooLarge})
	require.ErrorContains(t, err, "the inputs have 600 KiB together")
	for i := range inputs {
		inputs[i].Cut = true
	}
	res, err := tm.RunTasks(t.Context(), []task.Spec{readerOf(uses...)}, &engine.RunOptions{Inputs: inputs})
	require.NoError(t, err)
	require.Equal(t, 5, strings.Count(of(t, res, "reader").Result, " of 120 KiB: data"))
	require.Empty(t, res.Warnings, "what may be cut is no surprise")
	require.Zero(t, res.Context.Truncated)
}

// A result that a limit cuts is a warning of the run, and its JSON says so.
func TestResultsThatAreCutAreWarnings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	reader := spec("reader")
	reader.DependsOn = task.On("source")
	tests := []struct {
		name   string
		config func(*engine.Config)
		ref    int
		want   string // the warning; empty for none
	}{
		{"by the default", nil, 0, `task "reader": the result of "source" was cut from 300 KiB to 256 KiB; `},
		{"by the team", func(c *engine.Config) { c.MaxContextBytes = 100 << 10 }, 0, "from 300 KiB to 100 KiB"},
		{"by the agent", func(c *engine.Config) { c.MaxContextBytes, c.Agents[1].MaxContextBytes = 1<<20, 50<<10 }, 0, "from 300 KiB to 50 KiB"},
		{"by the dependency", func(c *engine.Config) { c.MaxContextBytes, c.Agents[1].MaxContextBytes = 1<<20, 50<<10 }, 20 << 10, "from 300 KiB to 20 KiB"},
		{"by the prompt", func(c *engine.Config) { c.MaxContextBytes, c.Agents[1].MaxPromptBytes = 1<<20, 50<<10 }, 0, "from 300 KiB to 49."},
		{"by nothing", func(c *engine.Config) { c.MaxContextBytes = 1 << 20 }, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := engine.Config{Agents: []engine.Member{member("source", says(long)), member("reader", echo)}}
			if tt.config != nil {
				tt.config(&cfg)
			}
			tm, err := engine.New(cfg)
			require.NoError(t, err)
			s := reader
			s.DependsOn = []task.Ref{{Task: "source", MaxContextBytes: tt.ref}}
			res, err := tm.RunTasks(t.Context(), []task.Spec{spec("source"), s}, nil)
			require.NoError(t, err)
			require.NoError(t, res.Err())
			if tt.want == "" {
				require.Empty(t, res.Warnings)
				require.Contains(t, of(t, res, "reader").Result, long)
				return
			}
			require.Len(t, res.Warnings, 1)
			require.Equal(t, 1, res.Context.Truncated)
			require.Contains(t, res.Warnings[0], tt.want)
			raw, err := json.Marshal(res)
			require.NoError(t, err)
			var wire struct{ Warnings []string }
			require.NoError(t, json.Unmarshal(raw, &wire))
			require.Equal(t, res.Warnings, wire.Warnings)
		})
	}
}

// Structured dependencies keep the original's 65,536 bytes unless a limit is set.
func TestLimitOfStructuredDependencies(t *testing.T) {
	t.Parallel()
	source := spec("source")
	source.OutputSchema = []byte(`{"type":"string"}`)
	for limit, ok := range map[int]bool{0: false, 70 << 10: false, 101 << 10: true} {
		reader := spec("reader")
		reader.DependsOn = []task.Ref{{Task: "source", As: task.Structured, MaxContextBytes: limit}}
		res := run(t, newTeam(t, member("source", says(`"`+strings.Repeat("x", 100<<10)+`"`)), member("reader", echo)), nil, source, reader)
		if ok {
			require.NoError(t, res.Err())
		} else {
			require.Equal(t, gate.CodeTooLarge, of(t, res, "reader").Error.Code)
		}
	}
}
