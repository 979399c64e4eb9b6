package specfile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Two things look like ${…}: variables of the environment, where endpoints and
// files are named, and parameters, in prompts. Neither is looked for in the
// other's place, so no environment enters a prompt.
//
// A variable leaves this machine only with consent: see [Options].AllowEnv.

// An EnvUse says that a spec sends a variable of the environment somewhere.
type EnvUse struct {
	Name string `json:"name"`

	// To is the origin of the endpoint, such as https://api.groq.com. Variables
	// that decide on the origin stand in it as ${NAME}. The word "file" stands for
	// the path of a file, whose text goes into a prompt.
	To string `json:"to"`

	// Known is true for what needs no consent: the key of a well-known provider
	// that goes to that provider, and OPENAI_API_KEY and OPENAI_BASE_URL that go
	// where OPENAI_BASE_URL leads.
	Known bool `json:"known"`

	origin string // what To expands to; "" if that is no origin
}

// String is NAME=TO, as ParseEnvUse reads it.
func (u EnvUse) String() string { return u.Name + "=" + u.To }

// Format prints String, whatever the verb.
func (u EnvUse) Format(s fmt.State, _ rune) { fmt.Fprint(s, u.String()) }

// toFile is where a variable goes that is part of a path.
const toFile = "file"

// ParseEnvUse reads NAME=ORIGIN, which allows a variable to go to the endpoints
// of an origin. ORIGIN is scheme, host and port; a path behind it does not
// count. NAME=file allows the variable in paths of files.
func ParseEnvUse(text string) (EnvUse, error) {
	name, to, found := strings.Cut(text, "=")
	switch {
	case !found || !envName.MatchString(name):
		return EnvUse{}, fmt.Errorf("%s: write NAME=ORIGIN, such as ACME_API_KEY=https://llm.acme.example", quote(withoutSecrets(cut(text, 60))))
	case isOwnName(name):
		return EnvUse{}, fmt.Errorf("%s: variables that begin with RUNTEAM_ belong to runteam and are never sent", name)
	case to == toFile:
		return EnvUse{Name: name, To: toFile, origin: toFile}, nil
	}
	if u, err := originOf(to); err == nil && !strings.ContainsAny(to, "@?#") {
		return EnvUse{Name: name, To: u, origin: u}, nil
	}
	return EnvUse{}, fmt.Errorf("%s: the origin is not valid: write scheme and host, such as https://llm.acme.example or http://localhost:8000", name)
}

// EnvDigest returns a digest of a list of uses in hexadecimal digits. It changes
// when a variable is added or goes elsewhere. Order and repetitions do not count.
func EnvDigest(uses []EnvUse) string {
	var lines []string
	for _, u := range uses {
		lines = append(lines, fmt.Sprintf("%s %d:%s %d:%s\n", u.Name, len(u.To), u.To, len(u.origin), u.origin))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte("runteam environment 1\n" + strings.Join(slices.Compact(lines), "")))
	return hex.EncodeToString(sum[:])
}

// An EnvError reports a variable of the environment that a spec sends to an
// endpoint without consent.
type EnvError struct{ Use EnvUse }

// Error names the variable and where it would go.
func (e *EnvError) Error() string {
	if e.Use.To == toFile {
		return fmt.Sprintf("%s is not allowed in paths of files", e.Use.Name)
	}
	return fmt.Sprintf("%s is not allowed to go to %s", e.Use.Name, e.Use.To)
}

// errOwnName reports a variable of runteam itself.
var errOwnName = errors.New("variables that begin with RUNTEAM_ belong to runteam and are never used in a spec")

// isOwnName reports whether a variable configures runteam itself. Letter case
// does not count, since it does not on every system.
func isOwnName(name string) bool {
	const own = "RUNTEAM_"
	return len(name) >= len(own) && strings.EqualFold(name[:len(own)], own)
}

// envName is the name of a variable of the environment.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// wholeVariable is a text that is nothing but one variable without a default.
var wholeVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// An expansion is a text with its variables replaced.
type expansion struct {
	value   string            // with the values of the environment
	written string            // with ${NAME} in place of each value
	names   []string          // the variables that the text names, set or not
	values  map[string]string // of those that are set
}

// An environment replaces variables, and knows where each of them goes.
type environment struct {
	*report
	o     Options
	sends []sending
}

