package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/event"
)

// The keys of _meta in results.
const (
	metaRun    = "runteam/runId"
	metaStatus = "runteam/status" // of the run, as runs shows it
)

// errCanceled is why a run ends if the client cancels its call.
var errCanceled = errors.New("the MCP client canceled the call")

// handler returns the function that runs the spec of a tool for a call. Whatever is wrong with the
// call or the run is a result with isError, which the model of the client can read.
func (s *server) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
		if !s.begin() {
			return failed("the server ends: nothing was run"), nil
		}
		defer s.runs.Done()
		defer func() {
			if p := recover(); p != nil {
				s.con.PrintError(exit.Bug(p))
				result, err = failed("runteam failed: this is a bug; the log of the server has more"), nil
			}
		}()
		ctx, cancel := s.runContext(ctx)
		defer cancel()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return failed(context.Cause(ctx).Error() + ": nothing was run"), nil
		}
		return s.call(ctx, t, req), nil
	}
}

// runContext returns the context of a run: it ends with the call, and with the server.
func (s *server) runContext(call context.Context) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(call))
	stopCall := context.AfterFunc(call, func() {
		if s.done.Err() == nil {
			end(errCanceled)
		}
	})
	stopServer := context.AfterFunc(s.done, func() { end(context.Cause(s.done)) })
	return ctx, func() {
		stopCall()
		stopServer()
		end(nil)
	}
}

// call runs the spec of a tool.
func (s *server) call(ctx context.Context, t *tool, req *sdk.CallToolRequest) *sdk.CallToolResult {
	launch := s.base
	if err := t.fill(&launch, req.Params.Arguments); err != nil {
		return failed(err.Error() + "; nothing was run")
	}
	p, err := launch.Prepare(ctx, s.con)
	if err != nil {
		return failed(refusal(err))
	}
	defer p.Close()
	n := newNotifier(req)
	outcome, err := p.Run(ctx, progress.Observer{Events: []func(event.Event){n.take}})
	n.stop(ctx)
	if err != nil {
		return failed(refusal(err))
	}
	return result(outcome)
}

// failed returns a result that says what went wrong.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: terminal.Clean(strings.TrimSpace(text))}}}
}

// maxProblems is how many problems of a spec a result lists.
const maxProblems = 20

// refusal describes why nothing was run, without excerpts of the spec.
func refusal(err error) string {
	var b strings.Builder
	problems := exit.Problems(err)
	for i, p := range problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "… and %d more\n", len(problems)-i)
			break
		}
		p.Excerpt = ""
		b.WriteString(p.Error() + "\n")
	}
	if len(problems) == 0 {
		b.WriteString(err.Error())
	}
	return strings.TrimSpace(b.String()) + "; nothing was run"
}

// result returns the result of a call whose run ended: the answer, and if the run did not succeed,
// why and what to do. Both are in the form that the user of the run may see.
func result(o *run.Outcome) *sdk.CallToolResult {
	r := &sdk.CallToolResult{
		Meta:    sdk.Meta{metaRun: o.Result.RunID, metaStatus: string(o.Result.Status)},
		Content: []sdk.Content{},
	}
	if o.Problem != "" {
		failure := failed(o.Problem)
		r.IsError, r.Content = true, failure.Content
	}
	if text := o.Answer(); text != "" {
		if r.IsError {
			text = "Completed results:\n\n" + text
		}
		r.Content = append(r.Content, &sdk.TextContent{Text: text})
	}
	if !r.IsError {
		if structured := structuredAnswer(o); structured != nil {
			r.StructuredContent = structured
		}
	}
	return r
}

// structuredAnswer returns the answer as a JSON object, if it is the structured result of one task.
func structuredAnswer(o *run.Outcome) json.RawMessage {
	if len(o.Output) != 1 {
		return nil
	}
	t, ok := o.Result.Task(string(o.Output[0]))
	if !ok || !strings.HasPrefix(strings.TrimSpace(t.Structured), "{") || !json.Valid([]byte(t.Structured)) {
		return nil
	}
	return json.RawMessage(t.Structured)
}
