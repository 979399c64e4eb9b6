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

// ${…} is a variable of the environment in settings of endpoints and in paths, and a
// parameter in prompts. No place accepts both, so no variable enters a prompt.
//
// A variable leaves this machine only with consent: see [Options].AllowEnv.

// An EnvUse says that a spec sends a variable of the environment somewhere.
type EnvUse struct {
	Name string `json:"name"`

	// To is the origin of an endpoint or an MCP server, such as https://api.groq.com, with
	// ${NAME} for variables that it contains. The word "file" means the path of a file, whose
	// text enters a prompt, and command:PROGRAM an MCP server or an agent that is this program.
	To string `json:"to"`

	// Known means that no consent is needed: the key of a well-known provider goes to that
	// provider, or OPENAI_API_KEY or OPENAI_BASE_URL to the origin of OPENAI_BASE_URL.
	Known bool `json:"known"`

	origin string // what To expands to; "" if that is no origin
}

// String is NAME=TO, as ParseEnvUse reads it.
func (u EnvUse) String() string { return u.Name + "=" + u.To }

// Format prints String, whatever the verb.
func (u EnvUse) Format(s fmt.State, _ rune) { fmt.Fprint(s, u.String()) }

// toFile is the destination of a variable in a path.
const toFile = "file"

// ParseEnvUse reads NAME=ORIGIN, which allows a variable to be sent to the endpoints of an
// origin: scheme, host and port; a path is ignored. NAME=file allows the variable in paths
// of files, and NAME=command:PROGRAM for an MCP server or an agent that is this program.
func ParseEnvUse(text string) (EnvUse, error) {
	name, to, found := strings.Cut(text, "=")
	switch {
	case !found || !envName.MatchString(name):
		return EnvUse{}, fmt.Errorf("%s: write NAME=ORIGIN, such as ACME_API_KEY=https://llm.acme.example", quote(withoutSecrets(cut(text, 60))))
	case isOwnName(name):
		return EnvUse{}, fmt.Errorf("%s: variables that begin with RUNTEAM_ belong to runteam and are never sent", name)
	case to == toFile:
		return EnvUse{Name: name, To: toFile, origin: toFile}, nil
	case strings.HasPrefix(to, toCommand) && len(to) > len(toCommand):
		return EnvUse{Name: name, To: to, origin: to}, nil
	}
	if u, err := originOf(to); err == nil && !strings.ContainsAny(to, "@?#") {
		return EnvUse{Name: name, To: u, origin: u}, nil
	}
	return EnvUse{}, fmt.Errorf("%s: the origin is not valid: write scheme and host, such as https://llm.acme.example or http://localhost:8000", name)
}

// EnvDigest returns a digest of a list of uses in hexadecimal digits. It changes when a
// variable is added or sent elsewhere, but not with order or repetitions.
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
	if program, is := strings.CutPrefix(e.Use.To, toCommand); is {
		return fmt.Sprintf("%s is not allowed to go to the program %s", e.Use.Name, program)
	}
	return fmt.Sprintf("%s is not allowed to go to %s", e.Use.Name, e.Use.To)
}

// errOwnName reports a variable of runteam itself.
var errOwnName = errors.New("variables that begin with RUNTEAM_ belong to runteam and are never used in a spec")

// isOwnName reports whether a variable configures runteam itself. It ignores letter case,
// as the environment of some systems does.
func isOwnName(name string) bool {
	const own = "RUNTEAM_"
	return len(name) >= len(own) && strings.EqualFold(name[:len(own)], own)
}

// envName is the name of a variable of the environment.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// wholeVariable matches a text that is exactly one variable without a default.
var wholeVariable = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

// An expansion is a text with its variables replaced.
type expansion struct {
	value   string            // with the values of the environment
	written string            // with ${NAME} in place of each value
	names   []string          // the variables that the text names, set or not
	values  map[string]string // of those that are set
}

// An environment replaces variables and records where each is sent.
type environment struct {
	*report
	o     Options
	sends []sending
	inUse bool // the values that are read are used even offline
}

