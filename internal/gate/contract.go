package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Capabilities is what an agent, or another reader, declares about itself.
// The zero value accepts and produces what is internal, adds no tags and
// keeps a session open without bound.
type Capabilities struct {
	Agent      string
	Accepts    label.Classification
	Produces   label.Classification
	Endpoints  []Endpoint    // where its prompts go; each is a reader too
	OutputTags []string      // the tags that its results may carry
	Tools      []string      // the tools that it may call; a contract discloses those that the task grants
	MaxSession time.Duration // zero means unbounded
}

// An Endpoint is a model server that reads every prompt sent to it.
type Endpoint struct {
	URL     string
	Accepts label.Classification
}

// Clearance returns the most sensitive level that may reach the agent: the
// lowest of its own and its endpoints'.
func (c *Capabilities) Clearance() label.Classification {
	level := c.Accepts
	for i := range c.Endpoints {
		level = min(level, c.Endpoints[i].Accepts)
	}
	return level
}

// bound names who keeps the clearance as low as it is, and what to write to raise it.
func (c *Capabilities) bound(to label.Classification) (who, hint string) {
	for _, e := range c.Endpoints {
		if e.Accepts < c.Accepts && e.Accepts == c.Clearance() {
			return "its endpoint " + e.URL, fmt.Sprintf("write endpoints: {%q: {accepts: %v}}", e.URL, to)
		}
	}
	return strconv.Quote(c.Agent), fmt.Sprintf("set accepts: %v on agent %q", to, c.Agent)
}

// A Request is what the runtime asks of an agent before any context moves.
type Request struct {
	Session        string // names the attempt; a contract, its copies and its reply belong to one
	Caller         string // in whose name the task runs
	Run            string
	Task           task.ID
	Classification label.Classification // the request label: see [Label]
	Summary        Summary              // of the task
	RequiredTags   []string
	Holders        []string      // the agents that held the conversation before; nil if it was not transferred
	Tools          []string      // that the task lets the agent call; more than the agent declares are refused
	Grants         []Grant       // what may be delivered; empty means nothing
	Owned          bool          // the contract takes over Grants and what they refer to, instead of copying it; it must not change any more
	Duration       time.Duration // session time asked for; zero asks for none

	// Declassified says that there is a declassifier on every way out of the agent,
	// so that its result may be above what it produces.
	Declassified bool
}

// A Summary says in one line what a task is about, for the contract and its record. A contract with
// a reader who is not cleared for the label has none.
type Summary struct {
	Text           string
	Classification label.Classification
}

// A Contract is what both sides agreed on for one attempt at one task. The
// zero value lets nothing through.
type Contract struct {
	Session      string
	Caller       string
	Callee       string
	Run          string
	Task         task.ID
	Summary      string               // of the task; empty if the reader is not cleared for it
	Clearance    label.Classification // of the reader and its endpoints
	MaxInput     label.Classification // nothing above it goes in
	MaxOutput    label.Classification // nothing above it is claimed coming out
	Grants       []Grant
	Holders      []string // see Request
	RequiredTags []string
	DeclaredTags []string
	Tools        []string      // the tools that the agent may call, and no other
	Duration     time.Duration // how long the agent may work; zero means without bound
	ExpiresAt    time.Time     // when that time is over; zero until [Contract.Start], and without a bound

	bySource map[Source]int // indexes into Grants; nil where there are few
	replied  *atomic.Bool   // a reply has passed under this contract; shared by its copies
}

// Handshake rules that can refuse a request.
const (
	RuleClearance handoff.Rule = "clearance"
	RuleProduces  handoff.Rule = "produces"
	RuleTags      handoff.Rule = "tags"
	RuleSession   handoff.Rule = "session"
	RuleGrant     handoff.Rule = "grant"
)

