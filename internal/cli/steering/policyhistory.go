package steering

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
)

// A policyDocument is the policy of a run, in JSON.
type policyDocument struct {
	Run     string           `json:"runId"`
	Digest  string           `json:"digest"`
	Policy  json.RawMessage  `json:"policy"`
	Rules   []gate.PairTerms `json:"rules"`   // what applies to each pair that the policy names
	History []policyEntry    `json:"history"` // each policy that the run has had, the oldest first and the current one last
}

// A policyEntry is a policy that a run has had.
type policyEntry struct {
	Digest  string    `json:"digest"`
	Time    time.Time `json:"time,omitzero"` // from then on it held
	By      string    `json:"by,omitempty"`  // who sent it; empty if the run began with it
	Reason  string    `json:"reason,omitempty"`
	Changes []string  `json:"changes,omitempty"` // what it changed for pairs that it or the policy before it names
	Unknown string    `json:"unknown,omitempty"` // why the changes are not known; empty if they are
}

// show prints the policy of a run, what it says of each pair, and the policies before it.
func (o *policyFlags) show(ctx context.Context, con *console.Console, j *journal.Journal) error {
	found, err := journals.Find(ctx, j, o.run)
	if _, unknown := errors.AsType[*journal.UnknownRunError](err); unknown {
		err = runComesFirst(ctx, con, j, o.run, err)
	}
	if err != nil {
		return err
	}
	held, err := journal.HeldPolicies(ctx, j, found.Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	p := held[len(held)-1]
	rules, err := p.Compile()
	if err != nil {
		return exit.Errorf(exit.KindRuntime, "the policy of the run cannot be read: %w", err)
	}
	doc := policyDocument{Run: found.Run, Digest: p.Digest, Policy: p.Text, Rules: rules.Pairs(p.Names()), History: historyOf(held)}
	return con.PrintResult(doc, func(w io.Writer) { doc.write(w) })
}

// historyOf returns the entries of the policies of a run. One that a process began with again is no new one.
func historyOf(held []journal.HeldPolicy) (list []policyEntry) {
	var before *journal.HeldPolicy
	for i := range held {
		p := &held[i]
		if before != nil && before.Digest == p.Digest {
			continue
		}
		e := policyEntry{Digest: p.Digest, Time: p.Time, By: p.By, Reason: p.Reason}
		if before != nil {
			var err error
			if e.Changes, err = changesOf(before, p); err != nil {
				e.Unknown = err.Error()
			}
		}
		list, before = append(list, e), p
	}
	return list
}

// changesOf says for each pair what a policy changed.
func changesOf(before, after *journal.HeldPolicy) (changes []string, err error) {
	was, err := before.Compile()
	if err != nil {
		return nil, err
	}
	is, err := after.Compile()
	if err != nil {
		return nil, err
	}
	seen := map[[2]string]bool{}
	for _, p := range append(is.Pairs(after.Names()), was.Pairs(before.Names())...) {
		pair := [2]string{p.From, p.To}
		if seen[pair] {
			continue
		}
		seen[pair] = true
		old, now := was.Pair(p.From, p.To), is.Pair(p.From, p.To)
		if a, b := termsText(&old), termsText(&now); a != b {
			changes = append(changes, fmt.Sprintf("%s→%s: %s (was %s)", p.From, p.To, b, a))
		}
	}
	return changes, nil
}

// write prints what holds for each pair, a line each, and the policies before.
func (d *policyDocument) write(w io.Writer) {
	fmt.Fprintf(w, "policy %s\n", d.Digest)
	if len(d.Rules) == 0 {
		fmt.Fprintln(w, "the policy has no rules")
	}
	for i := range d.Rules {
		p := &d.Rules[i]
		var rules []string
		for _, r := range p.Rules {
			rules = append(rules, strings.TrimSpace(string(r.ID)+" "+r.Line)+format.Unless(r.Note == "", ": "+r.Note))
		}
		fmt.Fprintln(w, terminal.CleanLine(fmt.Sprintf("%s→%s: %s  (%s)", p.From, p.To, termsText(p), cmp.Or(strings.Join(rules, ", "), "default"))))
	}
	if len(d.History) < 2 {
		return
	}
	fmt.Fprint(w, "\nhistory\n")
	for i := range d.History {
		e := &d.History[i]
		how := "the run began with it"
		switch {
		case e.By != "":
			how = "sent by " + e.By + format.Unless(e.Reason == "", ": "+e.Reason)
		case i > 0:
			how = "the run was resumed with it"
		}
		fmt.Fprintln(w, terminal.CleanLine(fmt.Sprintf("%s  %.12s  %s", format.Time(e.Time), e.Digest, how)))
		for _, c := range e.Changes {
			fmt.Fprintln(w, terminal.CleanLine("  "+c))
		}
		switch {
		case e.Unknown != "":
			fmt.Fprintln(w, terminal.CleanLine("  what it changed is not known: "+e.Unknown))
		case i > 0 && len(e.Changes) == 0:
			fmt.Fprintln(w, "  no change for the pairs that it names")
		}
	}
}

// termsText says what applies to a pair.
func termsText(p *gate.PairTerms) string {
	says := []string{string(p.Mode)}
	add := func(what string, is bool) {
		if is {
			says = append(says, what)
		}
	}
	add("allow "+gate.PathsString(p.Allow), len(p.Allow) > 0)
	for _, also := range p.AndAllow {
		add("and of that "+gate.PathsString(also), true)
	}
	add("block "+gate.PathsString(p.Block), len(p.Block) > 0)
	add("at most "+p.MaxClassification, p.MaxClassification != "secret")
	add(fmt.Sprintf("redact %v", p.Redact), len(p.Redact) > 0)
	add(fmt.Sprintf("reveal %v", p.Reveal), len(p.Reveal) > 0)
	add(p.Translate, p.Translate != "")
	for _, e := range []struct {
		kind string
		of   *gate.PairEntry
	}{{"declassify", p.Declassify}, {"endorse", p.Endorse}, {"renew", p.Renew}} {
		if e.of != nil {
			add(e.kind+" "+e.of.Name, true)
		}
	}
	return strings.Join(says, ", ")
}
