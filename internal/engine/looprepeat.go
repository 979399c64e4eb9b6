package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// ErrLoopStuck reports a loop in which a round would have the same prompts as an earlier one.
var ErrLoopStuck = codes.Condition(codes.LoopStuck)

// comparedRounds are the rounds of one loop as far as they were compared.
type comparedRounds struct {
	next  int                // the first round that was not compared
	given map[record.Key]int // by what the round before delivered, the first round that was given it
	stuck error              // why the round before next does not run; nil if it does
}

// isStuck reports whether a round does not run because it would repeat an earlier one.
func (c *comparedRounds) isStuck() bool { return c != nil && c.stuck != nil }

// repeats reports whether the round of task i does not run because it would repeat an earlier one.
// It is decided once for all tasks of a round, before the first of them runs: each of them waits for
// everything that the round reads of the one before.
func (b *brancher) repeats(ctx context.Context, i int, now time.Time) (bool, error) {
	t := b.run.plan.Graph.Task(i)
	if plan.Rereads(t) == 0 || b.run.messages != nil { // messages differ from round to round
		return false, nil
	}
	ups := b.run.plan.Graph.Upstream(i)
	reads := ups[len(ups)-plan.Rereads(t):]
	before := b.run.plan.Graph.Task(int(reads[0])).Instance
	c := b.rounds[before.Loop]
	if c == nil {
		c = &comparedRounds{given: map[record.Key]int{}}
		b.rounds[before.Loop] = c
	}
	round := before.Round + 1
	if round < c.next {
		return c.isStuck(), nil
	}
	given, same, err := givenBy(ctx, b, reads, now)
	if err != nil {
		return false, err
	}
	c.next = round + 1
	switch first, known := c.given[given]; {
	case !same:
		clear(c.given)
	case known:
		c.stuck = fmt.Errorf("%w: round %d would be given the same as round %d; change what its tasks read, or write onRepeat: continue", ErrLoopStuck, round, first)
	default:
		c.given[given] = round
	}
	return c.isStuck(), nil
}

// givenBy returns a digest of what the results of a round deliver to the next one. same is false if
// equal digests do not prove equal rounds: a task failed on the way to one of the results, or a
// model summarizes one.
func givenBy(ctx context.Context, b *brancher, results []int32, now time.Time) (given record.Key, same bool, err error) {
	var parts []string
	same = !failedBefore(b.run.plan.Graph, b.run.queue, results)
	for _, up := range results {
		from := b.run.plan.Graph.Task(int(up))
		for _, next := range slices.Compact(slices.Clone(b.run.plan.Graph.Downstream(int(up)))) {
			t := b.run.plan.Graph.Task(int(next))
			j := slices.IndexFunc(t.DependsOn[:len(t.DependsOn)-t.Reads], func(d task.Ref) bool { return d.Task == string(from.ID) })
			if j < 0 || plan.RoundIn(b.run.plan.Graph, int(next), from.Instance.Loop) != from.Instance.Round+1 {
				continue
			}
			offer := b.offerDependency(int(next), j, int(up))
			offer.Optional = true
			d, payload, err := b.deliver(ctx, int(next), b.run.plan.Labels[next], b.run.plan.DependencyGrant(int(next), j, int(up)), &offer, now)
			if err != nil {
				return given, false, err
			}
			same = same && d.Verdict != gate.NeedsTranslation
			canonical, _ := payload.JSON()
			for _, list := range t.Instance.Lists {
				parts = append(parts, strconv.Itoa(list.Index))
			}
			parts = append(parts, t.Instance.Pointer, d.Verdict.String(), d.Reason, d.After.String(), string(offer.Status), payload.Text(), canonical)
		}
	}
	return digestOf(parts...), same, nil
}

// failedBefore reports whether a task of the same round failed, or was skipped, on the way to one
// of some results: it might not fail again.
func failedBefore(g *graph.Graph, q *readyqueue.Queue, results []int32) bool {
	in := g.Task(int(results[0])).Instance
	seen := map[int32]bool{}
	for todo := slices.Clone(results); len(todo) > 0; todo = todo[1:] {
		up := todo[0]
		if seen[up] || plan.RoundIn(g, int(up), in.Loop) != in.Round {
			continue
		}
		seen[up] = true
		if s := q.Status(int(up)); s == task.Failed || s == task.Skipped {
			return true
		}
		todo = append(todo, g.Upstream(int(up))...)
	}
	return false
}
