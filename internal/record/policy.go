package record

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/provenance"
)

// A Policy is one that a run has or had, as it is stored.
type Policy struct {
	Text    json.RawMessage       `json:"policy"` // in the form of the section policy of a spec file
	Digest  string                `json:"digest"`
	Origins []provenance.Position `json:"origins,omitempty"` // where its rules and entries are written
	Parties []gate.Party          `json:"parties,omitempty"` // whom it may name
	Missing string                `json:"missing,omitempty"` // why it has no Text: a program can make a policy that no file can have

	Unreadable string `json:"-"` // why the stored Text cannot be read, such as that it is encrypted; empty if it can
}

// ErrPolicyAltered reports a stored policy that is not the one of its digest.
var ErrPolicyAltered = errors.New("the stored policy was altered")

// ErrPolicyUnwritten reports a policy of a program that cannot be written as in a spec file, so only its digest is
// stored. The rest of the error says why.
var ErrPolicyUnwritten = errors.New("the policy cannot be written as in a spec file")

// NewPolicy returns a policy as it is stored. The error wraps [ErrPolicyUnwritten].
func NewPolicy(p *handoff.Policy, digest string, parties []gate.Party) (*Policy, error) {
	text, err := policytext.Write(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicyUnwritten, err)
	}
	out := &Policy{Text: text, Digest: digest, Parties: parties}
	if p != nil {
		out.Origins = policytext.Origins(p)
	}
	return out, nil
}

// Names returns the names of the members that the policy may name.
func (p *Policy) Names() []string {
	names := make([]string, len(p.Parties))
	for i := range p.Parties {
		names[i] = p.Parties[i].Name
	}
	return names
}

// Policy returns the policy that was stored. The error wraps [ErrPolicyAltered] or [ErrPolicyUnwritten].
func (p *Policy) Policy() (*handoff.Policy, error) {
	if p.Unreadable != "" {
		return nil, fmt.Errorf("the stored policy cannot be read: it is %s", p.Unreadable)
	}
	if p.Missing != "" {
		return nil, fmt.Errorf("%w: %s", ErrPolicyUnwritten, p.Missing)
	}
	if len(p.Text) == 0 {
		return nil, ErrPolicyAltered
	}
	own, err := policytext.Read(p.Text)
	if err != nil {
		return nil, err
	}
	policytext.SetOrigins(own, p.Origins)
	return own, nil
}

// Compile returns the policy ready to rule, for its parties. The error wraps [ErrPolicyAltered] if
// it is another one than was stored.
func (p *Policy) Compile() (*gate.Rulebook, error) {
	own, err := p.Policy()
	if err != nil {
		return nil, err
	}
	rules, err := gate.Compile(own, p.Parties)
	if err == nil && rules.Digest() != p.Digest {
		err = fmt.Errorf("%w: it does not have the digest %s", ErrPolicyAltered, p.Digest)
	}
	return rules, err
}
