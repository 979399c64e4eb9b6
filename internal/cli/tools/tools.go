// Package tools is the command tools: it lists the tools of a spec, and calls one of them.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// toolFlags are the arguments and flags of tools.
type toolFlags struct {
	source.SpecFlags
	schema    bool   // show parameters as text too
	call      string // the tool to call
	arguments string
}

// Command returns the command tools.
func Command(con *console.Console) *cobra.Command {
	t := &toolFlags{}
	cmd := &cobra.Command{
		Use:   "tools [SPEC]",
		Short: "List the tools of a spec and the agents that have them, or call one",
		Long: `tools connects to the MCP servers of a spec, which starts the programs that it
names, and lists each tool: who has it, its labels and effect, and what it does. For
a server without allow it lists what could be allowed.

With --call it makes one call, outside of any run: no gate checks what goes in and
out, nothing is stored, and tools for files get an empty folder that is removed
afterwards. The exit status is 1 if the call fails.`,
		Example: `  runteam tools                                the team.yaml of this folder
  runteam tools team.yaml --schema
  runteam tools team.yaml --call search/web_search --args '{"query": "gate"}'
  runteam tools team.yaml --call search/web_search --args @query.json`,
		Args: t.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd, con, t) },
	}
	f := cmd.Flags()
	f.BoolVar(&t.schema, "schema", false, "show the JSON Schema of the arguments of each tool, as JSON output always does")
	f.StringVar(&t.call, "call", "", "call the tool `NAME`")
	f.StringVar(&t.arguments, "args", "", "with --call: the arguments as `JSON`; @FILE reads a file, - standard input (default: {})")
	flags.Complete(cmd, "call", nil)
	flags.Complete(cmd, "args", nil)
	t.AddTo(cmd)
	t.AddMergeFlagsTo(cmd)
	return cmd
}

func run(cmd *cobra.Command, con *console.Console, t *toolFlags) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("args") && !changed("call"):
		return exit.Usagef("--args needs --call")
	case t.schema && changed("call"):
		return exit.Usagef("--schema lists tools: leave --call out")
	case t.arguments == "-" && t.Path == "-":
		return exit.Usagef("standard input can be read only once: leave it to one of SPEC and --args")
	}
	ctx := cmd.Context()
	t.NoCalls, t.CallsTools, t.AnyAllow = true, true, true
	file, err := t.Load(ctx, con)
	if err != nil {
		return err
	}
	defer file.Tools.Close() //nolint:errcheck // nothing depends on it
	con.Warn(file.Warnings)
	file.Config.Logger = con.Log
	all, err := file.Tools.List(ctx, t.call)
	if err != nil {
		return connect.ServerError(ctx, err)
	}
	if changed("call") {
		return callTool(ctx, con, t, file, all)
	}
	return list(con, t, all)
}

// A listing is the output of tools, in JSON.
type listing struct {
	Tools []toolDocument `json:"tools"`
}

// A toolDocument is a tool in JSON.
type toolDocument struct {
	plan.PlannedTool
	Written     string          `json:"written"` // its name in the spec
	Allowed     bool            `json:"allowed"` // false if its server has no allow
	Agents      []string        `json:"agents"`
	Trusted     []string        `json:"allowUntrusted,omitempty"` // agents that may call it from untrusted context
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func list(con *console.Console, t *toolFlags, all []specfile.ListedTool) error {
	doc := listing{Tools: []toolDocument{}}
	for _, one := range all {
		doc.Tools = append(doc.Tools, toolDocument{
			PlannedTool: plan.PlannedToolOf(one.Tool, len(one.Trusted) > 0), Written: one.Written, Allowed: one.Allowed,
			Agents: append([]string{}, one.Agents...), Trusted: one.Trusted, Description: one.Description, Parameters: one.Parameters,
		})
	}
	return con.PrintResult(doc, func(w io.Writer) { doc.write(w, t.schema) })
}

// write writes the tools as text.
func (l *listing) write(w io.Writer, schema bool) {
	if len(l.Tools) == 0 {
		fmt.Fprintln(w, "no tools; declare MCP servers under tools, or give agents a toolPreset")
	}
	offered, servers := map[string][]string{}, []string{}
	for i := range l.Tools {
		one := &l.Tools[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		one.write(w, schema)
		if server, name, _ := strings.Cut(one.Written, "/"); !one.Allowed {
			if offered[server] == nil {
				servers = append(servers, server)
			}
			offered[server] = append(offered[server], terminal.CleanLine(name))
		}
	}
	for _, server := range servers {
		fmt.Fprintf(w, "\n%s has no allow, so no agent gets its tools. Allow those that agents need:\n  allow: [%s]\n", server, strings.Join(offered[server], ", "))
	}
}

// write writes one tool as text.
func (d *toolDocument) write(w io.Writer, schema bool) {
	fmt.Fprintln(w, terminal.CleanLine(d.Written))
	rows := format.NewTable(w, "  ")
	if d.Name != d.Written {
		rows.Row("name for models", d.Name)
	}
	agents := cmp.Or(strings.Join(d.Agents, ", "), "none")
	if !d.Allowed {
		agents = "none; the server has no allow"
	}
	rows.Row("agents", agents)
	rows.Row("accepts", d.Accepts.String())
	rows.Row("produces", d.Produces.String()+", joined with the label of the arguments")
	rows.Row("effect", string(d.Effect))
	network := "no"
	if d.Network {
		network = "may reach it"
	}
	rows.Row("network", network)
	if d.Untrusted != "always" {
		rows.Row("from untrusted context", cmp.Or(strings.Join(d.Trusted, ", "), "no agent; name it in allowUntrusted"))
	}
	rows.Flush()
	for line := range strings.Lines(terminal.Clean(d.Description)) {
		fmt.Fprintf(w, "  | %s\n", strings.TrimRight(line, "\n"))
	}
	if schema {
		fmt.Fprintf(w, "  arguments: %s\n", terminal.CleanLine(string(d.Parameters)))
	}
}

// find returns the tool that --call names.
func find(name string, file *specfile.File, all []specfile.ListedTool) (specfile.ListedTool, error) {
	var names []string
	for _, one := range all {
		if one.Written == name || one.Name == name {
			return one, nil
		}
		names = append(names, one.Written)
	}
	switch len(all) {
	case 0:
		hint := ""
		if near, ok := naming.Nearest(name, file.Tools.Names()); ok {
			hint = fmt.Sprintf("did you mean %s? ", near)
		}
		return specfile.ListedTool{}, exit.Usagef("--call %q: there is no such tool; %s%q lists them", name, hint, "runteam tools "+format.ShellPath(file.Path))
	case 1:
		return all[0], nil // the only tool of the server
	}
	return specfile.ListedTool{}, exit.UnknownWord("--call", name, names)
}

func callTool(ctx context.Context, con *console.Console, t *toolFlags, file *specfile.File, all []specfile.ListedTool) error {
	one, err := find(t.call, file, all)
	if err != nil {
		return err
	}
	arguments, err := t.readArguments(ctx, con)
	if err != nil {
		return err
	}
	return call(ctx, con, one, arguments)
}
