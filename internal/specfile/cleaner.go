package specfile

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/runteam/runteam/redact"
)

// What is kept of a file: its text without credentials.

// A cleaned is a text that may be kept, and what is missing in it.
type cleaned struct {
	text    string
	without []string
	ok      bool // false if it cannot be told what may be kept
}

// clean returns what may be kept of a file.
func (k *kept) clean() cleaned {
	k.once.Do(func() {
		if k.copied != nil {
			k.cleaned = cleaned{k.copied.Text, k.copied.Without, true}
		} else if k.src != nil && k.src.tree != nil {
			k.cleaned = k.cleanTree()
		} else {
			k.cleaned = cleanProse(k.text)
		}
		k.cleaned.without = slices.Compact(k.cleaned.without)
	})
	return k.cleaned
}

// cleanProse is clean for a text without keys of this package. JSON stays JSON,
// and what its keys say is secret is taken out as a run would.
func cleanProse(text string) cleaned {
	c := cleaned{text: text, ok: true}
	take := func(clean string, counts redact.Counts, err error) {
		c.text, c.ok = clean, c.ok && err == nil
		for _, kind := range counts.Kinds() {
			c.without = append(c.without, kind.Placeholder())
		}
	}
	isJSON := json.Valid([]byte(text))
	if isJSON {
		clean, counts, _, err := redact.Secrets().JSON(context.Background(), text, nil)
		take(clean, counts, err)
	}
	if take(redact.Secrets().Text(c.text)); isJSON && !json.Valid([]byte(c.text)) {
		return cleaned{}
	}
	slices.Sort(c.without)
	return c
}

// cleanTree is clean for a file of keys and values. Where credentials can be cut
// out of the text, the rest stays as it was written, comments and lines too;
// else the same is written anew.
func (k *kept) cleanTree() cleaned {
	w := &cleaner{src: k.src, found: redactions(k.text), keys: make(map[*node]string)}
	if k.keyed {
		credentials(k.src.tree, "", w.credential)
		w.comments()
	}
	want := w.tree(k.src.tree, "")
	if len(w.cuts) == 0 && len(w.without) == 0 && len(w.found) == 0 {
		return cleaned{text: k.text, ok: true}
	}
	slices.Sort(w.without)
	if text := w.cut(); len(redactions(text)) == 0 && says(text, k.found, want) {
		return cleaned{text, w.without, true}
	}
	text, err := anew(want, k.src)
	if err != nil || len(redactions(text)) > 0 || !says(text, k.found, want) {
		return cleaned{}
	}
	return cleaned{text, w.without, true}
}

// says reports whether a text of a file of that name says what a value does.
func says(text, path string, want *node) bool {
	back, bad := parse(newSource(path, "", text))
	return back != nil && len(bad) == 0 && same(back, want)
}

// anew writes a value in the language of a file.
func anew(want *node, src *source) (string, error) {
	if src.likeJSON() || want.is != isObject {
		text, err := want.appendJSON(nil)
		return string(text), err
	}
	text, err := emit(want)
	return string(text), err
}

// A cleaner takes credentials out of one file.
type cleaner struct {
	src     *source
	found   []redaction      // what a run would take out of the text as it stands
	keys    map[*node]string // the values of keys that are credentials, by where they stand
	cuts    []splice
	without []string
}

// A splice puts other letters in the place of some bytes.
type splice struct {
	span
	with string
}

// credential notes a value that its key says is a credential.
func (w *cleaner) credential(at string, n *node) {
	if n.is != isText || variables(n.text) == n.text {
		return
	}
	w.keys[n] = at
	p := w.src.valueOf(n)
	lines := strings.Count(w.src.text[p.start:p.end], "\n")
	w.cuts = append(w.cuts, splice{p, string(appendText(nil, variables(n.text))) + strings.Repeat("\n", lines)})
}

// comments notes what seems to be a credential in a comment, such as a key that
// was commented out.
func (w *cleaner) comments() {
	if !strings.Contains(w.src.text, "#") || json.Valid([]byte(w.src.text)) {
		return
	}
	c := &yamlConverter{src: w.src, line: 1, column: 1}
	for _, t := range lexer.Tokenize(w.src.text) {
		if t.Type != token.CommentType {
			continue
		}
		at, end := w.src.extent(c.at(t.Position))
		at += max(0, strings.LastIndexByte(w.src.text[at:min(c.offset+1, end)], '#'))
		line := w.src.text[at:end]
		if value, is := credentialIn(line); is && strings.TrimSpace(line[value:]) != "" && !variable.MatchString(line[value:]) {
			w.cuts = append(w.cuts, splice{span{at, end}, "#"})
		}
	}
}

