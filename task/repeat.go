package task

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/naming"
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

	// OnLimit says what happens if Until does not hold after MaxRounds: "last", the default, takes
	// the result of the last round, and "fail" fails the loop with LOOP_LIMIT.
	OnLimit string

	// OnRepeat says what happens if a round would read the same of the round before as an earlier
	// round did, and so would have the same prompts and results. "fail", the default, ends the loop
	// with LOOP_STUCK before the round has made a call, and "continue" runs it. Rounds with tools,
	// people, commands or models that sample always run: see agent.LLM.IsDeterministic.
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
	Lacks   []string // titles and keys of tasks of the round before, which the first round lacks
	Loop    string   // the title of the loop, with the round of the loop that it is in, if any
	Round   int      // from 1; zero outside of loops
	Rounds  int      // how many there are at most
	Lists   []*List  // that it is for an item of each, the innermost one last; nil outside of lists

	// Joins says that the task is the loop itself: it calls no agent, and has the result of the
	// output task in the last round that ran.
	Joins   bool
	Guard   *Condition   // what the round, or the tasks for an item, need in order to run, besides the conditions of the tasks
	GuardAt string       // where that is written, such as /tasks/2/repeat/until
	When    *Condition   // of a task for an item: the condition of the list of tasks that it is written in, which Guard has too
	Again   []Ref        // what the round reads of the one before, if it does not run when that repeats itself
	Until   []*Condition // of a loop: what ends it after each round
	Fails   bool         // of a loop: it fails if that does not hold after the last round

	Judges bool // it judges the result of another task; equal judges make a call each
	Quorum int  // of the task that counts the judges who accept, and of the loop around it: how many must
}

// besideRepeat returns the names of the fields of a loop that have no effect.
func (s *Spec) besideRepeat() (names []string) {
	fields := reflect.ValueOf(s).Elem()
	for field, value := range fields.Fields() {
		switch field.Name {
		case "Title", "Key", "When", "Classification", "OnFailure", "Repeat", "Source":
		default:
			if !value.IsZero() {
				names = append(names, strings.ToLower(field.Name[:1])+field.Name[1:])
			}
		}
	}
	return names
}

// nearTask returns a hint with the task of a loop that a name most likely means, or else another hint.
func (r *Repeat) nearTask(name, otherwise string) string {
	titles := make([]string, len(r.Tasks))
	for i := range r.Tasks {
		titles[i] = r.Tasks[i].Title
	}
	if near, ok := naming.Nearest(name, titles); ok {
		return fmt.Sprintf("did you mean %s?", naming.Quote(near))
	}
	return otherwise
}

// checkLoop reports what is wrong with a loop.
func (u *unroller) checkLoop(s *Spec, r *Repeat, output int, in *scope, i int) bool {
	before := len(u.found.list)
	bad := func(path, message, hint string) { u.bad(in, i, path, message, hint) }
	switch {
	case in.depth >= maxNesting:
		bad("/repeat", fmt.Sprintf("loops and lists are nested deeper than %d", maxNesting), "move the inner one out")
	case r.MaxRounds < 1 || r.MaxRounds > maxRounds:
		bad("/repeat/maxRounds", fmt.Sprintf("maxRounds is %d", r.MaxRounds), fmt.Sprintf("write how many rounds there may be, from 1 to %d", maxRounds))
	case len(r.Tasks) == 0:
		bad("/repeat/tasks", "the loop has no tasks", "write the tasks of a round")
	case output < 0:
		bad("/repeat/output", fmt.Sprintf("the loop has no task %s", naming.Quote(r.Output)), r.nearTask(r.Output, "name the task whose last result is that of the loop"))
	case r.Tasks[output].ForEach != nil:
		bad("/repeat/output", runsForEach(r.Output), "name a task that runs once in a round, such as one that depends on {each: "+r.Tasks[output].Title+"}")
	case r.Until == nil:
		bad("/repeat/until", "the loop has no condition to end", "write a condition such as {task: Check, path: /valid, equals: true}")
	case len(s.besideRepeat()) > 0:
		bad("/repeat", "a loop does not have "+strings.Join(s.besideRepeat(), ", "), "set it in the tasks of the loop")
	case r.Until.Op == condition.Else:
		bad("/repeat/until", "else is no condition of a loop", "write the condition in full")
	default:
		u.checkCondition(in, i, "/repeat/until", "until", r.Until)
	}
	u.checkWord(in, i, "/repeat/onLimit", "onLimit", r.OnLimit, "last", "fail")
	u.checkWord(in, i, "/repeat/onRepeat", "onRepeat", r.OnRepeat, "fail", "continue")
	u.checkCondition(in, i, "/when", "when", s.When)
	r.Until.Leaves(func(c *Condition) {
		switch k := slices.IndexFunc(r.Tasks, func(t Spec) bool { return isNamed(&t, c.Task) }); {
		case k < 0:
			bad("/repeat/until", fmt.Sprintf("the loop has no task %s", naming.Quote(c.Task)), r.nearTask(c.Task, "compare the result of a task of the loop"))
		case r.Tasks[k].ForEach != nil:
			bad("/repeat/until", runsForEach(c.Task), "compare the result of one task, such as one that depends on {each: "+r.Tasks[k].Title+"}")
		}
	})
	return len(u.found.list) == before
}

