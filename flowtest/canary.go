package flowtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/runteam/runteam/task"
)

// A Canary is a word that was planted. Its place determines the word, so that equal tests
// have equal prompts. Redaction never finds it. The zero Canary was not planted.
type Canary struct{ p *canary }

// String returns the word.
func (c Canary) String() string {
	if c.p == nil {
		return ""
	}
	return c.p.word
}

// A canary is a word and the place where it is planted.
type canary struct {
	word     string
	forms    []string // the word and its encodings, in lower case
	input    string   // the input; empty for anything else
	message  int      // which message it is, from 1; zero for anything else
	task     string   // the task, as the test names it
	handoff  bool     // it is in the handoffs of the task, and not in its result
	path     task.Path
	keys     []string // the path in tokens
	steps    []string // the same with * for elements of arrays; nil for a text
	row      int      // of the task in the graph, known when there is a plan
	optional bool     // it need not reach a reader
}

// String says where the canary was planted.
func (p *canary) String() string {
	if p.path != "" {
		return fmt.Sprintf("%s of %s (%s)", p.path, p.where(), p.word)
	}
	return fmt.Sprintf("%s (%s)", p.where(), p.word)
}

// where names what the canary was planted in.
func (p *canary) where() string {
	switch {
	case p.message > 0:
		return fmt.Sprintf("message %d of the spec", p.message)
	case p.handoff:
		return fmt.Sprintf("the handoffs of %q", p.task)
	case p.input == "":
		return fmt.Sprintf("the result of %q", p.task)
	}
	return fmt.Sprintf("input %q", p.input)
}

// isInResult reports whether the canary is planted in the result of a task.
func (p *canary) isInResult() bool { return p.isOfTask() && !p.handoff }

// isOfTask reports whether the canary is planted in the result or the handoffs of a task.
func (p *canary) isOfTask() bool { return p.input == "" && p.message == 0 }

// in reports whether a text, which is in lower case, has the canary.
func (p *canary) in(lower string) (form string, found bool) {
	for _, form := range p.forms {
		if strings.Contains(lower, form) {
			return form, true
		}
	}
	return "", false
}

// syllables is how many syllables of two letters a canary has.
const syllables = 11

// word returns the canary of a place: syllables chosen by its hash.
func word(place string) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	sum := sha256.Sum256([]byte("runteam/flowtest/1\x00" + place))
	var b strings.Builder
	for i := range syllables {
		b.WriteByte(consonants[int(sum[2*i])%len(consonants)])
		b.WriteByte(vowels[int(sum[2*i+1])%len(vowels)])
	}
	return b.String()
}

var urlDigits = strings.NewReplacer("+", "-", "/", "_")

// minBase64 is the length from which a piece of base64 cannot occur by chance.
const minBase64 = 8

// forms returns a text and its encodings, all in lower case: hex, percent, the escapes of
// JSON, and base64 at each of its three offsets, without the digits that depend on the
// neighbors of the text.
func forms(text string) []string {
	out := []string{strings.ToLower(text), hex.EncodeToString([]byte(text))}
	quoted, _ := json.Marshal(text)
	if inner := strings.ToLower(string(quoted[1 : len(quoted)-1])); inner != out[0] {
		out = append(out, inner)
	}
	var percent, escaped strings.Builder
	for _, r := range text {
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&percent, "%%%02x", c)
		}
		fmt.Fprintf(&escaped, `\u%04x`, r)
	}
	out = append(out, percent.String(), escaped.String(), strings.ReplaceAll(escaped.String(), `\`, `\\`))
	for before := range 3 {
		code := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		head := []int{0, 2, 3}[before]
		tail := len(code) - []int{0, 1, 1}[(before+len(text))%3]
		if tail-head >= minBase64 {
			code = strings.ToLower(code[head:tail])
			out = append(out, code)
			if url := urlDigits.Replace(code); url != code {
				out = append(out, url)
			}
		}
	}
	return out
}
