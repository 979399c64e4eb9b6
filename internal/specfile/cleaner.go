package specfile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/runteam/runteam/redact"
)

// Removal of credentials from the copies of files.

// A cleaned is a text without credentials, which may be stored.
type cleaned struct {
	text    string
	without []string // what was removed
	ok      bool     // false if credentials could not be removed reliably
}

// clean returns a file without credentials.
func (k *loadedFile) clean() cleaned {
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

// cleanProse is clean for a text that is not a file of keys. JSON stays JSON; values that
// its keys mark as secret are redacted as in a run.
func cleanProse(text string) cleaned {
	c := cleaned{text: text, ok: true}
	take := func(clean string, counts redact.Counts, err error) {
		c.text, c.ok = clean, c.ok && err == nil
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
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

// cleanTree is clean for a file of keys. It cuts credentials out of the text, which keeps
// comments and lines, or else writes the values again.
func (k *loadedFile) cleanTree() cleaned {
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
	if text := w.cut(); len(redactions(text)) == 0 && parsesAs(text, k.found, want) {
		return cleaned{text, w.without, true}
	}
	text, err := rewrite(want, k.src)
	if err != nil || len(redactions(text)) > 0 || !parsesAs(text, k.found, want) {
		return cleaned{}
	}
	return cleaned{text, w.without, true}
}

// parsesAs reports whether a file with this text and path has a value.
func parsesAs(text, path string, want *node) bool {
	back, bad := parse(newSource(path, "", text))
	return back != nil && len(bad) == 0 && same(back, want)
}

// rewrite writes a value in the format of a file.
func rewrite(want *node, src *source) (string, error) {
	if src.likeJSON() || want.is != isObject {
		text, err := want.appendJSON(nil)
		return string(text), err
	}
	text, err := emit(want)
	return string(text), err
}

// A cleaner removes credentials from one file.
type cleaner struct {
	src     *source
	found   []redaction      // secrets that a run would redact in the text
	keys    map[*node]string // the values of keys that are credentials, and the paths of the keys
	cuts    []splice
	without []string
}

// A splice replaces a range of bytes.
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

// comments notes credentials in comments, such as a key that was commented out.
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

// tree returns a value without credentials. The key helps to recognize them.
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

// seen reports whether a value is written without escapes, so that the search of the
// whole text, which found nothing, has covered it.
func (w *cleaner) seen(n *node) bool {
	rest := w.src.text[n.at:]
	return len(w.found) == 0 && (strings.HasPrefix(rest, n.text) || len(rest) > 0 && strings.HasPrefix(rest[1:], n.text))
}

// scalar returns a text with placeholders for secrets: those that the text alone shows, or
// else those that are recognized by the key before them.
func (w *cleaner) scalar(text, key string) string {
	clean, counts, err := redact.Secrets().Text(text)
	if err == nil && counts == nil && key != "" {
		var with string
		if with, counts, err = redact.Secrets().Text(key + ": " + text); err == nil && counts != nil {
			var named bool
			if clean, named = strings.CutPrefix(with, key+": "); !named {
				clean, counts = text, nil // the key itself is a secret
			}
		}
	}
	if err != nil {
		clean, counts = redact.Kind("password").Placeholder(), redact.Counts{"password": 1}
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
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

// valueOf returns the range of a text: exactly for JSON, otherwise an estimate.
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

// withDefault matches a variable of the environment with a default value.
var withDefault = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*):-[^}]*\}`)

// variables returns the part of a credential that may be stored: the names of variables
// and the scheme before them, but no literal value.
func variables(text string) string {
	if strings.TrimSpace(text) == "" || namesKey.MatchString(text) {
		return text
	}
	if bare := withDefault.ReplaceAllString(text, "${${1}}"); namesKey.MatchString(bare) {
		return withDefault.ReplaceAllString(text, "${${1}:-}")
	}
	return ""
}

// credentials visits the values of all keys of a file that hold credentials, with the path
// of each key.
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
		case "backend":
			programCredentials(value, where, visit)
		case "tools":
			for _, entry := range value.parts() {
				programCredentials(entry.get("mcp"), where+"."+entry.key+".mcp", visit)
			}
		}
	}
}

// programCredentials is credentials for an MCP server or an agent that is a command: its headers,
// and the variables and arguments of the program.
func programCredentials(program *node, at string, visit func(at string, n *node)) {
	for _, key := range [...]string{"headers", "env", "args"} {
		list := program.get(key)
		for i, value := range list.parts() {
			where := at + "." + key
			switch {
			case list.is == isObject:
				visit(where+"."+value.key, value)
			case isSecretArgument(list, i):
				visit(fmt.Sprintf("%s[%d]", where, i), value)
			}
		}
	}
}

// isSecretArgument reports whether element i of a list of arguments may be a credential: it follows a flag such as
// --api-key, or has one with a value that is no variable, such as --api-key=sk-1.
func isSecretArgument(list *node, i int) bool {
	if list.is != isList {
		return false
	}
	if flag, value, ok := strings.Cut(list.kids[i].text, "="); ok && isSecretFlag(flag) {
		return !namesKey.MatchString(value)
	}
	return i > 0 && isSecretFlag(list.kids[i-1].text)
}

func isSecretFlag(text string) bool {
	flag, dashed := strings.CutPrefix(text, "-")
	return dashed && !strings.Contains(flag, "=") && soundsSecret(strings.TrimLeft(flag, "-"))
}

// takenOut returns the values of a stored copy that were removed.
func takenOut(tree *node, without []string) map[*node]bool {
	out := make(map[*node]bool)
	credentials(tree, "", func(at string, n *node) {
		if slices.Contains(without, at) && strings.TrimSpace(n.text) == "" {
			out[n] = true
		}
	})
	return out
}
