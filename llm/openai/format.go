package openai

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	openai "github.com/sashabaranov/go-openai"
)

// The values of Config.StructuredOutput.
const (
	autoOutput   = "auto"
	schemaOutput = "schema"
	objectOutput = "object"
	promptOutput = "prompt"
)

// A form is a form of response_format. The strongest is first.
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
func (r *request) formatOf() format {
	if r.Schema == nil || r.model.output == promptOutput {
		return format{form: noForm, best: noForm, last: noForm}
	}
	schema := r.Schema
	strict, isObject := strictSchema(schema)
	// json_object would make every answer an object.
	allowed := [...]bool{strict, isObject || r.model.lists, isObject, true}
	switch r.model.output {
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
		if !r.changes.forms.refuses(i, f.schema) {
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

// responseFormat returns the response_format of the request, or nil. It adds a warning if
// the endpoint refused a stronger form.
func (r *request) responseFormat() *openai.ChatCompletionResponseFormat {
	r.format = r.formatOf()
	weaker := r.format.form > r.format.best
	switch f := r.format.form; f {
	case strictForm, schemaForm:
		if weaker {
			r.warn("response_format: the endpoint refused the strict mode of json_schema, which was sent without it")
		}
		return &openai.ChatCompletionResponseFormat{
			Type:       openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "answer", Strict: f == strictForm, Schema: r.Schema},
		}
	case objectForm:
		if weaker {
			r.warn("response_format: the endpoint refused json_schema; json_object was sent, which does not hold the answer to the schema")
		}
		return &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONObject}
	}
	if weaker {
		r.warn("response_format: the endpoint refused it; only the prompt asked for JSON")
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
	// "Request contains an invalid argument" of a schema that it cannot use, and Zhipu
	// "API 调用参数有误，请检查文档。" of any parameter.
	noReason = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^((request contains an )?invalid (argument|request|input|parameters?)|(400 )?bad request|unprocessable (entity|content)|provider returned error|api ?调用参数有误(，请检查文档)?)?[.。]?$`)
	})
)

// invalidJSON is Groq's code for a model that did not write JSON of the response_format
// (console.groq.com/docs/structured-outputs).
const invalidJSON = "json_validate_failed"

// refusesFormat reports whether the endpoint refused the response_format and a
// weaker form is left.
func (f *refusal) refusesFormat(r *request) bool {
	return r.format.form < r.format.last && f.isAboutFormat(r)
}

// isAboutFormat reports whether the endpoint refused the response_format that was sent.
func (f *refusal) isAboutFormat(r *request) bool {
	return r.format.form < noForm && (f.noReason || aboutFormat().MatchString(f.text))
}

// weakenFormat records the refused form: for this call if the model failed to write JSON of
// that form, for this schema if the endpoint gives it as the reason, else for all.
func weakenFormat(f *refusal, r *request, next *changes) {
	switch form := r.format.form; {
	case strings.Contains(f.text, invalidJSON):
		next.forms.thisCall = form + 1
	case f.noReason, aboutSchema().MatchString(f.text):
		next.forms.schemas = next.forms.add(r.format.schema, form)
	default:
		next.forms.always[form] = true
	}
}

// addFormatHint adds to the error of a refused response_format which setting to change.
func (e *refusedError) addFormatHint(r *request) {
	if e.isAboutFormat(r) && r.format.last != noForm {
		e.err.Message += fmt.Sprintf("; structuredOutput is %s: set it to auto or prompt", r.model.output)
	}
}
