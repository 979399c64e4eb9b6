package assign

import (
	"strings"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A roster is the agents, with the demands that each meets.
type roster struct {
	agents []Agent
	index  map[string]int32 // by name

	words   [tag + 1]map[string]set // the agents with a word, for each kind of demand that is a word
	spelled [tag + 1][]string       // all those words as first written
	reach   map[degree]set          // the agents that reach a degree, once it was asked for
	last    [session + 1]demand     // the last demand of each kind that is no word

	demands  []demand // scratch: of the current task
	eligible set      // scratch: the agents that meet them all
	listed   []int32  // scratch: the same as a list
	nearest  int      // how many words may still be compared for hints
}

// nearestBudget bounds the comparisons for hints, so that a hundred thousand tasks without
// an eligible agent are refused at once.
const nearestBudget = 100_000

func newRoster(agents []Agent) *roster {
	r := &roster{
		agents: agents, index: make(map[string]int32, len(agents)),
		reach: map[degree]set{}, eligible: newSet(len(agents)), nearest: nearestBudget,
	}
	for k := range r.words {
		r.words[k] = make(map[string]set)
	}
	for i := range agents {
		r.enter(int32(i))
	}
	return r
}

// enter adds the words of an agent.
func (r *roster) enter(i int32) {
	a := &r.agents[i]
	if _, twice := r.index[a.Name]; !twice {
		r.index[a.Name] = i
	}
	for k, list := range [tag + 1][]string{
		capability: a.Capabilities, tool: a.Tools, backend: {a.Backend}, provider: {a.Provider}, tag: a.OutputTags,
	} {
		for _, word := range list {
			normal := kind(k).normal(word)
			if normal == "" {
				continue
			}
			if r.words[k][normal] == nil {
				r.words[k][normal] = newSet(len(r.agents))
				r.spelled[k] = append(r.spelled[k], strings.TrimSpace(word))
			}
			r.words[k][normal].add(i)
		}
	}
}

// list returns the eligible agents in the order of the roster. It is valid until the next
// call.
func (r *roster) list() []int32 {
	r.listed = r.eligible.appendTo(r.listed[:0])
	return r.listed
}

// narrow finds the agents that are eligible for a task at this level.
func (r *roster) narrow(t *task.Task, level label.Classification) {
	r.demands = r.demands[:0]
	r.require(t)
	r.wantDegree(degree{kind: clearance, level: level})
	r.wantDegree(degree{kind: production, level: level})
	for _, word := range t.RequiredTags {
		r.want(tag, word)
	}
	if t.Timeout > 0 {
		r.wantDegree(degree{kind: session, length: t.Timeout})
	}
	r.intersect()
}

// require adds the demands of the task's tools and requires.
func (r *roster) require(t *task.Task) {
	for _, word := range t.Tools {
		r.want(tool, word)
	}
	if t.Requires == nil {
		return
	}
	for _, word := range t.Requires.Capabilities {
		r.want(capability, word)
	}
	for _, word := range t.Requires.Tools {
		r.want(tool, word)
	}
	if t.Requires.Backend != "" {
		r.want(backend, t.Requires.Backend)
	}
	if t.Requires.Provider != "" {
		r.want(provider, t.Requires.Provider)
	}
}

func (r *roster) want(k kind, word string) {
	r.demands = append(r.demands, demand{degree: degree{kind: k}, word: word, who: r.words[k][k.normal(word)]})
}

// wantDegree adds a demand that is no word.
func (r *roster) wantDegree(d degree) {
	if last := &r.last[d.kind]; last.who == nil || last.degree != d { // most tasks have the same
		who, known := r.reach[d]
		if !known {
			who = newSet(len(r.agents))
			for i := range r.agents {
				if d.reachedBy(&r.agents[i]) {
					who.add(int32(i))
				}
			}
			r.reach[d] = who
		}
		*last = demand{degree: d, who: who}
	}
	r.demands = append(r.demands, r.last[d.kind])
}

// intersect finds the agents that meet all demands.
func (r *roster) intersect() {
	for k := range r.eligible {
		r.eligible[k] = ^uint64(0)
	}
	if over := len(r.agents) % 64; over > 0 {
		r.eligible[len(r.eligible)-1] = 1<<over - 1
	}
	for _, d := range r.demands {
		r.eligible.keep(d.who)
	}
}
