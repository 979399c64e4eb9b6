package openai

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// An itemName is what names an item of an array in a stream, as JSON texts; nil is missing. An item continues the
// last one with its index that has no other type and no other ID: so OpenRouter writes reasoning_details
// (openrouter.ai/docs/use-cases/reasoning-tokens), where a signature may have the index of the text before it.
type itemName struct{ index, kind, id []byte }

// A rawMember is a member of a JSON object: its name, and the text of its value.
type rawMember struct{ name, value []byte }

// membersOf appends the members of an object to a list; any other value has none.
func membersOf(raw []byte, list []rawMember) []rawMember {
	if jsontext.Value(raw).Kind() != '{' {
		return list
	}
	for name, value := range partsOf(raw) {
		list = append(list, rawMember{unquoted(name), value})
	}
	return list
}

// nameOf returns the name of an item with these members.
func nameOf(members []rawMember) (n itemName) {
	for _, m := range members {
		switch string(m.name) {
		case "index":
			n.index = m.value
		case "type":
			n.kind = m.value
		case "id":
			if string(m.value) != "null" {
				n.id = m.value
			}
		}
	}
	return n
}

// keys returns the texts by which the item is found, each of which begins with those before; none without an index.
func (n *itemName) keys(buffer []byte) (text []byte, ends []int) {
	if n.index == nil {
		return nil, nil
	}
	index := append(buffer, n.index...)
	kind := append(append(index, ' '), n.kind...)
	id := append(append(kind, ' '), n.id...)
	return id, []int{len(index), len(kind), len(id)}
}

// named returns the item of an array that is taken apart which an item with a name continues, or nil.
func (p *pieces) named(n *itemName) *pieces {
	var buffer [64]byte
	text, ends := n.keys(buffer[:0])
	for _, end := range slices.Backward(ends) {
		if part := p.find(text[:end]); part != nil && !part.isOther("type", n.kind) && !part.isOther("id", n.id) {
			return part
		}
	}
	return nil
}

// appendItem adds an item of an array.
func (p *pieces) appendItem(item []byte, n itemName) {
	text, ends := n.keys(nil)
	for _, end := range ends {
		p.enter(string(text[:end]))
	}
	p.parts = append(p.parts, newPieces(item))
}

// isOther reports whether an object has another value of a member than one that is given.
func (p *pieces) isOther(name string, value []byte) bool {
	p.takeApart()
	v := p.find([]byte(name))
	if v == nil || value == nil || v.kind == 'n' {
		return false
	}
	return !bytes.Equal(v.raw, bytes.TrimSuffix(value, []byte(`"`)))
}

// joins reports whether an item without an index continues the last item of an array.
func (p *pieces) joins(n *itemName) bool {
	if len(p.parts) == 0 || p.parts[len(p.parts)-1].kind != '{' {
		return false
	}
	last := p.parts[len(p.parts)-1]
	last.takeApart()
	for _, end := range []string{"signature", "data"} {
		if v := last.find([]byte(end)); v != nil && v.kind == '"' && len(v.raw) > 1 {
			return false
		}
	}
	return last.find([]byte("type")) != nil && n.kind != nil && !last.isOther("type", n.kind)
}
