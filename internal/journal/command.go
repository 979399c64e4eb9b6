package journal

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// commandLine is the stored form of a record.Command.
type commandLine struct {
	record.Command
	Hidden *hidden       `json:"hidden,omitempty"` // the reason, if the task has context above the plaintext limit
	Event  *hidden       `json:"event,omitempty"`  // the same of the reason as events have it
	Rules  *hidden       `json:"rules,omitempty"`  // the text of the policy, if it is above the plaintext limit
	Digest record.Digest `json:"digest"`
}

// digestInput returns what the digest of a command covers.
func (l *commandLine) digestInput(run string) []byte {
	at, _ := l.Time.MarshalText() // of a time that JSON holds
	fields := []string{run, string(l.Kind), string(l.Task), l.Title, l.Agent, l.By, l.Reason, string(at)}
	fields = append(fields, policyFields(l.Policy)...)
	if !l.Taken.IsZero() {
		taken, _ := l.Taken.MarshalText()
		fields = append(fields, string(taken))
	}
	if l.EventReason != "" { // lines of earlier versions have none
		fields = append(fields, "event", l.EventReason)
	}
	return joinLengths(fields...)
}

// policyFields returns what the digest of a command covers of a policy; nothing without one.
func policyFields(p *record.Policy) []string {
	if p == nil {
		return nil
	}
	places, _ := json.Marshal([]any{p.Origins, p.Parties})
	return []string{string(p.Text), p.Digest, string(places)}
}

// command returns the stored form of a Command.
func (e *encoder) command(c *record.Command) (*commandLine, error) {
	out := &commandLine{Command: *c}
	out.Time, out.Taken = out.Time.UTC().Round(0), out.Taken.UTC().Round(0)
	out.Digest = e.vault.digest("command", out.digestInput(e.run))
	var err error
	if out.Policy, out.Rules, err = e.vault.hidePolicy(c.Policy, record.KindCommand, e.run); err != nil {
		return nil, err
	}
	if c.Reason == "" || !e.above.has(c.Task) {
		return out, nil
	}
	out.Reason, out.EventReason = e.vault.withheld(), ""
	out.Hidden, err = e.vault.hide([]byte(c.Reason), record.KindCommand, e.run, string(c.Task))
	if err == nil && c.EventReason != "" {
		out.Event, err = e.vault.hide([]byte(c.EventReason), record.KindCommand, e.run, string(c.Task), "event")
	}
	return out, err
}

// command returns the Command of a line; nil if the line was altered.
func (d *decoder) command(value []byte) (*record.Command, error) {
	var x commandLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	c := &x.Command
	if x.Hidden != nil {
		text, missing := d.vault.show(x.Hidden, record.KindCommand, d.run, string(c.Task))
		if missing != "" {
			return c, nil
		}
		c.Reason = string(text)
	}
	if x.Event != nil {
		text, _ := d.vault.show(x.Event, record.KindCommand, d.run, string(c.Task), "event") // the digest covers it
		c.EventReason = string(text)
	}
	if d.vault.showPolicy(c.Policy, x.Rules, record.KindCommand, d.run); c.Policy != nil && c.Policy.Unreadable != "" {
		return c, nil
	}
	if d.vault.digests != nil && d.vault.digest("command", x.digestInput(d.run)) != x.Digest {
		if c.Kind != steer.ReplacePolicy && c.Policy == nil {
			return nil, nil
		}
		c.Policy = &record.Policy{} // without it, a resumed run would deliver what it denies
	}
	return c, nil
}

// leftLine is the stored form of a command that waits for the process which has a lease.
type leftLine struct {
	steer.Command
	Time   time.Time
	For    tenure
	Policy *record.Policy `json:",omitempty"` // of the command; its digest is not known yet
	Hidden *hidden        `json:",omitempty"` // the leftWords, if they are above the plaintext limit
	Digest record.Digest

	level label.Classification // of the run, which the reason may quote
}

// leftWords is what the sender of a command wrote.
type leftWords struct {
	Text, Reason string
	Policy       json.RawMessage `json:",omitempty"` // its text
}

// digestInput returns what the digest of the command with a number covers.
func (l *leftLine) digestInput(run string, n int64) []byte {
	at, _ := l.Time.MarshalText() // of a time that JSON holds
	holder, _ := json.Marshal(l.For)
	fields := []string{run, strconv.FormatInt(n, 10), string(l.Kind), l.Task, l.Agent, l.Text, l.By, l.Reason, l.Classification.String(), string(at), string(holder)}
	if l.Policy != nil {
		fields = append(append(fields, l.Replaces), policyFields(l.Policy)...)
		fields = append(fields, l.Assert...)
	}
	return joinLengths(fields...)
}

// encodeLeft returns the line of a command to a run. It is for one process, one row and one use.
func encodeLeft(v *vault, run string, n int64, l leftLine) ([]byte, error) {
	l.Time = l.Time.UTC().Round(0)
	l.Digest = v.digest("left command", l.digestInput(run, n))
	if v.hides(l.Classification.Join(l.level)) {
		words := leftWords{Text: l.Text, Reason: l.Reason}
		if l.Policy != nil && v.hides(unlabeled) {
			l.Policy, words.Policy = new(*l.Policy), l.Policy.Text
			l.Policy.Text = withheldPolicy
		}
		text, err := json.Marshal(words)
		if err == nil {
			l.Text, l.Reason = "", ""
			l.Hidden, err = v.hide(text, commandSteer, run, strconv.FormatInt(n, 10))
		}
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(l)
}

// left decodes the line of the command with a number, and returns for which process it is. The
// digest covers both.
func (d *decoder) left(value []byte, n int64) (c record.LeftCommand, of tenure) {
	var x leftLine
	if err := json.Unmarshal(value, &x); err != nil {
		return record.LeftCommand{Number: n, Missing: ErrAltered.Error()}, of
	}
	c = record.LeftCommand{Command: x.Command, Time: x.Time, Number: n}
	if x.Hidden != nil {
		var text []byte
		var w leftWords
		if text, c.Missing = d.vault.show(x.Hidden, commandSteer, d.run, strconv.FormatInt(n, 10)); c.Missing == "" {
			if err := json.Unmarshal(text, &w); err != nil {
				c.Missing = err.Error()
			}
		}
		if x.Text, x.Reason, c.Text, c.Reason = w.Text, w.Reason, w.Text, w.Reason; x.Policy != nil && w.Policy != nil {
			x.Policy.Text = w.Policy
		}
	}
	if c.Missing == "" && (d.vault.digests == nil || d.vault.digest("left command", x.digestInput(d.run, n)) != x.Digest) {
		c.Missing = ErrAltered.Error()
	}
	if x.Policy != nil && c.Missing == "" {
		var err error
		if c.Policy, err = x.Policy.Policy(); err != nil {
			c.Missing = err.Error()
		}
	}
	if c.Missing != "" {
		c.Command = steer.Command{}
	}
	return c, x.For
}
