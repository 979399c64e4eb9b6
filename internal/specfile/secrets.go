package specfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/redact"
)

// What no problem may show: the secrets that a run takes out of the same text,
// and the values of keys that sound like credentials.

// withoutSecrets returns a text without secrets; one that cannot be judged is not shown.
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

// hideSecrets keeps the secrets of a text out of excerpts that the bytes from start to
// end mean: where they stand there letter by letter, else, behind escapes and
// line breaks, all of these bytes.
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

// withoutSeparators removes what stands between the words of a key.
var withoutSeparators = strings.NewReplacer("_", "", "-", "", " ", "", ".", "")

// soundsSecret reports whether the value of a key may be a credential.
func soundsSecret(key string) bool {
	folded := withoutSeparators.Replace(strings.ToLower(key))
	switch folded {
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

// meansCount reports whether an unknown key stands for keys whose values are no
// credentials, such as maxTokenBudgts: a number there is no secret.
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

// aNumber matches what stands behind a colon if it is a number and nothing else.
var aNumber = regexp.MustCompile(`^\s*[0-9][0-9_.]*\s*([,}\]#]|$)`)
