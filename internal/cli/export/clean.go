package export

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
)

// A cleaner redacts decoded JSON documents, and takes out of them what depends on the words that a viewer does
// not see: sizes of texts, digests, and numbers of tokens that are classes.
type cleaner struct {
	ctx      context.Context
	redactor *redact.Redactor
	accepts  label.Classification
	known    map[string]string // texts that were redacted before
	hidden   map[string]bool   // digests of policies that the export does not have whole
	err      error             // why a text could not be searched
}

// newCleaner returns a cleaner for all built-in kinds and some patterns.
func newCleaner(ctx context.Context, own []redact.Pattern, accepts label.Classification) (*cleaner, error) {
	c := &cleaner{ctx: ctx, redactor: redact.All(), accepts: accepts, known: map[string]string{}, hidden: map[string]bool{}}
	if len(own) == 0 {
		return c, nil
	}
	var err error
	c.redactor, err = redact.New(redact.PersonalKinds(), own)
	return c, err
}

// dropped are the members that no document of an export has: the sizes of texts, of which parts may be
// withheld or redacted, digests of texts, and where the run was made.
var dropped = map[string]bool{
	"bytes": true, "bytesBefore": true, "bytesAfter": true, "contextBeforeScoping": true, "context": true,
	"sha256": true, "fingerprint": true, "envelope": true, "holder": true, "requestId": true,
}

// counts are the members that say how many tokens there are. An export leaves out estimates, and
// sums that the caller sees only partly.
var counts = []string{"tokenUsage", "totalTokenUsage", "input_tokens", "output_tokens", "saved", "cost", "savedCost"}

// value returns a value without what an export does not have.
func (c *cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.text(v)
	case []any:
		v = slices.DeleteFunc(v, c.isHidden)
		for i := range v {
			v[i] = c.value(v[i])
		}
		return v
	case map[string]any:
		c.object(v)
	}
	return v
}

// object cleans an object in its place.
func (c *cleaner) object(o map[string]any) {
	for name := range dropped {
		delete(o, name)
	}
	if isTrue(o["partial"]) || isTrue(o["rounded"]) || isTrue(o["estimated"]) || isPositive(o["interrupted"]) {
		for _, name := range counts {
			delete(o, name)
		}
	}
	if _, isCount := o["withheld"].(json.Number); isCount { // of the elements of lists, too
		delete(o, "withheld")
	}
	if after, ok := o["contextAfterScoping"].(map[string]any); ok {
		o["contextAfterScoping"] = fieldsOf(after)
	}
	if dropped, ok := o["dropped"].([]any); ok {
		o["dropped"] = anyIndex(dropped)
	}
	if spec, ok := o["spec"].(string); ok && strings.ContainsAny(spec, `/\`) {
		o["spec"] = path.Base(strings.ReplaceAll(spec, `\`, "/")) // not the folders of this computer
	}
	if c.isPrompt(o) {
		names := withoutFolders(o["sources"])
		o["bytes"] = c.pieces(o["system"], names) + c.pieces(o["text"], names)
	}
	maps.DeleteFunc(o, func(_ string, v any) bool { return c.isHidden(v) })
	for name, v := range o {
		switch name {
		case "structured":
			o[name] = c.structured(v)
		case "system", "text":
			if _, pieces := v.([]any); !pieces {
				o[name] = c.value(v)
			}
		case "line":
			if line, ok := v.(string); ok && path.IsAbs(line) {
				o[name] = path.Base(line)
			}
		default:
			o[name] = c.value(v)
		}
	}
}

// hideDigests takes the digests of policies out of what is cleaned from then on, unless the export has all of the
// policy: by its digest, a redacted part could be guessed.
func (c *cleaner) hideDigests(policies []*record.Policy) error {
	for _, p := range policies {
		whole, err := decoded(p.Text)
		if err != nil {
			return err
		}
		shown, err := decoded(p.Text)
		if err != nil {
			return err
		}
		if c.accepts < label.Internal || !reflect.DeepEqual(c.value(shown), whole) {
			c.hidden[p.Digest] = true
		}
	}
	return c.err
}

// isHidden reports whether a value is a digest that the export does not have.
func (c *cleaner) isHidden(v any) bool {
	text, is := v.(string)
	return is && c.hidden[text]
}

// fieldsOf returns which fields the gate delivered and which it left out, without how large they are.
func fieldsOf(extent map[string]any) map[string]any {
	fields := map[string]any{}
	for _, name := range []string{"fieldsIncluded", "fieldsExcluded"} {
		if list, ok := extent[name].([]any); ok {
			fields[name] = anyIndex(list)
		}
	}
	return fields
}

// index matches the places of the elements of a list in a path.
var index = regexp.MustCompile(`/\d+(/|$)`)

// anyIndex writes * for the places of elements in paths, since the last one says how long a list is.
func anyIndex(paths []any) (out []any) {
	known := map[string]bool{}
	for _, v := range paths {
		p, _ := v.(string)
		for index.MatchString(p) { // matches overlap
			p = index.ReplaceAllString(p, "/*$1")
		}
		if !known[p] {
			known[p] = true
			out = append(out, p)
		}
	}
	return out
}

func isTrue(v any) bool { b, _ := v.(bool); return b }

func isPositive(v any) bool {
	n, ok := v.(json.Number)
	return ok && n != "0"
}

const uuid = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

// identifier matches what names runs, tasks and sessions, and times.
var identifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^` + uuid + `(/(` + uuid + `|[a-z]{1,12}|\d{1,4})){0,6}$|^\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)$`)
})

// fence matches the fences of prompts. They are made of a digest of all payloads, by which a redacted value
// could be guessed.
var fence = regexp.MustCompile(`\[/?envelope [0-9a-f]+`)

// text redacts a text.
func (c *cleaner) text(text string) string {
	if text == "" || identifier().MatchString(text) {
		return text
	}
	clean, known := c.known[text]
	if !known {
		clean = c.redacted(text)
		c.known[text] = clean
	}
	return clean
}

func (c *cleaner) redacted(text string) string {
	text = hideFences(c.members(text))
	clean, _, _, err := c.redactor.TextRevealing(c.ctx, text, nil)
	if err != nil {
		c.fail(err)
		return ""
	}
	return clean
}

// members redacts a text that is JSON by the names of its members. Any other text is returned as it is.
func (c *cleaner) members(text string) string {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(trimmed)) {
		return text
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(trimmed)); err != nil {
		return text
	}
	clean, counts, _, err := c.redactor.JSON(c.ctx, compact.String(), nil)
	switch {
	case err != nil:
		c.fail(err)
		return ""
	case len(counts) == 0:
		return text
	}
	return clean
}

// structured redacts a structured result.
func (c *cleaner) structured(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		c.fail(err)
		return nil
	}
	clean, _, _, err := c.redactor.JSON(c.ctx, string(text), nil)
	if err != nil {
		c.fail(err)
		return nil
	}
	return json.RawMessage(clean)
}

// fail keeps the first error: a document that could not be searched is not exported.
func (c *cleaner) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// hideFences takes the digests out of the fences of a prompt.
func hideFences(text string) string {
	return fence.ReplaceAllStringFunc(text, func(line string) string {
		opener, digest, _ := strings.Cut(line, " ")
		return opener + " " + strings.Repeat("*", len(digest))
	})
}
