package engine

import (
	"cmp"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/tool"
)

// title returns the title of the task as its prompts have it.
func (r *request) title() string {
	return cmp.Or(r.heading, plan.TitleInPrompts(r.by, r.task, plan.WrittenTitle(r.task)))
}

// build writes the prompt of a brief, whose contract and task are the model call's.
func (x *modelCall) build(b *brief.Brief) (prompt.Prompt, error) {
	b.Contract, b.Task, b.MaxBytes, b.MaxContext = x.contract, x.task, x.limits.MaxPromptBytes, x.limits.MaxContext
	if title := x.title(); title != x.task.Title {
		b.Task = new(*x.task)
		b.Task.Title = title
	}
	if x.schema != nil && !x.task.IsComputed() {
		b.Schema = x.schema.String()
	}
	for _, t := range x.tools {
		_, isOwn := x.run.team.Parameters[t.Name] // the runtime has tools too
		takes := isOwn && x.run.team.Find(x.caps.Agent).TakesTextCalls()
		b.Tools = append(b.Tools, brief.Tool{
			Name: t.Name, Description: t.Description, Parameters: string(t.Parameters),
			TextCalls: takes && (t.Effect == tool.None || t.Approve != ""),
		})
	}
	text, receipt, err := prompt.Build(*b)
	if err == nil {
		x.setReceipt(text, receipt)
		x.sentSize = len(text.System()) + len(text.Added()) + toolBytes(text)
		err = setKeys(x, b, text)
	}
	return text, err
}

// setReceipt sets the receipt of the prompt, and its form for the caller.
func (x *modelCall) setReceipt(p prompt.Prompt, whole *prompt.Receipt) {
	x.whole = whole
	if x.receipt, x.shownSize, x.hidden = x.run.receiptOf(p, whole); x.hidden {
		x.run.bus.hide(x.task.ID)
	}
}
