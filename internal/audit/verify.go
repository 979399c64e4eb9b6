package audit

import (
	"bytes"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"

	"github.com/runteam/runteam/internal/record"
)

// VerifyOptions say what is known of a record from elsewhere.
type VerifyOptions struct {
	Run   string // the id of the run that every chain of the record must be of; empty accepts any
	Key   []byte // with which the record was written; each chain in it must have been
	Head  Head   // what the record must have come to; zero if that is not known
	State State  // the same, of a record that is to be continued: it covers the lines after the last one of the record; zero if it is not known
}

// A Status is the answer of [Verify].
type Status string

// The answers.
const (
	Verified   Status = "verified"                 // closed, unaltered, and its head is the one given
	Consistent Status = "consistent, not anchored" // closed and in itself unaltered; no head was given
	Open       Status = "open"                     // unaltered as far as it goes; a closing line is missing
	Broken     Status = "broken"                   // altered
)

// A Report says what a record is worth, and what it holds as far as it was read.
type Report struct {
	Status    Status `json:"status"`
	Line      int    `json:"line,omitempty"` // of the file, from 1: where it is broken, or where an end is missing
	Why       string `json:"why,omitempty"`  // of what is open or broken
	Run       string `json:"run,omitempty"`  // of the last chain
	Runs      int    `json:"runs"`           // chains
	Covered   int    `json:"covered"`        // lines of the file, of any kind, from the first: up to the last line of the record that fits
	Decisions int    `json:"decisions"`      // of all chains
	Held      int    `json:"held"`           // of these, those that did not pass
	Head      Head   `json:"head,omitzero"`  // of the last line that fits
	Previous  Head   `json:"previous,omitzero"`
	Keyed     bool   `json:"keyed"` // the digests of the last chain are HMAC; broken, if no key was given
}

// Verify reads a record and says whether it was altered. The error is of
// reading only, and the report then worth nothing; a broken chain is a report.
//
// Lines are checked in the very bytes in which they stand. The lines of a
// record have the member "audit"; other lines may stand between them if each is
// a JSON object, and the line of the record after them says what they were. One
// file may hold the chains of several runs if each opening line names the head
// before it; Report.Previous is what the first of them continues, which is not
// in the file. A chain that ends without its closing line leaves the record
// open, also if another one follows. Of other lines only their stretch is known:
// if one of them was altered, Report.Line is the first of those between two
// lines of the record, and Report.Why says up to which.
func Verify(r io.Reader, o VerifyOptions) (Report, error) {
	v := &verifier{o: o, hash: newDigester(o.Key), beside: newStretch()}
	lines := newLines(r)
	for {
		text, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return v.end(), nil
		case errors.Is(err, errTorn):
			v.leftOpen(lines.n, "the last line has no end: writing it was interrupted")
			return v.end(), nil
		case errors.Is(err, record.ErrLongLine):
			return v.broken(lines.n, err.Error()), nil
		case err != nil:
			return Report{}, fmt.Errorf("read line %d: %w", lines.n, err)
		}
		if at, why := v.line(lines.n, text); why != "" {
			return v.broken(at, why), nil
		}
	}
}

// verifier is what is known of a record up to a line.
type verifier struct {
	o      VerifyOptions
	hash   *digester
	report Report
	counts counts  // of the chain that is open
	beside stretch // the other lines after the last line of the record
	within bool    // a chain is open
	last   int     // the last line of the record
	anchor int     // the line whose head is the one given
	gap    int     // the first line at which an end is missing
	why    string  // it is
}

