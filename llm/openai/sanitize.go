package openai

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

const (
	maxServerText = 600 // bytes that are used of a text of an endpoint
	promptEcho    = 12  // bytes in common with the prompt that count as an echo
	passage       = 24  // bytes in common with the prompt that cannot be a phrase of the endpoint
	keyEcho       = 6   // the same for a key
	minSecret     = 4   // shorter keys are not masked, because that would only garble the text
	maxLayers     = 3   // of encodings one inside the other
)

// userinfo matches a user and password in a URL.
var userinfo = regexp.MustCompile(`//[^/@\s]*@`)

// starred matches a word that a server has starred out, such as sk-ab****cdef.
var starred = regexp.MustCompile(`\S*\*{3,}\S*`)

// A sanitizer cleans the texts of an endpoint or a proxy of one call.
type sanitizer struct {
	prompt   []string
	provider []json.RawMessage // objects of provider data whose texts are not in prompt yet
	secrets  []string          // of the model
}

// newSanitizer returns the sanitizer of one call.
func newSanitizer(m *Model, req *llm.Request) *sanitizer {
	c := &sanitizer{prompt: make([]string, 0, 1+len(req.Messages)), secrets: m.secrets}
	for i := range req.Messages {
		c.prompt = append(c.prompt, req.Messages[i].Text)
		if d := req.Messages[i].Provider; d != nil {
			c.addProviderData(d.Message)
			for k := range d.Calls {
				c.addProviderData(d.Calls[k].Members)
				c.addProviderData(d.Calls[k].Function)
			}
		}
	}
	c.prompt = append(c.prompt, req.System)
	return c
}

// addProviderData adds an object of provider data to what is masked.
func (c *sanitizer) addProviderData(object json.RawMessage) {
	if len(object) > 0 {
		c.provider = append(c.provider, object)
	}
}

// readProviderData adds the texts of provider data to the prompt: they may have parts of it, and of the
// reasoning of the model. Names of members and short texts, such as types, are not masked.
func (c *sanitizer) readProviderData() {
	for _, object := range c.provider {
		var d valueReader
		d.open(object)
		for {
			parent, n := d.tokens.StackIndex(d.tokens.StackDepth())
			token, err := d.tokens.ReadToken()
			if err != nil {
				break
			}
			if isName := parent == '{' && n%2 == 0; token.Kind() == '"' && !isName {
				if text := token.String(); len(text) >= promptEcho {
					c.prompt = append(c.prompt, text)
				}
			}
		}
	}
	c.provider = nil
}

// sanitize cleans a text: an error message, a redirect, the name of a model or a tool, a
// finish reason. Every such text is sanitized before it leaves the package.
//
// The result is one line of at most 300 bytes without control characters, and
// repeats neither the key, nor a value of a header, nor a passage of the prompt:
// as they are, percent-, HTML- or JSON-escaped, in hex or base64, in another
// case, or split by spaces and punctuation. Shorter echoes
// of a prompt than 12 bytes stay, since they may be coincidence.
func (c *sanitizer) sanitize(text string) string {
	if text == "" {
		return ""
	}
	if len(text) > maxServerText {
		text = strings.ToValidUTF8(text[:maxServerText], "")
	}
	if strings.Contains(text, "//") {
		text = userinfo.ReplaceAllString(text, "//")
	}
	c.readProviderData()
	e := newEchoes(text)
	for _, t := range c.prompt {
		e.find(t, promptEcho, promptMark)
	}
	for _, secret := range c.secrets {
		e.find(secret, keyEcho, keyMark)
	}
	text = e.masked()
	if strings.Contains(text, "***") {
		text = starred.ReplaceAllString(text, "[key]")
	}
	return oneline.Of(text)
}

// withoutPassages returns the start of a text with a placeholder for each passage of the
// prompt. Phrases that a prompt may have by chance stay.
func (c *sanitizer) withoutPassages(text string) string {
	c.readProviderData()
	e := newEchoes(strings.ToValidUTF8(text[:min(len(text), maxServerText)], ""))
	for _, t := range c.prompt {
		if len(t) >= passage {
			e.find(t, passage, promptMark)
		}
	}
	return e.masked()
}

// secretsOf returns what is masked in texts besides the prompt: the key and the values of
// the headers.
func secretsOf(key Key, headers http.Header) []string {
	all := []string{key.secret()}
	for _, values := range headers {
		for _, v := range values {
			all = append(all, v)
			if basic, ok := strings.CutPrefix(v, "Basic "); ok {
				if pair, err := base64.StdEncoding.DecodeString(basic); err == nil {
					all = append(all, string(pair))
				}
			}
		}
	}
	return all
}
