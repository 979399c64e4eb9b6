package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Rulebook is a policy that was checked, ready to rule; only
// [Policy.Compile] makes one. It says the same whenever it is asked, and is safe
// for concurrent use. A nil *Rulebook is that of the zero [Policy].
type Rulebook struct {
	standard handoff.Mode
	defaults map[string]intake   // of agents, by name
	exact    map[[2]string]int   // into rules
	by       map[side]*sideRules // rules with Anyone on one side or both
	rules    []compiledRule
	lower    map[[2]string]*handoff.Declassifier
	endorse  map[[2]string]*handoff.Endorser
	renew    map[[2]string]*handoff.Renewal
	redact   redaction
	redactor *redact.Redactor
	words    *redact.Redactor // nil if no rule adds a pattern
	digest   string
	policy   *handoff.Policy
	identity *identity // nil unless the policy hides identities

	mu        sync.RWMutex                // guards what is made when it is first asked for:
	terms     map[[2]string]*Terms        // of pairs of known parties
	redactors map[string]*redact.Redactor // of redactions, by their key
}

// A Party is a name that rules may use, with what narrows all that it gets.
type Party struct {
	Name    string       `json:"name"`
	Default handoff.Mode `json:"default,omitempty"` // of what others make for it; may narrow [Policy].Default and not widen it; empty means no narrower

	Allow     []task.Path          `json:"allow,omitempty"`     // with Default scoped, or none: the paths that it gets
	Block     []task.Path          `json:"block,omitempty"`     // that it never gets
	Translate *handoff.Translation `json:"translate,omitempty"` // of all that it gets
}

// A side is where rules with Anyone match: by producer, by reader, or everywhere.
type side struct{ from, to string }

// A compiledRule is a rule with its paths read.
type compiledRule struct {
	handoff.PairRule
	picked pick.Selection // Allow and Block
	blocks pick.Selection // Block alone
}

// sideRules are what all rules of one side say together.
type sideRules struct {
	states       bool // one of them states a mode
	mode         handoff.Mode
	deciding     *compiledRule // of the narrowest, the first by id
	needs        bool          // one of them is scoped without a list
	selection    pick.Selection
	blocks       pick.Selection
	ceiling      *compiledRule // of those with a ceiling, the lowest
	narrowing    *compiledRule // of those that take parts away whatever their mode, the first
	redact       redaction
	translations []*handoff.Translation
	translating  *compiledRule // of those with a translation, the first
	cites        []Citation    // by id
}

// Compile checks a policy against those whom it may name, and returns it
// ready to rule, or [task.Problems] with everything that is wrong, with
// pointers such as /policy/rules/0/allow/1.
func Compile(p *handoff.Policy, parties []Party) (*Rulebook, error) {
	own := clonePolicy(p)
	b := &Rulebook{
		standard: cmp.Or(own.Default, handoff.Full), defaults: map[string]intake{}, exact: map[[2]string]int{}, by: map[side]*sideRules{},
		lower: map[[2]string]*handoff.Declassifier{}, endorse: map[[2]string]*handoff.Endorser{}, renew: map[[2]string]*handoff.Renewal{},
		redact: redaction(own.Redact), policy: own, terms: map[[2]string]*Terms{}, redactors: map[string]*redact.Redactor{},
	}
	c := policyChecker{book: b, parties: parties}
	c.check()
	if len(c.found) > 0 {
		return nil, c.found
	}
	b.digest = policyDigest(own)
	return b, nil
}

// Digest returns the SHA-256, in hex, of the policy; it is the same for equal
// policies, wherever they are written.
func (b *Rulebook) Digest() string {
	if b == nil {
		return zeroDigest()
	}
	return b.digest
}

// zeroDigest is that of the zero policy.
var zeroDigest = sync.OnceValue(func() string { return policyDigest(&handoff.Policy{}) })

// Words returns the redactor of what is neither a prompt nor a result, such as
// events and logs: every kind there is, and every pattern of the policy.
func (b *Rulebook) Words() *redact.Redactor {
	if b == nil || b.words == nil {
		return redact.All()
	}
	return b.words
}

// Policy returns a copy of the policy that b was made from.
func (b *Rulebook) Policy() handoff.Policy {
	if b == nil {
		return handoff.Policy{}
	}
	return *clonePolicy(b.policy)
}

