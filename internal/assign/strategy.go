package assign

import (
	"cmp"
	"slices"

	"github.com/runteam/runteam/task"
)

// A Strategy says how an agent is chosen among the eligible. The zero value
// means [DependencyFirst].
type Strategy string

// The strategies.
const (
	// DependencyFirst takes the tasks in the order of how many others wait for them,
	// directly or not, most first (equal ones in the order of the input), and gives them to
	// the agents in turn. So the tasks that block most are spread over all agents.
	//
	// The agents form a line, at first in the order of the roster. A task goes to the first
	// eligible agent in the line, which then moves to the end. Agents that are passed over
	// keep their places. If all are eligible for all tasks, no two differ by more than one
	// task. Tasks that name their agent take no turn.
	DependencyFirst Strategy = "dependency-first"

	// CapabilityMatch takes the tasks in the order of the input. Each goes to the agent with
	// the most points; of several to the one with the fewest tasks so far, then to the first
	// of the roster. Tasks that name an agent count from the start, wherever they are in the
	// input.
	//
	// The points of an agent are the sum, over every word that the task's
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
)

// Strategies returns the names of all strategies, the default first.
func Strategies() []string { return []string{string(DependencyFirst), string(CapabilityMatch)} }

// Former maps the names of removed strategies to the nearest one that exists. Specs of the original use them.
var Former = map[string]Strategy{"round-robin": DependencyFirst, "least-busy": DependencyFirst, "composite": CapabilityMatch}

// Current returns the strategy that s means: the default if it is empty, the nearest one if it is a
// former name.
func (s Strategy) Current() Strategy { return cmp.Or(Former[string(s)], s, DependencyFirst) }

// Valid reports whether s is a strategy, a former name of one, or empty.
func (s Strategy) Valid() bool { return slices.Contains(Strategies(), string(s.Current())) }

// picker returns the function that chooses the agent of a task among the eligible
// ones. There is at least one.
func (a *assigner) picker(s Strategy) func(*task.Task) int32 {
	if s == CapabilityMatch {
		scorer := newScorer(a.roster.agents)
		return func(t *task.Task) int32 {
			scorer.read(t.Title, t.Description)
			return a.fittest(scorer)
		}
	}
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

// fittest returns the eligible agent with the most points; of several the one with the fewest
// tasks, then the first.
func (a *assigner) fittest(s *scorer) int32 {
	best := int32(-1)
	for _, i := range a.roster.list() {
		if best < 0 || s.points[i] > s.points[best] || s.points[i] == s.points[best] && a.load[i] < a.load[best] {
			best = i
		}
	}
	return best
}
