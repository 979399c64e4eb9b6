package teammemory

import (
	"context"
	"fmt"
)

// A Reader reads from a memory and cannot write to it. Its holder may
// see all of the team's memory, and takes each entry through the gate before
// an agent sees it. It is safe for concurrent use. The zero Reader refuses
// everything with [ErrNoMemory].
//
// Its field is named otherwise than that of Writer: structs with the same
// fields convert into each other, also outside of this package.
type Reader struct{ source *Memory }

// Entries returns what a filter shows of what can be read at this turn: agents
// in the order of their first entry shown, and each agent's entries in the
// order in which they were written. What is not shown does not decide the
// order. The slice is the caller's; the envelopes cannot change.
//
// It is an error if the store cannot be read at first use, or holds one entry
// that a Writer would have refused; and if ctx has ended.
func (r Reader) Entries(ctx context.Context, f Filter) ([]Entry, error) {
	list, err := r.read(ctx, f)
	if err != nil {
		return nil, err
	}
	return byAgent(list), nil
}

func (r Reader) read(ctx context.Context, f Filter) ([]Entry, error) {
	if r.source == nil {
		return nil, fmt.Errorf("read memory: %w", ErrNoMemory)
	}
	list, _, err := r.source.live(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
	}
	return list, nil
}

// byAgent brings the entries of each agent together, agents in the order in
// which they first appear, without changing the order within one.
func byAgent(list []Entry) []Entry {
	numbers := map[string]int{}
	agent, next := make([]int, len(list)), []int{} // the agent of each entry; where its next one goes
	for i := range list {
		n, ok := numbers[list[i].Agent]
		if !ok {
			n = len(next)
			numbers[list[i].Agent] = n
			next = append(next, 0)
		}
		agent[i] = n
		next[n]++
	}
	start := 0
	for n, count := range next {
		next[n], start = start, start+count
	}
	out := make([]Entry, len(list))
	for i, n := range agent {
		out[next[n]] = list[i]
		next[n]++
	}
	return out
}
