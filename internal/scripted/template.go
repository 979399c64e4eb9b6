package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// maxAnswer bounds the output of a template, in bytes.
const maxAnswer = 16 << 20

// helpers are the functions that need no prompt. They take a text as the last argument, for pipes.
var helpers = template.FuncMap{
	"match":    match,
	"matches":  matches,
	"field":    field,
	"lines":    lines,
	"words":    strings.Fields,
	"count":    func(piece, text string) int { return strings.Count(text, piece) },
	"contains": func(piece, text string) bool { return strings.Contains(text, piece) },
	"join":     func(with string, list []string) string { return strings.Join(list, with) },
	"upper":    strings.ToUpper,
	"lower":    strings.ToLower,
	"trim":     strings.TrimSpace,
	"json":     quote,
}

// removed returns the functions of earlier versions, which fail when they are called. A script that has one must still be
// read: it is part of the key of its answers, so a run that began with it could not be resumed with an edited one.
func removed() template.FuncMap {
	all := template.FuncMap{}
	for _, name := range []string{"structured", "memory", "message", "goal", "result", "digest", "failed", "skipped", "part", "parts", "roster"} {
		all[name] = func(...any) (string, error) {
			return "", fmt.Errorf("%s is no longer a function; write the words, or match them in .Prompt or .Section", name)
		}
	}
	return all
}

// helpers returns the functions that quote from r.
func (r *received) helpers() template.FuncMap {
	return template.FuncMap{
		"input": func(name string) string { return r.entry(called("Inputs"), called(name)) },
		"dependency": func(title string) string {
			return r.entry(called("Context from prerequisite tasks"), noted(title, "by "))
		},
		"handoff":    func(agent string, n ...int) (string, error) { return r.messages().handoff(agent, n...) },
		"toolResult": r.toolResult,
	}
}

// compile parses a text as a template and checks the patterns in it.
func compile(text string) (*template.Template, error) {
	t, err := template.New("text").Funcs(removed()).Funcs(helpers).Funcs((&received{}).helpers()).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, each := range t.Templates() {
		if each.Tree == nil {
			continue
		}
		if err := checkPatterns(each.Root); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkPatterns compiles the constant patterns of a template.
func checkPatterns(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, c := range n.Nodes {
			if err := checkPatterns(c); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		return checkPatterns(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return nil
		}
		for _, c := range n.Cmds {
			if err := checkPatterns(c); err != nil {
				return err
			}
		}
	case *parse.CommandNode:
		return checkCommand(n)
	case *parse.IfNode:
		return checkBranch(&n.BranchNode)
	case *parse.RangeNode:
		return checkBranch(&n.BranchNode)
	case *parse.WithNode:
		return checkBranch(&n.BranchNode)
	}
	return nil
}

func checkBranch(b *parse.BranchNode) error {
	for _, n := range []parse.Node{b.Pipe, b.List, b.ElseList} {
		if err := checkPatterns(n); err != nil {
			return err
		}
	}
	return nil
}

func checkCommand(c *parse.CommandNode) error {
	if name, ok := c.Args[0].(*parse.IdentifierNode); ok && len(c.Args) > 1 && (name.Ident == "match" || name.Ident == "matches") {
		if pattern, ok := c.Args[1].(*parse.StringNode); ok {
			if _, err := regexp.Compile(pattern.Text); err != nil {
				return err
			}
		}
	}
	for _, arg := range c.Args {
		if err := checkPatterns(arg); err != nil {
			return err
		}
	}
	return nil
}

// render executes a template over r.
func (r *received) render(t *template.Template) (string, error) {
	bound, err := t.Clone()
	if err != nil {
		return "", err
	}
	var out limited
	if err := bound.Funcs(r.helpers()).Execute(&out, r); err != nil {
		return "", runtimeError(err)
	}
	return out.String(), nil
}

// noField matches the error of a template with an unknown field.
var noField = regexp.MustCompile(`at <([^>]*)>: can't evaluate field (\w+) in type \*scripted\.received`)

// runtimeError describes an error of a template to the author of a script.
func runtimeError(err error) error {
	if m := noField.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("text: there is no .%s; there are .Prompt, .Last, .Turn, .System, .Task and .Section", m[2])
	}
	return errors.New(strings.TrimPrefix(err.Error(), "template: "))
}

// limited is a buffer with a bound.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("the answer is above %d MiB", maxAnswer>>20)
	}
	return l.Buffer.Write(p)
}

// match returns the first group of the first match, or the whole match if the pattern has no group.
func match(pattern, text string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	if m := re.FindStringSubmatch(text); m != nil {
		return m[min(1, re.NumSubexp())], nil
	}
	return missing, nil
}

// matches returns the result of match for every match.
func matches(pattern, text string) ([]string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		all = append(all, m[min(1, re.NumSubexp())])
	}
	return all, nil
}

// lines returns the lines of a text that are not empty, without whitespace around them.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// quote returns a value as JSON, a text as a JSON string.
func quote(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// field returns the value at a dotted path of a JSON text, which may be in a code fence: a
// text as it is, any other value as JSON.
func field(path, text string) (string, error) {
	d := json.NewDecoder(strings.NewReader(unfenced(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return missing, nil //nolint:nilerr // a text that is not JSON has no fields
	}
	for key := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = at[key]; !ok {
				return missing, nil
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return missing, nil
			}
			v = at[i]
		default:
			return missing, nil
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	return quote(v)
}

// unfenced removes a Markdown code fence around a text.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	_, inner, _ = strings.Cut(inner, "\n")
	return strings.TrimSuffix(strings.TrimSpace(inner), "```")
}
