package specfile

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// A toolEntry is an entry of the key tools, or a built-in tool without one.
type toolEntry struct {
	name    string
	fields  *fields           // nil without an entry
	server  *mcp.Server       // nil for a built-in tool
	allowed map[string]*node  // of a server: where each tool of its Allow is written
	tools   []*tool.Tool      // without descriptions and parameters until the server is connected
	values  map[string]string // of the variables in the settings of the server
	wrong   bool              // it has problems, which are reported
	used    bool              // an agent has one of the tools
}

// A Toolbox holds the tools of a spec.
type Toolbox struct {
	file    *File
	list    []*toolEntry // of the key tools, in the order written
	entries map[string]*toolEntry

	refused    map[string]bool // the names in lists of agents that are no tools
	unequipped map[int]bool    // the agents that do not have all tools that they should have
	standard   []*tool.Tool    // the tools for files with their default settings, made at first use
}

// readTools reads the tools of all files, and sets those of each agent.
func (r *reader) readTools() {
	defer func() { r.subject = nil }()
	r.file.Tools = &Toolbox{file: r.file, entries: make(map[string]*toolEntry), refused: make(map[string]bool), unequipped: make(map[int]bool)}
	r.places.tools = r.file.Tools
	for _, y := range r.places.layers {
		for _, item := range y.spec.own("tools").parts() {
			r.subject = func() string { return "tool " + quote(item.key) + ": " }
			if r.file.Tools.entries[item.key] != nil {
				r.badKey(item, ErrInvalid, "keep one of them", "another file has it too")
				continue
			}
			e := r.readTool(item)
			r.file.Tools.list = append(r.file.Tools.list, e)
			r.file.Tools.entries[item.key] = e
		}
	}
	r.implyTools()
	for _, e := range r.file.Tools.list {
		r.subject = func() string { return "tool " + quote(e.name) + ": " }
		if !e.wrong {
			e.wrong = !r.makeTools(e)
		}
	}
	r.checkSharedURLs()
	for i := range r.file.Agents {
		if r.file.Agents[i].HasModel() { // others call none
			r.equip(i)
		}
	}
	r.subject = nil
	for _, e := range r.file.Tools.list {
		if !e.used && !e.wrong && len(r.file.Agents) > 0 && !r.o.Unlisted {
			r.warnKey(e.fields.node, "name it under tools of an agent, or remove it", "tool %s: no agent has it", quote(e.name))
		}
	}
}

// builtIns returns the names of the built-in tools, which are not to be changed.
var builtIns = sync.OnceValue(func() []string { return append(slices.Clone(presetNames("full")), httpGet) })

// httpGet is the built-in tool that needs origins.
const httpGet = "http_get"

// presetNames returns the names of the tools of a preset, which are not to be changed.
func presetNames(preset string) []string { return toolsOfPresets()[preset] }

var toolsOfPresets = sync.OnceValue(func() map[string][]string {
	all := make(map[string][]string)
	for _, preset := range []string{"readonly", "readwrite", "full"} {
		list, err := builtin.Files(preset, tool.Options{})
		if err != nil {
			panic(err) // the table of keys lists the presets
		}
		for _, t := range list {
			all[preset] = append(all[preset], t.Name)
		}
	}
	return all
})

// readTool reads one entry of tools.
func (r *reader) readTool(item *node) *toolEntry {
	before := r.problems
	e := &toolEntry{name: item.key, fields: r.fields(item, "tool", nil)}
	if e.fields == nil {
		e.wrong = true
		return e
	}
	known, kind := builtIns(), "a tool that works on the workspace"
	server := e.fields.own("mcp")
	switch {
	case slices.Contains(known, e.name) && server != nil:
		r.badKey(server, ErrInvalid, "give the server another name", "mcp: %s is a built-in tool", quote(e.name))
	case e.name == httpGet:
		kind = httpGet
	case e.name == "bash":
		kind = "a command"
	case slices.Contains(known, e.name):
	case server != nil:
		kind = "an MCP server"
		e.server, e.allowed = r.readServer(e, server), make(map[string]*node)
	case item.get("mcp") == nil:
		r.badKey(item, ErrUnknown, nearHint(e.name, "write mcp: {command: …} or mcp: {url: …}; built-in tools are "+strings.Join(known, ", "), known...), "it is neither a built-in tool nor an MCP server")
	}
	if r.problems == before {
		e.fields.refuse(r.report, idleToolKeys[kind], "no effect on "+kind, "remove it")
	}
	e.wrong = r.problems > before
	return e
}

