package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/runteam/runteam/steer"
)

// A Question is an open question to a person. One whose run is not there for the viewer, who may read the question, has
// an ID, a label, a prompt and a schema only.
type Question struct {
	Run    string          `json:"runId"` // empty if the run is not there for the viewer
	ID     string          `json:"id"`
	Name   string          `json:"name"` // of the run
	Task   string          `json:"task"` // its ID
	Title  string          `json:"title"`
	Agent  string          `json:"agent"` // the person
	Asked  time.Time       `json:"askedAt"`
	Label  string          `json:"label"`
	Prompt string          `json:"prompt"`
	Schema json.RawMessage `json:"schema"` // of the answer; nil for a text
}

// Questions returns the open questions of a run, or of all runs if run is empty.
func (c *Client) Questions(ctx context.Context, run string) (open []Question, err error) {
	path := "/questions"
	if run != "" {
		path = runPath(run, "questions")
	}
	_, err = c.do(ctx, http.MethodGet, path, nil, nil, &open)
	return open, err
}

// An Answer is the answer to a question: Fields if the question has a schema, else Text.
type Answer struct {
	Fields map[string]any `json:"fields,omitzero"`
	Text   string         `json:"text,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// Answer stores an answer to a question; run is empty for one that names no run. taken reports whether a process works on the run and has taken
// the answer. If the question already has one, the error is an [*Error] with the code conflict; if the
// answer does not match the schema, the code is invalid.
func (c *Client) Answer(ctx context.Context, run, question string, a Answer) (taken bool, err error) {
	var got struct{ Taken bool }
	path := "/questions/" + url.PathEscape(question) + "/answer"
	if run != "" {
		path = runPath(run, "questions", question, "answer")
	}
	_, err = c.do(ctx, http.MethodPost, path, nil, a, &got)
	return got.Taken, err
}

// Taken is a command that a run has taken.
type Taken struct {
	By   string    `json:"by"` // who sent it: the user of the server
	Time time.Time `json:"time"`

	// Waits reports whether the command is a message to a run that no worker has taken yet. The one that takes it has the
	// message before its first task begins.
	Waits bool `json:"waits"`
}

// Steer sends a command and returns when the run has taken it. The server sets By. If no process works on
// the run, [steer.Resume] continues it in the server, provided that the server serves its spec. If the run refuses the
// command or is not running, the error is an [*Error] with the code conflict. To replace the policy, call
// [Client.ReplacePolicy]; Steer returns [steer.ErrInvalid] for it.
func (c *Client) Steer(ctx context.Context, run string, command steer.Command) (taken Taken, err error) {
	if command.Kind == steer.ReplacePolicy {
		return taken, fmt.Errorf("inspect: %w: Steer cannot replace a policy; call ReplacePolicy", steer.ErrInvalid)
	}
	command.By = "client" // Check requires it; the server replaces it
	if err := command.Check(); err != nil {
		return taken, fmt.Errorf("inspect: %w", err)
	}
	path := runPath(run, string(command.Kind))
	switch {
	case command.Kind == steer.Message:
		path = runPath(run, "messages")
	case command.Task != "":
		path = runPath(run, "nodes", command.Task, string(command.Kind))
	}
	body := struct {
		Agent          string `json:"agent,omitempty"`
		Text           string `json:"text,omitempty"`
		Classification string `json:"classification,omitempty"`
		Reason         string `json:"reason,omitempty"`
	}{Agent: command.Agent, Text: command.Text, Reason: command.Reason}
	if command.Text != "" {
		body.Classification = command.Classification.String()
	}
	_, err = c.do(ctx, http.MethodPost, path, nil, body, &taken)
	return taken, err
}

// A Policy is the policy of a run, or of later runs of a spec.
type Policy struct {
	Digest string          `json:"digest"`
	Policy json.RawMessage `json:"policy"` // in the format of the policy section of a spec file
	Rules  json.RawMessage `json:"rules"`  // what applies to each pair of agents

	// Earlier are the digests of the policies that the run had before the newest one, the oldest first.
	Earlier []string `json:"earlier"`
}

// policyPath returns the path of the policy of a run, or of the only live run.
func policyPath(run string) string {
	const path = "/governance/handoff-rules"
	if run == "" {
		return path
	}
	return runPath(run) + path
}

// Policy returns the newest policy of a run. An empty run means the only one that a process works on; if there are
// none or several, the error is an [*Error] with the code conflict.
func (c *Client) Policy(ctx context.Context, run string) (p Policy, err error) {
	_, err = c.do(ctx, http.MethodGet, policyPath(run), nil, nil, &p)
	return p, err
}

// EarlierPolicy returns the policy of a run with a digest, such as one of [Policy.Earlier]. If the run has had no
// such policy, the error is an [*Error] with the code not_found. An empty run means what it means for
// [Client.Policy].
func (c *Client) EarlierPolicy(ctx context.Context, run, digest string) (p Policy, err error) {
	_, err = c.do(ctx, http.MethodGet, policyPath(run)+"?policy="+url.QueryEscape(digest), nil, nil, &p)
	return p, err
}

// ReplacePolicy replaces the policy of a run if its digest is still the given one, and returns the digest
// of the new policy, which applies from the next decision on. A policy that equals the current one changes
// nothing, and is no error. An assert in the policy must hold too, and is checked once. If the server refuses, nothing changes,
// and the error is an [*Error] with the code stale if the policy has changed since you read it, invalid if
// a remaining task could not run under the new one, or widening if the new one would deliver more and the
// run was started without --allow-widening.
func (c *Client) ReplacePolicy(ctx context.Context, run, digest string, policy json.RawMessage, reason string) (newDigest string, err error) {
	return c.replacePolicy(ctx, policyPath(run), digest, policy, reason)
}

// PolicyOfSpec returns the policy of later runs of a served spec, by the name that the server lists. If the policy has
// no file of its own, the error is an [*Error] with the code not_found. Rules and Earlier are empty.
func (c *Client) PolicyOfSpec(ctx context.Context, spec string) (p Policy, err error) {
	_, err = c.do(ctx, http.MethodGet, specPolicyPath(spec), nil, nil, &p)
	return p, err
}

// ReplacePolicyOfSpec replaces the policy of later runs of a served spec in its file if its digest is still the given one,
// and returns the digest of the new policy. The error is an [*Error] with the code stale if the policy has changed since
// you read it, invalid if the spec could not be run with the new one or an assertion would not hold, or widening if the new
// one would deliver more and the server was started without --allow-widening; then nothing changes.
func (c *Client) ReplacePolicyOfSpec(ctx context.Context, spec, digest string, policy json.RawMessage, reason string) (newDigest string, err error) {
	return c.replacePolicy(ctx, specPolicyPath(spec), digest, policy, reason)
}

// specPolicyPath returns the path of the policy of a spec.
func specPolicyPath(spec string) string {
	return "/specs/" + url.PathEscape(spec) + policyPath("")
}

// replacePolicy replaces the policy at a path.
func (c *Client) replacePolicy(ctx context.Context, path, digest string, policy json.RawMessage, reason string) (newDigest string, err error) {
	body := struct {
		Policy json.RawMessage `json:"policy"`
		Reason string          `json:"reason,omitempty"`
	}{policy, reason}
	var got struct{ Digest string }
	_, err = c.do(ctx, http.MethodPut, path, http.Header{"If-Match": {strconv.Quote(digest)}}, body, &got)
	return got.Digest, err
}
