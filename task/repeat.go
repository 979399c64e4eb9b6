package task

import (
	"reflect"
	"strings"
)

// A Repeat is a loop: its tasks run in rounds, until a condition holds after one of them. In plans
// and results, the task Write of round 2 is Write#2; prompts have the title as written.
//
// Inside the loop, names mean the tasks of the same round first. The tasks outside depend on the
// loop, by its title, and get the result of its output task in the last round that ran.
type Repeat struct {
	MaxRounds int        // required, from 1 to 100
	Until     *Condition // the loop ends after the round in which it holds; it compares results of its tasks
	Output    string     // the task of the loop whose last result is that of the loop
	Tasks     []Spec

	// OnLimit says what it means that Until does not hold after MaxRounds: "last", the default,
	// takes the result of the last round, and "fail" fails the loop with LOOP_LIMIT.
	OnLimit string

	// OnRepeat says what it means that a round would be given the same by the round before as an
	// earlier round was, and so would have the same prompts and results. "fail", the default, ends
	// the loop with LOOP_STUCK before the round has made a call, and "continue" runs it. Rounds with
	// tools, people, commands or samples of a model are always run: see agent.LLM.IsDeterministic.
	OnRepeat string
}

// Previous is the Round of a [Ref] to the round before: in the first round there is no such
// result, so the dependency must be optional.
const Previous = "previous"

// An Instance says which part of a loop or of a list a task is. [Unroll] sets it.
type Instance struct {
	Pointer string   // where the task is written, such as /tasks/2/repeat/tasks/0
	Title   string   // as written, without the round
	Key     string   // as written
	Lacks   []string // titles and keys of tasks of the round before, which the first has not
	Loop    string   // the title of the loop, with the round of the loop that it is in, if any
	Round   int      // from 1; zero outside of loops
	Rounds  int      // how many there are at most
	Lists   []*List  // that it is for an item of each, the innermost one last; nil outside of lists

	// Joins says that the task is the loop itself: it calls no agent, and has the result of the
	// output task in the last round that ran.
	Joins   bool
	Guard   *Condition   // what the round, or the tasks for an item, need in order to run, besides the conditions of the tasks
	GuardAt string       // where that is written, such as /tasks/2/repeat/until
	Again   []Ref        // what the round reads of the one before, if it does not run when that repeats itself
	Until   []*Condition // of a loop: what ends it after each round
	Fails   bool         // of a loop: it fails if that does not hold after the last round

	Judges bool // it judges the result of another task; equal judges are asked each
	Quorum int  // of the task that counts the judges who accept, and of the loop around it: how many must
}

// besideRepeat returns the names of the fields of a loop that have no effect.
func (s *Spec) besideRepeat() (names []string) {
	fields := reflect.ValueOf(s).Elem()
	for field, value := range fields.Fields() {
		switch field.Name {
		case "Title", "Key", "When", "Classification", "Repeat", "Source":
		default:
			if !value.IsZero() {
				names = append(names, strings.ToLower(field.Name[:1])+field.Name[1:])
			}
		}
	}
	return names
}
