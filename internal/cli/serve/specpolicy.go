package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// The policy of a spec may be in a file of its own. Then it can be read, and replaced for later runs.

// A specPolicy is the policy of a served spec, in JSON.
type specPolicy struct {
	Spec   string          `json:"spec"`
	File   string          `json:"file"`
	Digest string          `json:"digest"` // of the policy as it is written there
	Policy json.RawMessage `json:"policy"`

	declared *specfile.Declared
}

// PolicyOfSpec returns the policy of a spec; see [inspector.Starter].
func (s launcher) PolicyOfSpec(ctx context.Context, spec string) (doc any, digest string, err error) {
	accepts, err := s.mayStart(spec, nil)
	if err == nil && accepts < label.Internal { // like the spec, it is internal
		err = &inspector.Error{Code: inspector.Forbidden, Message: "the policy is above the clearance of this viewer"}
	}
	if err != nil {
		return nil, "", err
	}
	p, err := s.starts.policyOf(ctx, spec)
	if err != nil {
		return nil, "", err
	}
	return p, p.Digest, nil
}

// policyOf reads the policy of a served spec.
func (s *starter) policyOf(ctx context.Context, name string) (*specPolicy, error) {
	of, err := s.find(name)
	if err != nil {
		return nil, err
	}
	spec := s.flags.spec(of.path)
	spec.Results = s.flags.Results(s.con)
	d, err := spec.Declare(ctx, s.con)
	if err != nil {
		return nil, problem(err)
	}
	if d.Policy == nil {
		return nil, &inspector.Error{Code: inspector.NotFound, Message: fmt.Sprintf("the policy of spec %q has no file of its own", name), Hint: "write it into a file, and policy: {file: PATH} in the spec"}
	}
	return &specPolicy{Spec: name, File: d.Policy.Path, Digest: digestOfText(d.Policy.JSON), Policy: d.Policy.JSON, declared: d}, nil
}

// find returns the served spec with a name.
func (s *starter) find(name string) (*servedSpec, error) {
	i := slices.IndexFunc(s.specs, func(of servedSpec) bool { return of.name == name })
	if i < 0 {
		return nil, &inspector.Error{Code: inspector.NotFound, Message: fmt.Sprintf("no spec %q is served", name), Hint: "GET " + inspector.API + "/specs lists them"}
	}
	return &s.specs[i], nil
}

// digestOfText returns the digest of a policy as it is written.
func digestOfText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ReplacePolicyOfSpec replaces the policy of a spec for later runs; see [inspector.Starter].
func (s launcher) ReplacePolicyOfSpec(ctx context.Context, name, digest string, given inspector.Policy) (string, error) {
	accepts, err := s.mayStart(name, ofAll)
	if err == nil && accepts < label.Confidential {
		err = &inspector.Error{Code: inspector.Forbidden, Message: "the policy also holds for runs whose user may see more than this viewer"}
	}
	if err != nil {
		return "", err
	}
	return s.starts.replacePolicy(ctx, name, digest, given)
}

// replacePolicy replaces the policy of a spec that has this digest, and returns the digest of the new one.
func (s *starter) replacePolicy(ctx context.Context, name, digest string, given inspector.Policy) (string, error) {
	s.policies.Lock() // so that nobody else replaces it between the check and the change
	defer s.policies.Unlock()
	was, err := s.policyOf(ctx, name)
	if err != nil {
		return "", err
	}
	if was.Digest != digest {
		return "", refused(fmt.Errorf("%w; its digest is now %s", steer.ErrStale, was.Digest))
	}
	source, err := policySourceOf(&given)
	if err != nil {
		return "", &inspector.Error{Code: inspector.BadRequest, Message: err.Error()}
	}
	d, err := s.checkPolicyOfSpec(ctx, was, &source)
	if err != nil {
		return "", err
	}
	for i := range s.specs { // others may share the file
		of := &s.specs[i]
		if of.name == name || of.Policy == nil || of.Policy.Path != was.File {
			continue
		}
		other, err := s.policyOf(ctx, of.name)
		if err != nil {
			return "", err
		}
		if _, err := s.checkPolicyOfSpec(ctx, other, &source); err != nil {
			return "", err
		}
	}
	now := digestOfText(d.Policy.JSON)
	if now == was.Digest {
		return now, nil
	}
	text, err := specfile.PolicyFile(d.Policy.JSON)
	if err == nil {
		err = s.writePolicy(was.File, text)
	}
	if err != nil {
		return "", problem(err)
	}
	s.con.Say("runteam: %s replaced the policy of %s in %s%s", terminal.CleanLine(given.By), terminal.CleanLine(name), terminal.CleanLine(was.File), because(given.Reason))
	return now, nil
}

