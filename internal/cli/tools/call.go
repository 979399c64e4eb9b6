package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workspace"
	"github.com/runteam/runteam/tool"
)

// maxArguments bounds the arguments of a call, in bytes.
const maxArguments = 1 << 20

// readArguments returns the arguments of --args.
func (t *toolFlags) readArguments(ctx context.Context, con *console.Console) (string, error) {
	path, isFile := strings.CutPrefix(t.arguments, "@")
	if t.arguments == "-" {
		path, isFile = "-", true
	}
	if !isFile {
		return cmp.Or(t.arguments, "{}"), nil
	}
	in, err := files.OpenInput(ctx, con.Stdin, con.WorkDir, path)
	if err != nil {
		return "", exit.FileError("--args "+t.arguments, err)
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxArguments+1))
	switch {
	case err != nil:
		return "", exit.FileError("--args "+t.arguments, err)
	case len(text) > maxArguments:
		return "", exit.Usagef("--args %s: larger than %d KiB", t.arguments, maxArguments>>10)
	}
	return string(text), nil
}

// A callDocument is the result of a call, in JSON.
type callDocument struct {
	Tool    string          `json:"tool"`
	IsError bool            `json:"isError"`
	Text    string          `json:"text,omitempty"`
	JSON    json.RawMessage `json:"json,omitempty"`
}

// call makes one call and prints its result.
func call(ctx context.Context, con *console.Console, one specfile.ListedTool, arguments string) error {
	value, err := jsonvalue.Parse(arguments)
	if err != nil {
		return exit.Usagef("--args: %w; write an object, such as '{\"name\": \"value\"}'", err)
	}
	s, err := schema.Parse(string(one.Parameters))
	if err != nil {
		return exit.Errorf(exit.KindRuntime, "tool %s: %w", one.Written, err)
	}
	if err := s.Validate(value); err != nil {
		return exit.Usagef("--args: %s; the schema is %s", schema.Problem(err), terminal.CleanLine(string(one.Parameters)))
	}
	res, err := perform(ctx, one.Tool, json.RawMessage(arguments))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		res = tool.Result{Text: err.Error(), IsError: true}
	}
	doc := callDocument{Tool: one.Written, IsError: res.IsError, Text: res.Text, JSON: res.JSON}
	if err := con.PrintResult(doc, doc.write); err != nil {
		return err
	}
	if doc.IsError {
		return exit.Status(exit.StatusFailed)
	}
	return nil
}

func (d callDocument) write(w io.Writer) {
	if d.IsError {
		fmt.Fprint(w, "error: ")
	}
	if d.Text != "" {
		fmt.Fprintln(w, d.Text)
	}
	if d.JSON != nil {
		fmt.Fprintln(w, string(d.JSON))
	}
}

// perform makes one call, in an empty workspace that is removed afterwards.
func perform(ctx context.Context, t *tool.Tool, arguments json.RawMessage) (tool.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Timeout, tool.DefaultTimeout))
	defer cancel()
	f, err := workspace.Make("", "runteam-")
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Remove() //nolint:errcheck // the result is known
	shared := &tool.Shared{}
	defer shared.Close() //nolint:errcheck // the result is known
	return t.Run(ctx, tool.Call{ID: uuid.NewString(), Arguments: arguments, Workspace: func() (*os.Root, error) { return f.Root, nil }, Shared: shared})
}
