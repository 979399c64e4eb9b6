package journal

import (
	"encoding/json"
	"sync"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A request has the entries of one call of Append, which become durable together.
type request struct {
	run     *Run
	lines   *trace.Batch // nil once they are in a row
	answers []byte       // their keys, one after the other
	taken   []int64      // commands that its entries carry out
	turns   []turn
	marks   []mark
	spent   int64 // what its agent calls cost; see [batch]
	close   bool  // the run ends with it
	err     error
	done    func(error) // called once, unless it is nil
}

// batches is a pool, since the lines of a request need much memory for a short time.
var batches = sync.Pool{New: func() any { return new(trace.Batch) }}

func newRequest(r *Run, done func(error)) *request {
	return &request{run: r, lines: batches.Get().(*trace.Batch), done: done}
}

// releaseLines returns the memory of the lines to the pool.
func (q *request) releaseLines() {
	q.lines.Reset()
	batches.Put(q.lines)
	q.lines = nil
}

// add encodes an entry.
func (q *request) add(e *record.Entry) error {
	if err := q.run.encoder.add(q.lines, e); err != nil {
		return err
	}
	q.marks = appendMarks(q.marks, e)
	if isWork(e) {
		q.run.worked.Store(true)
	}
	if x := e.Exchange; x != nil && q.run.isClaimed {
		q.spent += q.run.encoder.spent(x)
	}
	if x := e.Exchange; x != nil && x.Reusable && x.Completed() && x.Result != nil && x.Reuse != (record.Key{}) {
		key := q.run.j.vault.mask(x.Reuse)
		q.answers = append(q.answers, key[:]...)
	}
	if e.Answer != nil && e.Answer.Command != 0 {
		q.taken = append(q.taken, e.Answer.Command)
	}
	if e.Command != nil && e.Command.Number != 0 {
		q.taken = append(q.taken, e.Command.Number)
	}
	switch {
	case e.Begin != nil:
		q.turns = append(q.turns, turn{at: e.Begin.Time, label: new(e.Begin.StoredLabel())})
	case e.End != nil:
		q.turns = append(q.turns, turn{at: e.End.Time, status: e.End.Status, tasks: taskCounts(e.End, q.run.isIdle(e.End))})
	}
	return nil
}

// Keys of the tasks column that are not a status. Rows of earlier versions do not have them.
const (
	countCancelled task.Status = "cancelled"
	countNotRun    task.Status = "notRun"
	countIdle      task.Status = "idle" // 0, if the process did nothing
	countAccepted  task.Status = "failureAccepted"
)

// taskCounts returns the tasks column: how many tasks have which status, and the outcomes
// that the statuses do not show. idle says that the process did nothing.
func taskCounts(e *record.RunEnd, idle bool) string {
	n, o := Counts{}, e.Outcomes()
	for i := range e.Tasks {
		n[e.Tasks[i].Status]++
	}
	n[countCancelled], n[countNotRun] = o.Cancelled, o.NotRun
	if o.Accepted > 0 {
		n[countAccepted] = o.Accepted
	}
	if idle {
		n[countIdle] = 0
	}
	text, _ := json.Marshal(n) // of a map of numbers
	return string(text)
}

// parseTaskCounts parses the tasks column.
func parseTaskCounts(text string) (n Counts, o record.Outcomes, err error) {
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		return nil, o, err
	}
	o = record.Outcomes{Completed: n[task.Completed], Cancelled: n[countCancelled], NotRun: n[task.Skipped], NotNeeded: n[task.NotNeeded], Accepted: n[countAccepted]}
	if notRun, known := n[countNotRun]; known {
		o.NotRun = notRun
	}
	delete(n, countCancelled)
	delete(n, countNotRun)
	delete(n, countIdle)
	delete(n, countAccepted)
	open := n[task.Pending] + n[task.Blocked] + n[task.InProgress] // of a suspended run
	o.Failed = n.total() - o.Completed - o.Cancelled - o.NotRun - o.NotNeeded - open
	return n, o, nil
}
