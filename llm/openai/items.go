package openai

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// An itemName is what names an item of an array in a stream, as JSON texts; nil is missing. An item continues the
// last one with its index that has no other type and no other ID: so OpenRouter writes reasoning_details
// (openrouter.ai/docs/use-cases/reasoning-tokens), where a signature may have the index of the text before it.
type itemName struct{ index, kind, id []byte }

// nameOf returns the name of an item.
func nameOf(item []byte) (n itemName) {
	if jsontext.Value(item).Kind() != '{' {
		return n
	}
	for name, value := range partsOf(item) {
		switch string(unquoted(name)) {
		case "index":
			n.index = value
		case "type":
			n.kind = value
		case "id":
			if string(value) != "null" {
				n.id = value
			}
		}
	}
	return n
}

// keys yields the texts by which the item is found, the most exact one first.
func (n *itemName) keys(yield func(key []byte) bool) {
	if n.index == nil {
		return
	}
	var buffer [128]byte
	key := append(buffer[:0], n.index...)
	index := len(key)
	key = append(append(key, ' '), n.kind...)
	kind := len(key)
	key = append(append(key, ' '), n.id...)
	_ = yield(key) && yield(key[:kind]) && yield(key[:index])
}

// named returns the item of an array that is taken apart which an item with a name continues, or nil.
func (p *pieces) named(n *itemName) *pieces {
	for key := range n.keys {
		if part := p.find(key); part != nil && !part.isOther("type", n.kind) && !part.isOther("id", n.id) {
			return part
		}
	}
	return nil
}

// appendItem adds an item of an array.
func (p *pieces) appendItem(item []byte, n itemName) {
	for key := range n.keys {
		p.enter(string(key))
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

// joins reports whether an item continues the last item of an array.
func (p *pieces) joins(item []byte) bool {
	if len(p.parts) == 0 || jsontext.Value(item).Kind() != '{' || p.parts[len(p.parts)-1].kind != '{' {
		return false
	}
	last := p.parts[len(p.parts)-1]
	last.takeApart()
	for _, end := range []string{"signature", "data"} {
		if v := last.find([]byte(end)); v != nil && v.kind == '"' && len(v.raw) > 1 {
			return false
		}
	}
	kind := last.find([]byte("type"))
	return kind != nil && kind.kind == '"' && bytes.Equal(append(kind.raw, '"'), memberOf(item, "type"))
}
