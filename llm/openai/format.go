package openai

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/runteam/runteam/llm"
)

// The values of Config.StructuredOutput.
const (
	autoOutput   = "auto"
	schemaOutput = "schema"
	objectOutput = "object"
	promptOutput = "prompt"
)

// A form is one of the forms of a response_format, the strongest first.
type form int

const (
	strictForm form = iota // json_schema, strict
	schemaForm             // json_schema
	objectForm             // json_object
	noForm                 // no response_format
)

// A digest identifies a schema.
type digest [sha256.Size]byte

// A format is how one request asks for JSON.
type format struct {
	form   form
	best   form // the form that is sent if the endpoint refuses none
	last   form // the weakest form that may be sent
	schema digest
}

// formatOf returns the format of the request, by its schema, the configuration and what
// the endpoint refused before.
func (c *call) formatOf() format {
	if c.req.Schema == nil || c.model.output == promptOutput {
		return format{form: noForm, best: noForm, last: noForm}
	}
	schema := c.req.Schema
	strict, isObject := strictSchema(schema)
	// json_object would make every answer an object.
	allowed := [...]bool{strict, isObject || c.model.lists, isObject, true}
	switch c.model.output {
	case schemaOutput:
		allowed = [...]bool{strict, true, false, false}
	case objectOutput:
		allowed = [...]bool{false, false, isObject, !isObject}
	}
	f := format{schema: sha256.Sum256(schema), best: noForm, form: noForm}
	for i := noForm; i >= strictForm; i-- {
		if !allowed[i] {
			continue
		}
		f.best, f.last = i, max(f.last, i)
		if !c.changes.forms.refuses(i, f.schema) {
			f.form = i
		}
	}
	f.form = min(f.form, f.last)
	return f
}

// refusedForms are the forms that an endpoint refused.
type refusedForms struct {
	always   [noForm]bool    // for every schema
	schemas  map[digest]form // for one schema: this form and the stronger ones; never changed in place
	thisCall form            // for this call: the forms before this one
}

// refuses reports whether the endpoint refused a form for a schema.
func (r *refusedForms) refuses(f form, schema digest) bool {
	last, ofSchema := r.schemas[schema]
	return f < noForm && (r.always[f] || f < r.thisCall || ofSchema && f <= last)
}

// add returns a copy of r.schemas with one more. If there are too many, it drops the
// others.
func (r *refusedForms) add(schema digest, f form) map[digest]form {
	schemas := map[digest]form{}
	if len(r.schemas) < maxRefusedSchemas {
		maps.Copy(schemas, r.schemas)
	}
	schemas[schema] = f
	return schemas
}

// maxRefusedSchemas bounds how many schemas a model remembers.
const maxRefusedSchemas = 1000

// A responseFormat is the response_format of a request
// (platform.openai.com/docs/api-reference/chat/create).
type responseFormat struct {
	Type   string      `json:"type"`
	Schema *jsonSchema `json:"json_schema,omitempty"`
}

// A jsonSchema is the schema of a responseFormat.
type jsonSchema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

// responseFormat returns the response_format of the request, or nil. It adds a warning if
// the endpoint refused a stronger form.
func (c *call) responseFormat() *responseFormat {
	c.format = c.formatOf()
	weaker := c.format.form > c.format.best
	switch f := c.format.form; f {
	case strictForm, schemaForm:
		if weaker {
			c.warn("response_format: the endpoint refused the strict mode of json_schema, which was sent without it")
		}
		schema := &jsonSchema{"answer", f == strictForm, c.req.Schema}
		return &responseFormat{"json_schema", schema}
	case objectForm:
		if weaker {
			c.warn("response_format: the endpoint refused json_schema; json_object was sent, which does not hold the answer to the schema")
		}
		return &responseFormat{"json_object", nil}
	}
	if weaker {
		c.warn("response_format: the endpoint refused it; only the prompt asked for JSON")
	}
	return nil
}

// The words with which endpoints refuse a response_format, in lower case: those of
// OpenAI, Azure, Groq, Mistral and DeepSeek (response_format, json_schema), Anthropic
// (output_config), Gemini (response_schema), OpenRouter (requested parameters), vLLM
// and SGLang (guided decoding, structured outputs, grammar), llama.cpp (json schema,
// grammar), Ollama (format) and LM Studio (response_format.type).
var (
	aboutFormat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`response[_ ]?format|response_?(json_?)?schema|json[_ ](schema|object|mode|output)|structured[_ -]?outputs?\b|output_(config|format)|` +
			`guided[_ ](json|decoding|grammar)|\bgrammar\b|\binvalid schema|\bschema (is|contains|produces|conversion)|\binvalid format|requested parameters|` + invalidJSON)
	})

	// aboutSchema matches the refusal of a schema: another schema may be accepted.
	aboutSchema = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(invalid|specified) (json )?schema|\bschema (is|contains|produces|must|conversion|has|uses)|grammar|response_?(json_?)?schema|json_schema[./][a-z]|output_config|\binvalid format`)
	})

	// noReason matches the whole message of a refusal without a reason. Gemini says
	// "Request contains an invalid argument" of a schema that it cannot use.
	noReason = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^((request contains an )?invalid (argument|request)|bad request|provider returned error)?\.?$`)
	})
)

// invalidJSON is Groq's code for a model that did not write JSON of the response_format
// (console.groq.com/docs/structured-outputs).
const invalidJSON = "json_validate_failed"

// refusedFormat reports whether the endpoint refused the response_format and a
// weaker form is left.
func (c *call) refusedFormat() bool { return c.format.form < c.format.last && c.isFormatRefusal() }

// isFormatRefusal reports whether the endpoint refused the response_format that was sent.
func (c *call) isFormatRefusal() bool {
	return c.refusal != nil && c.format.form < noForm && (c.refusal.noReason || aboutFormat().MatchString(c.refusal.text))
}

// weaken records the refused form: for this call if the model failed to write JSON of
// that form, for this schema if the endpoint gives it as the reason, else for all.
func (c *call) weaken(next *changes) {
	switch f := c.format.form; {
	case strings.Contains(c.refusal.text, invalidJSON):
		next.forms.thisCall = f + 1
	case c.refusal.noReason, aboutSchema().MatchString(c.refusal.text):
		next.forms.schemas = next.forms.add(c.format.schema, f)
	default:
		next.forms.always[f] = true
	}
}

// withHint adds to the error of a refused response_format which setting to change.
func (c *call) withHint(err error) error {
	e, ok := err.(*llm.Error)
	if !ok || !c.isFormatRefusal() || c.format.last == noForm {
		return err
	}
	e.Message += fmt.Sprintf("; structuredOutput is %s: set it to auto or prompt", c.model.output)
	return e
}
