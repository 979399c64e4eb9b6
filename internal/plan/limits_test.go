package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// readerOf returns a task that is granted inputs.
func readerOf(uses ...task.Use) task.Spec {
	s := spec("reader")
	s.Uses = uses
	return s
}

// An input that does not fit is an error before the run, and not a silent cut.
func TestInputsThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("row,of,a,table\n", 694<<10/15)
	object := `{"small":1,"large":"` + strings.Repeat("x", 257<<10) + `"}`
	in := func(change func(*plan.Input)) []plan.Input {
		one := plan.Input{Name: "table", Text: text}
		if change != nil {
			change(&one)
		}
		return []plan.Input{one}
	}
	use := task.Use{Name: "table"}
	tests := []struct {
		name    string
		config  func(*plan.Config)
		inputs  []plan.Input
		use     task.Use
		message string // empty: it fits
		hint    string
	}{
		{"above the default", nil, in(nil), use, `input "table" has 694 KiB, and at most 256 KiB of it reach "reader"`, "cut: true"},
		{"cut on request", nil, in(func(i *plan.Input) { i.Cut = true }), use, "", ""},
		{"a limit of its own", nil, in(func(i *plan.Input) { i.MaxContextBytes = 800 << 10 }), use, "a prompt of \"reader\" has room for ", "raise maxPromptBytes"},
		{"a limit of its own, in a larger prompt", func(c *plan.Config) { c.MaxPromptBytes = 1 << 20 }, in(func(i *plan.Input) { i.MaxContextBytes = 800 << 10 }), use, "", ""},
		{"the agent's limits", func(c *plan.Config) {
			c.Agents[0].MaxContextBytes, c.Agents[0].MaxPromptBytes = 800<<10, 800<<10
		}, in(nil), use, "", ""},
		{"the team's limits", func(c *plan.Config) { c.MaxContextBytes, c.MaxPromptBytes = 800<<10, 800<<10 }, in(nil), use, "", ""},
		{"the agent's limit comes before the team's", func(c *plan.Config) { c.MaxContextBytes, c.Agents[0].MaxContextBytes = 800<<10, 1000 }, in(nil), use, "at most 1000 bytes", "raise maxContextBytes"},
		{"the input's limit comes before the agent's", func(c *plan.Config) { c.Agents[0].MaxContextBytes = 800 << 10 }, in(func(i *plan.Input) { i.MaxContextBytes = 1000 }), use, "at most 1000 bytes", "raise maxContextBytes"},
		{"a small part of a large value", nil, in(func(i *plan.Input) { i.Text = object }), task.Use{Name: "table", Need: []task.Path{"/small"}}, "", ""},
		{"a large part of a large value", nil, in(func(i *plan.Input) { i.Text = object }), task.Use{Name: "table", Need: []task.Path{"/large"}}, "at most 256 KiB", "smaller parts"},
		{"a large part cannot be cut", nil, in(func(i *plan.Input) { i.Text, i.Cut = object, true }), task.Use{Name: "table", Need: []task.Path{"/large"}}, "at most 256 KiB", "smaller parts"},
		{"more than can be redacted", nil, in(func(i *plan.Input) { i.Text, i.Cut = strings.Repeat("x", gate.MaxRedact+1), true }), use, "input \"table\" has ", "split the input"},
		{"nothing of the size of a secret", func(c *plan.Config) { c.Agents[0].Accepts = label.Secret }, in(func(i *plan.Input) { i.Classification = label.Secret }), use, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := plan.Config{Agents: []plan.Member{member("reader")}}
			o := &plan.Options{Inputs: tt.inputs}
			if tt.config != nil {
				tt.config(&cfg)
			}
			if tt.inputs[0].Classification == label.Secret {
				cfg.Policy = &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "reader", Mode: handoff.Full}}}
				tt.message, tt.hint = "more than 256 KiB", "cut: true"
				r, err := newRoster(cfg)
				require.NoError(t, err)
				second := by("reader", spec("other")) // an answer that the caller may read
				_, err = r.plan([]task.Spec{readerOf(tt.use), second}, o)
				requireFaults(t, err, fault{"/tasks/0/uses/0", tt.hint, brief.ErrTooLarge})
				require.ErrorContains(t, err, tt.message)
				return
			}
			r, err := newRoster(cfg)
			require.NoError(t, err)
			_, err = r.plan([]task.Spec{readerOf(tt.use)}, o)
			if tt.message == "" {
				require.NoError(t, err)
				return
			}
			requireFaults(t, err, fault{"/tasks/0/uses/0", tt.hint, brief.ErrTooLarge})
			require.ErrorContains(t, err, tt.message)
		})
	}
}

// One problem says it, however many tasks read the input.
func TestInputThatDoesNotFitIsReportedOnce(t *testing.T) {
	t.Parallel()
	var specs []task.Spec
	for i := range 20 {
		s := readerOf(task.Use{Name: "table"})
		s.Title = fmt.Sprint("reader ", i)
		specs = append(specs, s)
	}
	_, err := newTeam(t, member("reader")).plan(specs, &plan.Options{Inputs: []plan.Input{{Name: "table", Text: strings.Repeat("x", 300<<10)}}})
	requireFaults(t, err, fault{"/tasks/0/uses/0", "cut: true", brief.ErrTooLarge})
}

func TestDescriptionsThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	s := spec("reader")
	s.Description = strings.Repeat("x", 2000)
	r, err := newRoster(plan.Config{Agents: []plan.Member{member("reader")}, Limits: plan.Limits{MaxPromptBytes: 1000}})
	require.NoError(t, err)
	_, err = r.plan([]task.Spec{s}, nil)
	requireFaults(t, err, fault{"/tasks/0/description", "move long texts to inputs", brief.ErrTooLarge})
}

// The sum of inputs and the room for them reveal nothing about the size of one that
// the caller may not see.
func TestDifferencesOfSumsHideSizesOfSecretInputs(t *testing.T) {
	t.Parallel()
	var said []string
	for _, n := range []int{1200, 1300} {
		deep := member("reader")
		deep.Accepts, deep.MaxPromptBytes = label.Secret, 3000
		r, err := newRoster(plan.Config{
			Agents: []plan.Member{deep},
			Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: handoff.User, To: "reader", Mode: handoff.Full}}},
		})
		require.NoError(t, err)
		for _, need := range [][]task.Path{nil, {"/note"}} {
			_, err = r.plan([]task.Spec{readerOf(task.Use{Name: "record", Need: need}, task.Use{Name: "table"}), by("reader", spec("other"))}, &plan.Options{Inputs: []plan.Input{
				{Name: "record", Text: `{"note":"` + strings.Repeat("x", n) + `"}`, Classification: label.Secret}, {Name: "table", Text: strings.Repeat("x", 2400)},
			}})
			require.ErrorIs(t, err, brief.ErrTooLarge)
			said = append(said, err.Error())
		}
	}
	require.Equal(t, said[:2], said[2:])
}

func TestLimitsOutOfRange(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, gate.MaxRedact + 1} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: unused, Limits: plan.Limits{MaxContextBytes: n}}}, Limits: plan.Limits{MaxContextBytes: n}, Coordinator: &plan.Coordinator{Agent: unused, Limits: plan.Limits{MaxContextBytes: n}}})
		requireFaults(t, err, fault{"/agents/0/maxContextBytes", "default", task.ErrInvalid}, fault{"/maxContextBytes", "default", task.ErrInvalid}, fault{"/coordinator/maxContextBytes", "default", task.ErrInvalid})
		_, err = newTeam(t, member("a")).plan([]task.Spec{spec("a"), {Title: "b", Description: "x", Assignee: "a", DependsOn: []task.Ref{{Task: "a", MaxContextBytes: n}}}}, &plan.Options{Inputs: []plan.Input{{Name: "in", Text: "x", MaxContextBytes: n}}})
		requireFaults(t, err, fault{"/inputs/in/maxContextBytes", "default", task.ErrInvalid}, fault{"/tasks/1/dependsOn/0/maxContextBytes", "default", task.ErrInvalid})
	}
	for _, n := range []int{-1, brief.MaxBytes + 1} {
		_, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "a", Agent: unused, Limits: plan.Limits{MaxPromptBytes: n}}}, Limits: plan.Limits{MaxPromptBytes: n}})
		requireFaults(t, err, fault{"/agents/0/maxPromptBytes", "default", task.ErrInvalid}, fault{"/maxPromptBytes", "default", task.ErrInvalid})
	}
}

// A plan shows how much of a longer input is delivered.
func TestPlansShowInputsThatAreCut(t *testing.T) {
	t.Parallel()
	p, err := newTeam(t, member("reader")).plan([]task.Spec{readerOf(task.Use{Name: "table"})}, &plan.Options{Inputs: []plan.Input{{Name: "table", Text: strings.Repeat("x", 300<<10), Cut: true}}})
	require.NoError(t, err)
	require.Equal(t, gate.DefaultContextBytes, p.Tasks[0].Reads[0].CutTo)
}

// Patterns of a policy cannot hold up the check of a plan, which has no context:
// four of them take minutes for this input.
func TestSlowPatternsDoNotDelayThePlan(t *testing.T) {
	t.Parallel()
	rules := handoff.Redaction{}
	for _, last := range "qrst" {
		rules.Patterns = append(rules.Patterns, redact.Pattern{Name: "slow-" + string(last), Regexp: "x(?:x{0,200})(?:x{0,200})" + string(last)})
	}
	reader := member("reader")
	reader.MaxContextBytes, reader.MaxPromptBytes = 4<<20, 4<<20
	r, err := newRoster(plan.Config{Agents: []plan.Member{reader}, Policy: &handoff.Policy{Redact: rules}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := r.plan([]task.Spec{readerOf(task.Use{Name: "table", Need: []task.Path{"/large"}})}, &plan.Options{Inputs: []plan.Input{{Name: "table", Text: `{"large":"` + strings.Repeat("x", 3500<<10) + `"}`}}})
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the check has not ended after 20 seconds")
	}
}