// expand replaces ${NAME} and ${NAME:-else} in the text of a node. It reports problems at
// the text and then returns false. Offline, a variable that is not set stays as written.
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
			e.bad(n, "write ${NAME} or ${NAME:-else}", "%s: ${ without the closing }", key)
			return expansion{}, false
		}
		name, instead, has := strings.Cut(body, ":-")
		switch {
		case strings.HasPrefix(name, "params."):
			e.bad(n, "write the value itself, or a variable of the environment", "%s: parameters are replaced only in the goal, descriptions and prompts", key)
			ok = false
		case !envName.MatchString(name):
			e.bad(n, "write ${NAME} or ${NAME:-else}", "%s: the text in ${…} is not the name of a variable", key)
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
			case e.o.Offline && !e.inUse:
				both(opening + name + "}")
			default:
				hint := "set it, or take it from a file with --env-file FILE"
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

// A sending is an EnvUse and the place where it is written.
type sending struct {
	EnvUse
	key     string
	set     bool // the value comes from the environment, not from the default
	inUse   bool // even offline
	at      *node
	of      *fields // the owner of the connection; nil for a path
	subject string
}

// send records that the variables of a value are sent to an origin, and returns the value.
// Offline, only allowed variables are replaced.
func (e *environment) send(key string, of *fields, n *node, x expansion, to, origin string) string {
	for _, name := range x.names {
		e.sends = append(e.sends, sending{
			EnvUse: EnvUse{Name: name, To: to, Known: e.isKnown(name, origin), origin: origin}, key: key, set: isSet(x, name), inUse: e.inUse, at: n, of: of, subject: e.about(),
		})
	}
	if e.o.Offline && !e.inUse && slices.ContainsFunc(x.names, func(name string) bool { return !e.isKnown(name, origin) && !e.isAllowed(name, origin) }) {
		return x.written
	}
	return x.value
}

// isSet reports whether an expansion found a variable in the environment.
func isSet(x expansion, name string) bool {
	_, set := x.values[name]
	return set
}

// isAllowed reports whether the caller allows a variable to be sent to an origin.
func (e *environment) isAllowed(name, origin string) bool {
	return origin != "" && slices.ContainsFunc(e.o.AllowEnv, func(u EnvUse) bool { return u.Name == name && cmp.Or(u.origin, u.To) == origin })
}

// checkEnv lists where each variable is sent, and reports uses without consent.
func (r *reader) checkEnv() {
	r.subject = nil
	r.sends = slices.DeleteFunc(r.sends, func(s sending) bool {
		if s.of == nil {
			return false
		}
		owner := s.of
		if l := s.of.link; l != nil && l.owner != nil {
			owner = l.owner
		}
		unasked := owner == r.places.coordinator && !hasGoal(r.file)
		return unasked || s.of.model() != "" && s.key == "model" // an option sets the model
	})
	var consent []EnvUse
	var refused []sending
	for _, s := range r.sends {
		if !slices.Contains(r.file.Env, s.EnvUse) {
			r.file.Env = append(r.file.Env, s.EnvUse)
			if !s.Known {
				consent = append(consent, s.EnvUse)
			}
		}
		twice := slices.ContainsFunc(refused, func(o sending) bool { return o.EnvUse == s.EnvUse })
		if !s.Known && s.set && !twice && (s.inUse || !r.o.Offline) && !r.isAllowed(s.Name, s.origin) {
			refused = append(refused, s)
		}
	}
	slices.SortFunc(r.file.Env, func(a, b EnvUse) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.To, b.To)) })
	if len(refused) == 0 || r.o.Trusted != nil && r.o.Trusted(r.file.Path, consent) {
		return
	}
	for _, s := range refused {
		if s.To == "" && len(r.found) > 0 {
			continue // the base URL is reported already
		}
		err := &EnvError{s.EnvUse}
		r.subject = func() string { return s.subject }
		r.badAs(s.at, err, "allow it, or write another value", "%s: %v", s.key, err)
	}
	r.subject = nil
}
