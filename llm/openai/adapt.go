package openai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/runteam/runteam/llm"
)

// changes say how the requests for one model differ from the usual form, because its
// endpoint refused that. The zero value changes nothing. A change is never undone.
type changes struct {
	noUsage     bool                // stream_options is left out
	forms       refusedForms        // the forms of response_format that are not sent
	otherTokens bool                // the limit on the reply is sent under its other name
	role        string              // how the system prompt is sent; empty means as configured
	leftOut     [len(settings)]bool // the settings that are not sent
}

// An adaptation recognizes that an endpoint refused one part of a request, and
// changes the requests that follow.
type adaptation struct {
	refused func(c *call) bool           // whether c sent the part and c.refusal is about it
	change  func(c *call, next *changes) // leaves the part out, or writes it in the next form
}

// adaptations are tried in order; the first that applies is made.
var adaptations = append([]adaptation{
	{refused: (*call).refusedUsage, change: func(_ *call, next *changes) { next.noUsage = true }},
	{refused: (*call).refusedFormat, change: (*call).weaken},
	{refused: (*call).refusedTokensKey, change: func(_ *call, next *changes) { next.otherTokens = true }},
	{refused: (*call).refusedDeveloper, change: func(_ *call, next *changes) { next.role = systemRole }},
	{refused: (*call).refusedSystem, change: func(_ *call, next *changes) { next.role = mergedRole }},
}, settingAdaptations()...)

// maxAdaptations bounds the requests of one call. There are fewer changes than that.
const maxAdaptations = 16

// callAdapted makes one request. If the endpoint refuses a part of it that is optional,
// callAdapted sends the request again without that part or with another form of it. Once
// the endpoint accepts the changed request, later calls begin with that change.
func (m *Model) callAdapted(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	known := m.changes.Load()
	var changes changes
	if known != nil {
		changes = *known
	}
	var refused llm.Usage // what refused requests took, of which endpoints rarely report any
	for n := 1; ; n++ {
		c := &call{model: m, req: req, changes: changes}
		res, err := c.attempt(ctx, emit)
		if e, ok := err.(*llm.Error); ok { // not errors.AsType: the cause of a context belongs to the caller
			refused = refused.Add(e.Usage)
			e.Usage = refused
		}
		if c.refusal == nil {
			res.Usage = res.Usage.Add(refused)
			if n > 1 && c.reply != nil {
				changes.forms.thisCall = strictForm
				m.changes.CompareAndSwap(known, &changes) // if another call stored changes first, a later call adds these
			}
			return res, err
		}
		i := c.adaptation()
		if i < 0 || n == maxAdaptations || ctx.Err() != nil {
			return res, c.withHint(err)
		}
		adaptations[i].change(c, &changes)
	}
}

// adaptation returns the index of the adaptation that applies, or -1.
func (c *call) adaptation() int {
	if c.refusal == nil {
		return -1
	}
	return slices.IndexFunc(adaptations, func(a adaptation) bool { return a.refused(c) })
}

// warn adds a warning to the response: which part of the request was left out or
// changed, and what that means. Warnings are constant texts, so they quote nothing.
func (c *call) warn(warning string) { c.warnings = append(c.warnings, warning) }

// A refusal is an error with which an endpoint may say that it does not accept a
// part of a request.
type refusal struct {
	text     string // the message, the setting in question and the codes, in lower case; bounded
	param    string // the setting in question, if the endpoint names it
	noReason bool   // the endpoint says that the request is bad, without a reason
}

// refusalOf returns the refusal that an error may be, or nil if its kind or status
// excludes that. Passages of the prompt that the error repeats do not count: whoever
// wrote them must not decide what is left out of requests.
func (c *call) refusalOf(kind llm.Kind, status int, said *errorBody) *refusal {
	switch kind {
	case llm.Unauthorized, llm.NoCredit, llm.RateLimited, llm.PromptTooLong, llm.Moderated:
		return nil
	}
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
		text := strings.Join(append([]string{c.withoutPassages(said.message), said.param}, said.codes...), "\n")
		isClient := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
		return &refusal{text: lower(text), param: said.param, noReason: isClient && noReason().MatchString(lower(said.message))}
	}
	return nil
}

// refusedUsage reports whether the endpoint refused the option that requests token
// counts in a stream.
func (c *call) refusedUsage() bool {
	return c.streamed && !c.changes.noUsage && strings.Contains(c.refusal.text, "stream_options")
}