// tree returns a value without credentials; what stands under a key is looked at with it.
func (w *cleaner) tree(n *node, key string) *node {
	if at, known := w.keys[n]; known {
		w.without = append(w.without, at)
		return &node{is: isText, text: variables(n.text)}
	}
	switch {
	case (n.is == isText || n.is == isNumber) && !w.seen(n):
		if text := w.scalar(n.text, key); text != n.text {
			return &node{is: isText, text: text}
		}
		return n
	case n.len() == 0:
		return n
	}
	made := &node{is: n.is, kids: make([]node, 0, n.len())}
	for _, part := range n.parts() {
		made.set(w.scalar(part.key, ""), w.tree(part, part.key))
	}
	return made
}

// seen reports whether a value stands in the file letter by letter, and so was
// looked at with all of it, and nothing found there.
func (w *cleaner) seen(n *node) bool {
	rest := w.src.text[n.at:]
	return len(w.found) == 0 && (strings.HasPrefix(rest, n.text) || len(rest) > 0 && strings.HasPrefix(rest[1:], n.text))
}

// scalar returns a text with placeholders for secrets: for those that are known
// by themselves, else for those that are known by the key before them.
func (w *cleaner) scalar(text, key string) string {
	clean, counts, err := redact.Secrets().Text(text)
	if err == nil && counts == nil && key != "" {
		var with string
		if with, counts, err = redact.Secrets().Text(key + ": " + text); err == nil && counts != nil {
			var named bool
			if clean, named = strings.CutPrefix(with, key+": "); !named {
				clean, counts = text, nil // it is the key that is one
			}
		}
	}
	if err != nil {
		clean, counts = redact.Kind("password").Placeholder(), redact.Counts{"password": 1}
	}
	for _, kind := range counts.Kinds() {
		w.without = append(w.without, kind.Placeholder())
	}
	return clean
}

// cut returns the text with placeholders and without the values of keys that
// are credentials.
func (w *cleaner) cut() string {
	cuts := slices.Clone(w.cuts)
	for _, found := range w.found {
		p := found.span
		if !slices.ContainsFunc(w.cuts, func(c splice) bool { return c.start < p.end && p.start < c.end }) {
			cuts = append(cuts, splice{p, found.kind.Placeholder()})
		}
	}
	slices.SortFunc(cuts, func(a, b splice) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		if c.start < at {
			continue
		}
		b.WriteString(w.src.text[at:c.start] + c.with)
		at = c.end
	}
	return b.String() + w.src.text[at:]
}

// valueOf returns the bytes of a text: exactly for JSON, else as well as that can be told.
func (s *source) valueOf(n *node) span {
	if n.form != quoted {
		return span{n.at, s.endOf(n)}
	}
	end := n.at + 1
	for s.text[end] != '"' {
		if s.text[end] == '\\' {
			end++
		}
		end++
	}
	return span{n.at, end + 1}
}

// withDefault matches a variable of the environment that has a value for when it is not set.
var withDefault = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*):-[^}]*\}`)

// variables returns what of a credential may be kept: the names of variables,
// and the word for how it is sent, but nothing that is written out.
func variables(text string) string {
	if strings.TrimSpace(text) == "" || namesKey.MatchString(text) {
		return text
	}
	if bare := withDefault.ReplaceAllString(text, "${${1}}"); namesKey.MatchString(bare) {
		return withDefault.ReplaceAllString(text, "${${1}:-}")
	}
	return ""
}

// credentials visits the values of the keys of a file whose values are
// credentials, and says where each stands.
func credentials(n *node, at string, visit func(at string, n *node)) {
	for i, value := range n.parts() {
		where := value.key
		if n.is == isList {
			credentials(value, fmt.Sprintf("%s[%d]", at, i), visit)
			continue
		}
		if at != "" {
			where = at + "." + where
		}
		switch value.key {
		case "apiKey", "defaultApiKey":
			visit(where, value)
		case "headers":
			for _, header := range value.parts() {
				if value.is == isObject {
					visit(where+"."+header.key, header)
				}
			}
		case "orchestrator", "team", "agents", "agentDefaults", "coordinator", "fallback":
			credentials(value, where, visit)
		}
	}
}

// takenOut are the values of a stored copy that were taken out of it.
func takenOut(tree *node, without []string) map[*node]bool {
	out := make(map[*node]bool)
	credentials(tree, "", func(at string, n *node) {
		if slices.Contains(without, at) && strings.TrimSpace(n.text) == "" {
			out[n] = true
		}
	})
	return out
}
