package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
)

// askProgram asks the program whether a call may be made. It returns why not, in words for the
// agent. If the program panics or ends its goroutine, the call is not made either.
func (c *toolCall) askProgram(ctx context.Context, a *attempt) (refusal string, err error) {
	ask := c.delivery.run.team.Config.OnToolCall
	if ask == nil {
		return "", nil
	}
	arguments, _ := c.delivery.sealed[0].Payload().JSON()
	refusal, err = runOutside(ctx, "OnToolCall", c.delivery.run.team.Log, func() (string, error) {
		err := ask(ctx, plan.ToolCall{
			Run: c.delivery.run.id, Task: a.task.ID, Title: a.task.Title, Agent: a.caps.Agent, Tool: c.tool.Name,
			Arguments: json.RawMessage(arguments), Effect: c.effect(),
		})
		if err != nil {
			return "Call refused: " + err.Error(), nil
		}
		return "", nil
	})
	switch {
	case ctx.Err() != nil:
		return "", withCause(ctx, ctx.Err())
	case err != nil:
		return "Call refused.", nil
	}
	return c.delivery.run.errorText(refusal), nil
}

// recordRefusal records that the program refused a call, so that a resumed run does not ask
// about it again.
func (c *toolCall) recordRefusal(a *attempt, answer *toolAnswer) {
	a.run.ledger.note(record.Entry{ToolResult: c.entry(a, answer.envelope, c.delivery.start, codes.ToolRefused)})
}

// entry returns what a journal stores of the end of a call. The code is empty if it succeeded.
func (c *toolCall) entry(a *attempt, e *envelope.Envelope, began time.Time, code string) *record.AgentCall {
	return &record.AgentCall{
		CallID: record.CallID{Session: c.id, Task: a.task.ID, Title: a.task.Title, Agent: c.delivery.caps.Agent, Attempt: a.number, Part: "/tool"},
		Start:  began, End: time.Now(), Result: gate.RecordOf(e), Code: code,
	}
}
