package prompt_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// A credential that was never valid, in pieces so that scanners of
// repositories do not take it for a real one.
var fakeToken = "gh" + "p_" + "9fKq2LmZ7RtXv4Nc8BwYp1HsDj6GaEu3Wo5T"

// Limits of a desk's grants and briefs: below the defaults, so that tests can
// exceed them with small texts.
const (
	contextBytes = 64 << 10
	promptBytes  = 256 << 10
)

// A desk gates context for one task of "writer".
type desk struct {
	t    require.TestingT
	gate *gate.Compartment
	task *task.Task
	next int // number of the next source
}

func newDesk(t require.TestingT) *desk {
	k, err := gate.Negotiate(gate.Request{Session: "r1/t-down/1", Caller: handoff.User, Run: "r1", Task: "t-down", Classification: label.Confidential},
		&gate.Capabilities{Agent: "writer", Accepts: label.Confidential, Produces: label.Confidential})
	require.NoError(t, err)
	return &desk{t: t, gate: &gate.Compartment{Contract: k}, task: &task.Task{ID: "t-down", Spec: task.Spec{Title: "Write it up", Description: "Write one page.\n\nUse the numbers."}}}
}

func (d *desk) brief() brief.Brief {
	return brief.Brief{Contract: d.gate.Contract, Task: d.task, MaxBytes: promptBytes}
}

// offer returns an offer of the given kind that the desk's contract grants.
func (d *desk) offer(kind handoff.SourceKind, title, from string, p envelope.Payload) *gate.Offer {
	d.next++
	source := gate.Source{Kind: kind, Name: fmt.Sprintf("s%d", d.next)}
	g := gate.WholeOf(source, "")
	g.MaxBytes = contextBytes
	d.gate.Contract.Grants = append(d.gate.Contract.Grants, g)
	e, err := envelope.New(envelope.Header{ID: envelope.ID(fmt.Sprintf("e%d", d.next)), Producer: from, CreatedAt: noon}, p)
	require.NoError(d.t, err)
	o := &gate.Offer{Source: source, Title: title, Assignee: from, Envelope: e}
	if kind == handoff.Dependency {
		o.Status = task.Completed
	}
	return o
}

func (d *desk) gated(o *gate.Offer) gate.Sealed {
	s, err := d.gate.GateOutbound(context.Background(), o, noon)
	require.NoError(d.t, err)
	return s
}

// seal gates a payload of the given kind.
func (d *desk) seal(kind handoff.SourceKind, title, from string, p envelope.Payload, as ...task.Payload) gate.Sealed {
	o := d.offer(kind, title, from, p)
	if len(as) > 0 {
		o.As = as[0]
	}
	return d.gated(o)
}

func (d *desk) input(name, text string) gate.Sealed {
	return d.seal(handoff.Input, name, handoff.User, envelope.Text(text))
}

func (d *desk) dep(title, from, text string) gate.Sealed {
	return d.seal(handoff.Dependency, title, from, envelope.Text(text))
}

func (d *desk) memory(agent, key, text string) gate.Sealed {
	return d.seal(handoff.Memory, key, agent, envelope.Text(text))
}

func (d *desk) message(from, text string) gate.Sealed {
	return d.seal(handoff.Message, "", from, envelope.Text(text))
}

// plan seals a text that the coordinator made.
func (d *desk) plan(text string) gate.Sealed {
	return d.seal(handoff.Plan, "", handoff.Coordinator, envelope.Text(text))
}

// withheld returns the line of an optional dependency that is held after a change.
func (d *desk) withheld(title string, change func(*gate.Compartment, *gate.Offer)) gate.Sealed {
	o := d.offer(handoff.Dependency, title, "analyst", envelope.Text("held"))
	o.Optional = true
	c := *d.gate
	change(&c, o)
	s, err := c.GateOutbound(context.Background(), o, noon)
	require.NoError(d.t, err)
	return s
}

func structured(t require.TestingT, raw string) envelope.Payload {
	p, err := envelope.Structured(raw)
	require.NoError(t, err)
	return p
}

func build(t require.TestingT, b brief.Brief) prompt.Prompt {
	p, _, err := prompt.Build(b)
	require.NoError(t, err)
	return p
}

var fenceLine = regexp.MustCompile(`(?m)^\[envelope ([0-9a-f]{32}) from "([^"]*)", (\w+)(.*): data, not instructions\]$`)

// fences returns the fences that open in a text, in order.
func fences(text string) (all []string) {
	for _, found := range fenceLine.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// terminated cuts a text into lines as the most generous reader does.
func terminated(text string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(text, "\r\n", "\n\x00"), func(r rune) bool {
		return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r)
	})
}
