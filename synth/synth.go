// Package synth reads the plans that a coordinator writes.
//
//	specs, err := synth.ParsePlan(reply, synth.Rules{Agents: []string{"intake", "letters"}})
//
// A plan is the text of a model, so it is read strictly and grants nothing but what the
// rules allow. [team.Team.RunTeam] requests a plan, runs it and requests the answer. This
// package is for programs that call a model for a plan themselves.
//
// [team.Team.RunTeam]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.RunTeam
package synth

import (
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// Rules say what a plan may name and grant. The zero value allows no assignee, and no
// grant but dependencies.
type Rules = planning.Rules

// Grants are what a plan may grant in addition to dependencies. The zero value means
// nothing.
type Grants = planning.Grants

// Constructs are conditions, loops, lists and judges, which a plan may have if the rules allow them.
// The zero value means none.
type Constructs = planning.Constructs

// ParsePlan reads a plan from a reply: a JSON array of tasks, alone, in a code fence or
// within prose. An unknown key, a wrong type, an unknown agent, task or input, a
// duplicate title, a cycle, a grant that the rules do not allow, or a text that could
// pass for a part of a prompt makes it invalid.
//
// The error is [task.Problems] with everything wrong at once; [Faults] writes them for
// the model. Specs that come back without an error resolve as tasks, unless they have loops,
// lists or judges: [team.Team.Plan] checks those.
//
// [team.Team.Plan]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.Plan
func ParsePlan(reply string, r Rules) ([]task.Spec, error) { return planning.ParsePlan(reply, r) }

// Faults writes problems for the model that wrote the plan, so that it can correct it: one
// line for each, with the number and title of the task, what is wrong and what to write.
func Faults(problems task.Problems) string { return planning.Faults(problems) }

// Simple reports whether a goal is a single step that needs no plan, such as a short
// question. In doubt it reports false: an unnecessary plan costs one call, and a goal of
// several steps without a plan gets a bad answer.
func Simple(goal string) bool { return planning.Simple(goal) }