// line checks one line, and says what is wrong with it or with those before it.
func (v *verifier) line(n int, text []byte) (at int, why string) {
	ours, why := isOurs(text)
	if why != "" {
		return n, why
	}
	if !ours {
		_ = v.beside.add(append(text, '\n')) // as it stands, which is whole
		return n, ""
	}
	e, sum, why := parse(text)
	if why != "" {
		return n, why
	}
	if want := v.hash.of(e.Previous, entryOf(text)); !hmac.Equal(want[:], sum[:]) {
		return n, v.misfit(e)
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

// covers checks the other lines before a line of the record against what it
// says of them.
func (v *verifier) covers(n int, e *entry) (at int, why string) {
	lines := v.beside.lines
	if v.beside.take() == e.Beside {
		return n, ""
	}
	at = v.last + 1 // of the line n itself if there is none
	switch {
	case lines != e.Beside.Lines:
		return at, fmt.Sprintf("the number of other lines before line %d is %d and was %d: lines were inserted, removed or moved", n, lines, e.Beside.Lines)
	case lines == 1:
		return at, fmt.Sprintf("it is not the line that line %d says: it was altered", n)
	}
	return at, fmt.Sprintf("one of the lines %d to %d is not what line %d says: it was altered, or they were moved", at, n-1, n)
}

// misfit says why a digest may not be that of its line.
func (v *verifier) misfit(e *entry) string {
	switch {
	case e.Kind == opening && e.Keyed && len(v.o.Key) == 0:
		v.report.Keyed = true
		return "it was written with a key, and none was given"
	case e.Kind == opening && !e.Keyed && len(v.o.Key) > 0:
		return "it was written without a key, and one was given"
	case len(v.o.Key) > 0:
		return "its digest is not that of what it says: it was altered, or written with another key"
	}
	return "its digest is not that of what it says: it was altered"
}

// follows checks that an entry has its place after those before it.
func (v *verifier) follows(n int, e *entry) string {
	if e.Kind == opening {
		return v.opens(n, e)
	}
	if !v.within {
		return "it stands outside of any chain: the opening line is missing, or the closing line came before"
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
	verdict, rule, ok := ruling(e.Handoff)
	if !ok {
		return "its decision has no verdict"
	}
	v.counts.add(verdict, rule)
	v.report.Decisions++
	if verdict != passed {
		v.report.Held++
	}
	return ""
}

// opens begins a chain.
func (v *verifier) opens(n int, e *entry) string {
	if e.Keyed != (len(v.o.Key) > 0) {
		return v.misfit(e)
	}
	if v.o.Run != "" && e.Run != valid(v.o.Run) {
		return fmt.Sprintf("it opens the record of run %q, not of run %q: the lines of another run stand here", e.Run, v.o.Run)
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

// leftOpen notes where an end is missing; the first one counts.
func (v *verifier) leftOpen(n int, why string) {
	if v.why == "" {
		v.gap, v.why = n, why
	}
}

// broken is the report of a record that was altered at a line.
func (v *verifier) broken(n int, why string) Report {
	v.report.Status, v.report.Line, v.report.Why, v.report.Covered = Broken, n, why, v.last
	return v.report
}

// end is the report after the last line.
func (v *verifier) end() Report {
	anchored := v.o.Head != (Head{})
	if anchored && (v.last == 0 || v.anchor != v.last) {
		return v.broken(v.last, v.unanchored())
	}
	if at, why := v.stands(&v.o.State); why != "" {
		return v.broken(at, why)
	}
	if v.report.Runs > 0 && !v.within && v.beside.lines > 0 {
		return v.broken(v.last+1, "it stands after the closing line and nothing covers it: it was added, or a record that follows was cut off")
	}
	switch {
	case v.report.Runs == 0:
		v.leftOpen(0, "there is no record of decisions in it")
	case v.within && !v.o.State.IsZero():
		v.leftOpen(v.last, "the closing line is missing: the run did not come to its end, or rows were removed there")
	case v.within:
		v.leftOpen(v.last, "the closing line is missing: the run did not come to its end, or lines were removed; nothing covers what stands after this line")
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

// stands checks the end of the record against a state, unless that is zero.
func (v *verifier) stands(s *State) (at int, why string) {
	lines := v.beside.lines
	switch {
	case s.IsZero():
		return 0, ""
	case v.last > 0 && !s.sealed(v.hash, v.report.Run):
		return v.last, ErrState.Error()
	case s.head != v.report.Head:
		return v.last, "it does not end with the state given: lines were removed or added at its end, or it is another record"
	case s.closed: // what follows is found without it
		return 0, ""
	case lines != s.lines:
		return v.last + 1, fmt.Sprintf("the number of other lines after line %d is %d and was %d: lines were added or removed", v.last, lines, s.lines)
	case lines > 0 && !bytes.Equal(v.beside.middle(), s.middle):
		return v.last + 1, fmt.Sprintf("one of the lines %d to %d is not what the state given says: it was altered, or they were moved", v.last+1, v.last+lines)
	}
	return 0, ""
}

// unanchored says how the head that was given is missed.
func (v *verifier) unanchored() string {
	switch {
	case v.last == 0:
		return "there is no record of decisions in it"
	case v.anchor > 0:
		return fmt.Sprintf("the head given is that of line %d: lines were added after it", v.anchor)
	}
	return "it does not end with the head given: lines were removed at its end, or it is another record"
}
