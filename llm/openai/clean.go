package openai

import (
	"regexp"
	"strings"

	"github.com/runteam/runteam/llm"
)

const (
	maxSaid = 600 // how much of what a server said is looked at, in bytes
	echo    = 12  // this many bytes that the prompt also has are an echo of it
	keyEcho = 6   // and of a key

	minSecret = 4 // a shorter key is none: masking it would only garble the text
)

// userinfo matches a user and password in a URL.
var userinfo = regexp.MustCompile(`//[^/@\s]*@`)

// clean returns what a server said, fit for an error: one short line in which
// neither the key nor a passage of the prompt is repeated. Shorter echoes of a
// prompt cannot be told from chance.
func (m *Model) clean(req llm.Request, said string) string {
	if len(said) > maxSaid {
		said = strings.ToValidUTF8(said[:maxSaid], "")
	}
	said = userinfo.ReplaceAllString(said, "//")
	for _, secret := range m.secrets() {
		said = mask(said, []string{secret}, min(keyEcho, len(secret)), "[key]")
	}
	said = starred.ReplaceAllString(said, "[key]")
	texts := []string{req.System}
	for _, t := range req.Messages {
		texts = append(texts, t.Text)
	}
	return llm.OneLine(mask(said, texts, echo, "[prompt]"))
}

// starred matches a word that a server has starred out, such as sk-ab****cdef.
var starred = regexp.MustCompile(`\S*\*{3,}\S*`)

// secrets returns what must not be repeated, besides the prompt.
func (m *Model) secrets() []string {
	all := []string{}
	if len(m.key.secret()) >= minSecret {
		all = append(all, m.key.secret())
	}
	for _, values := range m.headers {
		for _, v := range values {
			if len(v) >= minSecret {
				all = append(all, v)
			}
		}
	}
	return all
}

// mask replaces each run of s that one of the texts has too, of n bytes or more.
func mask(s string, texts []string, n int, with string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		end := shared(s, i, texts, n)
		if end == i {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(with)
		i = end
	}
	return b.String()
}

// shared returns the end of the run from i that a text has too, or i if it is shorter than n.
func shared(s string, i int, texts []string, n int) int {
	end := i
	for _, text := range texts {
		for j := max(i+n, end+1); j <= len(s) && strings.Contains(text, s[i:j]); j++ {
			end = j
		}
	}
	return end
}