// Negotiate answers a request with a contract, or with a [*Refusal].
//
// Six rules decide. The request label must not exceed the clearance of the
// agent and its endpoints. What the agent produces must reach the request
// label, and the contract's ceiling for replies is the lower of the two.
// Required tags must be among the declared ones, and the tools that the task
// grants among those of the agent. The session asked for must fit into the
// agent's longest, which also bounds a session without a bound. And only what
// is granted, by name and at its paths, will flow.
//
// The session begins with [Contract.Start].
func Negotiate(r Request, c *Capabilities) (Contract, error) {
	if level := c.Clearance(); r.Classification > level {
		who, hint := c.bound(r.Classification)
		return Contract{}, &Refusal{Rule: RuleClearance, Reason: fmt.Sprintf("the context is %v, and %s accepts %v", r.Classification, who, level), Hint: fmt.Sprintf("remove the %v context, declassify the parts that it needs, or %s", r.Classification, hint)}
	}
	if c.Produces < r.Classification && !r.Declassified {
		return Contract{}, &Refusal{Rule: RuleProduces, Reason: fmt.Sprintf("the result will be %v, and %q produces at most %v", r.Classification, c.Agent, c.Produces), Hint: fmt.Sprintf("remove the %v context, declassify what leaves it, or set produces: %v on agent %q", r.Classification, r.Classification, c.Agent)}
	}
	if missing := without(r.RequiredTags, c.OutputTags); len(missing) > 0 {
		return Contract{}, &Refusal{Rule: RuleTags, Reason: fmt.Sprintf("%q does not declare the required tags %s", c.Agent, strings.Join(missing, ", ")), Hint: "add them to its outputTags, or drop them from requiredTags"}
	}
	if undeclared := without(r.Tools, c.Tools); len(undeclared) > 0 {
		return Contract{}, &Refusal{Rule: RuleTools, Reason: fmt.Sprintf("%q does not declare the tools %s", c.Agent, strings.Join(undeclared, ", ")), Hint: "add them to its tools, or drop them from the task"}
	}
	if c.MaxSession > 0 && r.Duration > c.MaxSession {
		return Contract{}, &Refusal{Rule: RuleSession, Reason: fmt.Sprintf("the task asks for a session of %v, and %q keeps one for %v", r.Duration, c.Agent, c.MaxSession), Hint: "lower timeoutMs, or raise maxSessionMs"}
	}
	grants, err := checkGrants(r.Grants, r.Owned)
	if err != nil {
		return Contract{}, err
	}
	k := Contract{
		Session: r.Session, Caller: r.Caller, Callee: c.Agent, Run: r.Run, Task: r.Task,
		MaxInput:     r.Classification,
		MaxOutput:    min(c.Produces, r.Classification),
		Clearance:    c.Clearance(),
		Grants:       grants,
		replied:      new(atomic.Bool),
		RequiredTags: slices.Clone(r.RequiredTags),
		Holders:      slices.Clone(r.Holders),
		DeclaredTags: slices.Clone(c.OutputTags),
		Tools:        slices.Clone(r.Tools),
	}
	if r.Summary.Classification <= k.Clearance {
		k.Summary = r.Summary.Text
	}
	if len(k.Grants) > fewGrants {
		k.bySource = make(map[Source]int, len(k.Grants))
		for i := len(k.Grants) - 1; i >= 0; i-- { // of two for one source the first counts, as in a search
			k.bySource[k.Grants[i].Source] = i
		}
	}
	if k.Duration = c.MaxSession; r.Duration > 0 {
		k.Duration = r.Duration
	}
	return k, nil
}

// Start begins the session: the agent is called now. What was decided and
// recorded before takes nothing from the agent's time.
func (k *Contract) Start(now time.Time) {
	if k.Duration > 0 {
		k.ExpiresAt = now.Add(k.Duration)
	}
}

// Discloses reports whether the agent may call a tool.
func (k *Contract) Discloses(tool string) bool { return slices.Contains(k.Tools, tool) }

func without(list, known []string) []string {
	var missing []string
	for _, one := range list {
		if !slices.Contains(known, one) {
			missing = append(missing, one)
		}
	}
	return missing
}

// toAgent reports whether the reader is a model: the user sees results whole,
// and no chat template reads a screen.
func (k *Contract) toAgent() bool { return k.Callee != handoff.User }
