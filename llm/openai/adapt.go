package openai

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
)

// changes say how the requests for one model differ from the usual form, because its
// endpoint refused that. The zero value changes nothing. A change is never undone.
type changes struct {
	noUsage     bool                // stream_options is left out
	forms       refusedForms        // the forms of response_format that are not sent
	tools       refusedTools        // the forms of tools that are not sent
	otherTokens bool                // the limit on the reply is sent under its other name
	role        string              // how the system prompt is sent; empty means as configured
	leftOut     [len(settings)]bool // the settings that are not sent

	content        contentForm     // what stands for the missing text of messages with tool calls
	shortIDs       bool            // the IDs of tool calls have nine letters and digits
	members        map[string]bool // the members of provider data that are not sent; never changed in place
	emptyReasoning bool            // messages of the assistant without reasoning_content get an empty one
}

// An adaptation recognizes that an endpoint refused one part of a request, and
// changes the requests that follow.
type adaptation struct {
	applies func(f *refusal, r *request) bool           // whether r has the part and f is about it
	change  func(f *refusal, r *request, next *changes) // leaves the part out, or writes it in the next form
}

// adaptations are tried in order; the first that applies is made.
var adaptations = append([]adaptation{
	{(*refusal).refusesUsage, func(_ *refusal, _ *request, next *changes) { next.noUsage = true }},
	{(*refusal).refusesSchema, simplifyTools},
	{(*refusal).refusesFormat, weakenFormat},
	{(*refusal).refusesTokensKey, func(_ *refusal, _ *request, next *changes) { next.otherTokens = true }},
	{(*refusal).refusesDeveloper, func(_ *refusal, _ *request, next *changes) { next.role = systemRole }},
	{(*refusal).refusesSystem, func(_ *refusal, _ *request, next *changes) { next.role = mergedRole }},
	{(*refusal).refusesIDs, func(_ *refusal, _ *request, next *changes) { next.shortIDs = true }},
	{(*refusal).missesReasoning, func(_ *refusal, _ *request, next *changes) { next.emptyReasoning = true }},
	{(*refusal).refusesMember, dropMember},
}, append(settingAdaptations(),
	adaptation{(*refusal).refusesContent, nextContent},
	adaptation{(*refusal).refusesTool, simplifyTools},
	adaptation{(*refusal).mayRefuseContent, nextContent},
	adaptation{(*refusal).mayRefuseMembers, dropMembers},
)...)

// maxAdaptations bounds the requests of one call. Only an endpoint that refuses many tools one by
// one would need more.
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
	var refused llm.Usage // of refused requests; endpoints rarely report it
	var search *toolSearch
	always := changes.tools.always
	for n := 1; ; n++ {
		r := &request{Request: req, model: m, changes: changes, stream: emit != nil}
		res, accepted, err := r.attempt(ctx, emit)
		refusal, isRefusal := err.(*refusedError)
		if isRefusal {
			err = refusal.err
		}
		if e, ok := err.(*llm.Error); ok { // not errors.AsType: the cause of a context belongs to the caller
			refused = refused.Add(e.Usage)
			e.Usage = refused
		}
		if !isRefusal {
			res.Usage = res.Usage.Add(refused)
			if n > 1 && accepted {
				changes.forms.thisCall = strictForm
				m.changes.CompareAndSwap(known, &changes) // if another call stored changes first, a later call adds these
			}
			return res, err
		}
		i := refusal.adaptation(r)
		if i < 0 && search == nil && r.count() > 1 && (refusal.isAboutSchemas(r) || refusal.mayBeAboutTools(r)) {
			search = &toolSearch{refused: r, status: refusal.err.Status}
			isFound := search.run(ctx)
			refused = refused.Add(search.usage)
			if isFound {
				changes.tools.always = always // the others may be taken in a better form
				changes.tools.leaveOut(r, search.bad)
				continue
			}
			refusal.err.Usage = refused
		}
		if i < 0 || n == maxAdaptations || ctx.Err() != nil {
			refusal.addFormatHint(r)
			return res, err
		}
		adaptations[i].change(&refusal.refusal, r, &changes)
	}
}

// A refusedError is an error with which an endpoint may say that it does not accept a part
// of a request.
type refusedError struct {
	err *llm.Error
	refusal
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// A refusal is what an endpoint says about a part of a request.
type refusal struct {
	text      string // the message, the setting in question and the codes, in lower case; bounded
	message   string // the message alone
	param     string // the setting in question, if the endpoint names it
	noReason  bool   // the endpoint says that the request is bad, without a reason
	isUnclear bool   // it says so, and its status and codes give no other reason
}

// adaptation returns the index of the adaptation that applies, or -1.
func (f *refusal) adaptation(r *request) int {
	return slices.IndexFunc(adaptations, func(a adaptation) bool { return a.applies(f, r) })
}

// asRefusal returns an error as one that may refuse a part of the request, unless its kind
// or status excludes that. Passages of the prompt that the error repeats do not count:
// the author of a prompt must not decide what requests leave out.
func asRefusal(e *llm.Error, status int, said *errorBody, clean *sanitizer) error {
	switch e.Kind {
	case callfault.PromptTooLong: // or the description of a tool is
		if !strings.HasPrefix(said.param, "tools") {
			return e
		}
	case callfault.Unauthorized, callfault.NoCredit, callfault.RateLimited, callfault.Moderated:
		return e
	}
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
		message := clean.withoutPassages(said.message)
		text := strings.Join(append([]string{message, said.param}, said.codes...), "\n")
		isClient := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
		return &refusedError{e, refusal{
			text: lower(text), message: lower(message), param: said.param,
			noReason:  isClient && noReason().MatchString(lower(said.message)),
			isUnclear: isClient && (e.Kind == callfault.BadRequest || e.Kind == callfault.BadResponse),
		}}
	}
	return e
}

// refusesUsage reports whether the endpoint refused the option that requests token
// counts in a stream.
func (f *refusal) refusesUsage(r *request) bool {
	return r.stream && !r.changes.noUsage && strings.Contains(f.text, "stream_options")
}
