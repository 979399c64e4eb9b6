package task

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
)

// wire is the JSON form of a [Task]: the keys of the TypeScript original, then
// those that only this module knows. Durations are milliseconds, times RFC 3339
// in UTC. What equals a default is left out.
type wire struct {
	ID                ID               `json:"id,omitempty"`
	Title             string           `json:"title"`
	Description       string           `json:"description"`
	Status            Status           `json:"status,omitempty"`
	Assignee          string           `json:"assignee,omitempty"`
	DependsOn         []wireDependency `json:"dependsOn,omitempty"`
	When              *Condition       `json:"when,omitempty"`
	Reads             int              `json:"reads,omitempty"`
	DependencyPayload Payload          `json:"dependencyPayload,omitempty"`
	MemoryScope       MemoryScope      `json:"memoryScope,omitempty"`
	MaxRetries        int              `json:"maxRetries,omitempty"`
	RetryDelay        *millis          `json:"retryDelayMs,omitempty"`
	RetryBackoff      *float64         `json:"retryBackoff,omitempty"`
	Role              string           `json:"role,omitempty"`
	Priority          Priority         `json:"priority,omitempty"`
	Requires          *Requires        `json:"requires,omitempty"`
	Metadata          map[string]any   `json:"metadata,omitempty"`
	CreatedAt         time.Time        `json:"createdAt,omitzero"`
	UpdatedAt         time.Time        `json:"updatedAt,omitzero"`

	wireOwn
}

// wireOwn are the keys that only this module knows.
type wireOwn struct {
	Key            string               `json:"key,omitempty"`
	Value          json.RawMessage      `json:"value,omitempty"`
	Template       string               `json:"template,omitempty"`
	Params         []wireParam          `json:"params,omitempty"`
	Uses           []wireUse            `json:"uses,omitempty"`
	Tools          []string             `json:"tools,omitzero"`
	Classification label.Classification `json:"classification,omitzero"`
	RequiredTags   []string             `json:"requiredTags,omitempty"`
	OutputSchema   json.RawMessage      `json:"outputSchema,omitempty"`
	OutputFiles    []string             `json:"outputFiles,omitempty"`
	TTL            millis               `json:"ttlMs,omitzero"`
	Timeout        millis               `json:"timeoutMs,omitzero"`
	Reuse          string               `json:"reuse,omitempty"`
	Provenance     *provenance.Record   `json:"provenance,omitempty"`
	Origin         *wirePosition        `json:"origin,omitempty"`

	Workspace       *WorkspaceLimits `json:"workspace,omitempty"`
	OnTimeout       string           `json:"onTimeout,omitempty"`
	AcceptTruncated bool             `json:"acceptTruncated,omitempty"`
	OnFailure       string           `json:"onFailure,omitempty"`
}

type wireParam struct {
	Name  string `json:"name"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

type wirePosition struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitzero"`
	Column int    `json:"column,omitzero"`
}

// A wireDependency is an id alone, or an object when there is more to say.
type wireDependency struct {
	Task     string   `json:"task"`
	As       Payload  `json:"as,omitempty"`
	OneOf    []string `json:"oneOf,omitempty"`
	Each     string   `json:"each,omitempty"`
	Item     Path     `json:"item,omitempty"`
	Title    string   `json:"title,omitempty"`
	Round    string   `json:"round,omitempty"`
	Need     []Path   `json:"need,omitzero"`
	Optional bool     `json:"optional,omitempty"`
	Files    []Path   `json:"files,omitempty"`

	OnConflict      string `json:"onConflict,omitempty"`
	MaxContextBytes int    `json:"maxContextBytes,omitempty"`
}

// MarshalJSON writes the id alone when the rest is empty.
func (d wireDependency) MarshalJSON() ([]byte, error) {
	if d.As == "" && !d.Optional && d.Need == nil && d.MaxContextBytes == 0 && len(d.Files) == 0 && len(d.OneOf) == 0 {
		return json.Marshal(d.Task)
	}
	type plain wireDependency
	return json.Marshal(plain(d))
}

