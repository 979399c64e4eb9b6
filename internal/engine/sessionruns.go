package engine

import (
	"slices"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// A TurnRun is the run of a turn of a session, as its caller may see it.
type TurnRun struct {
	Turn   int    // from 1
	Run    string // its ID
	Status Status // how it ended; empty if its process died
	Usage  llm.Usage
	Cost   llm.Money // as far as it is known
}

// Runs returns the runs of the turns in order, also of those that were not answered.
func (s *Session) Runs() []TurnRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}

// storedRun returns the run of a turn that a store has.
func storedRun(t *record.StoredTurn) TurnRun {
	r := TurnRun{Turn: t.Turn, Run: t.Run}
	if end := t.History.End; end != nil {
		r.Status = Status(end.Status)
	}
	for _, c := range paidIn(t) {
		if !c.Hidden {
			r.Usage, r.Cost = r.Usage.Add(c.Usage), r.Cost.Add(c.Cost)
		}
	}
	return r
}

// note sets the run of a turn that has ended or is suspended. The caller holds s.mu.
func (s *Session) note(turn int, res *Result) {
	r := TurnRun{Turn: turn, Run: res.RunID}
	if last := len(s.runs) - 1; last >= 0 && s.runs[last].Turn == turn {
		r, s.runs = s.runs[last], s.runs[:last] // it was resumed
	}
	r.Status, r.Usage = res.Status, res.Usage
	for _, c := range res.calls {
		if c.Told {
			r.Cost = r.Cost.Add(c.Cost)
		}
	}
	s.runs = append(s.runs, r)
}
