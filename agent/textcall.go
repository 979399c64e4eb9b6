package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/textcall"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// takeTextCall makes a text that is a call of a tool that call, if [Options].TextToolCalls allows it. Otherwise the text stays
// the answer, with a warning if it has a call.
// An answer that matches the output schema is one, whatever it looks like. provider is what came with the text.
func (c *conversation) takeTextCall(ctx context.Context, provider *llm.ProviderData) {
	call, found := textcall.Find(c.reply.Text, c.toolNames())
	if !found {
		return
	}
	if answer := c.reply; c.output != nil && answer.read(ctx, c.output) == nil {
		return
	}
	problem := c.refuseTextCall(&call)
	if problem == "" {
		c.reply.Text, c.reply.ToolCalls, c.reply.TextCall, c.reply.Provider = "", []llm.ToolCall{{Name: call.Tool, Arguments: call.Arguments}}, true, provider
		return
	}
	c.reply.Warnings = append(c.reply.Warnings, fmt.Sprintf("the answer has a call of the tool %s written as a text, which is not made: %s", call.Tool, problem))
}

// refuseTextCall says why a call stays a text; it is empty if the call can be made. What a model has read may contain a call
// that it repeats, so such a call is never made, and no other one that could have effects without an approval.
func (c *conversation) refuseTextCall(call *textcall.Call) string {
	switch {
	case !c.agent.options.TextToolCalls:
		return "use a model and a server that support calls of tools, or set textToolCalls to make calls that are the whole answer"
	case call.Arguments == "":
		return "its arguments cannot be read as a JSON object"
	case !call.Alone:
		return "it is not the whole answer"
	}
	tool := c.offered[slices.IndexFunc(c.offered, func(t prompt.Tool) bool { return t.Name == call.Tool })]
	if !tool.TextCalls {
		return "the tool has effects, and its calls need no approval"
	}
	arguments, err := jsonvalue.Parse(call.Arguments)
	if err != nil {
		return "its arguments are no JSON value"
	}
	if parameters, err := schema.Parse(tool.Parameters); err != nil || parameters.Validate(arguments) != nil {
		return "its arguments do not match the schema of the tool"
	}
	read, defined := c.read(), c.definitions()
	for _, form := range []string{call.Arguments, arguments.Canonical()} {
		if textcall.WasRead(read, call.Tool, form) || textcall.WasDefined(defined, call.Tool, form) {
			return "the agent has read its arguments"
		}
	}
	return ""
}

// toolNames returns the names of the tools that the model may call.
func (c *conversation) toolNames() (names []string) {
	for _, t := range c.tools {
		names = append(names, t.Name)
	}
	return names
}

// definitions returns what the definitions of the tools say, which servers may have written.
func (c *conversation) definitions() (texts []string) {
	for i := range c.tools {
		texts = append(texts, c.tools[i].Description, string(c.tools[i].Parameters))
	}
	return texts
}

// read returns all texts that the model has read or written so far.
func (c *conversation) read() []string {
	texts := []string{c.system}
	for i := range c.messages {
		texts = append(texts, c.messages[i].Text)
		for _, call := range c.messages[i].ToolCalls {
			texts = append(texts, call.Name+" "+call.Arguments)
		}
	}
	return texts
}
