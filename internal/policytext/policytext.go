// Package policytext writes policies as JSON and reads them back.
//
// [Write] returns the policy section of a spec file, and [Read] reads only what Write returned. Package
// specfile reads what people write, and reports each problem with its line.
package policytext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// maxBytes is the largest size of the text of a policy.
const maxBytes = 1 << 20

// ErrTooLarge reports a policy whose text has more than 1 MiB.
var ErrTooLarge = errors.New("the policy is too large")

type policy struct {
	Default    handoff.Mode   `json:"default,omitempty"`
	Rules      []rule         `json:"rules,omitempty"`
	Declassify []declassifier `json:"declassify,omitempty"`
	Endorse    []entry        `json:"endorse,omitempty"`
	Renew      []renewal      `json:"renew,omitempty"`
	Redact     *redaction     `json:"redact,omitempty"`

	HideIdentity     bool  `json:"hideIdentity,omitempty"`
	TranslateByModel *bool `json:"translateByModel,omitempty"` // nil is true
}

type rule struct {
	Name      handoff.Rule                `json:"name,omitempty"`
	From      string                      `json:"from,omitempty"`
	To        string                      `json:"to,omitempty"`
	Mode      handoff.Mode                `json:"mode,omitempty"`
	Allow     []task.Path                 `json:"allow,omitzero"`
	Block     []task.Path                 `json:"block,omitempty"`
	Ceiling   *label.Classification       `json:"maxClassification,omitempty"`
	Redact    *redaction                  `json:"redact,omitempty"`
	Reveal    map[redact.Kind][]task.Path `json:"reveal,omitempty"`
	Translate *translation                `json:"translate,omitempty"`
	Note      string                      `json:"note,omitempty"`
}

type redaction struct {
	Kinds    []redact.Kind `json:"kinds,omitempty"`
	Patterns []pattern     `json:"patterns,omitempty"`
}

type pattern struct {
	Name   string `json:"name"`
	Regexp string `json:"regexp"`
}

type translation struct {
	Fields    []task.Path `json:"fields,omitzero"`
	Filter    []task.Path `json:"filter,omitempty"`
	Summarize *summary    `json:"summarize,omitempty"`
	Recast    string      `json:"recast,omitempty"`
}

type summary struct {
	MaxTokens int    `json:"maxTokens"`
	By        string `json:"by"`
}

