package handoff

import (
	"time"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A Policy limits what the members of a team receive from each other. It narrows
// what tasks are granted and never grants anything. The zero value delivers every
// grant, with the redaction that is always on. A team checks its policy when it is
// made.
type Policy struct {
	// Default is the mode between two agents if no rule states one; empty means [Full].
	Default Mode

	Rules      []PairRule
	Declassify []Declassifier
	Endorse    []Endorser
	Renew      []Renewal
	Redact     Redaction // of everything that an agent receives

	// HideIdentity replaces the names of agents in prompts by their numbers in the roster, such as
	// "agent 2". Records and receipts keep the names, and so do prompts in which the coordinator
	// plans, since plans assign tasks by name. A team without a policy hides no names.
	HideIdentity bool

	// NoTranslationByModel keeps models from translating. What a rule or an agent has summarized by a
	// model is then withheld. Excerpts, fields and filters are made without a model, and stay.
	NoTranslationByModel bool
}

// A PairRule says what To receives of what From produced. Both are the name of an
// agent, [User] (From for inputs, To for results), [Coordinator], [Computed] or [Anyone].
// Anyone means every agent, the coordinator and Computed, and as From also the user.
//
// Block, Ceiling and Redact of all rules that match a pair apply together. The mode
// comes from the rule for exactly this pair. Without one, it is the narrowest mode
// of the matching rules with one Anyone, and without these the default. The order
// of the rules does not matter.
type PairRule struct {
	ID       Rule // shown in decisions and events; empty means "From→To"
	From, To string
	Mode     Mode                  // empty means [Scoped] with Allow; without Allow the rule states no mode
	Allow    []task.Path           // with Scoped: the paths that are delivered
	Block    []task.Path           // the paths that are never delivered
	Ceiling  *label.Classification // values above this label are withheld; nil means no limit
	Redact   Redaction

	// Reveal lists the kinds of personal data that are not redacted, and where. Only
	// a rule for an exact pair can reveal, and no rule reveals a secret.
	Reveal map[redact.Kind][]task.Path

	Translate *Translation // how the delivered part is rewritten; nil means not at all
	Note      string       `json:",omitempty"` // why the rule is there, in one line for people; no agent gets it
	Origin    provenance.Position
}

// A Redaction adds to what is always redacted.
type Redaction struct {
	Kinds    []redact.Kind    // more kinds of personal data, such as ip
	Patterns []redact.Pattern // own patterns
}

// An Entry has the fields that all exceptions of a policy share. Each is for one pair of names.
type Entry struct {
	Name     string // unique; shown in decisions and events
	From, To string
	Reason   string // required: why this is safe
	Origin   provenance.Position
}

// A Declassifier delivers parts of what From produced to To with a lower label. It
// applies only if To is not cleared for the value, and then only Paths are delivered.
type Declassifier struct {
	Entry
	Paths   []task.Path          // which the output schema of From must bound, or the parameters of To if it is a tool, unless UnsafeText is set
	LowerTo label.Classification // the label of the delivered parts
	// Approve names the member, a person, who must approve each value before its parts are
	// delivered to a task; empty asks no one. Without the approval the entry does not apply. To
	// must be a member then.
	Approve string
	// UnsafeText allows paths with free text, which can contain anything that From
	// has read. A plan warns about it.
	UnsafeText bool
}

// An Endorser marks what From produced as trusted when To receives it.
type Endorser struct{ Entry }

// A Renewal delivers to To what From produced until TTL after its creation, even if
// it has expired.
type Renewal struct {
	Entry
	TTL time.Duration
}

// A Translation says how the delivered part of a value is rewritten. It applies
// after grants and blocks, so it never adds anything.
type Translation struct {
	Fields []task.Path // keep only these parts of a structured value; nil keeps all
	Filter []task.Path // take these parts out

	// MaxTokens limits the size of what is delivered, with four bytes counted as one
	// token; zero means no limit. With ByModel, the agent of the reader summarizes
	// the value in a separate call; otherwise its beginning and end are delivered.
	MaxTokens int
	ByModel   bool

	// Recast names the prompt that receives the value: "user" (default) or "system"
	// (endorsed context only).
	Recast string
}
