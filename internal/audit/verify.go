package audit

import (
	"bytes"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/runteam/runteam/internal/record"
)

// VerifyOptions are what the caller knows of a record from elsewhere.
type VerifyOptions struct {
	Run   string // the ID of the run of every chain in the record; empty accepts any
	Key   []byte // of every chain in the record
	Head  Head   // the head of the record; zero if unknown
	State State  // the state of a record that will be continued, which covers the lines after the last of the chain; zero if unknown
}

// A Status is the result of [Verify].
type Status string

// The statuses.
const (
	Verified   Status = "verified"                 // closed, unaltered, and with the head that was given
	Consistent Status = "consistent, not anchored" // closed and consistent; no head was given
	Open       Status = "open"                     // consistent, but without a closing line
	Broken     Status = "broken"                   // altered
)

// A Report is the status of a record, and what Verify read of it.
type Report struct {
	Status    Status `json:"status"`
	Line      int    `json:"line,omitempty"` // of the file, from 1: where it is broken or an end is missing
	Why       string `json:"why,omitempty"`  // it is open or broken
	Run       string `json:"run,omitempty"`  // of the last chain
	Runs      int    `json:"runs"`           // chains
	Covered   int    `json:"covered"`        // lines of the file, of any kind, up to the last valid line of the chain
	Decisions int    `json:"decisions"`      // of all chains
	Withheld  int    `json:"held"`           // decisions that withheld context
	Head      Head   `json:"head,omitzero"`  // of the last valid line
	Previous  Head   `json:"previous,omitzero"`
	Keyed     bool   `json:"keyed"` // the digests of the last chain are HMAC; broken, if no key was given
}

// Verify reads a record and reports whether it was altered. The error is of reading only; a
// broken chain is a report.
//
// Verify checks the exact bytes of lines. The lines of the chain have the member "audit";
// there may be other lines between them, each a JSON object, which the next line of the chain
// covers. A file may have the chains of several runs if each opening line names the head
// before it; Report.Previous is the head before the first of them. A chain without a closing
// line leaves the record open, also if another one follows. The digest of other lines covers
// all between two lines of the chain: if one of them was altered, Report.Line is the first of
// these, and Report.Why names the last.
func Verify(r io.Reader, o VerifyOptions) (Report, error) { return VerifyLines(record.Lines(r), o) }

// VerifyLines does what [Verify] does with the lines of a record, as [record.Lines] yields
// them.
func VerifyLines(lines iter.Seq2[[]byte, error], o VerifyOptions) (Report, error) {
	v := &verifier{o: o, hash: newDigester(o.Key), beside: newStretch()}
	n := 0
	for text, err := range lines {
		n++
		switch {
		case errors.Is(err, record.ErrTorn):
			v.leftOpen(n, "the last line has no end: writing it was interrupted")
			return v.end(), nil
		case errors.Is(err, record.ErrLongLine):
			return v.broken(n, err.Error()), nil
		case err != nil:
			return Report{}, fmt.Errorf("read line %d: %w", n, err)
		}
		if at, why := v.line(n, text); why != "" {
			return v.broken(at, why), nil
		}
	}
	return v.end(), nil
}

// A verifier is the state of a verification at a line.
type verifier struct {
	o      VerifyOptions
	hash   *digester
	report Report
	counts counts  // of the chain that is open
	beside stretch // the other lines after the last line of the record
	within bool    // a chain is open
	last   int     // the last line of the record
	anchor int     // the line with the head that was given
	gap    int     // the first line at which an end is missing
	why    string  // it is missing
}

// line checks one line. It returns the line that is wrong, and why.
func (v *verifier) line(n int, line []byte) (at int, why string) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	chained, why := isChained(text)
	if why != "" {
		return n, why
	}
	if !chained {
		_ = v.beside.add(line) // it is a whole line
		return n, ""
	}
	e, sum, why := parse(text)
	if why != "" {
		return n, why
	}
	if want := v.hash.of(e.Previous, entryOf(text)); !hmac.Equal(want[:], sum[:]) {
		return n, v.wrongDigest(e)
	}
	if why = v.follows(n, e); why != "" {
		return n, why
	}
	if at, why = v.covers(n, e); why != "" {
		return at, why
	}
	if v.report.Head = (Head{Digest: sum, Lines: e.Seq}); v.report.Head == v.o.Head {
		v.anchor = n
	}
	v.last = n
	return n, ""
}

// covers checks the other lines before a line of the chain against its digest of them.
func (v *verifier) covers(n int, e *entry) (at int, why string) {
	lines := v.beside.lines
	if v.beside.take() == e.Beside {
		return n, ""
	}
	at = v.last + 1 // line n itself if there are none
	switch {
	case lines != e.Beside.Lines:
		return at, fmt.Sprintf("the number of other lines before line %d is %d and was %d: lines were inserted, removed or moved", n, lines, e.Beside.Lines)
	case lines == 1:
		return at, fmt.Sprintf("it is not the line that line %d covers: it was altered", n)
	}
	return at, fmt.Sprintf("one of the lines %d to %d is not what line %d covers: it was altered, or they were moved", at, n-1, n)
}