// UnmarshalJSON reads an id or an object.
func (d *wireDependency) UnmarshalJSON(data []byte) error {
	*d = wireDependency{}
	if data[0] == '"' {
		return json.Unmarshal(data, &d.Task)
	}
	type plain wireDependency
	return json.Unmarshal(data, (*plain)(d))
}

// A wireUse is the name of an input alone, or an object when there is more to say.
type wireUse struct {
	Name   string            `json:"name"`
	Need   []Path            `json:"need,omitzero"`
	Reveal map[string][]Path `json:"reveal,omitempty"`
	At     string            `json:"at,omitempty"`
	Item   Path              `json:"item,omitempty"`
	Title  string            `json:"title,omitempty"`
}

// MarshalJSON writes the name alone when the rest is empty.
func (u wireUse) MarshalJSON() ([]byte, error) {
	if u.Need == nil && len(u.Reveal) == 0 && u.At == "" && u.Item == "" {
		return json.Marshal(u.Name)
	}
	type plain wireUse
	return json.Marshal(plain(u))
}

// UnmarshalJSON reads a name or an object.
func (u *wireUse) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &u.Name)
	}
	type plain wireUse
	return json.Unmarshal(data, (*plain)(u))
}

// millis is a duration written as a number of milliseconds, with a fraction if
// need be. It is written and read digit by digit, since a float64 cannot hold
// every nanosecond of a long duration.
type millis time.Duration

// MarshalJSON writes milliseconds.
func (m millis) MarshalJSON() ([]byte, error) {
	whole, rest := time.Duration(m)/time.Millisecond, time.Duration(m)%time.Millisecond
	if rest == 0 {
		return strconv.AppendInt(nil, int64(whole), 10), nil
	}
	return []byte(strings.TrimRight(fmt.Sprintf("%d.%06d", whole, rest), "0")), nil
}

