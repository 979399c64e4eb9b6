package openai

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/toolschema"
	"github.com/runteam/runteam/llm"
)

// leftOut is the level of a tool that is not sent.
const leftOut = toolschema.Levels

// A toolForms makes the forms of the schemas of tools, once for each schema.
type toolForms struct {
	mu    sync.Mutex
	known map[string]*toolschema.Schema // by the schema
	bytes int
}

// Limits of what a model keeps. A model with more begins again.
const (
	maxToolSchemas = 1000
	maxToolBytes   = 16 << 20
)

// of returns the forms of a schema.
func (f *toolForms) of(raw []byte) *toolschema.Schema {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.known[string(raw)]; s != nil {
		return s
	}
	if f.bytes += len(raw); f.known == nil || len(f.known) >= maxToolSchemas || f.bytes > maxToolBytes {
		f.known, f.bytes = map[string]*toolschema.Schema{}, len(raw)
	}
	s := toolschema.New(raw)
	f.known[string(raw)] = s
	return s
}

// refusedTools are the forms of tools that an endpoint refused.
type refusedTools struct {
	always toolschema.Level                 // of every tool: the first level that is not refused
	levels map[refusedTool]toolschema.Level // of one tool; never changed in place
}

// A refusedTool is a tool of which an endpoint refused a form.
type refusedTool struct {
	name   string
	schema *toolschema.Schema
}

// level returns the level of the form in which a tool is sent.
func (r *refusedTools) level(name string, s *toolschema.Schema) toolschema.Level {
	return max(r.always, r.levels[refusedTool{name, s}])
}

// enoughTools is how many tools must need a form until all get it. An endpoint that names one tool at
// a time would else be asked once for each.
const enoughTools = 3

// A sentTool is a tool of a request, in the form in which it is sent.
type sentTool struct {
	name, description string
	schema            *toolschema.Schema
	level             toolschema.Level // leftOut if it is not sent
}

// maxDescription is how many bytes of a description are sent after a refusal. OpenAI once took no more
// (platform.openai.com/docs/api-reference/chat/create), and others still do not.
const maxDescription = 1024

// definition returns the tool at a level.
func (t *sentTool) definition(l toolschema.Level) functionDefinition {
	description := t.description
	if l > toolschema.Full && len(description) > maxDescription {
		const cut = "…"
		description = strings.ToValidUTF8(description[:maxDescription-len(cut)], "") + cut
	}
	description, parameters := t.schema.Form(l).Function(description)
	return functionDefinition{t.name, description, parameters}
}

// form returns the form in which the tool is sent, or nil.
func (t *sentTool) form() *toolschema.Form {
	if t.level >= leftOut {
		return nil
	}
	return t.schema.Form(t.level)
}

// maxNamed is how many tools a warning names.
const maxNamed = 8

// functions returns the tools of the request. It adds a warning for those that the endpoint refused.
func (r *request) functions() []function {
	list := make([]function, 0, len(r.Tools))
	r.tools = make([]sentTool, len(r.Tools))
	var simpler []string
	for i, t := range r.Tools {
		sent := &r.tools[i]
		*sent = sentTool{name: t.Name, description: t.Description, schema: r.model.toolForms.of(t.Parameters)}
		sent.level = r.changes.tools.level(t.Name, sent.schema)
		if sent.level >= leftOut {
			r.warn(fmt.Sprintf("tools: the endpoint refused %s in every form; the agent works without it", t.Name))
			continue
		}
		if sent.level > toolschema.Full {
			simpler = append(simpler, t.Name)
		}
		list = append(list, function{"function", sent.definition(sent.level)})
	}
	switch n := len(simpler); {
	case n > maxNamed:
		r.warn(fmt.Sprintf("tools: the endpoint refused the schemas of %s and %d others, which were sent in a simpler form", strings.Join(simpler[:maxNamed], ", "), n-maxNamed))
	case n > 0:
		r.warn(fmt.Sprintf("tools: the endpoint refused the schema of %s, which was sent in a simpler form", strings.Join(simpler, ", ")))
	}
	return list
}

// formOf returns the form in which a tool is sent, or nil.
func (r *request) formOf(name string) *toolschema.Form {
	for i := range r.tools {
		if r.tools[i].name == name {
			return r.tools[i].form()
		}
	}
	return nil
}

// sentArguments returns the arguments of an earlier call as the schema that is sent has them.
func (r *request) sentArguments(c *llm.ToolCall) string {
	if f := r.formOf(c.Name); f != nil {
		return f.Sent(c.Arguments)
	}
	return c.Arguments
}

// originalArguments returns the arguments of a call of the reply as the tool's own schema has them.
func (r *request) originalArguments(name, arguments string) string {
	if f := r.formOf(name); f != nil {
		return f.Original(arguments)
	}
	return arguments
}

// The words with which endpoints refuse the definition of a tool, in lower case.
var (
	// aboutToolSchema matches what is about nothing else: OpenAI ("Invalid schema for function
	// 's'", invalid_function_parameters, param tools[3].function.parameters), Anthropic
	// (tools.3.custom.input_schema), Gemini (tools[0].function_declarations[3].parameters),
	// FastAPI (body.tools.3.function), Bedrock (toolSpec) and llama.cpp (grammar, JSON schema
	// conversion).
	aboutToolSchema = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`schema|function_?declarations?|toolspec|invalid_function_parameters|\bgrammar\b|\btools?[\[./]\d`)
	})

	// aboutTool matches what may also be about a call or its result.
	aboutTool = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\bfunctions?\b|\bproperties\b|\btools?\b`)
	})

	// aboutCalls matches what is about the conversation, or about tools as such.
	aboutCalls = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(tool|function)[ _]?(calls?\b|calling|response|result|choice|message|use\b|_id)|\brole\b|messages?[\[./]|thought|signature|` +
			`(tools?|functions?) (is|are) not (supported|enabled|available)|support (for )?(tools?|functions?)\b|array too long|too many`)
	})

	aboutMessages    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bmessages?[\[./]`) })
	toolIndex        = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\btools?[\[./](\d+)`) })
	declarationIndex = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`function_?declarations?[\[./](\d+)`)
	})
)

