package journal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Verify reports whether the lines of a run, which is named as for [Journal.Find], were
// altered. Beyond what [audit.Verify] checks, they must be of this run, begin at its
// beginning, and end at the state of the chain in the last row; the marks, by which one
// task is read alone, must name the tasks of the lines; and the answers of people and the commands that wait to be
// taken must not be forged; and the starter and the spec by which lists and views select the run must be those of its
// lines. It sets Run and State of o; the
// error is of reading only.
//
// With a key, only its owner can write a record that passes. Without one, anyone who can
// write the journal can. In both cases rows may have been cut off the end of an open record, or
// the whole journal replaced by an older copy: only a head that was stored elsewhere shows that.
// Other names, times and counts in lists of runs are not part of the record.
func (a *archive) Verify(ctx context.Context, run string, o audit.VerifyOptions) (audit.Report, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return audit.Report{}, err
	}
	last, _, state, err := a.store.last(ctx, r.n) // later rows are not read
	if err != nil {
		return audit.Report{}, a.fail("read", err)
	}
	if o.State.UnmarshalBinary(state) != nil || o.State.IsZero() {
		return audit.Report{Status: audit.Broken, Why: "the state of its chain cannot be read: it was altered"}, nil
	}
	o.Run = r.id
	altered := 0 // the first line of the first row with wrong marks
	headed := false
	misplaced := "" // says that the row of the run has another starter or spec than its lines
	lines := func(yield func([]byte, error) bool) {
		n := 0
		for l, err := range rows(ctx, a.store, r.n, 0, true, undecoded) {
			if err != nil {
				yield(nil, a.fail("read", err))
				return
			}
			if l.n > last {
				return
			}
			if altered == 0 && !marksAgree(l) {
				altered = n + 1
			}
			for line := range bytes.Lines(l.text) {
				n++
				headed = headed || n == 1 && bytes.HasPrefix(line, traceOpener)
				if bytes.HasPrefix(line, infoOpener) && !r.isOf(line) {
					misplaced = "the starter or the spec by which the run is listed is not the one of its lines: it was altered, and may show the run to others"
				}
				if !yield(line, nil) {
					return
				}
			}
		}
	}
	report, err := audit.VerifyLines(lines, o)
	if err != nil {
		return audit.Report{}, err
	}
	answers, err := a.waitingAnswers(ctx, r.n, r.id)
	if err != nil {
		return audit.Report{}, err
	}
	commands, err := a.store.commands.waiting(ctx, r.n, commandSteer)
	if err != nil {
		return audit.Report{}, a.fail("read", err)
	}
	forged := whyForged(answers, commands, &decoder{vault: a.vault, run: r.id})
	checkBesideChain(&report, headed, altered, cmp.Or(forged, misplaced))
	if report.Status == audit.Broken {
		_, err = a.find(ctx, r.id) // it may have been removed
	}
	return report, err
}

// checkBesideChain marks a report as broken for what the chain of digests does not cover: lines without their
// head, a row with altered marks, of which altered is the first line or 0, and what else was altered.
func checkBesideChain(report *audit.Report, headed bool, altered int, beside string) {
	broken := func(line int, why string) {
		if report.Status != audit.Broken {
			report.Status, report.Line, report.Covered, report.Why = audit.Broken, line, 0, why
		}
	}
	if !headed {
		broken(1, "the record does not begin with its head: lines were removed at its beginning")
	}
	if altered > 0 {
		broken(altered, "the marks of the row that begins here were altered: where one task is read alone, lines about it would be missing")
	}
	if beside != "" {
		broken(0, beside)
	}
}

// traceOpener is the prefix of the first line of a run, infoOpener of a line with an Info.
var traceOpener, infoOpener = record.LinePrefix(record.KindTrace), record.LinePrefix(record.KindInfo)

// isOf reports whether a line with an Info has the starter and the spec of the run.
func (r *runRow) isOf(line []byte) bool {
	var of Info
	_, value := record.SplitLine(line)
	return json.Unmarshal(value, &of) == nil && of.Starter == r.starter && of.Spec == r.spec
}

// marksAgree reports whether the marks of a row, if it has any, name every task of its
// lines, and as completed those that completed in it. The chain does not cover marks, and a
// row without the mark of a task is skipped where that task is read alone.
func marksAgree(l *batchRow) bool {
	var row markedRow
	var err error
	if row.marks, _, row.marked, err = splitMarks(l.lines.parts); err != nil || !row.marked {
		return err == nil
	}
	about, completed := map[mark]bool{}, map[mark]bool{}
	row.each(func(m mark) {
		about[m&^1] = true
		if m&1 != 0 {
			completed[m] = true
		}
	})
	missing := func(id task.ID) bool { return id != "" && !about[markOf(id, false)] }
	done := 0
	for line := range bytes.Lines(l.text) {
		kind, value := record.SplitLine(line)
		var of aboutLine
		switch kind {
		case record.KindTrace, record.KindInfo, record.KindRunStart, record.KindRunEnd:
			if !about[wholeRun] {
				return false
			}
		case record.KindDecision: // which has a digest too
			var chained struct{ Audit aboutLine }
			if json.Unmarshal(line, &chained) != nil {
				return false
			}
			of = chained.Audit
		case record.KindEvent, record.KindPrompt, record.KindCallStart, record.KindAgentCall, record.KindRejected, record.KindTurn, record.KindToolStart, record.KindToolEnd, record.KindFiles, record.KindQuestion, record.KindAnswer, record.KindCommand:
			if json.Unmarshal(value, &of) != nil {
				return false
			}
		}
		switch {
		case missing(of.Task), missing(of.Handoff.Task), missing(of.Receipt.Task), len(of.Plan) > 0 && !about[wholeRun]:
			return false
		case kind == record.KindEvent && of.Type == event.TaskComplete:
			if done++; !completed[markOf(of.Task, true)] {
				return false
			}
		}
	}
	return len(completed) <= done
}

// An aboutLine has the members of a line that name its tasks.
type aboutLine struct {
	Task    task.ID
	Type    event.Type
	Plan    []json.RawMessage
	Handoff struct { // of a decision
		Task task.ID `json:"taskId"`
	}
	Receipt struct{ Task task.ID } // of a prompt
}
