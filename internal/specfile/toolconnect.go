package specfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/mask"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/tool"
)

// ErrServer reports an MCP server that cannot be used.
var ErrServer = errors.New("mcp server")

// maxConnecting bounds how many servers are connected to at the same time.
const maxConnecting = 8

// Connect connects to each MCP server of which an agent has a tool, and gives these tools
// their definitions; without it their calls fail. It must be called before [File.Build], and
// not concurrently with other methods. It starts no program that must be confined and is not.
// The error is an [*Error].
func (b *Toolbox) Connect(ctx context.Context) error {
	cfg := b.file.Config
	for i := range b.file.Agents {
		cfg.Agents = append(cfg.Agents, b.file.Agents[i].Member)
	}
	if b.file.Coordinator != nil {
		cfg.Coordinator = &b.file.Coordinator.Coordinator
	}
	if found := cfg.UnconfinedPrograms(b.file.Run.StrictTools); len(found) > 0 {
		return b.file.Locate(found)
	}
	var used []*toolEntry
	for _, e := range b.list {
		if e.used && e.server != nil {
			used = append(used, e)
		}
	}
	return connectAll(ctx, used, b.file.Config.Logger)
}

// connect gets the definitions of the tools.
func (e *toolEntry) connect(ctx context.Context, log *slog.Logger) error {
	e.server.Secrets, e.server.Logger = e.values, log
	list, err := e.server.Tools(ctx)
	if err != nil {
		return err
	}
	if e.wrong { // it has no allow: these tools are only listed
		e.tools = e.tools[:0]
		for _, t := range list {
			e.tools = append(e.tools, e.concealed(t))
		}
		return nil
	}
	for i, t := range e.tools {
		k := slices.IndexFunc(list, func(other *tool.Tool) bool { return other.Name == t.Name })
		if k < 0 {
			return &mcp.MissingToolsError{Server: e.name, Missing: e.server.Allow[i : i+1]}
		}
		*t = *e.concealed(list[k])
	}
	return nil
}

// findings says where the settings are that an error of a server is about.
func (e *toolEntry) findings(err error) (found []finding) {
	if err == nil {
		return nil
	}
	if missing, ok := errors.AsType[*mcp.MissingToolsError](err); ok {
		offered := make([]string, len(missing.Offered))
		for i, name := range missing.Offered {
			offered[i] = concealValues(name, e.values)
		}
		for _, name := range missing.Missing {
			at := e.allowed[name]
			hint := nearHint(name, "it offers "+cut(strings.Join(offered, ", "), 400), offered...)
			found = append(found, finding{at.src, at.at, Problem{Message: fmt.Sprintf("tool %s: the server has no tool %s", quote(e.name), quote(name)), Hint: hint, Err: ErrUnknown}})
		}
		return found
	}
	if several, ok := errors.AsType[*mcp.AmbiguousToolError](err); ok {
		at := e.allowed[several.Entry]
		names := concealValues(strings.Join(several.Tools, ", "), e.values)
		return []finding{{at.src, at.at, Problem{Message: fmt.Sprintf("tool %s: the server has no tool %s, and several that it may be", quote(e.name), quote(several.Entry)), Hint: "write one of " + cut(names, 400), Err: ErrUnknown}}}
	}
	text := strings.TrimPrefix(concealValues(err.Error(), e.values), fmt.Sprintf("mcp server %q: ", e.name))
	n := e.fields.node
	return []finding{{n.src, n.keyAt, Problem{Message: fmt.Sprintf("tool %s: %s", quote(e.name), text), Hint: e.hint(err), Err: fmt.Errorf("%w: %w", ErrServer, err)}}}
}

// hint says what to do about a server that cannot be started or does not answer.
func (e *toolEntry) hint(err error) string {
	switch {
	case e.server.URL != "":
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "correct command: with a slash, it is a path from the folder of the spec"
	case errors.Is(err, exec.ErrNotFound):
		return "install the program, or correct command"
	}
	if !errors.Is(err, mcp.ErrNoSession) {
		return ""
	}
	hint := "run the command in a terminal: it must wait for MCP messages, and write nothing else to its standard output"
	if limit := e.server.Options.Timeout; limit > 0 {
		hint += fmt.Sprintf("; timeoutMs (%d) bounds its start too", limit.Milliseconds())
	}
	return hint
}

// concealed returns a tool whose definition, results and errors have ${NAME} in place of the
// values of variables in the settings of its server.
func (e *toolEntry) concealed(t *tool.Tool) *tool.Tool {
	if len(e.values) == 0 {
		return t
	}
	secrets := mask.New(e.values)
	hide := func(text string) string { return concealValues(secrets.Text(text), e.values) }
	c := *t
	c.Description, c.Parameters = hide(t.Description), json.RawMessage(hide(string(t.Parameters)))
	c.Run = func(ctx context.Context, call tool.Call) (tool.Result, error) {
		res, err := t.Run(ctx, call)
		if res.Text = hide(res.Text); len(res.JSON) > 0 {
			if res.JSON = json.RawMessage(hide(string(res.JSON))); !json.Valid(res.JSON) {
				return tool.Result{}, errors.New("structured content: the value of a variable is part of a number")
			}
		}
		if err != nil && hide(err.Error()) != err.Error() {
			err = &concealedError{hide(err.Error()), err}
		}
		return res, err
	}
	return &c
}

// A concealedError replaces the text of an error.
type concealedError struct {
	text string
	err  error
}

func (e *concealedError) Error() string { return e.text }

// Is reports whether the error says that the call may have taken effect. Nothing else of it is
// passed on.
func (e *concealedError) Is(target error) bool {
	return target == tool.ErrUncertain && errors.Is(e.err, target)
}

// Close ends the sessions that tasks shared. Calls after it fail.
func (b *Toolbox) Close() error {
	var errs []error
	for _, e := range b.list {
		if e.server != nil {
			errs = append(errs, e.server.Close())
		}
	}
	return errors.Join(errs...)
}

// A ToolDefinition is what a server says about a tool that an agent has. Answers of the agent
// depend on it.
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Definitions returns the definitions of the servers' tools that agents have, by name.
func (b *Toolbox) Definitions() (all []ToolDefinition) {
	for _, e := range b.list {
		if e.server == nil || !e.used {
			continue
		}
		for _, t := range e.tools {
			all = append(all, ToolDefinition{t.Name, t.Description, t.Parameters})
		}
	}
	slices.SortFunc(all, func(a, b ToolDefinition) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Restore gives the servers' tools the definitions that they had, without connecting to
// a server; their calls fail.
func (b *Toolbox) Restore(all []ToolDefinition) {
	for _, e := range b.list {
		for _, t := range e.tools {
			if i := slices.IndexFunc(all, func(d ToolDefinition) bool { return d.Name == t.Name }); i >= 0 && e.server != nil {
				t.Description, t.Parameters = all[i].Description, all[i].Parameters
			}
		}
	}
}

// Programs returns the commands of the servers that [Toolbox.Connect] starts, with ${NAME}
// for values of the environment.
func (b *Toolbox) Programs() (all []string) {
	for _, e := range b.list {
		if e.server != nil && e.used && e.server.Command != "" {
			all = append(all, strings.TrimSpace(e.fields.own("mcp").get("command").text))
		}
	}
	return all
}
