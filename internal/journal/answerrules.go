package journal

import (
	"fmt"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
)

// answerRules are the rules of a [PersonAnswer] for who gives it.
type answerRules struct{ apart, notStarter bool }

// check returns an error if somebody may not answer a question of a run, of which list has all questions.
func (o answerRules) check(r *row, q *runstate.Question, by string, list []*runstate.Question) error {
	if o.notStarter && q.Approves() && by == r.starter {
		return record.NewAnswererError(&q.Question, by, by+" started the run, and may not approve what it does")
	}
	if !o.apart {
		return nil
	}
	for _, other := range list {
		for i := range other.Earlier {
			if err := o.checkApart(q, by, other.Earlier[i].Answer); err != nil {
				return err
			}
		}
		if err := o.checkApart(q, by, other.Answer); err != nil {
			return err
		}
	}
	return nil
}

// checkApart returns an error if an answer to another question was given by the same name, for another person; nil is none.
func (answerRules) checkApart(q *runstate.Question, by string, other *record.Answer) error {
	if other == nil || other.By != by || other.Agent == q.Agent {
		return nil
	}
	return record.NewAnswererError(&q.Question, by, fmt.Sprintf("%s has answered as %s in this run, and may not answer as %s too", by, other.Agent, q.Agent))
}

// checkWaiting returns a function that does the same for answers that wait, or nil.
func (o answerRules) checkWaiting(j *Journal, r *row, q *runstate.Question, by string) func([]storedCommand) error {
	if !o.apart {
		return nil
	}
	return func(waiting []storedCommand) error {
		d := &decoder{vault: j.vault, run: r.id}
		for _, c := range waiting {
			other, err := d.answer(c.line)
			if err != nil || isForged(other.Missing) { // nobody's answer
				continue
			}
			if err := o.checkApart(q, by, other); err != nil {
				return err
			}
		}
		return nil
	}
}
