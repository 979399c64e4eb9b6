package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
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

// A governor returns the policies of the runs that a guest may see, and replaces those of runs that they may steer.
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
	of, err := g.find(ctx, name)
	if err != nil {
		return "", nil, err
	}
	if run = of.Run; g.clearance(&of) < label.Internal {
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

// find returns a run; if name is empty, the only live one.
func (g governor) find(ctx context.Context, name string) (journal.Summary, error) {
	if name != "" {
		return journals.Find(ctx, g.j, name)
	}
	list, err := g.j.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return journal.Summary{}, journals.ReadError(ctx, err)
	}
	working := slices.DeleteFunc(list, func(s journal.Summary) bool { return s.Holder == nil })
	if len(working) != 1 {
		return journal.Summary{}, &inspector.Error{Code: inspector.Conflict, Message: fmt.Sprintf("%d runs are live; this path needs exactly one", len(working)), Hint: "name the run: " + inspector.API + "/runs/RUN/governance/handoff-rules"}
	}
	return working[0], nil
}

// Replace replaces the policy of a run; see [inspector.Governor].
func (g governor) Replace(ctx context.Context, name, digest string, given inspector.Policy) (string, error) {
	run, _, err := g.policiesOf(ctx, name)
	if err == nil {
		_, err = g.steerable(ctx, run)
	}
	if err != nil {
		return "", problem(err)
	}
	source, err := policySourceOf(&given)
	if err != nil {
		return "", &inspector.Error{Code: inspector.BadRequest, Message: err.Error()}
	}
	f, p, err := specfile.LoadPolicyText(source.file, func() []string {
		_, had, err := g.policiesOf(ctx, run)
		if err != nil {
			return nil
		}
		return had[len(had)-1].Names()
	})
	if err != nil {
		return "", source.located(err)
	}
	policytext.SetOrigins(p, make([]provenance.Position, len(policytext.Origins(p)))) // they have no line in a file
	err = g.send(ctx, run, steer.Command{Kind: steer.ReplacePolicy, By: given.By, Reason: given.Reason, Policy: p, Replaces: digest, Assert: specfile.AssertionsOf(f)})
	if err != nil && !errors.Is(err, steer.ErrUnchanged) { // to replace a policy by itself changes nothing
		return "", source.placed(f, problem(err))
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

// A policySource is the text of a policy file that has what a client sent.
type policySource struct {
	file         []byte
	isText       bool // the client sent a text, in which problems have lines
	line, column int  // by how much its lines and columns are less than those of the file
}

// policySourceOf returns the file for what a client sent, below the key policy unless a text has that key. Whoever reads the
// file refuses other keys, by which a client could name files or programs of this computer.
func policySourceOf(given *inspector.Policy) (s policySource, err error) {
	switch {
	case len(given.Policy) > 0:
		s.file, err = asFile(given.Policy)
	case json.Valid([]byte(given.Text)):
		s.file, err = asFile(json.RawMessage(given.Text))
	case hasKey.MatchString(given.Text):
		s = policySource{file: []byte(given.Text), isText: true}
	default:
		s = policySource{file: []byte("policy:\n" + lineStart.ReplaceAllString(given.Text, "  $0")), isText: true, line: 1, column: 2}
	}
	return s, err
}

// lineStart matches the beginning of each line that is not empty, and hasKey a text that is all under the key policy.
var (
	lineStart = regexp.MustCompile(`(?m)^[^\n]`)
	hasKey    = regexp.MustCompile(`^(?:[ \t]*(?:#[^\n]*)?\n)*policy:[ \t]*(?:#[^\n]*)?(?:\n(?:[ \t][^\n]*|#[^\n]*)?)*$`)
)

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

// located returns the error for problems in the file. Their places are those in what the client sent: lines of a text,
// else JSON pointers.
func (s *policySource) located(err error) error {
	e := &inspector.Error{Code: inspector.Invalid, Message: "the policy cannot be read"}
	for _, p := range exit.Problems(err) {
		e.Problems = append(e.Problems, s.problem(&p))
	}
	if len(e.Problems) == 0 {
		e.Message = err.Error()
	}
	return e
}

// problem returns a problem in the file with its place in what the client sent.
func (s *policySource) problem(p *specfile.Problem) inspector.Problem {
	of := inspector.Problem{Message: p.Message, Hint: p.Hint}
	if s.isText {
		of.Line, of.Column = max(p.Line-s.line, 1), max(p.Column-s.column, 1)
	} else {
		of.Pointer = pointerAt(s.file, p.Line, p.Column)
	}
	return of
}

// placed gives the problems that a run finds with a policy their lines in the text that the client sent.
func (s *policySource) placed(f *specfile.File, err error) error {
	e, ok := errors.AsType[*inspector.Error](err)
	if !ok || !s.isText {
		return err
	}
	for i := range e.Problems {
		p := &e.Problems[i]
		at := f.Place("/policy" + strings.TrimPrefix(p.Pointer, "/policy"))
		p.Line, p.Column = max(at.Line-s.line, 1), max(at.Column-s.column, 1)
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
