package assign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A Strategy says how an agent is chosen among the eligible. The zero value
// means [DependencyFirst].
//
// Two strategies give agents tasks in turn. The agents form a line, at first in the order
// of the roster. A task goes to the first eligible agent in the line, which then moves to
// the end. Agents that are passed over keep their places. If all are eligible for all
// tasks, no two differ by more than one task. Tasks that name their agent take no turn.
//
// The other strategies count the tasks that an agent has so far. Tasks that name it count
// from the start, wherever they are in the input.
type Strategy string

// The strategies.
const (
	// DependencyFirst takes the tasks in the order of how many others wait for them,
	// directly or not, most first (equal ones in the order of the input), and gives them to
	// the agents in turn. So the tasks that block most are spread over all agents.
	DependencyFirst Strategy = "dependency-first"

	// RoundRobin takes the tasks in the order of the input and gives them to the agents in turn.
	RoundRobin Strategy = "round-robin"

	// LeastBusy takes the tasks in the order of the input. Each goes to the
	// agent with the fewest tasks so far; the first of several in the roster.
	LeastBusy Strategy = "least-busy"

	// CapabilityMatch takes the tasks in the order of the input. Each goes to
	// the agent that fits it best; of several to the one with the fewest tasks
	// so far, then to the first of the roster.
	//
	// The fit of an agent is its points divided by the most points that an
	// eligible agent has: from 0 to 1, which is the best, and 0 for all where
	// no agent has any. Its points are the sum, over every word that the task's
	// title or description shares with the agent, of 4, or of 1 if the agent has
	// it in its system prompt only, and over every capability whose words are
	// all in the task, of 8; each times the number of agents that do not
	// have this word or capability. So what all have counts nothing, and it
	// does not matter how often or where a word occurs in the task.
	//
	// An agent's words are those of its name, capabilities, description and
	// system prompt. A word is a run of letters, their marks, and digits. Its
	// letter case does not count, and of its letters only the first five do, so
	// that reviews, reviewer and reviewing are one word. Function words of
	// English and numbers of up to three digits do not count. Other words of up
	// to three letters count only if they occur in the name or a capability of
	// some agent, unless their script has no letter case. Chinese, Japanese,
	// Korean, Thai, Lao, Khmer and Burmese, which set words apart less or not at
	// all, are read in pairs of neighbouring letters instead.
	CapabilityMatch Strategy = "capability-match"

	// Composite takes the tasks in the order of the input. Each goes to the
	// agent with the highest 0.7 × fit + 0.3 × load; of several as with
	// CapabilityMatch. Load is T ÷ (T + A × n) with T tasks in all, A agents in
	// all and n tasks that the agent has so far: 1 for none, and one half for
	// an equal share of all tasks.
	Composite Strategy = "composite"
)

// Strategies returns all strategies, the default first.
func Strategies() []Strategy {
	return []Strategy{DependencyFirst, RoundRobin, LeastBusy, CapabilityMatch, Composite}
}

// Valid reports whether s is a strategy, or empty.
func (s Strategy) Valid() bool {
	switch s {
	case "", DependencyFirst, RoundRobin, LeastBusy, CapabilityMatch, Composite:
		return true
	}
	return false
}

// unknown is the problem of a strategy that is none.
func (s Strategy) unknown() task.Problem {
	var words []string
	for _, one := range Strategies() {
		words = append(words, string(one))
	}
	hint := "write one of " + strings.Join(words, ", ")
	if near, ok := naming.Nearest(string(s), words); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return task.Problem{
		Pointer: "/schedulingStrategy", Err: task.ErrInvalid, Hint: hint,
		Message: fmt.Sprintf("schedulingStrategy: unknown word %q", string(s)),
	}
}

// picker returns the function that chooses the agent of a task among the eligible
// ones. There is at least one.
func (a *assigner) picker(s Strategy) func(*task.Task) int32 {
	switch s {
	case LeastBusy:
		return a.idlest
	case CapabilityMatch, Composite:
		f := &fitter{assigner: a, scorer: newScorer(a.roster.agents), weighs: s == Composite}
		return f.best
	default:
		line := make([]int32, len(a.load))
		for i := range line {
			line[i] = int32(i)
		}
		return func(*task.Task) int32 {
			k := slices.IndexFunc(line, a.roster.eligible.has)
			first := line[k]
			line = append(slices.Delete(line, k, k+1), first)
			return first
		}
	}
}

// idlest returns the eligible agent with the fewest tasks.
func (a *assigner) idlest(*task.Task) int32 {
	best := int32(-1)
	for _, i := range a.roster.list() {
		if best < 0 || a.load[i] < a.load[best] {
			best = i
		}
	}
	return best
}

// A fitter chooses by fit, or by fit and load.
type fitter struct {
	*assigner
	*scorer
	weighs bool // load, too
}

// best returns the eligible agent of the highest merit; of several the one
// with the fewest tasks, then the first.
func (f *fitter) best(t *task.Task) int32 {
	f.read(t.Title, t.Description)
	most := int64(0)
	eligible := f.roster.list()
	for _, i := range eligible {
		most = max(most, f.points[i])
	}
	best, highest := int32(-1), 0.0
	for _, i := range eligible {
		if merit := f.merit(i, most); best < 0 || merit > highest || merit == highest && f.load[i] < f.load[best] {
			best, highest = i, merit
		}
	}
	return best
}

// merit is the fit of an agent, most being the most points of any agent, or the
// composite. Each product of the sum is converted, and so rounded by itself:
// no machine fuses it with the sum and answers differently. That of load, of
// whole numbers, is exact either way.
func (f *fitter) merit(i int32, most int64) float64 {
	fit := 0.0
	if most > 0 {
		fit = float64(f.points[i]) / float64(most)
	}
	if !f.weighs {
		return fit
	}
	tasks := float64(f.graph.Len())
	load := tasks / (tasks + float64(len(f.load))*float64(f.load[i]))
	return float64(0.7*fit) + float64(0.3*load)
}
