package journal

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A request is what one call of Append brings: it becomes durable at once.
type request struct {
	run     *Run
	parts   []part
	answers [][32]byte
	turns   []turn
	marks   []mark
	close   bool // the run ends with it
	err     error
	done    func(error) // called once, unless it is nil
}

// add encodes an entry.
func (q *request) add(e *record.Entry) error {
	parts, err := q.run.encoder.entry(e)
	if err != nil {
		return err
	}
	q.parts, q.marks = append(q.parts, parts...), append(q.marks, marksOf(e)...)
	if x := e.Exchange; x != nil && x.Reusable && x.Completed() && x.Result != nil && x.Reuse != (record.Key{}) {
		q.answers = append(q.answers, q.run.j.vault.mask(x.Reuse))
	}
	switch {
	case e.Begin != nil:
		q.turns = append(q.turns, turn{at: e.Begin.Time})
	case e.End != nil:
		q.turns = append(q.turns, turn{at: e.End.Time, status: e.End.Status, tasks: taskCounts(e.End)})
	}
	return nil
}

// The counts of the tasks column that are of no status. A row of an earlier
// version has none of them.
const (
	countCancelled task.Status = "cancelled"
	countNotRun    task.Status = "notRun"
)

// taskCounts returns the tasks column: how many tasks have which status, and of the
// outcomes what the statuses do not tell.
func taskCounts(e *record.RunEnd) string {
	n, o := Counts{}, e.Outcomes()
	for i := range e.Tasks {
		n[e.Tasks[i].Status]++
	}
	n[countCancelled], n[countNotRun] = o.Cancelled, o.NotRun
	text, _ := json.Marshal(n) // of a map of numbers
	return string(text)
}

// parseTaskCounts reads what taskCounts wrote.
func parseTaskCounts(text string) (n Counts, o record.Outcomes, err error) {
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return nil, o, err
	}
	o = record.Outcomes{Completed: n[task.Completed], Cancelled: n[countCancelled], NotRun: n[task.Skipped]}
	if notRun, known := n[countNotRun]; known {
		o.NotRun = notRun
	}
	delete(n, countCancelled)
	delete(n, countNotRun)
	o.Failed = n.total() - o.Completed - o.Cancelled - o.NotRun
	return n, o, nil
}
