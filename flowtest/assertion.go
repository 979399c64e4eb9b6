package flowtest

import "slices"

// An assertion says whether a reader sees a canary.
type assertion struct {
	canary *canary
	reader string
	never  bool
}

// Everybody means all readers in [Flow.Never].
const Everybody = "*"

// Never asserts that a canary reaches none of the readers: agents, "coordinator", "user",
// "tool:NAME" or the URL of an endpoint. [Everybody] means all of them. An agent reads its
// prompts, an endpoint the prompts sent to it, a tool the arguments of its calls, and the user
// the results, their errors and the events of the run. An agent does not read what it writes.
//
// The assertion also holds if the canary reaches no reader at all, provided that its source
// is granted to a reader and withheld by a rule, a need or a label. If the source is granted
// to no reader, use [Everybody]; see [Flow.Run].
func (f *Flow) Never(c Canary, readers ...string) { f.assert(c, readers, true) }

// Reaches asserts that a canary reaches each of the readers, so that a test also fails
// when too much is withheld.
func (f *Flow) Reaches(c Canary, readers ...string) { f.assert(c, readers, false) }

func (f *Flow) assert(c Canary, readers []string, never bool) {
	switch {
	case c.p == nil || !slices.Contains(f.canaries, c.p):
		f.misuse("an assertion names a canary that was not planted in this flow")
		return
	case len(readers) == 0:
		f.misuse("an assertion about %v names no reader", c.p)
	}
	for _, r := range readers {
		if r == Everybody && !never {
			f.misuse("an assertion about %v: * is only for Never; name the readers that it reaches", c.p)
			continue
		}
		f.assertions = append(f.assertions, assertion{c.p, r, never})
	}
}
