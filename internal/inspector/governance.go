package inspector

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/runteam/runteam/steer"
)

// rules answers with a policy of a run.
func (h *Handler) rules(w http.ResponseWriter, r *http.Request) error {
	query, err := queryOf(r, "policy")
	if err != nil {
		return err
	}
	document, digest, err := h.o.Governor.Rules(r.Context(), r.PathValue("run"), query.Get("policy"))
	return h.writePolicy(w, document, digest, err)
}

// rulesOfSpec answers with the policy of a spec.
func (h *Handler) rulesOfSpec(w http.ResponseWriter, r *http.Request) error {
	if _, err := queryOf(r); err != nil {
		return err
	}
	document, digest, err := h.o.Starter.PolicyOfSpec(r.Context(), r.PathValue("spec"))
	return h.writePolicy(w, document, digest, err)
}

// writePolicy answers with a policy.
func (h *Handler) writePolicy(w http.ResponseWriter, document any, digest string, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(digest))
	return h.write(w, http.StatusOK, document)
}

// replaceRules replaces the policy of a run.
func (h *Handler) replaceRules(w http.ResponseWriter, r *http.Request) error {
	return h.replacePolicy(w, r, func(digest string, p Policy) (string, error) {
		return h.o.Governor.Replace(r.Context(), r.PathValue("run"), digest, p)
	})
}

// replaceRulesOfSpec replaces the policy of later runs of a spec.
func (h *Handler) replaceRulesOfSpec(w http.ResponseWriter, r *http.Request) error {
	return h.replacePolicy(w, r, func(digest string, p Policy) (string, error) {
		return h.o.Starter.ReplacePolicyOfSpec(r.Context(), r.PathValue("spec"), digest, p)
	})
}

// replacePolicy replaces a policy by the one that a request has.
func (h *Handler) replacePolicy(w http.ResponseWriter, r *http.Request, replace func(digest string, p Policy) (string, error)) error {
	match := strings.TrimSpace(r.Header.Get("If-Match"))
	if match == "" {
		return &Error{Code: Precondition, Message: "If-Match is missing", Hint: "send the ETag of the policy that you read"}
	}
	digest, err := strconv.Unquote(match)
	if err != nil {
		return &Error{Code: BadRequest, Message: "If-Match is not an ETag", Hint: `write If-Match: "DIGEST"`}
	}
	p := Policy{By: h.o.Viewer.By}
	if err := decode(r, &p); err != nil {
		return err
	}
	if len(p.Reason) > steer.MaxText {
		return &Error{Code: TooLarge, Message: "the reason has more than 64 KiB"}
	}
	switch {
	case len(p.Policy) == 0 && p.Text == "":
		return &Error{Code: Invalid, Message: "the policy is missing", Problems: []Problem{{Pointer: "/policy", Message: "it is missing"}}}
	case len(p.Policy) > 0 && p.Text != "":
		return &Error{Code: Invalid, Message: "there are two policies", Hint: "send policy or text", Problems: []Problem{{Pointer: "/text", Message: "it stands beside policy"}}}
	}
	now, err := replace(digest, p)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(now))
	return h.write(w, http.StatusOK, map[string]string{"digest": now})
}
