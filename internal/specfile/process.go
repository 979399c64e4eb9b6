package specfile

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/username"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/person"
)

// modelKeys are the keys of an agent that are about calls of models and tools, which a command
// does not make.
var modelKeys = append(names(placesByName["request"]),
	"model", "provider", "baseURL", "apiKey", "headers", "maxTurns", "maxTokenBudget", "maxCostBudget", "callTimeoutMs", "fallback",
	"tools", "toolPreset", "disallowedTools", "allowUntrusted", "textToolCalls", "loopDetection", "spawn")

// backends are the kinds of backends that a file can name.
var backends = []string{"process", "person"}

// checkBackend reports a kind of backend that does not exist.
func checkBackend(r *report, key string, n *node) {
	if slices.Contains(backends, n.text) {
		return
	}
	hint := "write process or person, or leave backend out for a model"
	if meant := meantWord(n.text, backends); meant != "" {
		hint = "did you mean " + meant + "? known are process, person; leave backend out for a model"
	}
	r.bad(n, hint, "%s: unknown word %s", key, quote(n.text))
}

// readBackend reads the backend of an agent: a command, or a person and who can answer for them. Without one,
// the agent is a model.
func (r *reader) readBackend(f *fields) (a Agent) {
	n := f.own("backend")
	if n == nil {
		return a
	}
	b := r.part(n, "backend", "backend: ")
	kind := b.own("kind")
	if kind == nil {
		return a // reported; which keys belong here is not known
	}
	isPerson := kind.text == "person"
	refused, why := modelKeys, "not for a command, which calls no model and no tool"
	if isPerson {
		refused, why = append(slices.Clone(modelKeys), "systemPrompt", "timeoutMs"), "not for a person; the descriptions of tasks say what to do, and timeoutMs of a task bounds the wait"
	}
	f.refuse(r.report, refused, why, "remove it, or the backend")
	if isPerson {
		for _, other := range n.parts() {
			if other.key != "kind" && other.key != "users" {
				r.badKey(other, ErrInvalid, "remove it", "backend.%s: not for a person", other.key)
			}
		}
		for _, item := range b.own("users").parts() {
			if name, err := username.Parse(item.text); err == nil { // else it was reported
				a.Users = append(a.Users, name)
			}
		}
		a.Person = true
		return a
	}
	if n := b.own("users"); n != nil {
		r.badKey(n, ErrInvalid, "remove it", "backend.users: only for a person")
	}
	a.Process = r.readProcess(f, n, b)
	return a
}

// checkUsers reports what is no name of a person, and names that occur twice.
func checkUsers(r *report, key string, n *node) {
	if !r.areTexts(key, n) {
		return
	}
	seen := map[string]bool{}
	for _, item := range n.parts() {
		name, err := username.Parse(item.text)
		switch {
		case err != nil:
			r.bad(item, "write the name as the server authenticates it, such as ann@example.org", "%s: %s is no name of a person: %v", key, quote(item.text), err)
		case seen[name]:
			r.bad(item, "name each person once", "%s: %s is there twice", key, quote(item.text))
		}
		seen[name] = true
	}
}

// readProcess reads the command of an agent.
func (r *reader) readProcess(f *fields, n *node, b *fields) *agent.Process {
	if b.own("command") == nil && !misspelled(n, "command", placesByName["backend"]) {
		r.bad(n, "write command: PROGRAM", "backend: command: it is missing")
	}
	p := &agent.Process{Timeout: duration(f.get("timeoutMs")), Input: text(b.own("input")), Repeatable: text(b.own("repeatable")) == "true", Secrets: map[string]string{}}
	if c := b.own("confine"); c != nil {
		p.Confine = new(c.text == "true")
	}
	if n := b.own("readable"); n != nil && p.Confine != nil && !*p.Confine {
		r.badKey(n, ErrInvalid, "remove it, or confine the command", "backend.readable: a command that is not confined can read every file")
	} else {
		p.Readable = readablePaths("backend.readable", n, r.o.Dir, r.bad)
	}
	r.inUse = !r.o.Offline || r.o.CallsTools
	defer func() { r.inUse = false }()
	r.commandLine(b, p)
	return p
}

// commandLine reads what to run. The values of variables are secrets of the command.
func (r *reader) commandLine(b *fields, p *agent.Process) {
	command := b.own("command")
	x, ok := r.expand("backend.command", command)
	if command == nil || !ok {
		return
	}
	to, origin := toCommand+x.written, toCommand+x.value
	use := func(key string, n *node) string {
		x, _ := r.expand(key, n)
		maps.Copy(p.Secrets, x.values)
		return r.send(key, nil, n, x, to, origin)
	}
	p.Command = strings.TrimSpace(use("backend.command", command))
	if hasSlash(p.Command) && !filepath.IsAbs(p.Command) {
		if p.Command = r.o.Dir.Path(filepath.Join(command.src.dir, p.Command)); !hasSlash(p.Command) {
			p.Command = "." + string(filepath.Separator) + p.Command // and not one in PATH
		}
	}
	for _, n := range b.own("args").parts() {
		p.Args = append(p.Args, use("backend.args", n))
	}
	for _, n := range b.own("env").parts() {
		if p.Env == nil {
			p.Env = map[string]string{}
		}
		p.Env[n.key] = use("backend.env", n)
		r.warnLiteral("backend.env", n)
	}
	if n := b.own("cwd"); n != nil {
		p.Dir = fromFolder(r.o.Dir, n.src.dir, use("backend.cwd", n))
		if p.Confine == nil || *p.Confine {
			r.bad(n, "remove it, or write confine: false", "backend.cwd: a confined command runs in its workspace")
		}
	}
}

// readablePaths reads the paths that a confined command may read, relative to the folder of their file.
func readablePaths(key string, n *node, here workdir.Dir, bad func(n *node, hint, format string, args ...any)) (paths []string) {
	for _, item := range n.parts() {
		path := fromFolder(here, item.src.dir, item.text)
		if err, ok := errors.AsType[*process.ReadableError](process.CheckReadable(path)); ok {
			bad(item, err.Hint, "%s: %s: %s", key, quote(item.text), err.Problem)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}

// hasSlash reports whether a path has a separator.
func hasSlash(path string) bool {
	return strings.ContainsRune(path, '/') || strings.ContainsRune(path, filepath.Separator)
}

// HasModel reports whether the agent is a model: neither a command nor a person.
func (a *Agent) HasModel() bool { return a.Process == nil && !a.Person }

// version returns a digest of everything on which the agent's answers depend besides the prompt.
func (a *Agent) version() string {
	if a.Person {
		return (*person.Agent)(nil).Version()
	}
	if a.Process != nil {
		return a.Process.Version()
	}
	return a.Connection.version()
}