// policyDigest hashes the policy without the places where it is written. The structs fix
// the order of the fields, which is that of the first version.
func policyDigest(p *handoff.Policy) string {
	type declassifier struct {
		Name, From, To string
		Paths          []task.Path
		LowerTo        label.Classification
		Reason         string
		UnsafeText     bool
		Origin         provenance.Position
		Approve        string `json:",omitempty"` // behind the fields of the first version
	}
	type renewal struct {
		Name, From, To string
		TTL            time.Duration
		Reason         string
		Origin         provenance.Position
	}
	plain := struct {
		Default    handoff.Mode
		Rules      []handoff.PairRule
		Declassify []declassifier
		Endorse    []handoff.Endorser
		Renew      []renewal
		Redact     handoff.Redaction
		Hide       bool `json:",omitempty"` // behind the fields of the first version
		NoModel    bool `json:",omitempty"`
	}{p.Default, slices.Clone(p.Rules), nil, slices.Clone(p.Endorse), nil, p.Redact, p.HideIdentity, p.NoTranslationByModel}
	for i := range plain.Rules {
		withoutEmpty(&plain.Rules[i])
	}
	if plain.Redact = withoutEmptyLists(plain.Redact); len(plain.Rules) == 0 {
		plain.Rules = nil
	}
	if len(plain.Endorse) == 0 {
		plain.Endorse = nil
	}
	for _, d := range p.Declassify {
		plain.Declassify = append(plain.Declassify, declassifier{d.Name, d.From, d.To, d.Paths, d.LowerTo, d.Reason, d.UnsafeText, provenance.Position{}, d.Approve})
	}
	for i := range plain.Endorse {
		plain.Endorse[i].Origin = provenance.Position{}
	}
	for _, r := range p.Renew {
		plain.Renew = append(plain.Renew, renewal{r.Name, r.From, r.To, r.TTL, r.Reason, provenance.Position{}})
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		return "" // a policy of strings and numbers has a JSON form
	}
	sum := sha256.Sum256(append([]byte("runteam/policy/1\n"), raw...))
	return hex.EncodeToString(sum[:])
}

// withoutEmpty takes out of a rule where it is written, and lists without elements.
func withoutEmpty(r *handoff.PairRule) {
	r.Origin, r.Redact = provenance.Position{}, withoutEmptyLists(r.Redact)
	if len(r.Block) == 0 {
		r.Block = nil
	}
	if len(r.Reveal) == 0 {
		r.Reveal = nil
	}
	if t := r.Translate; t != nil && t.Filter != nil && len(t.Filter) == 0 {
		r.Translate = cloneTranslation(t)
		r.Translate.Filter = nil
	}
}

func withoutEmptyLists(r handoff.Redaction) handoff.Redaction {
	if len(r.Kinds) == 0 {
		r.Kinds = nil
	}
	if len(r.Patterns) == 0 {
		r.Patterns = nil
	}
	return r
}

// clonePolicy returns a policy that shares nothing with p.
func clonePolicy(p *handoff.Policy) *handoff.Policy {
	if p == nil {
		return &handoff.Policy{}
	}
	c := *p
	c.Rules = slices.Clone(p.Rules)
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Allow, r.Block, r.Redact = slices.Clone(r.Allow), slices.Clone(r.Block), handoff.Redaction(redaction(r.Redact).clone())
		if r.Ceiling != nil {
			r.Ceiling = new(*r.Ceiling)
		}
		r.Translate = cloneTranslation(r.Translate)
		r.Reveal = cloneReveal(r.Reveal)
	}
	c.Declassify = slices.Clone(p.Declassify)
	for i := range c.Declassify {
		c.Declassify[i].Paths = slices.Clone(c.Declassify[i].Paths)
	}
	c.Endorse, c.Renew, c.Redact = slices.Clone(p.Endorse), slices.Clone(p.Renew), handoff.Redaction(redaction(p.Redact).clone())
	return &c
}

// A redaction is a [Redaction] that can be joined with others.
type redaction handoff.Redaction

func (r redaction) clone() redaction {
	return redaction{slices.Clone(r.Kinds), slices.Clone(r.Patterns)}
}

func cloneTranslation(t *handoff.Translation) *handoff.Translation {
	if t == nil {
		return nil
	}
	c := *t
	c.Fields, c.Filter = slices.Clone(t.Fields), slices.Clone(t.Filter)
	return &c
}

func cloneReveal(reveal map[redact.Kind][]task.Path) map[redact.Kind][]task.Path {
	if reveal == nil {
		return nil
	}
	c := make(map[redact.Kind][]task.Path, len(reveal))
	for kind, paths := range reveal {
		c[kind] = slices.Clone(paths)
	}
	return c
}

// and joins two redactions.
func (r redaction) and(s redaction) redaction {
	if len(s.Kinds) == 0 && len(s.Patterns) == 0 {
		return r
	}
	out := r.clone()
	for _, k := range s.Kinds {
		if !slices.Contains(out.Kinds, k) {
			out.Kinds = append(out.Kinds, k)
		}
	}
	for _, p := range s.Patterns {
		if !slices.Contains(out.Patterns, p) {
			out.Patterns = append(out.Patterns, p)
		}
	}
	return out
}

// key is the same for redactions that redact the same.
func (r redaction) key() string {
	words := make([]string, 0, len(r.Kinds)+len(r.Patterns))
	for _, k := range r.Kinds {
		words = append(words, string(k))
	}
	for _, p := range r.Patterns {
		words = append(words, p.Name+"\x00"+p.Regexp)
	}
	slices.Sort(words)
	return strings.Join(words, "\x01")
}

// redactor returns the redactor of the default kinds and these.
func (r redaction) redactor() (*redact.Redactor, error) {
	if len(r.Kinds) == 0 && len(r.Patterns) == 0 {
		return redact.Default(), nil
	}
	kinds := redact.DefaultKinds()
	for _, k := range r.Kinds {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return redact.New(kinds, r.Patterns)
}
