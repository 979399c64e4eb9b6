package spec

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/task"
)

// places remembers where everything in a File is written.
type places struct {
	main      *layer
	compat    bool
	agentList *node
	taskList  *node
	agents    []*fields // of each agent
	tasks     []*fields // of each task
	inputs    []inputPlaceOf
	files     map[*node]*source // what a {file: PATH} was read from
	trees     map[*source]*node // of files that are JSON or YAML themselves
}

// An inputPlaceOf is where an input is written; it may be a name alone.
type inputPlaceOf struct {
	name   string
	fields *fields
	src    *source
	key    int
}

// Locate gives the problems of an error their places: a [task.Problem] or
// [task.Problems], which point into the tasks and agents of f, become an
// [*Error]. Any other error, and nil, comes back as it is.
func (f *File) Locate(err error) error {
	problems, ok := errors.AsType[task.Problems](err)
	if !ok {
		one, ok := errors.AsType[task.Problem](err)
		if !ok {
			return err
		}
		problems = task.Problems{one}
	}
	if len(problems) == 0 {
		return err
	}
	found := make([]finding, len(problems))
	for i, p := range problems {
		found[i] = f.places.find(p)
	}
	return &Error{Problems: locate(found)}
}

// Place returns where the value that an RFC 6901 pointer names is written, or
// where it comes from: a default, or the object that lacks it.
func (f *File) Place(pointer string) task.Position {
	at := f.places.find(task.Problem{Pointer: pointer})
	if at.src == nil {
		return task.Position{}
	}
	return origin(at.src, at.at)
}

// find turns a problem with a pointer into a finding.
func (p *places) find(t task.Problem) finding {
	message := t.Message
	if t.Subject != "" {
		message = t.Subject + ": " + message
	}
	out := finding{Problem: Problem{Message: message, Hint: t.Hint, Err: t}}
	n, src, at := p.resolve(tokens(t.Pointer))
	out.src, out.at = src, at
	if n == nil {
		return out
	}
	if from, ok := p.files[n]; ok {
		if t.Line > 0 {
			out.src, out.at = from, skipBlanks(from.text, lineOffset(from.text, t.Line))
		}
		return out
	}
	if t.Line > 0 && n.is == isText {
		out.src, out.at = placeInText(n, skipBlanks(n.text, lineOffset(n.text, t.Line)))
	}
	return out
}

// tokens splits an RFC 6901 pointer.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// resolve follows a pointer as far as the files go. The node is the value
// itself, or nil if only something around it exists; the offset is never
// missing unless the spec itself is.
func (p *places) resolve(parts []string) (n *node, src *source, at int) {
	root := p.main.node
	if root == nil {
		return nil, nil, 0
	}
	if len(parts) == 0 {
		return root, root.src, root.at
	}
	switch parts[0] {
	case "agents":
		if f := pick(p.agents, parts); f != nil {
			return inFields(f, parts[2:])
		}
		if p.agentList != nil {
			return p.agentList, p.agentList.src, p.agentList.at
		}
	case "tasks":
		if f := pick(p.tasks, parts); f != nil {
			return inFields(f, parts[2:])
		}
		if p.taskList != nil {
			return p.taskList, p.taskList.src, p.taskList.at
		}
	case "inputs":
		if in := p.input(parts); in != nil {
			if len(parts) > 2 {
				if n := in.fields.own(parts[2]); n != nil {
					return walk(n, parts[3:])
				}
			}
			return nil, in.src, in.key
		}
	}
	if n := cmpNode(p.main.spec.own(parts[0]), p.main.team.own(parts[0]), p.main.orch.own(parts[0])); n != nil {
		return walk(n, parts[1:])
	}
	return nil, root.src, root.at
}

func cmpNode(nodes ...*node) *node {
	for _, n := range nodes {
		if n != nil {
			return n
		}
	}
	return nil
}

// pick returns the element that the second part of a pointer counts to.
func pick(all []*fields, parts []string) *fields {
	if len(parts) < 2 {
		return nil
	}
	i, err := strconv.Atoi(parts[1])
	if err != nil || i < 0 || i >= len(all) {
		return nil
	}
	return all[i]
}

// input returns an input by its name, else by its number.
func (p *places) input(parts []string) *inputPlaceOf {
	if len(parts) < 2 {
		return nil
	}
	for i := range p.inputs {
		if p.inputs[i].name == parts[1] {
			return &p.inputs[i]
		}
	}
	if i, err := strconv.Atoi(parts[1]); err == nil && i >= 0 && i < len(p.inputs) {
		return &p.inputs[i]
	}
	return nil
}

