package history

import (
	"encoding/json"
	"slices"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
)

// A PolicyDocument is a policy of a run, in JSON.
type PolicyDocument struct {
	Run     string           `json:"runId"`
	Digest  string           `json:"digest"`
	Policy  json.RawMessage  `json:"policy"`
	Rules   []gate.PairTerms `json:"rules"`             // what applies to each pair that the policy names
	Earlier []string         `json:"earlier,omitempty"` // the digests of the policies before the newest one, oldest first
}

// NewPolicyDocument returns the document of one of the policies that a run has had, oldest first.
func NewPolicyDocument(run string, p *record.Policy, had []*record.Policy) (*PolicyDocument, error) {
	rules, err := p.Compile()
	if err != nil {
		return nil, err
	}
	d := &PolicyDocument{Run: run, Digest: p.Digest, Policy: p.Text, Rules: rules.Pairs(p.Names())}
	for i, one := range had {
		if newest := had[len(had)-1].Digest; i < len(had)-1 && one.Digest != newest && !slices.Contains(d.Earlier, one.Digest) {
			d.Earlier = append(d.Earlier, one.Digest)
		}
	}
	return d, nil
}
