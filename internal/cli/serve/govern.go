package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A governor returns and replaces the policies of the runs of a site.
type governor struct{ steerer }

// Rules returns a policy of a run; see [inspector.Governor].
func (g governor) Rules(ctx context.Context, name, digest string) (doc any, holds string, err error) {
	run, had, err := g.policiesOf(ctx, name)
	if err != nil {
		return nil, "", problem(err)
	}
	p := had[len(had)-1]
	if digest != "" {
		i := slices.IndexFunc(had, func(of *record.Policy) bool { return of.Digest == digest })
		if i < 0 {
			return nil, "", &inspector.Error{Code: inspector.NotFound, Message: fmt.Sprintf("the run has had no policy %q", digest), Hint: "give a digest that the policy of the run lists as earlier, or none for the newest policy"}
		}
		p = had[i]
	}
	d, err := history.NewPolicyDocument(run, p, had)
	return d, p.Digest, problem(err)
}

// Pair returns what applies to a pair; see [inspector.Governor].
func (g governor) Pair(ctx context.Context, name, from, to string) (any, error) {
	_, had, err := g.policiesOf(ctx, name)
	if err != nil {
		return nil, problem(err)
	}
	p := had[len(had)-1]
	for _, of := range []string{from, to} {
		if !slices.Contains(append(p.Names(), handoff.User, handoff.Coordinator, handoff.Computed), of) {
			return nil, &inspector.Error{Code: inspector.NotFound, Message: fmt.Sprintf("the run has no member %q", of)}
		}
	}
	rules, err := p.Compile()
	if err != nil {
		return nil, problem(err)
	}
	return rules.Pair(from, to), nil
}

// policiesOf returns the policies that a run has had, the newest last. Like the spec, they are internal.
func (g governor) policiesOf(ctx context.Context, name string) (run string, had []*record.Policy, err error) {
	if run, err = g.find(ctx, name); err != nil {
		return "", nil, err
	}
	if g.accepts < label.Internal {
		return "", nil, &inspector.Error{Code: inspector.Forbidden, Message: "the policy is above the clearance of this viewer"}
	}
	if had, err = journal.PoliciesOf(ctx, g.j, run); err != nil {
		return "", nil, journals.ReadError(ctx, err)
	}
	if now, err := g.live.monitor(run).Policy(); err == nil && now.Digest != had[len(had)-1].Digest { // it is not durable yet
		had = append(had, now)
	}
	return run, had, nil
}

// find returns the ID of a run; if name is empty, that of the only live run.
func (g governor) find(ctx context.Context, name string) (string, error) {
	if name != "" {
		found, err := journals.Find(ctx, g.j, name)
		return found.Run, err
	}
	list, err := g.j.Runs(ctx)
	if err != nil {
		return "", journals.ReadError(ctx, err)
	}
	var working []string
	for i := range list {
		if list[i].Holder != nil {
			working = append(working, list[i].Run)
		}
	}
	if len(working) != 1 {
		return "", &inspector.Error{Code: inspector.Conflict, Message: fmt.Sprintf("%d runs are live; this path needs exactly one", len(working)), Hint: "name the run: " + inspector.API + "/runs/RUN/governance/handoff-rules"}
	}
	return working[0], nil
}

// Replace replaces the policy of a run; see [inspector.Governor].
func (g governor) Replace(ctx context.Context, name, digest string, given inspector.Policy) (string, error) {
	run, _, err := g.policiesOf(ctx, name)
	if err != nil {
		return "", problem(err)
	}
	text, err := asFile(given.Policy)
	if err != nil {
		return "", &inspector.Error{Code: inspector.BadRequest, Message: err.Error()}
	}
	f, p, err := specfile.LoadPolicy("", "-", bytes.NewReader(text), func() []string {
		_, had, err := g.policiesOf(ctx, run)
		if err != nil {
			return nil
		}
		return had[len(had)-1].Names()
	})
	if err != nil {
		return "", atPointers(err, text)
	}
	policytext.SetOrigins(p, make([]provenance.Position, len(policytext.Origins(p)))) // they have no line in a file
	err = g.send(ctx, run, steer.Command{Kind: steer.ReplacePolicy, By: given.By, Reason: given.Reason, Policy: p, Replaces: digest, Assert: specfile.AssertionsOf(f)})
	if err != nil && !errors.Is(err, steer.ErrUnchanged) { // to replace a policy by itself changes nothing
		return "", problem(err)
	}
	_, had, err := g.policiesOf(ctx, run)
	if err != nil {
		return "", problem(err)
	}
	return digestOf(had, p), nil
}

// digestOf returns the digest of the newest policy that equals the one that was sent: another client may have
// replaced it since.
func digestOf(had []*record.Policy, sent *handoff.Policy) string {
	text, err := policytext.Write(sent)
	for i := len(had) - 1; i >= 0 && err == nil; i-- {
		if bytes.Equal(had[i].Text, text) {
			return had[i].Digest
		}
	}
	return had[len(had)-1].Digest
}

// maxNesting is how deep the lists and objects of a policy may be nested. The indentation of its text
// grows with the depth.
const maxNesting = 32

// asFile returns the text of a policy file.
func asFile(policy json.RawMessage) ([]byte, error) {
	d := jsontext.NewDecoder(bytes.NewReader(policy), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // both are found later
	for {
		if _, err := d.ReadToken(); err != nil {
			break
		}
		if d.StackDepth() > maxNesting {
			return nil, fmt.Errorf("the policy has lists or objects that are nested deeper than %d", maxNesting)
		}
	}
	return json.MarshalIndent(map[string]json.RawMessage{"policy": policy}, "", "  ")
}

// atPointers returns the error for problems in the text of a policy file. Its places are JSON pointers,
// since the client did not send that text.
func atPointers(err error, text []byte) error {
	e := &inspector.Error{Code: inspector.Invalid, Message: "the policy cannot be read"}
	for _, p := range exit.Problems(err) {
		e.Problems = append(e.Problems, inspector.Problem{Pointer: pointerAt(text, p.Line, p.Column), Message: p.Message, Hint: p.Hint})
	}
	if len(e.Problems) == 0 {
		e.Message = err.Error()
	}
	return e
}

// pointerAt returns the JSON pointer of what is at a line and a column, both from 1, of a JSON text.
func pointerAt(text []byte, line, column int) string {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	at += column - 1
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.ReadToken(); err != nil || int(d.InputOffset()) > at {
			return string(d.StackPointer())
		}
	}
}

// refused returns the error for a policy that a run refuses, with all its problems; nil for other errors.
func refused(err error) error {
	e := &inspector.Error{Code: inspector.Invalid, Message: strings.TrimPrefix(err.Error(), steer.ErrRefused.Error()+": ")}
	if errors.Is(err, steer.ErrStale) {
		e.Code, e.Hint = inspector.Stale, "read the policy again, and send yours with its ETag"
		return e
	}
	found, _ := errors.AsType[task.Problems](err)
	if len(found) == 0 {
		return nil
	}
	e.Message = "the run refuses the policy"
	widens := errors.Is(err, steer.ErrWidens)
	if widens {
		e.Code, e.Message, e.Hint = inspector.Widening, steer.ErrWidens.Error(), "narrow it, or start the run with --allow-widening"
	}
	for _, p := range found {
		text := p.Message
		if p.Subject != "" {
			text = p.Subject + ": " + text
		}
		e.Problems = append(e.Problems, inspector.Problem{Pointer: p.Pointer, Message: text, Hint: format.Unless(widens, p.Hint)})
	}
	return e
}
