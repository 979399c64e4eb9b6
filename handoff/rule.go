package handoff

// A Mode says how much of a result is delivered.
type Mode string

// The modes. Without a policy, a dependency or an input is delivered in full.
const (
	Full    Mode = "full"    // the whole result
	Scoped  Mode = "scoped"  // allowed paths only
	Minimal Mode = "minimal" // heading and status
)

// A Rule is the ID of the rule that decided: that of a [PairRule], the name of an
// entry, or a word of the runtime such as "clearance".
type Rule string
