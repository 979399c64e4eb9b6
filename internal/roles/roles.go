// Package roles says who may do what on a server of several people.
//
// [Parse] reads a file of roles, and [Open] watches one:
//
//	f, err := roles.Open("", "roles.yaml", time.Now, say)
//	…
//	grants := f.Grants("ann@example.org", nil)
//
// Who has no grant may do nothing. Names of people are compared as [Name] writes them.
package roles

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/username"
	"github.com/runteam/runteam/label"
)

// A Role says what a person may do with runs.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"   // sees runs
	Operator Role = "operator" // starts and steers runs too
	Approver Role = "approver" // sees runs, and answers their questions as the persons of [Grant.As]
)

// A Grant is a role and where it holds. Its slices must not be changed.
type Grant struct {
	Role    Role
	Accepts label.Classification // the highest label of a run
	Specs   []string             // the names of the specs; nil: any
	All     bool                 // runs of anyone; false: those that the person has started
	As      []string             // of an approver: the names of the agents, which are persons, as whom they answer
	Self    bool                 // of an approver: calls of runs that they have started too
}

// A Token is what a program authenticates with in place of a person.
type Token struct {
	ID      string // the first 16 hex digits of its digest
	Person  string // in whose name the program works
	Role    Role   // of the grants of the person, the token has those of this role
	Expires time.Time
}

// A Set has what a file of roles says. It is immutable.
type Set struct {
	Warnings []specfile.Problem // accepted but probably unintended

	entries []entry
	tokens  map[string]Token // by digest, in hex
}

// An entry is a grant and who has it.
type entry struct {
	grant         Grant
	users, groups []string
}

// Grants returns the grants of a person, who is in groups, in the order of the file; nil if there are none.
func (s *Set) Grants(person string, groups []string) (grants []Grant) {
	name, err := Name(person)
	for _, e := range s.entries {
		inGroup := slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(e.groups, username.Trim(g)) })
		if err == nil && (inGroup || slices.Contains(e.users, name)) {
			grants = append(grants, e.grant)
		}
	}
	return grants
}

// Token returns the token with this secret. ok is false if the file does not have it, or if it has expired.
func (s *Set) Token(secret string, now time.Time) (t Token, ok bool) {
	if t, ok = s.tokens[digestOf(secret)]; !ok || !now.Before(t.Expires) {
		return Token{}, false
	}
	return t, true
}

// GrantsOf returns the grants of a token: those of its role that its person has without groups; nil if the file does not have
// the token any more, or if it has expired.
func (s *Set) GrantsOf(t Token, now time.Time) []Grant {
	for _, has := range s.tokens {
		if has.ID == t.ID && has.Person == t.Person && now.Before(has.Expires) {
			return s.granted(has)
		}
	}
	return nil
}

// granted returns the grants of a token.
func (s *Set) granted(t Token) []Grant {
	return slices.DeleteFunc(s.Grants(t.Person, nil), func(g Grant) bool { return g.Role != t.Role })
}

// Name returns the name of a person in the form in which names are compared; see [username.Parse].
func Name(text string) (string, error) { return username.Parse(text) }
