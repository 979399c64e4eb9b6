package specfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/redact"
)

// Problems show neither secrets that a run would redact nor values of keys that sound like
// credentials.

// withoutSecrets redacts the secrets of a text, or hides all of it if that fails.
func withoutSecrets(text string) string {
	clean, _, err := redact.Secrets().Text(strings.ToValidUTF8(text, "\uFFFD"))
	if err != nil {
		return hidden
	}
	return clean
}

// A redaction is a range of bytes that a run would redact as a secret, and its kind.
type redaction struct {
	span
	kind redact.Kind
}

// redactions returns the secrets of a text.
func redactions(text string) (found []redaction) {
	redact.Secrets().Find(text, func(start, end int, kind redact.Kind) {
		found = append(found, redaction{span{start, end}, kind})
	})
	return found
}

// hideSecrets hides the secrets of a value, which is written in the bytes from start to end,
// from excerpts. If escapes or line breaks prevent finding a secret there, it hides all of
// these bytes.
func (s *source) hideSecrets(text string, start, end int) {
	for _, found := range redactions(text) {
		at := strings.Index(s.text[start:end], text[found.start:found.end])
		if at < 0 {
			s.secrets = append(s.secrets, span{start, end})
			return
		}
		s.secrets = append(s.secrets, span{start + at, start + at + found.end - found.start})
	}
}

// secretsIn returns the secrets among the bytes from start to end.
func (s *source) secretsIn(start, end int) (spans []span) {
	for _, found := range redactions(s.text[start:end]) {
		spans = append(spans, span{start + found.start, start + found.end})
	}
	return spans
}

// withoutSeparators removes the separators between the words of a key.
var withoutSeparators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

// soundsSecret reports whether the value of a key may be a credential.
func soundsSecret(key string) bool {
	folded := withoutSeparators.Replace(strings.ToLower(key))
	switch folded {
	case "env":
		return true
	case "maxtokens", "maxtokenbudget", "tokensperminute", "maxtokenskey", "key":
		return false
	}
	for _, word := range [...]string{"key", "header", "auth", "token", "secret", "password", "credential", "cookie"} {
		if strings.Contains(folded, word) {
			return true
		}
	}
	return nearestOf(key, "apiKey", "defaultApiKey", "headers") != ""
}

// warnLiteral warns of a member of an env or of headers that may be a credential and is in the
// file itself.
func (r *report) warnLiteral(key string, n *node) {
	if soundsSecret(n.key) && strings.TrimSpace(n.text) != "" && !strings.Contains(n.text, opening) {
		r.warn(n, "write ${NAME}, and set that variable", "%s: the file contains the value of %s itself", key, quote(n.key))
	}
}

// meansCount reports whether an unknown key is a misspelling of keys whose values are not
// credentials, such as maxTokenBudgts. A number is then not a secret.
func meansCount(key string) bool {
	var known, meant []string
	for _, p := range allPlaces {
		known = append(known, names(p)...)
		if best := synonym(key, p); best != "" {
			meant = append(meant, best)
		}
	}
	if best := nearestOf(key, known...); best != "" {
		meant = append(meant, best)
	}
	return len(meant) > 0 && !slices.ContainsFunc(meant, soundsSecret)
}

// aNumber matches the text after a colon if it is only a number.
var aNumber = regexp.MustCompile(`^\s*[0-9][0-9_.]*\s*([,}\]#]|$)`)
