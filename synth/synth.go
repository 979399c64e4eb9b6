// Package synth reads the plans that a coordinator writes.
//
//	specs, err := synth.ParsePlan(reply, synth.Rules{Agents: []string{"intake", "letters"}})
//
// A model wrote the plan, so it is read strictly, and it grants nothing but what the
// rules allow. [team.Team.RunTeam] asks for a plan, runs it, and asks for the answer;
// this package is for programs that ask a model themselves.
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

// ParsePlan reads a plan from a reply: a JSON array of tasks, alone, in a code fence or
// within prose. An unknown key, a wrong type, an unknown agent, task or input, a
// duplicate title, a cycle, a grant that the rules do not allow, or a text that could
// pass for a part of a prompt makes it invalid.
//
// The error is [task.Problems] with everything wrong at once; [Faults] writes them for
// the model. Specs that come back without an error resolve as tasks.
func ParsePlan(reply string, r Rules) ([]task.Spec, error) { return planning.ParsePlan(reply, r) }

// Faults writes problems as a model can read them and correct its plan: one clean line
// for each, with the task's number and title, what is wrong and what to write.
func Faults(problems task.Problems) string { return planning.Faults(problems) }

// Simple reports whether a goal is one plain step that needs no plan, such as a short
// question. It errs on the side of no: a plan for a plain goal costs one call, and a
// goal of several steps that gets none is badly answered.
func Simple(goal string) bool { return planning.Simple(goal) }
