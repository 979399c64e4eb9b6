package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/task"
)

// Limits bound what one reader gets; see team.Limits.
type Limits struct {
	MaxContextBytes int
	MaxPromptBytes  int
}

// ReaderLimits are all limits on what one reader gets.
type ReaderLimits struct {
	Limits
	MaxContext int // bytes of all that a task is granted in one prompt; zero means no limit
}

// Limits returns those of a reader with these settings of its own.
func (t *Roster) Limits(own Limits) ReaderLimits {
	return ReaderLimits{Limits: Limits{cmp.Or(own.MaxContextBytes, t.Config.MaxContextBytes), cmp.Or(own.MaxPromptBytes, t.Config.MaxPromptBytes)}}
}

// MemberLimits returns the limits of member i.
func (t *Roster) MemberLimits(i int) ReaderLimits {
	m := &t.Config.Agents[i]
	l := t.Limits(m.Limits)
	l.MaxContext = min(m.MaxContextTokens, gate.MaxRedact) * gate.BytesPerToken
	return l
}

// On returns the limit on a piece of context that has a limit of its own, or
// zero. Instructions, which must not be cut, have at least the default.
func (l ReaderLimits) On(s gate.Source, own int) int {
	switch s.Kind {
	case handoff.Goal, handoff.Roster, handoff.Plan:
		return max(l.MaxContextBytes, gate.DefaultContextBytes)
	}
	limit := cmp.Or(own, l.MaxContextBytes)
	switch most := l.MaxContext; {
	case most == 0 || s.Kind == handoff.Draft || s.Kind == handoff.Fault:
	case limit > most, limit == 0 && most < gate.DefaultStructuredBytes:
		return most
	}
	return limit
}

// sizeTime bounds the time that the check of a plan may spend on redacting inputs. Only
// patterns of the policy take as long.
const sizeTime = time.Second

// A sizeCheck finds what does not fit into prompts.
type sizeCheck struct {
	*checker
	reported []bool                      // of each input: one problem is enough
	known    map[knownSize]gate.Decision // what the gate decides about sizes
}

// checkSizes reports descriptions and inputs that are known not to fit into the
// prompts that they are for. Results are not known yet. What patterns redact in an input
// is not known if it takes longer than sizeTime; the gate then decides in the run.
func (c *sizeCheck) checkSizes() {
	ctx, cancel := context.WithTimeout(context.Background(), sizeTime)
	defer cancel()
	for i := range c.plan.Graph.Len() {
		if !Joins(c.plan.Graph.Task(i)) {
			c.checkPromptSize(ctx, i)
			c.adviseEach(i)
		}
	}
}

// A knownSize identifies what the gate decides about the size of an input.
type knownSize struct {
	input, limit int
	terms        *gate.Terms
	need         string
}

// checkPromptSize checks what is known of the prompt of task i.
func (c *sizeCheck) checkPromptSize(ctx context.Context, i int) {
	t, agent := c.plan.Graph.Task(i), c.plan.Graph.Task(i).Assignee
	limits := c.team.MemberLimits(int(c.plan.Members[i]))
	most := brief.Limit(limits.MaxPromptBytes)
	fixed := len("# Task: ") + len(t.Title) + len(t.Description) + Frame*len(t.Uses)
	if fixed > most {
		at := c.task(i).at("description")
		at.report(fmt.Sprintf("the description has %s, and a prompt of %q at most %s", exceeding(len(t.Description), most), agent, bytesize.Text(most)), "move long texts to inputs", brief.ErrTooLarge)
		return
	}
	var texts []int // sizes of what can be cut
	instructions := fixed
	for j, u := range t.Uses {
		k := c.inputs[strings.ToLower(u.Name)]
		in := &c.options.Inputs[k]
		g := c.plan.InputGrant(i, j)
		limit := cmp.Or(g.MaxBytes, gate.DefaultContextBytes)
		s, err := g.Terms.Delivers(u.Need)
		switch {
		case err != nil || g.Terms.Mode() == handoff.Minimal || in.Folder != nil && u.Item == "":
			continue // reported, or nothing of it is delivered, or only a list
		case u.Item != "":
			c.checkItemSize(i, j, limit)
			continue
		case s.Whole() && len(in.Text) <= limit:
			texts = append(texts, len(in.Text))
			continue
		case s.Whole() && in.Cut && len(in.Text) <= gate.MaxRedact:
			texts = append(texts, limit)
			continue
		case c.reported[k]:
			continue
		}
		key := knownSize{k, limit, g.Terms, gate.PathsString(u.Need)}
		d, done := c.known[key]
		if !done {
			d = c.decideInput(ctx, i, j, g)
			c.known[key] = d
		}
		switch {
		case d.IsDelivered() && !d.Truncated:
			if fixed += d.BytesAfter; !d.Parts().InPart {
				fixed, texts = fixed-d.BytesAfter, append(texts, d.BytesAfter)
			}
			continue
		case d.IsDelivered() && in.Cut:
			texts = append(texts, limit)
			continue
		case !d.IsDelivered() && d.Rule != gate.RuleSize && d.Rule != gate.RuleStructuredSize:
			continue // whatever withholds it has been reported
		}
		c.reported[k] = true
		c.reportInput(i, j, in, min(limit, gate.MaxRedact), d.IsDelivered())
	}
	room, key := most-fixed, "maxPromptBytes"
	if context := limits.MaxContext; context > 0 && context-(fixed-instructions) < room {
		room, key = context-(fixed-instructions), "maxContextTokens"
	}
	c.checkSum(i, room, key, texts)
}