// idleToolKeys are the keys of an entry that have no effect, by kind of tool.
var idleToolKeys = map[string][]string{
	"an MCP server":                      {"origins", "readable"},
	httpGet:                              {"allow", "effect", "stateless", "shared", "readable"},
	"a tool that works on the workspace": {"allow", "effect", "repeatable", "stateless", "shared", "origins", "readable"},
	"a command":                          {"allow", "effect", "repeatable", "stateless", "shared", "origins"},
}

// options reads what an entry says about its tools; o has the defaults.
func (f *fields) toolOptions(o tool.Options) tool.Options {
	members{
		{"accepts", &o.Accepts}, {"produces", &o.Produces}, {"effect", &o.Effect}, {"repeatable", &o.Repeatable}, {"approve", &o.Approve}, {"timeoutMs", &o.Timeout}, {"maxOutputBytes", &o.MaxOutput},
	}.read(f.own)
	return o
}

// readServer reads an MCP server.
func (r *reader) readServer(e *toolEntry, n *node) *mcp.Server {
	f := r.part(n, "mcp", "mcp: ")
	if f == nil {
		return nil
	}
	command, address := f.own("command"), f.own("url")
	if (command == nil) == (address == nil) {
		r.bad(n, "write command for a program, or url for a server that runs elsewhere", "mcp: it needs either command or url")
		return nil
	}
	r.checkTransport(f, address != nil)
	s := &mcp.Server{Name: e.name, Options: e.fields.toolOptions(tool.Options{})}
	members{{"stateless", &s.Stateless}, {"shared", &s.SharedSession}}.read(e.fields.own)
	r.checkState(e.fields, s, address != nil)
	r.inUse = !r.o.Offline || r.o.CallsTools
	defer func() { r.inUse = false }()
	if address != nil {
		r.readServerURL(e, f, s)
	} else {
		r.readServerProgram(e, f, s)
	}
	return s
}

// checkTransport reports settings of a server that do not belong to its transport.
func (r *reader) checkTransport(f *fields, remote bool) {
	wrong, word, needs := []string{"headers"}, "stdio", "url"
	if remote {
		wrong, word, needs = []string{"args", "env", "cwd", "confine", "reason", "readable"}, "http", "command"
	}
	for _, name := range wrong {
		if n := f.own(name); n != nil {
			r.badKey(n, ErrInvalid, "remove it", "mcp: %s: only with %s", name, needs)
		}
	}
	if n := f.own("type"); n != nil && n.text != word {
		r.bad(n, "write "+word+", or leave type out", "mcp: type: %s does not fit the other keys", quote(n.text))
	}
}

// checkState reports what package mcp refuses about the state of a server.
func (r *reader) checkState(f *fields, s *mcp.Server, remote bool) {
	if n := f.own("stateless"); s.Stateless && (remote || s.SharedSession) {
		r.bad(n, "remove stateless", "stateless: not with url or shared, where tasks share what the server keeps")
	}
	if o := &s.Options; !s.Stateless && o.Level() < o.Accepts {
		r.bad(f.own("produces"), "write produces: "+o.Accepts.String()+", or stateless: true for a program whose sessions share nothing",
			"produces: %v is below accepts (%v), and the server may return to one task what another one passed to it", o.Level(), o.Accepts)
	}
}

// toCommand begins the destination of a variable that a program of the spec gets.
const toCommand = "command:"