// UnmarshalJSON reads milliseconds, to the nanosecond. What a duration cannot
// hold, and what is negative, is an error.
func (m *millis) UnmarshalJSON(data []byte) error {
	var number json.Number
	if err := json.Unmarshal(data, &number); err != nil || len(data) == 0 || data[0] == '"' {
		return fmt.Errorf("%s is not a number of milliseconds", naming.Quote(string(data)))
	}
	whole, fraction, _ := strings.Cut(string(number), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	digits, bad := strconv.ParseUint((fraction + "000000")[:6], 10, 32)
	if err == nil && bad == nil && data[0] != '-' && n < math.MaxInt64/int64(time.Millisecond) {
		*m = millis(n)*millis(time.Millisecond) + millis(digits)
		return nil
	}
	ms, err := number.Float64() // an exponent, or out of range
	if err != nil || !(ms >= 0 && ms*float64(time.Millisecond) < math.MaxInt64) {
		return fmt.Errorf("%s milliseconds are out of range", number)
	}
	*m = millis(math.Round(ms * float64(time.Millisecond)))
	return nil
}

// MarshalJSON writes a task with the keys of open-multi-agent, the TypeScript original
// (camelCase; durations in milliseconds; times RFC 3339 in UTC), and with further keys for
// the fields that only this module has. If all dependencies have the same payload form, it
// is written once, as dependencyPayload.
func (t Task) MarshalJSON() ([]byte, error) {
	w := wire{
		ID: t.ID, Title: t.Title, Description: t.Description, Status: t.Status, Assignee: t.Assignee,
		When: t.When, Reads: t.Reads, MaxRetries: t.MaxRetries, Role: t.Role, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
		wireOwn: wireOwn{
			Key: t.Key, Value: t.Value, Template: t.Template, Tools: t.Tools, Classification: t.Classification, RequiredTags: t.RequiredTags, OutputSchema: t.OutputSchema, OutputFiles: t.OutputFiles,
			TTL: millis(t.TTL), Timeout: millis(t.Timeout), OnTimeout: t.OnTimeout, Reuse: t.Reuse, Workspace: t.Workspace, AcceptTruncated: t.AcceptTruncated, OnFailure: t.OnFailure,
		},
	}
	if !t.Requires.isEmpty() {
		w.Requires = t.Requires
	}
	w.DependencyPayload = sharedPayload(t.DependsOn)
	for _, d := range t.DependsOn {
		if w.DependencyPayload != "" || payload(d.As) == Output {
			d.As = ""
		}
		w.DependsOn = append(w.DependsOn, wireDependency(d))
	}
	for _, u := range t.Uses {
		w.Uses = append(w.Uses, wireUse(u))
	}
	for _, p := range t.Source.Params {
		w.Params = append(w.Params, wireParam(p))
	}
	if t.MemoryScope != ScopeDependencies {
		w.MemoryScope = t.MemoryScope
	}
	if t.Priority != Normal {
		w.Priority = t.Priority
	}
	if t.RetryDelay != defaultRetryDelay {
		w.RetryDelay = new(millis(max(t.RetryDelay, 0)))
	}
	if t.RetryBackoff != defaultRetryBackoff {
		w.RetryBackoff = new(max(t.RetryBackoff, 1))
	}
	w.Provenance = t.Source.Record
	if t.Source.Origin != (provenance.Position{}) {
		w.Origin = new(wirePosition(t.Source.Origin))
	}
	return json.Marshal(w)
}

// sharedPayload returns the form that all dependencies have in common, unless it is the default.
func sharedPayload(deps []Ref) Payload {
	if len(deps) == 0 || payload(deps[0].As) == Output {
		return ""
	}
	for _, d := range deps {
		if d.As != deps[0].As {
			return ""
		}
	}
	return deps[0].As
}

// UnmarshalJSON reads what [Task.MarshalJSON] or the original writes. Missing keys take
// their defaults. Unknown keys are ignored. An invalid status, payload form, memory scope
// or priority is an error. Texts and references are not checked; [Resolve] does that.
func (t *Task) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("read task: %w", err)
	}
	*t = Task{ID: w.ID, Reads: min(max(w.Reads, 0), len(w.DependsOn)), Status: w.Status, CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt, Spec: Spec{
		Key: w.Key, Value: w.Value, Template: w.Template, Title: w.Title, Description: w.Description, Assignee: w.Assignee, When: w.When, Tools: w.Tools,
		MemoryScope: w.MemoryScope, Classification: w.Classification, RequiredTags: w.RequiredTags,
		OutputSchema: w.OutputSchema, OutputFiles: w.OutputFiles, TTL: time.Duration(w.TTL),
		MaxRetries: max(w.MaxRetries, 0), RetryDelay: defaultRetryDelay, RetryBackoff: defaultRetryBackoff,
		Timeout: time.Duration(w.Timeout), OnTimeout: w.OnTimeout, AcceptTruncated: w.AcceptTruncated, OnFailure: w.OnFailure, Reuse: w.Reuse, Workspace: w.Workspace,
		Role: w.Role, Priority: w.Priority, Metadata: w.Metadata, Source: provenance.Source{Record: w.Provenance},
	}}
	if w.RetryDelay != nil {
		t.RetryDelay = time.Duration(*w.RetryDelay)
	}
	if w.RetryBackoff != nil {
		t.RetryBackoff = *w.RetryBackoff
	}
	if !w.Requires.isEmpty() {
		t.Requires = w.Requires
	}
	if w.Origin != nil {
		t.Source.Origin = provenance.Position(*w.Origin)
	}
	for _, d := range w.DependsOn {
		if d.As == "" {
			d.As = w.DependencyPayload
		}
		d.As = payload(d.As)
		t.DependsOn = append(t.DependsOn, Ref(d))
	}
	for _, u := range w.Uses {
		t.Uses = append(t.Uses, Use(u))
	}
	for _, p := range w.Params {
		t.Source.Params = append(t.Source.Params, provenance.Param(p))
	}
	return t.complete()
}

// complete fills in the defaults of a task just read, and checks its words.
func (t *Task) complete() error {
	if t.Status == "" {
		t.Status = Pending
	}
	if !t.Status.valid() {
		return fmt.Errorf("%w: task %s: status %s", ErrInvalid, naming.Quote(t.Title), naming.Quote(string(t.Status)))
	}
	found := &findings{}
	c := checker{t: t, found: found}
	c.words()
	for k, d := range t.DependsOn {
		if !d.As.valid() {
			found.add(0, badPayload(t, 0, k, d.As))
		}
	}
	return found.err()
}