// reportInput reports an input of which more is granted to task i, as its use j, than may be delivered.
func (c *sizeCheck) reportInput(i, j int, in *Input, limit int, canBeCut bool) {
	hint := "grant the parts that the task needs with need, raise maxContextBytes, or let the input be cut with cut: true"
	switch {
	case limit == gate.MaxRedact:
		hint = "grant smaller parts with need, or split the input"
	case !canBeCut:
		hint = "grant smaller parts with need, raise maxContextBytes, or split the input"
	}
	message := fmt.Sprintf("input %q has %s, and at most %s of it reach %q", in.Name, c.inputSize(in, limit), bytesize.Text(limit), c.plan.Graph.Task(i).Assignee)
	c.task(i).at("uses", j).report(message, hint, errors.Join(brief.ErrTooLarge, ErrInputValue))
}

// checkSum reports inputs that fit into a prompt one by one, and not together. key names the limit.
func (c *sizeCheck) checkSum(i, room int, key string, texts []int) {
	total := 0
	for _, n := range texts {
		total += n
	}
	t := c.plan.Graph.Task(i)
	if total <= room {
		return
	}
	length := max(brief.CommonLength(texts, max(room, 0)), 0)
	for j, u := range t.Uses {
		k := c.inputs[strings.ToLower(u.Name)]
		if in := &c.options.Inputs[k]; in.Cut || in.Folder != nil || c.reported[k] || len(in.Text) <= length {
			continue
		}
		at := c.task(i).at("uses", j)
		message := fmt.Sprintf("the inputs have %s together, and a prompt of %q has room for %s", exceeding(total, room), t.Assignee, bytesize.Text(room))
		if slices.ContainsFunc(t.Uses, func(u task.Use) bool { return c.input(u).Classification > *c.options.UserAccepts }) {
			message = fmt.Sprintf("the inputs do not fit together into a prompt of %q", t.Assignee) // sum and room are exact sizes
		}
		at.report(message, "grant the parts that the task needs with need, raise "+key+", or let inputs be cut with cut: true", errors.Join(brief.ErrTooLarge, ErrInputValue))
		return
	}
}

// decideInput asks the gate what it will decide about an input at dispatch. If ctx
// ends first, that is not known, and the zero Decision.
func (c *sizeCheck) decideInput(ctx context.Context, i, j int, g gate.Grant) gate.Decision {
	t, in := c.plan.Graph.Task(i), c.input(c.plan.Graph.Task(i).Uses[j])
	at := time.Unix(0, 0) // any time: nothing here expires
	e, err := envelope.New(envelope.Header{ID: InputID(in.Name), Producer: handoff.User, Classification: in.Classification, CreatedAt: at}, envelope.Text(in.Text))
	if err != nil {
		return gate.Decision{}
	}
	contract, err := gate.Negotiate(gate.Request{
		Session: "plan", Caller: handoff.User, Task: t.ID, Classification: c.plan.Labels[i], Grants: []gate.Grant{g}, Declassified: true,
	}, &c.team.Capabilities[c.plan.Members[i]])
	if err != nil {
		return gate.Decision{}
	}
	compartment := gate.Compartment{Contract: contract}
	d, err := compartment.Decide(ctx, &gate.Offer{Source: g.Source, Title: in.Name, Envelope: e}, at)
	if err != nil {
		return gate.Decision{}
	}
	return d.Decision
}

// inputSize names the size of an input above a limit: only that it is above it, if the
// caller may not read it.
func (c *sizeCheck) inputSize(in *Input, limit int) string {
	if in.Classification > *c.options.UserAccepts {
		return "more than " + bytesize.Text(limit)
	}
	return exceeding(len(in.Text), limit)
}

// exceeding writes a size that is above a limit, in bytes if the rounded size would
// read like the limit.
func exceeding(bytes, limit int) string {
	if text := bytesize.Text(bytes); text != bytesize.Text(limit) {
		return text
	}
	return strconv.Itoa(bytes) + " bytes"
}

// Frame is more bytes than a prompt's own lines around one piece of context take.
const Frame = 256