type entry struct {
	Name   string `json:"name,omitempty"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type declassifier struct {
	entry
	Paths      []task.Path          `json:"paths,omitempty"`
	LowerTo    label.Classification `json:"lowerTo"`
	Approve    string               `json:"approve,omitempty"`
	UnsafeText bool                 `json:"unsafeText,omitempty"`
}

type renewal struct {
	entry
	TTLMs int64 `json:"ttlMs"`
}

// Write returns a policy in the format of a spec file, without the places of its rules; see [Origins].
func Write(p *handoff.Policy) ([]byte, error) {
	if p == nil {
		p = &handoff.Policy{}
	}
	out := policy{Default: p.Default, Redact: redactionOf(p.Redact), HideIdentity: p.HideIdentity}
	if p.NoTranslationByModel {
		out.TranslateByModel = new(false)
	}
	for i := range p.Rules {
		r := &p.Rules[i]
		out.Rules = append(out.Rules, rule{r.ID, r.From, r.To, r.Mode, r.Allow, r.Block, r.Ceiling, redactionOf(r.Redact), r.Reveal, translationOf(r.Translate), r.Note})
	}
	for i := range p.Declassify {
		d := &p.Declassify[i]
		out.Declassify = append(out.Declassify, declassifier{entryOf(&d.Entry), d.Paths, d.LowerTo, d.Approve, d.UnsafeText})
	}
	for i := range p.Endorse {
		out.Endorse = append(out.Endorse, entryOf(&p.Endorse[i].Entry))
	}
	for i := range p.Renew {
		if p.Renew[i].TTL%time.Millisecond != 0 {
			return nil, fmt.Errorf("renewal %q: its TTL is no whole number of milliseconds", p.Renew[i].Name)
		}
		out.Renew = append(out.Renew, renewal{entryOf(&p.Renew[i].Entry), p.Renew[i].TTL.Milliseconds()})
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil, err
	}
	if text.Len() > maxBytes {
		return nil, fmt.Errorf("%w: its text has %d bytes, at most %d", ErrTooLarge, text.Len(), maxBytes)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// Read returns the policy of a text from [Write].
func Read(text []byte) (*handoff.Policy, error) {
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%w: its text has %d bytes, at most %d", ErrTooLarge, len(text), maxBytes)
	}
	var in policy
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("read a policy: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("read a policy: there is more text after it")
	}
	p := &handoff.Policy{Default: in.Default, Redact: in.Redact.redaction(), HideIdentity: in.HideIdentity, NoTranslationByModel: in.TranslateByModel != nil && !*in.TranslateByModel}
	for _, r := range in.Rules {
		p.Rules = append(p.Rules, handoff.PairRule{
			ID: r.Name, From: r.From, To: r.To, Mode: r.Mode, Allow: r.Allow, Block: r.Block, Ceiling: r.Ceiling,
			Redact: r.Redact.redaction(), Reveal: r.Reveal, Translate: r.Translate.translation(), Note: r.Note,
		})
	}
	for _, d := range in.Declassify {
		p.Declassify = append(p.Declassify, handoff.Declassifier{Entry: d.entry.entry(), Paths: d.Paths, LowerTo: d.LowerTo, Approve: d.Approve, UnsafeText: d.UnsafeText})
	}
	for _, e := range in.Endorse {
		p.Endorse = append(p.Endorse, handoff.Endorser{Entry: e.entry()})
	}
	for _, r := range in.Renew {
		p.Renew = append(p.Renew, handoff.Renewal{Entry: r.entry.entry(), TTL: time.Duration(r.TTLMs) * time.Millisecond})
	}
	return p, nil
}

func redactionOf(r handoff.Redaction) *redaction {
	if len(r.Kinds) == 0 && len(r.Patterns) == 0 {
		return nil
	}
	out := &redaction{Kinds: r.Kinds}
	for _, p := range r.Patterns {
		out.Patterns = append(out.Patterns, pattern(p))
	}
	return out
}

func (r *redaction) redaction() (out handoff.Redaction) {
	if r == nil {
		return out
	}
	out.Kinds = r.Kinds
	for _, p := range r.Patterns {
		out.Patterns = append(out.Patterns, redact.Pattern(p))
	}
	return out
}

func translationOf(t *handoff.Translation) *translation {
	if t == nil {
		return nil
	}
	out := &translation{Fields: t.Fields, Filter: t.Filter, Recast: t.Recast}
	if t.MaxTokens != 0 || t.ByModel {
		out.Summarize = &summary{MaxTokens: t.MaxTokens, By: "excerpt"}
		if t.ByModel {
			out.Summarize.By = "model"
		}
	}
	return out
}

func (t *translation) translation() *handoff.Translation {
	if t == nil {
		return nil
	}
	out := &handoff.Translation{Fields: t.Fields, Filter: t.Filter, Recast: t.Recast}
	if s := t.Summarize; s != nil {
		out.MaxTokens, out.ByModel = s.MaxTokens, s.By == "model"
	}
	return out
}

func entryOf(e *handoff.Entry) entry { return entry{e.Name, e.From, e.To, e.Reason} }

func (e entry) entry() handoff.Entry {
	return handoff.Entry{Name: e.Name, From: e.From, To: e.To, Reason: e.Reason}
}

// Origins returns the places of the rules and entries of a policy, in the order of [Write]; nil if none has
// a place.
func Origins(p *handoff.Policy) (list []provenance.Position) {
	found := false
	for at := range places(p) {
		list, found = append(list, *at), found || *at != provenance.Position{}
	}
	if !found {
		return nil
	}
	return list
}

// SetOrigins sets what [Origins] returned.
func SetOrigins(p *handoff.Policy, list []provenance.Position) {
	i := 0
	for at := range places(p) {
		if i < len(list) {
			*at = list[i]
		}
		i++
	}
}

// places yields the places of the rules and entries of a policy.
func places(p *handoff.Policy) func(yield func(*provenance.Position) bool) {
	var all []*provenance.Position
	for i := range p.Rules {
		all = append(all, &p.Rules[i].Origin)
	}
	for i := range p.Declassify {
		all = append(all, &p.Declassify[i].Origin)
	}
	for i := range p.Endorse {
		all = append(all, &p.Endorse[i].Origin)
	}
	for i := range p.Renew {
		all = append(all, &p.Renew[i].Origin)
	}
	return func(yield func(*provenance.Position) bool) {
		for _, at := range all {
			if !yield(at) {
				return
			}
		}
	}
}
