package engine

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/tool"
)

// gateResult makes the envelope of a result.
func (c *toolCall) gateResult(r *tool.Result) (*envelope.Envelope, error) {
	reply := gate.ToolReply{ID: envelope.ID(c.delivery.contract.Session[len(c.delivery.run.id)+1:] + "/result"), Text: r.Text, Claim: r.Label}
	if !utf8.ValidString(reply.Text) {
		reply.Text = strings.ToValidUTF8(reply.Text, "\uFFFD")
	}
	if len(r.JSON) > 0 {
		v, err := jsonvalue.Parse(string(r.JSON))
		if err != nil {
			return nil, fmt.Errorf("structured result: invalid JSON: %w", err)
		}
		reply.JSON = v
	}
	return (&gate.Compartment{Contract: c.delivery.contract}).GateToolResult(reply, c.tool.Level(), &c.delivery.sealed[0], time.Now())
}

// runtimeAnswer makes the envelope of what the runtime answers in place of a tool. It is as
// sensitive as what the agent said.
func (a *attempt) runtimeAnswer(x *modelCall, said *envelope.Envelope, call llm.ToolCall, text string) (*envelope.Envelope, error) {
	h := said.Header()
	return envelope.New(envelope.Header{
		ID: envelope.ID(x.identity() + "/" + call.ID + "/refused"), Producer: gate.Runtime, Task: h.Task, Run: h.Run, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: time.Now(), ExpiresAt: h.ExpiresAt, DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text(a.by.Rules.WithoutNames(text)))
}
