package inspector

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/runteam/runteam/steer"
)

// rules answers with a policy of a run.
func (q *request) rules() error {
	r := q.r
	query, err := queryOf(r, "policy")
	if err != nil {
		return err
	}
	document, digest, err := q.Governor.Rules(r.Context(), r.PathValue("run"), query.Get("policy"))
	return q.writePolicy(document, digest, err)
}

// rulesOfSpec answers with the policy of a spec.
func (q *request) rulesOfSpec() error {
	r := q.r
	if _, err := queryOf(r); err != nil {
		return err
	}
	document, digest, err := q.Starter.PolicyOfSpec(r.Context(), r.PathValue("spec"))
	return q.writePolicy(document, digest, err)
}

// writePolicy answers with a policy.
func (q *request) writePolicy(document any, digest string, err error) error {
	if err != nil {
		return err
	}
	q.w.Header().Set("ETag", strconv.Quote(digest))
	return q.h.write(q.w, http.StatusOK, document)
}

// replaceRules replaces the policy of a run.
func (q *request) replaceRules() error {
	r := q.r
	return q.replacePolicy(func(digest string, p Policy) (string, error) {
		return q.Governor.Replace(r.Context(), r.PathValue("run"), digest, p)
	})
}

// replaceRulesOfSpec replaces the policy of later runs of a spec.
func (q *request) replaceRulesOfSpec() error {
	r := q.r
	return q.replacePolicy(func(digest string, p Policy) (string, error) {
		return q.Starter.ReplacePolicyOfSpec(r.Context(), r.PathValue("spec"), digest, p)
	})
}

// replacePolicy replaces a policy by the one that a request has.
func (q *request) replacePolicy(replace func(digest string, p Policy) (string, error)) error {
	w, r := q.w, q.r
	match := strings.TrimSpace(r.Header.Get("If-Match"))
	if match == "" {
		return &Error{Code: Precondition, Message: "If-Match is missing", Hint: "send the ETag of the policy that you read"}
	}
	digest, err := strconv.Unquote(match)
	if err != nil {
		return &Error{Code: BadRequest, Message: "If-Match is not an ETag", Hint: `write If-Match: "DIGEST"`}
	}
	p := Policy{By: q.Viewer.By}
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
	return q.h.write(w, http.StatusOK, map[string]string{"digest": now})
}
