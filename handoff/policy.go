package handoff

import (
	"time"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Policy governs what crosses between the members of a team, beside what
// tasks are granted: it narrows grants and never makes one. The zero value
// lets every grant through as it is, with the redaction that is always on.
// [Policy.Compile] checks it and makes the form that rules.
type Policy struct {
	// Default is what a grant between two agents delivers where no rule states a
	// mode; empty means [Full].
	Default Mode

	Rules      []PairRule
	Declassify []Declassifier
	Endorse    []Endorser
	Renew      []Renewal
	Redact     Redaction // on every edge to an agent
}

// A PairRule governs what one reader gets of what another one made. From and
// To are names of agents, [User] (as From: inputs, as To: results),
// [Coordinator], or [Anyone], who is every agent, the coordinator, and as From
// the user.
//
// Blocks, ceilings and redaction of all rules that match a pair accumulate.
// Its mode comes from the rule for exactly this pair, else from all rules with
// one Anyone, composed to the narrowest, else from the defaults. The order of
// the rules does not matter.
type PairRule struct {
	ID       Rule // shown in decisions; empty means FROM→TO
	From, To string
	Mode     Mode                  // empty means [Scoped] with Allow, and otherwise that the rule states no mode
	Allow    []task.Path           // of Scoped: what may cross, as package pick reads it
	Block    []task.Path           // what must not, in any mode
	Ceiling  *label.Classification // nothing above it crosses; nil means no bound
	Redact   Redaction

	// Reveal names personal kinds that may cross in clear, and where. Only a rule
	// for an exact pair may, and never for secrets.
	Reveal map[redact.Kind][]task.Path

	Translate *Translation // how what is left is retold; nil means as it is
	Origin    task.Position
}

// Redaction adds to what is always redacted.
type Redaction struct {
	Kinds    []redact.Kind    // personal kinds beside the default ones, such as ip
	Patterns []redact.Pattern // own patterns
}

// A Declassifier lets named parts of what From makes reach To below their
// label. It is for an exact pair, applies only where To is not cleared for the
// value, and then narrows the edge to Paths.
type Declassifier struct {
	Name     string // unique; shown in decisions and events
	From, To string
	Paths    []task.Path          // which the producer's schema must bound, see [Declassifier].UnsafeText
	LowerTo  label.Classification // the label that the parts cross with
	Reason   string               // required: for whoever reads the policy
	// UnsafeText allows paths that no schema bounds. Free text can carry anything
	// that its producer has read: a plan warns of it.
	UnsafeText bool
	Origin     task.Position
}

// An Endorser vouches for what From makes where To reads it.
type Endorser struct {
	Name     string
	From, To string
	Reason   string
	Origin   task.Position
}

// A Renewal lets To read what From made beyond its expiry: until TTL after it was made.
type Renewal struct {
	Name     string
	From, To string
	TTL      time.Duration
	Reason   string
	Origin   task.Position
}

// A Translation says how what crosses is retold. It widens nothing: it is
// applied to what grants and blocks have left.
type Translation struct {
	Fields []task.Path // keep only these parts of a structured value; nil keeps all
	Filter []task.Path // take these parts out

	// MaxTokens bounds what is delivered, at an estimate of four bytes a token;
	// zero means no bound. ByModel has the reader's own agent retell the value
	// within the bound, in a session of its own and under the same gate;
	// otherwise head and tail of the value are delivered.
	MaxTokens int
	ByModel   bool

	// Recast puts the value into the system prompt, which only endorsed context
	// may reach, with [RecastSystem]; empty and [RecastUser] leave it where it is.
	Recast Recast
}

// A Recast is the role that context is presented in.
type Recast string

// The roles.
const (
	RecastUser   Recast = "user"
	RecastSystem Recast = "system"
)