// expand replaces ${NAME} and ${NAME:-else} in the text of a node by the
// environment. What is wrong is reported at the text; ok is false then. Where
// no model is called, a variable that is not set stays as it is written.
func (e *environment) expand(key string, n *node) (x expansion, ok bool) {
	if n == nil {
		return x, true
	}
	rest := n.text
	var value, written strings.Builder
	both := func(text string) { value.WriteString(text); written.WriteString(text) }
	for ok = true; ; {
		before, after, found := strings.Cut(rest, opening)
		both(before)
		if !found {
			x.value, x.written = value.String(), written.String()
			return x, ok
		}
		body, after, closed := strings.Cut(after, "}")
		if !closed {
			e.bad(n, "write ${NAME} or ${NAME:-else}", "%s: ${ without its }", key)
			return expansion{}, false
		}
		name, instead, has := strings.Cut(body, ":-")
		switch {
		case strings.HasPrefix(name, "params."):
			e.bad(n, "write the value itself, or a variable of the environment", "%s: parameters stand in the goal, descriptions and prompts only", key)
			ok = false
		case !envName.MatchString(name):
			e.bad(n, "write ${NAME} or ${NAME:-else}", "%s: what stands in ${…} is no name of a variable", key)
			ok = false
		case isOwnName(name):
			e.badAs(n, errors.Join(ErrRefused, errOwnName), "use a variable of another name", "%s: %s: %v", key, name, errOwnName)
			ok = false
		default:
			x.names = append(x.names, name)
			switch found, set := e.lookup(name); {
			case has && (!set || found == ""):
				both(instead)
			case set:
				if x.values == nil {
					x.values = make(map[string]string)
				}
				x.values[name] = found
				value.WriteString(found)
				written.WriteString(opening + name + "}")
			case e.o.Offline:
				both(opening + name + "}")
			default:
				hint := "set it"
				if key != "apiKey" { // a key does not belong in the file
					hint += ", or write ${" + name + ":-else}"
				}
				e.bad(n, hint, "%s: the environment has no %s", key, name)
				ok = false
			}
		}
		rest = after
	}
}

// badOption reports a problem of an option, which has no place in a file.
func (e *environment) badOption(option string, err error, hint, format string, args ...any) {
	e.found = append(e.found, finding{nil, len(e.found), Problem{Message: e.o.called(option) + fmt.Sprintf(format, args...), Hint: hint, Err: err}})
}

func (e *environment) lookup(name string) (string, bool) {
	if e.o.Lookup == nil {
		return "", false
	}
	if value, set := e.o.Lookup(name); set {
		return value, true
	}
	return "", false
}

// A sending is an EnvUse, and where it is written.
type sending struct {
	EnvUse
	key     string
	set     bool // the value is taken from the environment, and not the default
	at      *node
	of      *fields // of whose connection it is a part; nil for a path
	subject string
}

// send notes that the variables of a value go to an origin, and returns the
// value. Where no model is called, only what is allowed is replaced.
func (e *environment) send(key string, of *fields, n *node, x expansion, to, origin string) string {
	for _, name := range x.names {
		e.sends = append(e.sends, sending{
			EnvUse: EnvUse{Name: name, To: to, Known: e.isKnown(name, origin), origin: origin}, key: key, set: isSet(x, name), at: n, of: of, subject: e.about(),
		})
	}
	if e.o.Offline && slices.ContainsFunc(x.names, func(name string) bool { return !e.isKnown(name, origin) && !e.isAllowed(name, origin) }) {
		return x.written
	}
	return x.value
}

// isSet reports whether an expansion took a variable from the environment.
func isSet(x expansion, name string) bool {
	_, set := x.values[name]
	return set
}

// isAllowed reports whether the caller lets a variable go to an origin.
func (e *environment) isAllowed(name, origin string) bool {
	return origin != "" && slices.ContainsFunc(e.o.AllowEnv, func(u EnvUse) bool { return u.Name == name && cmp.Or(u.origin, u.To) == origin })
}

// checkEnv lists which variable goes where, and reports those without consent.
func (r checker) checkEnv() {
	r.subject = nil
	r.sends = slices.DeleteFunc(r.sends, func(s sending) bool {
		_, replaced := r.places.models[s.of]
		owner := s.of
		if l := r.places.links[s.of]; l != nil && l.owner != nil {
			owner = l.owner
		}
		unasked := owner == r.places.coordinator && !r.file.hasGoal()
		return s.of != nil && (unasked || replaced && s.key == "model") // a flag names the model
	})
	var consent []EnvUse
	var refused []sending
	for _, s := range r.sends {
		if slices.Contains(r.file.Env, s.EnvUse) {
			continue
		}
		r.file.Env = append(r.file.Env, s.EnvUse)
		if !s.Known {
			consent = append(consent, s.EnvUse)
		}
		if !s.Known && s.set && !r.isAllowed(s.Name, s.origin) {
			refused = append(refused, s)
		}
	}
	slices.SortFunc(r.file.Env, func(a, b EnvUse) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.To, b.To)) })
	if r.o.Offline || len(refused) == 0 || r.o.Trusted != nil && r.o.Trusted(r.file.Path, consent) {
		return
	}
	for _, s := range refused {
		if s.To == "" && len(r.found) > 0 {
			continue // what is wrong with the base URL has been said
		}
		err := &EnvError{s.EnvUse}
		r.subject = func() string { return s.subject }
		r.badAs(s.at, err, "allow it, or write another value", "%s: %v", s.key, err)
	}
	r.subject = nil
}