// checkCondition reports what is wrong with a condition of a loop, which no single task has.
func (u *unroller) checkCondition(in *scope, i int, at, key string, c *Condition) {
	if c == nil {
		return
	}
	if path, err := c.Check(); err != nil {
		u.bad(in, i, at+naming.Pointer(path...), key+": "+err.Error(), "write a condition such as {task: Check, path: /valid, equals: true}")
	}
}

// repeat writes out the loop that is spec i.
func (u *unroller) repeat(specs []Spec, i int, in *scope) {
	s, r := specs[i], specs[i].Repeat
	output := slices.IndexFunc(r.Tasks, func(t Spec) bool { return isNamed(&t, r.Output) })
	if !u.checkLoop(&s, r, output, in, i) {
		return
	}
	u.rounds(&s, u.condition(specs, i, in), in, in.at(i), scope{pointer: in.at(i) + "/repeat/tasks"}, output)
}

// rounds writes out the rounds of a loop that is written at a pointer and runs on a condition. of
// says where its tasks are written; output is the one whose result it has.
func (u *unroller) rounds(s *Spec, when *Condition, in *scope, at string, of scope, output int) {
	r, title := s.Repeat, s.Title+in.suffix
	guard := both(in.guard, when)
	until := make([]*Condition, r.MaxRounds)
	results := make([]string, r.MaxRounds)
	for n := 1; n <= r.MaxRounds; n++ {
		round := &scope{
			outer: in, pointer: of.pointer, pointers: of.pointers, suffix: suffixOf(in.suffix, n), loop: title,
			key: in.key, depth: in.depth + 1, round: n, rounds: r.MaxRounds, guard: guard, guardAt: in.guardAt, lists: in.lists,
			compare: r.OnRepeat != "continue", again: in.again, onFailure: s.OnFailure,
		}
		switch {
		case n > 1:
			round.guard, round.guardAt, round.again = Not(until[n-2]), cmp.Or(of.guardAt, at+"/repeat/until"), nil
		case when != nil:
			round.guardAt = at + "/when"
		}
		u.list(r.Tasks, round)
		until[n-1] = round.named(r.Until)
		results[r.MaxRounds-n] = round.specs[output].Title + round.suffix
	}
	if len(u.found.list) > 0 {
		return
	}
	out := writerOf(&r.Tasks[output])
	join := Spec{
		Title: title, Key: s.Key, Description: "The result of the last round.", Assignee: out.Assignee, OutputSchema: out.OutputSchema, OutputFiles: out.OutputFiles, Classification: s.Classification, Source: s.Source, Tools: []string{},
		DependsOn: []Ref{{OneOf: results}}, When: when, OnFailure: s.OnFailure,
		Instance: &Instance{
			Pointer: at, Title: s.Title, Loop: in.loop, Round: in.round, Rounds: r.MaxRounds,
			Joins: true, Guard: in.guard, GuardAt: in.guardAt, When: in.when, Again: in.again, Until: until, Fails: r.OnLimit == "fail",
		},
	}
	u.add(join, Place{Pointer: at})
}

// writerOf returns the task that writes the result of a spec: its own, or that of the loop that it
// is. Loops have been checked.
func writerOf(s *Spec) *Spec {
	for s.Repeat != nil {
		s = &s.Repeat.Tasks[slices.IndexFunc(s.Repeat.Tasks, func(t Spec) bool { return isNamed(&t, s.Repeat.Output) })]
	}
	return s
}
