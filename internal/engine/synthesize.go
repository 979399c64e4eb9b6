package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/task"
)

// synthesize answers the goal from the results of the tasks. The coordinator gets the
// title and status of results above its clearance. If the results do not fit into one
// prompt, it digests them in parts, and the digests replace the results.
func (c *coordinator) synthesize(ctx context.Context, results, ended, memory []gate.Offer) {
	for level := 0; ; level++ {
		s := c.answering(results, ended, memory)
		s.whole = level < maxLevels && len(results) > 1
		s.call.stream = newStream(&s.call)
		c.consult(ctx, s)
		if s.split() {
			if results, c.unanswered = c.digests(ctx, s, results, level); c.unanswered != nil {
				return
			}
			continue
		}
		if s.call.err != nil {
			c.unanswered = c.stepError(s, codes.Synthesis)
			return
		}
		if s.call.text == "" {
			c.unanswered = &TaskError{Code: codes.Synthesis, Message: ErrNoAnswer.Error(), Title: string(s.kind), cause: func() error { return ErrNoAnswer }}
		}
		c.output, c.synthesis = s.call.text, s.call.envelope
		return
	}
}

// maxLevels bounds how often digests are digested again; then they are cut.
const maxLevels = 3

// completedOffers offers what completed, in the order written. A loop that completed stands for its
// rounds.
func (r *results) completedOffers() []gate.Offer {
	var list []gate.Offer
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Status == task.Completed && !inCompletedLoop(r, i) {
			list = append(list, gate.Offer{
				Source: gate.Source{Kind: handoff.Dependency, Name: string(t.ID)}, Title: headingFor(r, i), Assignee: t.Assignee,
				Status: t.Status, Envelope: t.Envelope, Optional: true,
			})
		}
	}
	return list
}

// headingFor returns the title of a task as a heading of a prompt.
func headingFor(r *results, i int) string {
	return plan.TitleInPrompts(r.governed(), r.plan.Graph.Task(i), r.tasks[i].Title)
}

// inCompletedLoop reports whether task i is part of a loop that completed, or of one around it.
func inCompletedLoop(r *results, i int) bool {
	for {
		in := r.plan.Graph.Task(i).Instance
		if in == nil || in.Loop == "" {
			return false
		}
		i, _ = r.plan.Graph.Index(task.NewID(in.Loop))
		if r.tasks[i].Status == task.Completed {
			return true
		}
	}
}

// mostEnded is how many tasks of a kind without a result are listed one by one.
const mostEnded = 100

// endedOffers offers why the other tasks have no result: first those that failed, by themselves
// before those that followed from them, then those that were skipped, and none that were not
// needed. Beyond mostEnded of each, one offer counts the others.
func (r *results) endedOffers() []gate.Offer {
	var own, followed, skipped []gate.Offer
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Status == task.Completed || t.Status == task.NotNeeded {
			continue
		}
		o := gate.Offer{Source: gate.Source{Kind: handoff.Fault, Name: string(t.ID)}, Title: headingFor(r, i), Assignee: t.Assignee, Status: t.Status, Envelope: r.faults[i], Optional: true}
		switch {
		case t.Status == task.Skipped:
			skipped = append(skipped, o)
		case o.Envelope == nil:
			followed = append(followed, o)
		default:
			own = append(own, o)
		}
	}
	return append(r.limitListed(append(own, followed...)), r.limitListed(skipped)...)
}

// limitListed completes the first offers, and puts one that counts them in the place
// of the others.
func (r *results) limitListed(ended []gate.Offer) []gate.Offer {
	rest := len(ended) - mostEnded
	if rest > 0 {
		ended = append(ended[:mostEnded:mostEnded], gate.Offer{
			Source: gate.Source{Kind: handoff.Fault, Name: "others " + string(ended[0].Status)}, Title: fmt.Sprintf("%d others", rest), Status: ended[0].Status,
			Envelope: r.ownWords("others", "They are not listed here."), Optional: true,
		})
	}
	for k := range ended {
		if o := &ended[k]; o.Envelope == nil {
			i, _ := r.queue.Index(task.ID(o.Source.Name))
			o.Envelope = r.ownWords(o.Source.Name, r.queue.Reason(i))
		}
	}
	return ended
}

// ownWords returns the reason of a task that another task ended, in the words of the
// runtime.
func (r *runScope) ownWords(what, words string) *envelope.Envelope {
	e, err := envelope.New(envelope.Header{
		ID: envelope.ID("end/" + what), Producer: gate.Runtime, Run: r.id, CreatedAt: time.Now(),
	}, envelope.Text(r.governed().Rules.WithoutNames(words)))
	must(err)
	return e
}

// answering is the step that answers the goal.
func (c *coordinator) answering(results, ended, memory []gate.Offer) *step {
	failed := 0
	for _, o := range ended {
		if o.Status == task.Failed {
			failed++
		}
	}
	n, m := len(results), len(ended)
	return c.step(StepSynthesis, brief.Synthesis, planning.SynthesisText(), slices.Concat(results, ended, memory), func(b *brief.Brief, sealed []gate.Sealed) {
		b.Dependencies, b.Failed, b.Skipped, b.Memory = sealed[:n], sealed[n:n+failed], sealed[n+failed:n+m], digest(sealed[n+m:])
	})
}

// digests has the coordinator make a digest of each part of the results. A result that
// the gate withheld is in no part and stays a line.
func (c *coordinator) digests(ctx context.Context, whole *step, results []gate.Offer, level int) ([]gate.Offer, *TaskError) {
	var parts, held []gate.Offer
	var sizes []int
	for i, o := range results {
		if s := &whole.call.sealed[2+whole.said+i]; s.Withheld() {
			held = append(held, o)
		} else {
			parts, sizes = append(parts, o), append(sizes, s.Payload().Size()+len(o.Title)+len(o.Assignee)+plan.Frame)
		}
	}
	limit := whole.limit() - whole.call.sealed[0].Payload().Size() - len(planning.PartText()) - plan.Frame
	cuts := planning.Parts(sizes, limit)
	steps := make([]*step, len(cuts))
	for i, cut := range cuts {
		steps[i] = c.step(StepDigest, brief.Synthesis, planning.PartText(), parts[cut[0]:cut[1]], func(b *brief.Brief, sealed []gate.Sealed) { b.Dependencies = sealed })
		steps[i].chunk, steps[i].chunks = i+1, len(cuts)
	}
	c.consult(ctx, steps...)
	out := make([]gate.Offer, 0, len(steps)+len(held))
	for i, s := range steps {
		if s.call.err != nil {
			return nil, c.stepError(s, codes.Synthesis)
		}
		out = append(out, gate.Offer{
			Source: gate.Source{Kind: handoff.Digest, Name: fmt.Sprintf("%d/%d", level+1, i+1)}, Title: fmt.Sprintf("Part %d of %d", i+1, len(steps)),
			Assignee: handoff.Coordinator, Envelope: s.call.envelope, Optional: true,
		})
	}
	return append(out, held...), nil
}

// limit returns how many bytes the prompt of a step may have.
func (s *step) limit() int { return brief.Limit(s.call.limits.MaxPromptBytes) }