// because returns the beginning of a reason as the end of a sentence.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + terminal.CleanLine(oneline.Of(reason))
}

// checkPolicyOfSpec checks a spec with another text in the file of its policy: that nothing is wrong with it that was not
// before, and that the policy delivers no more. A spec lacks inputs and parameters, so some of it may be wrong.
func (s *starter) checkPolicyOfSpec(ctx context.Context, was *specPolicy, source *policySource) (*specfile.Declared, error) {
	of, err := s.find(was.Spec)
	if err != nil {
		return nil, err
	}
	spec := s.flags.spec(of.path)
	spec.Results = s.flags.Results(s.con)
	spec.Stored = []specfile.StoredFile{{Path: was.File, Found: was.File, Text: string(source.file), Label: label.Internal, Instead: true}}
	d, err := spec.Declare(ctx, s.con)
	if err != nil {
		return nil, policyRefused(err, was.File, source)
	}
	next, err := connect.BuildTeam(d.File, connect.Unconnected(s.con.LookupEnv))
	if err != nil {
		return nil, policyRefused(err, was.File, source)
	}
	now, err := connect.BuildTeam(was.declared.File, connect.Unconnected(s.con.LookupEnv))
	if err != nil {
		return nil, problem(err)
	}
	if !s.flags.allowWidening {
		if err := wider(next, now, d.File, was.declared.File); err != nil {
			return nil, err
		}
	}
	known, err := wrong(ctx, now, was.declared.File)
	if err != nil {
		return nil, err
	}
	found, err := wrong(ctx, next, d.File)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(p specfile.Problem) bool {
		return slices.ContainsFunc(known, func(of specfile.Problem) bool { return of.Message == p.Message })
	})
	if len(found) > 0 {
		return nil, policyRefused(&specfile.Error{Problems: found}, was.File, source)
	}
	return d, nil
}

// wider returns an error for a policy that delivers more, or that leaves out an assertion.
func wider(next, now *engine.Team, file, was *specfile.File) error {
	const hint = "narrow it, or start serve with --allow-widening"
	if err := next.Widening(now); err != nil {
		e := &inspector.Error{}
		if errors.As(refused(err), &e) {
			e.Hint = hint
			return e
		}
		return problem(err)
	}
	kept := specfile.AssertionsOf(file)
	for _, text := range specfile.AssertionsOf(was) {
		if !slices.Contains(kept, text) {
			return &inspector.Error{Code: inspector.Widening, Message: fmt.Sprintf("the policy leaves out the assertion %q", text), Hint: hint}
		}
	}
	return nil
}

// wrong returns what is wrong with the tasks of a spec, and the assertions that do not hold.
func wrong(ctx context.Context, t *engine.Team, f *specfile.File) (found []specfile.Problem, err error) {
	if len(f.Tasks) == 0 {
		return nil, nil
	}
	p, err := files.Await(ctx, func() (*engine.Plan, error) { return t.Plan(f.Tasks, &f.Run) })
	if err != nil {
		if found = exit.Problems(f.Locate(err)); len(found) == 0 {
			return nil, problem(err)
		}
		return found, nil
	}
	for i := range p.Findings {
		if a := &p.Findings[i]; !a.Holds {
			found = append(found, specfile.Problem{Message: fmt.Sprintf("the assertion %q does not hold", a.Assertion.String()), Hint: a.Why})
		}
	}
	return found, nil
}

// policyRefused returns the error for a policy with which a spec cannot be run, with all problems. Those in the text of
// its file have their places in what the client sent.
func policyRefused(err error, path string, source *policySource) error {
	e := &inspector.Error{Code: inspector.Invalid, Message: "the spec cannot be run with this policy"}
	for _, p := range exit.Problems(err) {
		switch at := p.At(); {
		case p.File == path:
			e.Problems = append(e.Problems, source.problem(&p))
		case at != "":
			e.Problems = append(e.Problems, inspector.Problem{Message: at + ": " + p.Message, Hint: p.Hint})
		default:
			e.Problems = append(e.Problems, inspector.Problem{Message: p.Message, Hint: p.Hint})
		}
	}
	if len(e.Problems) == 0 {
		return problem(err)
	}
	return e
}

// writePolicy replaces the file of a policy, or the one that a link leads to.
func (s *starter) writePolicy(path string, text []byte) error {
	at, err := filepath.EvalSymlinks(s.con.WorkDir.Path(path))
	if err != nil {
		return exit.FileError(path, err)
	}
	info, err := os.Stat(at)
	if err == nil {
		err = files.Replace(at, text, info.Mode().Perm())
	}
	if err != nil {
		return exit.FileError(path, err)
	}
	return nil
}