// refusesSchema reports whether the endpoint refused the definition of a tool, and a simpler form
// is left.
func (f *refusal) refusesSchema(r *request) bool {
	return f.isAboutSchemas(r) && r.canSimplify(f)
}

// refusesTool reports whether the endpoint may have refused the definition of a tool, and a simpler
// form is left.
func (f *refusal) refusesTool(r *request) bool {
	return f.mayBeAboutTools(r) && r.canSimplify(f)
}

// isAboutSchemas reports whether the endpoint refused the definition of a tool.
func (f *refusal) isAboutSchemas(r *request) bool {
	if len(r.tools) == 0 || !aboutToolSchema().MatchString(f.text) {
		return false
	}
	mayBeOther := r.format.form < noForm || aboutMessages().MatchString(f.text) // these have schemas too
	return !mayBeOther || len(f.refusedTools(r)) > 0
}

// mayBeAboutTools reports whether the endpoint may have refused the definition of a tool. One that gives
// no reason may have done so until it has taken a conversation with a call.
func (f *refusal) mayBeAboutTools(r *request) bool {
	switch {
	case len(r.tools) == 0:
		return false
	case f.noReason:
		return !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.ToolCalls) > 0 })
	case aboutCalls().MatchString(f.text):
		return false
	}
	return aboutTool().MatchString(f.text) || len(f.refusedTools(r)) > 0
}

// refusedTools returns the places of the tools that a refusal names by index or by name.
func (f *refusal) refusedTools(r *request) (named []int) {
	indexes := declarationIndex().FindAllStringSubmatch(f.text, -1)
	if len(indexes) == 0 {
		indexes = toolIndex().FindAllStringSubmatch(f.text, -1)
	}
	for _, m := range indexes {
		n, err := strconv.Atoi(m[1])
		for i := range r.tools {
			if err != nil || r.tools[i].level >= leftOut {
				continue
			}
			if n == 0 {
				named = append(named, i)
			}
			n--
		}
	}
	if len(named) > 0 {
		return named
	}
	for i := range r.tools {
		if t := &r.tools[i]; t.level < leftOut && hasWord(f.text, lower(t.name)) {
			named = append(named, i)
		}
	}
	return named
}

// hasWord reports whether a text has a name that is no part of a longer one.
func hasWord(text, name string) bool {
	inName := func(c byte) bool {
		return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z'
	}
	for at := 0; name != ""; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(name)
		if (start == 0 || !inName(text[start-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
		at = start + 1
	}
	return false
}

// canSimplify reports whether something simpler can be sent: of the named tools, or of all if none
// is named. Only a tool that is known to be the refused one is left out.
func (r *request) canSimplify(f *refusal) bool {
	return r.next(toolschema.Full) < leftOut || !f.noReason && (r.count() == 1 || len(f.refusedTools(r)) > 0)
}

// count returns how many tools are sent.
func (r *request) count() (n int) {
	for i := range r.tools {
		if r.tools[i].level < leftOut {
			n++
		}
	}
	return n
}

// next returns the lowest level above least at which a tool is sent in another form; leftOut if
// there is none.
func (r *request) next(least toolschema.Level) toolschema.Level {
	next := leftOut
	for i := range r.tools {
		if t := &r.tools[i]; t.level < leftOut {
			next = min(next, max(t.next(), least))
		}
	}
	return next
}

// next returns the next level at which the tool is sent in another form; leftOut if there is none.
func (t *sentTool) next() toolschema.Level {
	now := t.definition(t.level)
	for l := t.level + 1; l < leftOut; l++ {
		if d := t.definition(l); d.Description != now.Description || !bytes.Equal(d.Parameters, now.Parameters) {
			return l
		}
	}
	return leftOut
}

// simplifyTools records the refused forms: of the tools that the endpoint names, else of all.
func simplifyTools(f *refusal, r *request, next *changes) {
	named := f.refusedTools(r)
	if len(named) == 0 && r.count() == 1 && !f.noReason {
		for i := range r.tools {
			if r.tools[i].level < leftOut {
				named = append(named, i)
			}
		}
	}
	if len(named) == 0 {
		next.tools.always = max(next.tools.always, r.next(toolschema.Full))
		return
	}
	levels := map[refusedTool]toolschema.Level{}
	if len(next.tools.levels) < maxRefusedSchemas {
		maps.Copy(levels, next.tools.levels)
	}
	for _, i := range named {
		t := &r.tools[i]
		levels[refusedTool{t.name, t.schema}] = t.next()
	}
	next.tools.levels = levels
	next.tools.always = max(next.tools.always, r.common(levels))
}

// common returns the highest level that enough tools of the request need.
func (r *request) common(levels map[refusedTool]toolschema.Level) toolschema.Level {
	var count [leftOut + 1]int
	for i := range r.tools {
		count[levels[refusedTool{r.tools[i].name, r.tools[i].schema}]]++
	}
	for l := leftOut - 1; l > toolschema.Full; l-- {
		if count[l] >= enoughTools {
			return l
		}
	}
	return toolschema.Full
}
