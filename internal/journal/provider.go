package journal

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
)

// providerKind is the kind of encrypted provider data. Its place has the turn before too, so that it
// cannot be moved to another conversation.
const providerKind = "providerData"

// hideProvider returns the stored form of what a provider needs back with a turn, whatever its label is.
// Without a key nothing of it is stored, and a turn with members cannot be continued; the IDs of
// calls are replaced by those of the engine.
func (v *vault) hideProvider(of *record.ProviderData, run, session, part string) (*providerLine, error) {
	switch {
	case of == nil || of.Data == nil:
		return nil, nil
	case v.sealer == nil && !hasMembers(of.Data):
		return nil, nil
	case v.sealer == nil:
		return &providerLine{Before: of.Before}, nil
	}
	d := of.Data
	b := providerBytes{Endpoint: d.Endpoint, Model: d.Model, Message: d.Message}
	for _, c := range d.Calls {
		b.Calls = append(b.Calls, providerCallBytes{[]byte(c.ID), c.Members, c.Function})
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	sealed, err := v.sealer.seal(text, joinLengths(providerKind, run, session, part, of.Before), true)
	return &providerLine{of.Before, &sealed}, err
}

// hasMembers reports whether provider data has more than IDs.
func hasMembers(d *llm.ProviderData) bool {
	n := len(d.Message)
	for i := range d.Calls {
		n += len(d.Calls[i].Members) + len(d.Calls[i].Function)
	}
	return n > 0
}

// showProvider returns what a provider needs back with a turn, without the data if that is missing.
func (v *vault) showProvider(l *providerLine, run, session, part string) *record.ProviderData {
	if l == nil {
		return nil
	}
	out := &record.ProviderData{Before: l.Before}
	if l.Sealed == nil {
		return out
	}
	var b providerBytes
	text, err := v.sealer.open(*l.Sealed, joinLengths(providerKind, run, session, part, l.Before))
	if err != nil || json.Unmarshal(text, &b) != nil {
		return out
	}
	out.Data = &llm.ProviderData{Endpoint: b.Endpoint, Model: b.Model, Message: b.Message}
	for _, c := range b.Calls {
		out.Data.Calls = append(out.Data.Calls, llm.ProviderCall{ID: string(c.ID), Members: c.Members, Function: c.Function})
	}
	return out
}