// wrongDigest returns why the digest of a line is wrong.
func (v *verifier) wrongDigest(e *entry) string {
	switch {
	case e.Kind == opening && e.Keyed && len(v.o.Key) == 0:
		v.report.Keyed = true
		return "it was written with a key, and none was given"
	case e.Kind == opening && !e.Keyed && len(v.o.Key) > 0:
		return "it was written without a key, and one was given"
	case len(v.o.Key) > 0:
		return "its digest does not match: it was altered, or written with another key"
	}
	return "its digest does not match: it was altered"
}

// follows checks that an entry continues those before it.
func (v *verifier) follows(n int, e *entry) string {
	if e.Kind == opening {
		return v.opens(n, e)
	}
	if !v.within {
		return "it is outside of any chain: the opening line is missing, or the closing line came before"
	}
	if e.Previous != v.report.Head || e.Seq != v.report.Head.Lines+1 {
		return fmt.Sprintf("it is line %d of its chain and does not follow line %d before it: lines were removed, inserted or moved", e.Seq, v.report.Head.Lines)
	}
	if e.Kind == closing {
		v.within = false
		if !e.Counts.equal(&v.counts) {
			return "its counts are not those of the decisions before it"
		}
		return ""
	}
	verdict, rule, ok := verdictOf(e.Handoff)
	if !ok {
		return "its decision has no verdict"
	}
	v.counts.add(verdict, rule)
	v.report.Decisions++
	if verdict != passed {
		v.report.Withheld++
	}
	return ""
}

// opens begins a chain.
func (v *verifier) opens(n int, e *entry) string {
	if e.Keyed != (len(v.o.Key) > 0) {
		return v.wrongDigest(e)
	}
	if v.o.Run != "" && e.Run != valid(v.o.Run) {
		return fmt.Sprintf("it opens the record of run %q, not of run %q: these lines are of another run", e.Run, v.o.Run)
	}
	if v.report.Runs == 0 {
		v.report.Previous = e.Previous
	} else if e.Previous != v.report.Head {
		return "this chain does not continue the one before it: lines were removed or inserted"
	}
	if v.within {
		v.leftOpen(n, "the chain before it has no closing line")
	}
	v.within, v.counts = true, counts{}
	v.report.Runs++
	v.report.Run, v.report.Keyed = e.Run, e.Keyed
	return ""
}

// leftOpen records the first line where an end is missing.
func (v *verifier) leftOpen(n int, why string) {
	if v.why == "" {
		v.gap, v.why = n, why
	}
}

// broken returns the report of a record that was altered at a line.
func (v *verifier) broken(n int, why string) Report {
	v.report.Status, v.report.Line, v.report.Why, v.report.Covered = Broken, n, why, v.last
	return v.report
}

// end returns the report after the last line.
func (v *verifier) end() Report {
	anchored := v.o.Head != (Head{})
	if anchored && (v.last == 0 || v.anchor != v.last) {
		return v.broken(v.last, v.wrongHead())
	}
	if at, why := v.matchesState(&v.o.State); why != "" {
		return v.broken(at, why)
	}
	if v.report.Runs > 0 && !v.within && v.beside.lines > 0 {
		return v.broken(v.last+1, "it follows the closing line and nothing covers it: it was added, or the next record was cut off")
	}
	switch {
	case v.report.Runs == 0:
		v.leftOpen(0, "there is no record of decisions in it")
	case v.within && !v.o.State.IsZero():
		v.leftOpen(v.last, "the closing line is missing: the run did not end, or rows were removed there")
	case v.within:
		v.leftOpen(v.last, "the closing line is missing: the run did not end, or lines were removed; nothing covers the lines after this one")
	}
	if v.report.Covered = v.last; !v.o.State.IsZero() {
		v.report.Covered += v.beside.lines
	}
	switch {
	case v.why != "":
		v.report.Status, v.report.Line, v.report.Why = Open, v.gap, v.why
	case anchored:
		v.report.Status = Verified
	default:
		v.report.Status = Consistent
	}
	return v.report
}

// matchesState checks the end of the record against a state, unless that is zero.
func (v *verifier) matchesState(s *State) (at int, why string) {
	lines := v.beside.lines
	switch {
	case s.IsZero():
		return 0, ""
	case v.last > 0 && !s.sealed(v.hash, v.report.Run):
		return v.last, ErrState.Error()
	case s.head != v.report.Head:
		return v.last, "it does not end with the given state: lines were removed or added at its end, or it is another record"
	case s.closed: // the check of the closing line finds what follows
		return 0, ""
	case lines != s.lines:
		return v.last + 1, fmt.Sprintf("the number of other lines after line %d is %d and was %d: lines were added or removed", v.last, lines, s.lines)
	case lines > 0 && !bytes.Equal(v.beside.partial(), s.partial):
		return v.last + 1, fmt.Sprintf("one of the lines %d to %d is not what the given state covers: it was altered, or they were moved", v.last+1, v.last+lines)
	}
	return 0, ""
}

// wrongHead returns how the record differs from the head that was given.
func (v *verifier) wrongHead() string {
	switch {
	case v.last == 0:
		return "there is no record of decisions in it"
	case v.anchor > 0:
		return fmt.Sprintf("the given head is that of line %d: lines were added after it", v.anchor)
	}
	return "it does not end with the given head: lines were removed at its end, or it is another record"
}
