package flowtest

import "slices"

// A promise is what a test says about a canary and a reader.
type promise struct {
	canary *planted
	reader string
	never  bool
}

// Everybody stands for all readers in [Flow.Never].
const Everybody = "*"

// Never promises that a canary comes to none of the readers: agents, the
// coordinator, user, or the URL of an endpoint. [Everybody] means all of them. An
// agent is a reader of its prompts, an endpoint of the prompts sent to it, and the
// user of the results, their errors and the events of the run. What an agent
// writes itself does not come to it by that.
//
// That the canary comes to nobody at all keeps the promise too, as long as its
// source is granted to somebody and withheld by a rule, a need or a label. Where
// nothing is granted, only [Everybody] says that this is meant: see [Flow.Run].
func (f *Flow) Never(c Canary, readers ...string) { f.promise(c, readers, true) }

// Reaches promises that a canary comes to each of the readers: so a test fails,
// too, when too much is cut.
func (f *Flow) Reaches(c Canary, readers ...string) { f.promise(c, readers, false) }

func (f *Flow) promise(c Canary, readers []string, never bool) {
	switch {
	case c.p == nil || !slices.Contains(f.canaries, c.p):
		f.fault("a promise is about a canary that was not planted here")
		return
	case len(readers) == 0:
		f.fault("a promise about %v names no reader", c.p)
	}
	for _, r := range readers {
		if r == Everybody && !never {
			f.fault("a promise about %v: * is for Never: name the readers that it reaches", c.p)
			continue
		}
		f.promises = append(f.promises, promise{c.p, r, never})
	}
}
