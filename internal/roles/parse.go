package roles

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/username"
	"github.com/runteam/runteam/label"
)

var table = specfile.NewTable(`
file: the file of roles, such as roles tokens
    roles    [role]   required: who may do what
    tokens   [token]  what programs authenticate with

role: a role, such as role users
    role     viewer|operator|approver  required: what they may do
    users    texts                     names of people, as the server authenticates them
    groups   texts                     names of groups, as the server authenticates them
    accepts  public|internal|confidential  the highest label of the runs that they see
    specs    texts                     names of the specs whose runs they see, and may start if they are operators
    runs     own|all                   whether they see all runs, or only those that they have started
    as       texts                     the persons as whom an approver answers
    self     boolean                   whether an approver also answers calls of runs that they have started

token: a token, such as sha256 user role expires
    sha256   given                     required: the digest of the token, such as the 64 hex digits that sha256sum prints
    user     given                     required: in whose name the program works, such as ci@example.org
    role     viewer|operator|approver  required: it has those grants of the user that are of this role
    expires  given                     required: until when it is valid, such as 2027-03-31
`)

// Parse reads the text of a file of roles, in YAML or JSON. The error is a [*specfile.Error] with
// everything that is wrong. Tokens that have expired by now are a warning.
func Parse(path string, text []byte, now time.Time) (*Set, error) {
	doc, file := table.Read(path, text)
	s := &Set{tokens: make(map[string]Token)}
	if file != nil {
		for _, o := range file.Objects("roles") {
			s.entries = append(s.entries, readEntry(o))
		}
		s.readTokens(file.Objects("tokens"), now)
	}
	if err := doc.Err(); err != nil {
		return nil, err
	}
	s.Warnings = doc.Warnings()
	return s, nil
}

// readEntry reads a role and who has it.
func readEntry(o *specfile.Value) entry {
	e := entry{users: words(o, "users", Name), groups: words(o, "groups", plain)}
	if !o.Has("users") && !o.Has("groups") {
		o.Bad("write users: [ann@example.org] or groups: [auditors]", "it names nobody")
	}
	g := Grant{
		Role: Role(o.Get("role").Text()), Accepts: label.Internal, Specs: words(o, "specs", plain), All: o.Get("runs").Text() == "all",
		As: words(o, "as", personName), Self: o.Get("self").Text() == "true",
	}
	if accepts := o.Get("accepts"); accepts != nil {
		g.Accepts, _ = label.ParseClassification(accepts.Text()) // the table has known words alone
	}
	switch {
	case g.Role == "": // it is missing or unknown, and reported
	case g.Role != Approver:
		for _, key := range []string{"as", "self"} {
			if v := o.Get(key); v != nil {
				v.Bad("remove it, or write role: approver", "only an approver answers questions")
			}
		}
	case !o.Has("as"):
		o.Bad("write as: [manager], with the agents of specs that are persons", "an approver needs to know as whom they answer")
	}
	e.grant = g
	return e
}

// words reads the list of a key: what it means for each item, without duplicates.
func words(o *specfile.Value, key string, read func(string) (string, error)) (all []string) {
	list := o.Get(key)
	if list != nil && len(list.Items()) == 0 {
		list.Bad("name at least one, or leave the key out", "the list is empty")
	}
	first := make(map[string]*specfile.Value)
	for _, item := range list.Items() {
		word, err := read(item.Text())
		switch twin := first[word]; {
		case err != nil:
			item.Bad("write one name", "%v", err)
		case twin != nil:
			item.Bad("keep one of them", "%s is the same name as in %s", naming.Quote(item.Text()), twin.At())
		default:
			first[word] = item
			all = append(all, word)
		}
	}
	return all
}

// plain reads the name of a group or a spec, which is compared as it is written.
func plain(text string) (string, error) {
	if err := username.Check(text); err != nil {
		return "", err
	}
	return username.Trim(text), naming.CheckLine(text)
}

// personName reads the name of an agent.
func personName(text string) (string, error) { return text, naming.CheckName(text) }

// readTokens reads the tokens, once the roles of their users are known.
func (s *Set) readTokens(objects []*specfile.Value, now time.Time) {
	first := make(map[string]*specfile.Value)
	for _, o := range objects {
		t := Token{Role: Role(o.Get("role").Text())}
		if v := o.Get("user"); v != nil {
			var err error
			if t.Person, err = Name(v.Text()); err != nil {
				v.Bad("write the name of a person", "%v", err)
			}
		}
		if v := o.Get("expires"); v != nil {
			var ok bool
			switch t.Expires, ok = readExpiry(v.Text()); {
			case !ok:
				v.Bad("write a date such as 2027-03-31, the last day, or a time such as 2027-03-31T18:00:00Z", "%s is neither a date nor a time", naming.Quote(v.Text()))
			case !now.Before(t.Expires):
				v.Warn("remove the token, or write a later date", "the token has expired")
			}
		}
		v := o.Get("sha256")
		if v == nil {
			continue
		}
		digest := strings.ToLower(v.Text())
		switch _, err := hex.DecodeString(digest); {
		case err != nil || len(digest) != 64: // not quoted, since it may be the token itself
			v.Bad("write what this prints: printf %s \"$TOKEN\" | sha256sum", "it is not 64 hex digits")
		case slices.Contains(ofNothing, digest):
			v.Bad("make a token first, such as TOKEN=$(openssl rand -hex 32)", "it is the digest of no text, with which anybody could sign in")
		case first[digest] != nil:
			v.Bad("keep one of them, and make another token for the other use", "the same token as in %s", first[digest].At())
		default:
			first[digest] = v
			t.ID = digest[:16]
			s.tokens[digest] = t
			if t.Person != "" && t.Role != "" && len(s.granted(t)) == 0 {
				o.Warn("write a role "+string(t.Role)+" with the user under users; a token has no groups", "the token may do nothing: %s has no role %s", naming.Quote(t.Person), t.Role)
			}
		}
	}
}

// ofNothing are the digests of no text, and of a line without text: what sha256sum prints if a variable is not set.
var ofNothing = []string{digestOf(""), digestOf("\n")}

// digestOf returns the digest of a token, in hex.
func digestOf(secret string) string {
	digest := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(digest[:])
}

// readExpiry reads until when a token is valid: the end of a day in UTC, or a time.
func readExpiry(text string) (until time.Time, ok bool) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), true
	}
	until, err := time.Parse(time.RFC3339, text)
	return until, err == nil
}