// readServerProgram reads the settings of a server that is a program.
func (r *reader) readServerProgram(e *toolEntry, f *fields, s *mcp.Server) {
	command := f.own("command")
	x, ok := r.expand("mcp: command", command)
	if !ok {
		return
	}
	to, origin := toCommand+x.written, toCommand+x.value
	use := func(key string, n *node) string {
		x, _ := r.expand("mcp: "+key, n)
		e.conceal(x)
		return r.send("mcp: "+key, nil, n, x, to, origin)
	}
	if s.Command = strings.TrimSpace(use("command", command)); s.Command == "" {
		r.bad(command, "set the variable to the program of the server", "mcp: command: it is empty")
	}
	if strings.ContainsAny(s.Command, `/\`) {
		s.Command = fromFolder(r.o.Dir, command.src.dir, s.Command)
	}
	for _, n := range f.own("args").parts() {
		s.Args = append(s.Args, use("args", n))
	}
	for _, n := range f.own("env").parts() {
		if s.Env == nil {
			s.Env = make(map[string]string)
		}
		s.Env[n.key] = use("env", n)
		r.warnLiteral("mcp: env", n)
	}
	r.readConfinement(f, s)
	cwd := f.own("cwd")
	switch {
	case cwd != nil && s.Confine != nil && *s.Confine:
		r.bad(cwd, "remove it, or write confine: false", "mcp: cwd: a confined program runs in a folder of its own")
	case cwd != nil:
		s.Dir = fromFolder(r.o.Dir, cwd.src.dir, use("cwd", cwd))
	case s.Confine == nil || !*s.Confine:
		s.Dir = string(r.o.Dir)
	}
}

// readConfinement reads whether the program of a server is confined, and why it is not.
func (r *reader) readConfinement(f *fields, s *mcp.Server) {
	confine, reason, readable := f.own("confine"), f.own("reason"), f.own("readable")
	if confine != nil {
		s.Confine = new(confine.text == "true")
	}
	s.Reason = text(reason)
	confined := s.Confine != nil && *s.Confine
	switch {
	case reason != nil && (confine == nil || confined):
		r.bad(reason, "write confine: false with it, or remove it", "mcp: reason: it is only for confine: false")
	case readable != nil && !confined:
		r.badKey(readable, ErrInvalid, "remove it, or write confine: true", "mcp: readable: a program that is not confined can read every file")
	case confined && process.Missing() != "":
		r.bad(confine, `write confine: false, with reason: "WHY" if a person approves something`, "mcp: confine: this system cannot confine programs: it lacks %s", process.Missing())
	default:
		s.Options.Readable = readablePaths("mcp: readable", readable, r.o.Dir, r.bad)
	}
}

// fromFolder returns the absolute form of a path that starts from a folder.
func fromFolder(here workdir.Dir, dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	path = filepath.Join(dir, path)
	if abs, err := here.Abs(path); err == nil {
		return abs
	}
	return path
}

// readServerURL reads the settings of a server with a URL.
func (r *reader) readServerURL(e *toolEntry, f *fields, s *mcp.Server) {
	n := f.own("url")
	x, ok := r.expand("mcp: url", n)
	if !ok {
		return
	}
	value := strings.TrimSpace(x.value)
	origin, err := originOf(value)
	u, parseErr := url.Parse(value)
	switch unset := !r.inUse && strings.Contains(value, opening); {
	case unset:
	case err != nil || parseErr != nil:
		r.bad(n, "write scheme, host and path, such as https://mcp.example.com/mcp", "mcp: url: it is not the URL of a server")
		return
	case u.User != nil:
		r.bad(n, "write it in headers, such as Authorization", "mcp: url: it has a user or a password")
		return
	}
	to := origin
	if part := originPart(strings.TrimSpace(x.written)); strings.Contains(part, opening) {
		to = part
	}
	e.conceal(x)
	s.URL = strings.TrimSpace(r.send("mcp: url", nil, n, x, to, origin))
	for _, header := range f.own("headers").parts() {
		if s.Headers == nil {
			s.Headers = make(map[string]string)
		}
		x, _ := r.expand("mcp: headers", header)
		e.conceal(x)
		s.Headers[header.key] = r.send("mcp: headers", nil, header, x, to, origin)
		r.warnLiteral("mcp: headers", header)
	}
}

// conceal records the values that an expansion read from the environment.
func (e *toolEntry) conceal(x expansion) {
	if e.values == nil {
		e.values = make(map[string]string)
	}
	maps.Copy(e.values, x.values)
}

// makeTools makes the tools of an entry, without connecting to a server, and returns whether
// that succeeded.
func (r *reader) makeTools(e *toolEntry) bool {
	before := r.problems
	if e.server == nil {
		e.tools = r.readBuiltIn(e.name, e.fields, e.fields.node)
		return r.problems == before
	}
	if !r.allowTools(e) {
		return false
	}
	list, err := e.server.Declared()
	if err != nil {
		r.badKey(e.fields.node, ErrInvalid, "", "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("mcp server %q: ", e.name)))
		return false
	}
	e.tools = list
	return true
}

// allowTools sets which tools of a server agents may have, and returns whether there are any.
func (r *reader) allowTools(e *toolEntry) bool {
	s := e.server
	s.Allow = []string{}
	n := e.fields.own("allow")
	for _, item := range n.parts() {
		if e.allowed[item.text] != nil {
			r.bad(item, "remove it", "allow: %s is listed twice", quote(item.text))
			return false
		}
		e.allowed[item.text] = item
		s.Allow = append(s.Allow, item.text)
	}
	if n == nil {
		s.Allow = sortedKeys(e.allowed)
	}
	switch {
	case len(s.Allow) > 0:
		return true
	case r.o.Unlisted:
		s.Allow = nil // all, to list them
		return false
	case n != nil:
		r.bad(n, "name the tools that agents may have; runteam tools shows what the server offers", "allow: it is empty")
	default:
		r.badKey(e.fields.node, ErrInvalid, "write allow: [TOOL]; runteam tools shows what the server offers", "allow: it is missing, and no agent lists %s/TOOL", e.name)
	}
	return false
}

// implyTools notes the tools SERVER/TOOL that agents list, for servers without allow.
func (r *reader) implyTools() {
	for _, f := range r.places.agents {
		for _, item := range f.get("tools").parts() {
			server, name, one := strings.Cut(item.text, "/")
			if e := r.file.Tools.entries[server]; one && e != nil && e.server != nil && e.fields.own("allow") == nil && name != "" {
				e.allowed[name] = cmp.Or(e.allowed[name], item)
			}
		}
	}
}

// readBuiltIn makes a built-in tool with the settings of its entry, which may be nil. It reports
// problems at the entry, or else at a node.
func (r *reader) readBuiltIn(name string, f *fields, at *node) []*tool.Tool {
	if name == httpGet {
		origins := f.own("origins")
		if origins.len() == 0 {
			r.bad(at, "write tools: {http_get: {origins: [https://example.com]}}", "http_get: it needs origins")
			return nil
		}
		t, err := builtin.HTTPGet(textList(origins), f.toolOptions(tool.Options{}))
		if err != nil {
			r.bad(origins, "", "origins: %s", strings.TrimPrefix(err.Error(), "http_get: "))
			return nil
		}
		return []*tool.Tool{t}
	}
	preset, defaults := "readwrite", tool.Options{Accepts: label.Secret, Produces: new(label.Public)}
	if name == "bash" {
		preset = "full"
		if missing := process.Missing(); missing != "" {
			defaults = tool.Options{}
			r.warn(at, "leave bash out, or run on Linux with Landlock and user namespaces", "bash: its commands are not confined, since this system lacks %s", missing)
		}
	}
	o := f.toolOptions(defaults)
	list := r.file.Tools.standard
	if asUsual := f == nil && preset == "readwrite"; list == nil || !asUsual {
		o.Readable = readablePaths("readable", f.own("readable"), r.o.Dir, r.bad)
		var err error
		if list, err = builtin.Files(preset, o); err != nil {
			r.bad(at, "", "%v", err)
			return nil
		}
		if asUsual {
			r.file.Tools.standard = list
		}
	}
	t := list[slices.IndexFunc(list, func(t *tool.Tool) bool { return t.Name == name })]
	if o.Timeout > 0 {
		t.Timeout = o.Timeout // bash has a bound of its own
	}
	return []*tool.Tool{t}
}

// checkSharedURLs reports entries for one URL, which share what the server keeps, if one could
// return what another one accepts at a lower label.
func (r *reader) checkSharedURLs() {
	for _, e := range r.file.Tools.list {
		for _, other := range r.file.Tools.list {
			if e == other || e.wrong || other.wrong || e.server == nil || other.server == nil || e.server.URL == "" || e.server.URL != other.server.URL {
				continue
			}
			if in, out := other.server.Options.Accepts, e.server.Options.Level(); in > out {
				r.subject = func() string { return "tool " + quote(e.name) + ": " }
				r.badKey(e.fields.node, ErrInvalid, "write produces: "+in.String(), "it produces %v, and %s, which has the same url, accepts %v", out, quote(other.name), in)
			}
		}
	}
}