// inFields follows a pointer into an agent or a task, and into its defaults.
func inFields(f *fields, parts []string) (*node, *source, int) {
	if len(parts) == 0 {
		return f.node, f.node.src, f.node.at
	}
	n := f.get(parts[0])
	if n == nil {
		return nil, f.node.src, f.node.at
	}
	if parts[0] == "dependsOn" && len(parts) == 3 && parts[2] == "as" {
		item, src, at := walk(n, parts[1:2])
		if own := item.get("as"); own != nil {
			return own, own.src, own.at
		}
		if all := f.get("dependencyPayload"); all != nil {
			return all, all.src, all.at
		}
		return nil, src, at
	}
	return walk(n, parts[1:])
}

// walk follows a pointer down from a node, as far as it goes.
func walk(n *node, parts []string) (*node, *source, int) {
	for _, part := range parts {
		var next *node
		switch n.is {
		case isObject:
			next = n.get(part)
		case isList:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < n.len() {
				next = &n.kids.nodes[i]
			}
		}
		if next == nil {
			return nil, n.src, n.at
		}
		n = next
	}
	return n, n.src, n.at
}

// lineOffset returns where a line of a text begins, by the ends of lines that
// a prompt knows: LF, CR, CR LF, VT, FF, FS to RS, NEL, LS and PS.
func lineOffset(text string, line int) int {
	for i, r := range text {
		if line <= 1 {
			return i
		}
		switch r {
		case '\r':
			if !strings.HasPrefix(text[i+1:], "\n") {
				line--
			}
		case '\n', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			line--
		}
	}
	return len(text)
}

// skipBlanks moves an offset to the first visible character of its line.
func skipBlanks(text string, offset int) int {
	for i, r := range text[offset:] {
		if r == '\n' || r == '\r' || !unicode.IsSpace(r) {
			return offset + i
		}
	}
	return offset
}

// placeIn returns where a byte of a text stands: in the file that the text
// came from, else in the spec.
func (l *loader) placeIn(n *node, from *source, _ string, offset int) (*source, int) {
	if from != nil {
		return from, offset
	}
	return placeInText(n, offset)
}

// placeInText returns where a byte of a text that is written in a spec stands
// there, as well as that can be told: exactly for JSON and for block scalars,
// else by looking for the same letters, else where the text begins.
func placeInText(n *node, offset int) (*source, int) {
	offset = max(0, min(offset, len(n.text)))
	switch n.form {
	case quoted:
		return n.src, n.at + 1 + escapedLen(n.src.text[n.at+1:], offset)
	case literal:
		first, _ := n.src.place(n.at)
		start := n.src.lineStart(first + 1 + strings.Count(n.text[:offset], "\n"))
		_, end := n.src.extent(start)
		line := n.text[strings.LastIndexByte(n.text[:offset], '\n')+1:]
		line, _, _ = strings.Cut(line, "\n")
		line = strings.TrimSuffix(line, "\r")
		depth := max(0, end-start-len(line))
		if !strings.HasSuffix(n.src.text[start:end], line) {
			depth = 0
		}
		into := offset - (strings.LastIndexByte(n.text[:offset], '\n') + 1)
		return n.src, min(start+depth+into, end)
	}
	return n.src, search(n, offset)
}

// search looks for the letters at an offset of a text behind the place at
// which the text begins; what occurs before in the text is counted.
func search(n *node, offset int) int {
	const most = 24
	letters := n.text[offset:]
	if i := strings.IndexAny(letters, "\n\r"); i >= 0 {
		letters = letters[:i]
	}
	if len(letters) > most {
		letters = letters[:most]
		for len(letters) > 0 && !utf8.ValidString(letters) {
			letters = letters[:len(letters)-1]
		}
	}
	if strings.TrimSpace(letters) == "" {
		return n.at
	}
	before := 0
	for i := 0; i < offset && before < 1000; before++ {
		k := strings.Index(n.text[i:], letters)
		if k < 0 || i+k >= offset {
			break
		}
		i += k + 1
	}
	at := n.at
	for ; ; before-- {
		k := strings.Index(n.src.text[at:], letters)
		if k < 0 {
			return n.at
		}
		if at += k; before == 0 {
			break
		}
		at++
	}
	if at > n.at+len(n.text)*4+4096 {
		return n.at
	}
	return at
}

// escapedLen returns how many bytes of a JSON string stand for the first n
// bytes of its value.
func escapedLen(raw string, n int) int {
	i := 0
	for n > 0 && i < len(raw) && raw[i] != '"' {
		if raw[i] != '\\' {
			i++
			n--
			continue
		}
		text, size, err := unescape(raw[i:])
		if err != nil {
			return i
		}
		i += size
		n -= len(text)
	}
	return i
}
