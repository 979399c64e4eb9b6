package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
)

// labeledText returns a text that the agent wrote in addition to its result, as the caller
// may see it, or nil if there is none or the caller may see nothing of it. Only the caller reads it. It has the label and the
// expiry that the result would have, and for a cached answer at least those that it was
// stored with. Its Problem may quote the text, so it passes the gate too. Both are
// redacted first and then cut to maxLabeledText.
func (x *modelCall) labeledText(source handoff.SourceKind, given record.LabeledText) *record.LabeledText {
	if strings.TrimSpace(given.Text) == "" || x.contract.Session == "" || !x.run.seesResult(x.makers(), x.contract.MaxInput.Join(given.Label)) {
		return nil
	}
	now := time.Now()
	ctx := x.checking(context.Background(), now)
	out := given
	out.Text, out.Problem = uncheckable, ""
	for _, part := range []struct {
		of  *string
		say string
	}{{&out.Text, given.Text}, {&out.Problem, x.run.errorText(given.Problem)}} {
		say := strings.ToValidUTF8(part.say, "\uFFFD")
		e, err := (&gate.Compartment{Contract: x.contract}).GateFault(envelope.ID(x.identity()+"/"+string(source)), say, x.sealed, now)
		if err != nil {
			continue
		}
		h := e.Header()
		h.Classification, h.ExpiresAt = h.Classification.Join(given.Label), gate.Earliest(h.ExpiresAt, given.ExpiresAt)
		out.Label, out.ExpiresAt = h.Classification, h.ExpiresAt
		if e, err = envelope.New(h, envelope.Text(say)); err != nil {
			continue
		}
		if seen, err := x.run.toUser(ctx, e, gate.Source{Kind: source, Name: string(x.task.ID)}, now); err == nil {
			*part.of = cutLabeledText(seen.text)
		}
	}
	return &out
}

// uncheckable replaces a text that the gate could not check for the caller.
const uncheckable = "[withheld: it is too large, or could not be checked]"

// maxLabeledText bounds a labeled text, in bytes of JSON. A line of a journal has room for an
// encrypted result in both of its forms and for little else.
const maxLabeledText = 256 << 10

// cutLabeledText returns a text in the form for the caller, cut to maxLabeledText with a mark.
func cutLabeledText(text string) string {
	const mark = len(`… [cut: 256 of 99999 KiB]`)
	left, end := maxLabeledText-mark-len(`""`), -1 // end is where the text is cut if it is too long
	for i, r := range text {
		switch {
		case r < ' ', r == '"', r == '\\', r == '<', r == '>', r == '&', r == 0x7f, r == 0x2028, r == 0x2029, r == utf8.RuneError:
			left -= len(`\u0000`)
		default:
			left -= utf8.RuneLen(r)
		}
		if left < 0 && end < 0 {
			end = i
		}
		if left < -mark {
			return fmt.Sprintf("%s… [cut: %d of %d KiB]", text[:end], end>>10, len(text)>>10)
		}
	}
	return text
}

// reject records an answer that was not accepted, for the caller.
func (x *modelCall) reject(text, problem string, attempt int) {
	x.rejected = x.labeledText(handoff.Fault, record.LabeledText{Text: text, Problem: problem, Attempt: attempt, Call: x.visibility().callInfo(x.reply.Call)})
}

// keepLabeledTexts records what the agent wrote in addition to its result: its reasoning and,
// if err is not nil, the answer that was not accepted.
func (x *modelCall) keepLabeledTexts(err error) {
	if e := x.recalled; e != nil {
		if e.Reasoning != nil {
			x.reasoning = x.labeledText(gate.Reasoning, *e.Reasoning)
		}
		if e.Refused != nil {
			x.rejected = x.labeledText(handoff.Fault, *e.Refused)
		}
		return
	}
	if x.stage != givenPrompt {
		return
	}
	x.reasoning = x.labeledText(gate.Reasoning, record.LabeledText{Text: x.reply.Reasoning})
	if err == nil || x.rejected != nil {
		return
	}
	problem := ""
	if rejected, ok := errors.AsType[*schema.RejectedError](err); ok {
		problem = rejected.Problem
	}
	x.reject(cmp.Or(x.reply.Text, x.reply.JSON.Canonical()), problem, x.number)
}

// rejectedAnswers returns answers that were not accepted, without those that are nil.
func rejectedAnswers(texts ...*record.LabeledText) (list []RejectedAnswer) {
	for _, t := range texts {
		if t != nil {
			list = append(list, RejectedAnswer{Attempt: t.Attempt, Text: t.Text, Problem: t.Problem, Call: t.Call})
		}
	}
	return list
}

// A mismatchError is the error of a reply that the gate refused because it does not match
// the schema.
type mismatchError struct {
	held     *gate.WithheldError
	rejected *schema.RejectedError
}

// Error says what is wrong without quoting the reply.
func (e *mismatchError) Error() string {
	if errors.Is(e.rejected, schema.ErrGuard) {
		return e.rejected.Error()
	}
	return e.held.Error()
}

// Unwrap returns both errors.
func (e *mismatchError) Unwrap() []error { return []error{e.held, e.rejected} }

// explainRefusal returns the error with which the gate refused a reply. If the answer does
// not match the schema, the error is a [mismatchError], which says what is wrong.
func (x *modelCall) explainRefusal(ctx context.Context, err error) error {
	held, ok := errors.AsType[*gate.WithheldError](err)
	if !ok || held.Decision.Rule != gate.RuleSchema || x.schema == nil {
		return err
	}
	v, problem := x.reply.JSON, error(nil)
	if v.Canonical() == "" {
		v, _, problem = jsonvalue.Find(x.reply.Text, nil)
	}
	if problem == nil {
		problem = x.schema.ValidateContext(ctx, v)
	}
	if problem == nil || ctx.Err() != nil {
		return err
	}
	return &mismatchError{held, schema.Reject(problem)}
}
