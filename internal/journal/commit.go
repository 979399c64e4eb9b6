package journal

import (
	"errors"
	"time"

	"github.com/runteam/runteam/internal/audit"
)

// maxLines is how many bytes of lines, those of decisions too, a row is cut at.
const maxLines = 1 << 20

// A commit is what becomes durable at once. All orders of one run make one row,
// or several if they are long.
type commit struct {
	now     time.Time
	runs    map[*Run][]*order // that were added
	open    []*draft          // in the order in which the runs came
	batches []*batch
	heads   []audit.Head // after each batch
	of      []*Run       // of each batch
}

// A draft is what the next row of a run will have.
type draft struct {
	run     *Run
	answers [][32]byte
	turns   []turn
	marks   []mark
	close   bool
}

// add adds an order to the lines of its run.
func (c *commit) add(o *order) {
	r := o.run
	if errors.Is(o.err, ErrShared) {
		return // what was taken before stays, and can be closed
	}
	if r.err != nil || o.err != nil {
		if r.err == nil {
			r.err = o.err
		}
		o.err = r.err
		return
	}
	d := c.draft(r)
	c.runs[r] = append(c.runs[r], o)
	if err := d.add(o, c.now); err != nil { // the lines are gone with it
		c.refuse(r, err)
		return
	}
	if r.lines.Len() > maxLines {
		c.finish(d)
	}
}

// refuse answers all orders of a run in this commit with an error.
func (c *commit) refuse(r *Run, err error) {
	r.err = err
	for _, o := range c.runs[r] {
		o.err = err
	}
}

// draft returns the draft of a run, which it makes if there is none.
func (c *commit) draft(r *Run) *draft {
	for _, d := range c.open {
		if d.run == r {
			return d
		}
	}
	d := &draft{run: r}
	c.open = append(c.open, d)
	return d
}

// add adds an order to a draft.
func (d *draft) add(o *order, now time.Time) error {
	lines := d.run.lines
	for i := range o.parts {
		p := &o.parts[i]
		err := lines.Decisions(p.decisions)
		if p.line != nil {
			err = lines.AddEncoded(p.line)
		}
		if err != nil {
			return err
		}
	}
	d.answers, d.turns, d.marks = append(d.answers, o.answers...), append(d.turns, o.turns...), append(d.marks, o.marks...)
	if d.close = o.close; !o.close {
		return nil
	}
	_, err := lines.Close(now)
	return err
}

// cut makes batches of what is left.
func (c *commit) cut() {
	for _, d := range c.open {
		c.finish(d)
	}
}

// finish makes a batch of a draft, and empties it.
func (c *commit) finish(d *draft) {
	r := d.run
	if r.err != nil {
		return
	}
	b := &batch{run: r.row.n, lease: r.lease, at: c.now, answers: d.answers, turns: d.turns, marks: packMarks(d.marks), release: d.close}
	if err := r.fill(b); err != nil {
		c.refuse(r, err)
		return
	}
	if *d = (draft{run: r}); !b.empty || len(b.turns) > 0 || b.release {
		c.batches, c.of, c.heads = append(c.batches, b), append(c.of, r), append(c.heads, r.lines.State().Head())
	}
}

// fail ends the runs of which the commit had something.
func (c *commit) fail(err error) {
	for _, r := range c.of {
		c.refuse(r, err)
	}
}

// settle takes in what became of the batches.
func (c *commit) settle(p *pen) {
	for i, b := range c.batches {
		r := c.of[i]
		if b.lost {
			c.refuse(r, ErrLost)
			p.dismiss(r)
			continue
		}
		r.mu.Lock()
		r.head = c.heads[i]
		r.mu.Unlock()
		if b.release {
			p.dismiss(r)
		}
	}
}
