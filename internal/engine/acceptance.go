package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
)

// close takes the reply through the gate: into the envelope of the result, and
// from there into what the caller may see of it.
func (x *modelCall) close(ctx context.Context, o purpose, now time.Time) error {
	if errors.Is(context.Cause(ctx), ErrPolicyReplaced) {
		return withCause(ctx, ctx.Err()) // the reply derives from what the policy denies
	}
	said := &x.reply
	e, err := x.admit(gate.Reply{Text: cmp.Or(said.Text, said.JSON.Canonical()), JSON: said.JSON, Tags: said.Tags, Claim: said.Claim, Truncated: said.Truncated}, now)
	if err != nil {
		return x.explainRefusal(ctx, err)
	}
	if err := takeOutputs(ctx, o, e); err != nil {
		return err
	}
	return x.accept(ctx, e, now)
}

// admit takes a reply through the gate.
func (x *modelCall) admit(reply gate.Reply, now time.Time) (*envelope.Envelope, error) {
	compartment := gate.Compartment{Contract: x.contract}
	var schema gate.Validator
	if x.schema != nil {
		schema = x.schema
	}
	reply.Session, reply.TTL = x.contract.Session, x.task.TTL
	reply.ID = envelope.ID(strings.TrimSuffix(x.identity(), turnPart(x.turn))) // the same in whichever turn the agent answers
	e, _, err := compartment.GateInbound(reply, x.sealed, schema, now)
	return e, err
}

// accept makes an envelope the model call's result, and takes it to the caller.
func (x *modelCall) accept(ctx context.Context, e *envelope.Envelope, now time.Time) error {
	if x.envelope = e; x.part != "" {
		return nil // the caller reads what is made from it
	}
	if len(x.task.OutputFiles) > 0 && x.outputs == nil { // there was no workspace
		var err error
		if x.outputs, err = outputsOf(e, filetree.Tree{}, filetree.Tree{}, nil); err != nil {
			return err
		}
	}
	var seen reading
	var err error
	for x.readBy == nil || x.readBy != x.run.governed() {
		x.readBy = x.run.governed()
		if seen, err = x.run.toUser(x.finishing(ctx, now), e, gate.Source{Kind: handoff.Dependency, Name: string(x.task.ID)}, now); err != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if !gate.FitsRecord(seen.text, seen.structured) {
		return fmt.Errorf("%w: it is too large once its secrets are replaced; return less", errUnreadable)
	}
	x.text, x.structured, x.partly = seen.text, seen.structured, seen.partly
	if x.outputs == nil {
		return nil
	}
	if x.outputsText, x.outputsBefore, err = x.run.filesToUser(x.finishing(ctx, now), x.outputs, gate.Source{Kind: handoff.Files, Name: string(x.task.ID)}, now); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return nil
}
