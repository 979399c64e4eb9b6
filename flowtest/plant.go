package flowtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

const coordinator = "coordinator"

// PlantInput plants a canary in a named input and returns it. Without a path, the canary
// becomes the first line of the text. An input that is one JSON value needs a path, an
// RFC 6901 pointer such as /lines/0/note, and the canary replaces the text there. Every
// path begins with a slash.
//
// [Flow.Run] reports a canary that cannot be planted. The spec must grant the input to a
// task; use [Flow.Never] for what a rule or a need then withholds.
func (f *Flow) PlantInput(name string, path ...task.Path) Canary {
	p := &canary{input: name}
	switch len(path) {
	case 0:
	case 1:
		f.setPath(p, path[0])
	default:
		f.misuse("input %q: a canary has one path, not %d; plant one canary for each", name, len(path))
	}
	inputs := slices.Clone(f.file.Run.Inputs)
	at := slices.IndexFunc(inputs, func(in engine.Input) bool { return strings.EqualFold(in.Name, name) })
	if at < 0 {
		f.misuse("unknown input %q", name)
		return f.plant(p)
	}
	c := f.plant(p)
	text, err := p.into(inputs[at].Text)
	if err != nil {
		f.misuse("input %q: %v", name, err)
	}
	inputs[at].Text = text
	if inputs[at].Folder != nil && err == nil {
		tree, err := filetree.Parse(text)
		if err != nil {
			f.misuse("input %q: name a file of the folder, such as /src/main.go: %v", name, err)
			return c
		}
		inputs[at].Folder = filetree.FolderOf(tree, nil)
		inputs[at].Text = filetree.TextOf(inputs[at].Folder)
	}
	f.file.Run.Inputs = inputs
	return c
}

// PlantResult plants a canary in the result of a task, named by title, key or
// id, and returns it. The path is its place in the structured result, an RFC 6901 pointer
// such as /facts/0/name, with a number or * for an element of an array. The schema of the
// task must allow a text of 22 letters there; a task without a schema answers with a JSON
// value in its text. Every path begins with a slash; the path "" means the text itself.
//
// [Flow.Run] reports a canary that cannot be planted.
func (f *Flow) PlantResult(name string, path task.Path) Canary {
	return f.plant(f.result(name, path))
}

// PlantText is like PlantResult with a text of yours instead of a word made up for the test:
// real data that an agent of yours writes, or that redaction must find. The text has at
// least 6 bytes and must not occur anywhere else in the spec. Short numbers are not
// suitable, because they also occur in times and IDs.
func (f *Flow) PlantText(name string, path task.Path, text string) Canary {
	if len(text) < 6 {
		f.misuse("the result of %q: a text of %d bytes occurs everywhere; plant at least 6 bytes", name, len(text))
	}
	p := f.result(name, path)
	p.word = text
	return f.plant(p)
}

// PlantHandoff plants a canary in the handoffs that the agent of a task sends while it works on the task, and
// returns it. The task is named by title, key or id. A stand-in sends one handoff to each agent to which an
// edge leads. The canary is not in the result of the task, so that [Flow.Never] and [Flow.Reaches] are about
// what an edge carries.
//
// [Flow.Run] reports a canary that cannot be planted, since no edge leads from the agent to one with a task.
func (f *Flow) PlantHandoff(name string) Canary {
	return f.plant(&canary{task: name, handoff: true})
}

func (f *Flow) result(name string, path task.Path) *canary {
	p := &canary{task: name}
	f.setPath(p, path)
	return p
}

// setPath sets the path of a canary.
func (f *Flow) setPath(p *canary, path task.Path) {
	where := p.where()
	p.path, p.keys = path, pick.Tokens(path)
	var err error
	if p.input == "" { // the path in an input is checked against its value
		err = pick.CheckAllow(anyElement(path))
	}
	switch {
	case path != "" && path[0] != '/':
		f.misuse("%s: %q is not a path, because it lacks the first slash; write %q", where, path, "/"+path)
	case strings.HasSuffix(string(path), "/**"):
		f.misuse("%s: %q is not the path of one value; write one such as /facts/0/name", where, path)
	case err != nil:
		f.misuse("%s: %v", where, err)
	}
}

// anyElement returns a path with * for each number.
func anyElement(path task.Path) task.Path {
	parts := strings.Split(string(path), "/")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "*"
		}
	}
	return task.Path(strings.Join(parts, "/"))
}

func (f *Flow) plant(p *canary) Canary {
	if p.word == "" {
		place := fmt.Sprintf("%s\x00%d\x00%s\x00%s", p.input, p.message, p.task, p.path)
		if p.handoff {
			place += "\x00handoff"
		}
		p.word = word(place)
	}
	p.forms = forms(p.word)
	if !slices.ContainsFunc(f.canaries, func(q *canary) bool {
		return q.input == p.input && q.message == p.message && q.task == p.task && q.path == p.path && q.handoff == p.handoff
	}) {
		f.canaries = append(f.canaries, p)
	} else {
		f.misuse("%v is planted twice", p)
	}
	return Canary{p}
}

func (f *Flow) misuse(format string, args ...any) {
	f.misuses = append(f.misuses, fmt.Sprintf(format, args...))
}

// into returns the text of an input with the canary in it.
func (p *canary) into(text string) (string, error) {
	value, err := jsonvalue.Decode(text)
	_, scalar := value.(string)
	switch {
	case p.path == "" && (err != nil || scalar):
		return p.word + "\n" + text, nil
	case p.path == "":
		return text, fmt.Errorf("it is one JSON value; give the path of a text in it, which the canary replaces")
	case err != nil:
		return text, fmt.Errorf("it is not a JSON value, so it has no path %s; remove the path", p.path)
	}
	var steps []string
	if value, err = replaced(value, p.keys, p.word, &steps); err != nil {
		return text, fmt.Errorf("%s: %w", p.path, err)
	}
	p.steps = steps
	out, err := jsonvalue.Encode(value)
	return out.Canonical(), err
}

// replaced returns a decoded JSON value with another text at a path, and the
// path with * for elements of arrays.
func replaced(v any, path []string, text string, steps *[]string) (any, error) {
	if len(path) == 0 {
		if _, ok := v.(string); !ok {
			return v, fmt.Errorf("the value there is not a text, so the canary cannot replace it")
		}
		return text, nil
	}
	switch v := v.(type) {
	case map[string]any:
		member, ok := v[path[0]]
		if !ok {
			break
		}
		*steps = append(*steps, path[0])
		next, err := replaced(member, path[1:], text, steps)
		v[path[0]] = next
		return v, err
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(v) {
			break
		}
		*steps = append(*steps, "*")
		next, err := replaced(v[i], path[1:], text, steps)
		v[i] = next
		return v, err
	}
	return v, fmt.Errorf("the value has nothing at %q", path[0])
}
