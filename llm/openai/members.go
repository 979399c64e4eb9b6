package openai

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/runteam/runteam/llm"
)

// A level is an object of a message to which providers add members.
type level int

const (
	ofMessage  level = iota
	ofCall           // an item of tool_calls
	ofFunction       // its function
)

// protocol has the members of a message of the assistant, of its calls and of their functions
// that the protocol defines (platform.openai.com/docs/api-reference/chat/object and its streams).
// They are not a provider's own, so they are never sent as such.
var protocol = [...][]string{
	ofMessage:  {"role", "content", "tool_calls", "refusal", "function_call", "tool_call_id", "annotations", "audio", "name"},
	ofCall:     {"id", "type", "function", "index", "custom"},
	ofFunction: {"name", "arguments"},
}

// isOfProtocol reports whether the protocol defines a member, in whatever case: some servers
// read names in any.
func isOfProtocol(l level, name []byte) bool {
	for _, known := range protocol[l] {
		if len(name) >= len(known) && (name[0]|0x20 == known[0] || name[0] >= utf8.RuneSelf) && strings.EqualFold(known, string(name)) {
			return true
		}
	}
	return false
}

// rawMembers are members of one object of a reply.
type rawMembers struct {
	text   []byte // names and values, one after the other
	ends   []int  // of each in text
	excess bool   // there were more than can be kept
}

// reset returns no members, with the memory of m.
func (m *rawMembers) reset() rawMembers { return rawMembers{text: m.text[:0], ends: m.ends[:0]} }

// add adds a member.
func (m *rawMembers) add(name, value []byte) {
	if m.excess || len(m.text)+len(name)+len(value) > llm.MaxProviderData {
		m.excess = true
		return
	}
	m.text = append(m.text, name...)
	m.ends = append(m.ends, len(m.text))
	m.text = append(m.text, value...)
	m.ends = append(m.ends, len(m.text))
}

// all returns the names and the values.
func (m *rawMembers) all() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		start := 0
		for i := 0; i < len(m.ends); i += 2 {
			if !yield(m.text[start:m.ends[i]], m.text[m.ends[i]:m.ends[i+1]]) {
				return
			}
			start = m.ends[i+1]
		}
	}
}

// keep adds the next value to m, or the one that was read since an offset. null and empty values
// say nothing and are not kept, except for an empty reasoning_content: DeepSeek and Moonshot refuse a
// call of a tool that comes back without that member (api-docs.deepseek.com/guides/thinking_mode).
func (d *completionReader) keep(m *rawMembers, name []byte, start int64) error {
	if d.tokens.InputOffset() == start {
		if _, err := d.tokens.ReadValue(); err != nil { // faster than SkipValue, which reads token by token
			return err
		}
	}
	switch raw := d.since(start); string(raw) {
	case "null", "[]", "{}":
	case `""`:
		if string(name) == emptyMember {
			m.add(name, raw)
		}
	default:
		m.add(name, raw)
	}
	return nil
}

// emptyMember is the member that is kept and sent even if it is empty.
const emptyMember = "reasoning_content"

// members are the members that a provider adds to an object, as they arrive.
type members struct {
	value  *pieces // an object; nil if there are none
	size   int
	excess bool // there were more than can be kept
}

// has reports whether there is a member with a name.
func (m *members) has(name []byte) bool { return m.value != nil && m.value.find(name) != nil }

// addAll adds members.
func (m *members) addAll(all *rawMembers, as arrival) {
	for name, value := range all.all() {
		m.add(name, value, as)
	}
	m.excess = m.excess || all.excess
}

// add adds a member: the whole of it, or a piece.
func (m *members) add(name, value []byte, as arrival) {
	if m.excess {
		return
	}
	if m.value == nil {
		m.value = &pieces{kind: '{'}
	}
	grown := 0
	v := m.value.find(name)
	switch {
	case v == nil:
		grown = len(name) + len(value)
		m.value.append(string(name), newPieces(value))
	case as == asDelta:
		grown = v.merge(name, value, string(name) == thoughts || string(name) == "thinking_blocks", 0)
	default:
		grown = len(value)
		v.set(value)
	}
	if m.size += grown; m.size > llm.MaxProviderData {
		*m = members{excess: true}
	}
}

// object returns the members as a JSON object; nil if there are none.
func (m *members) object() json.RawMessage {
	if m.value == nil {
		return nil
	}
	return m.value.appendTo(nil)
}

// pieces are a JSON value of a stream as it arrives: strings are appended, the members of objects are merged, and
// arrays get the items of the next piece, unless an item continues an earlier one: see [itemName].
type pieces struct {
	kind  jsontext.Kind
	raw   []byte         // as it arrived, a string without its closing quote; nil once it is taken apart
	names []string       // of the parts of an object
	parts []*pieces      // of an object or an array
	at    map[string]int // the part of a name; the last item of a key of an [itemName]
}

func newPieces(raw []byte) *pieces {
	p := new(pieces)
	p.set(raw)
	return p
}

// set makes a text the whole value.
func (p *pieces) set(raw []byte) {
	*p = pieces{kind: jsontext.Value(raw).Kind(), raw: append(p.raw[:0], raw...)}
	if p.kind == '"' {
		p.raw = p.raw[:len(raw)-1]
	}
}

// find returns the member of an object that is taken apart, or the item of an array by its index.
func (p *pieces) find(name []byte) *pieces {
	if p.kind == '{' && len(p.names) <= 8 { // faster than the map
		for i := range p.names {
			if p.names[i] == string(name) {
				return p.parts[i]
			}
		}
		return nil
	}
	if i, ok := p.at[string(name)]; ok {
		return p.parts[i]
	}
	return nil
}

// append adds a member of an object.
func (p *pieces) append(name string, part *pieces) {
	p.enter(name)
	p.names, p.parts = append(p.names, name), append(p.parts, part)
}

// enter makes the next part the one that a name finds.
func (p *pieces) enter(name string) {
	if p.at == nil {
		p.at = map[string]int{}
	}
	p.at[name] = len(p.parts)
}

// takeApart makes the parts of a value from its text.
func (p *pieces) takeApart() {
	if p.raw == nil {
		return
	}
	for name, value := range partsOf(p.raw) {
		if p.kind == '[' {
			p.appendItem(value, nameOf(membersOf(value, nil)))
		} else if name = unquoted(name); p.find(name) != nil {
			p.find(name).set(value)
		} else {
			p.append(string(name), newPieces(value))
		}
	}
	p.raw = nil
}

// maxMergeDepth bounds the depth of values that are merged; deeper ones are replaced.
const maxMergeDepth = 16

// merge adds a piece of a value with a name, and returns by how many bytes the value has grown. If
// joins is set, an item of an array without an index continues the last item, if that has its type
// and no signature yet: so Mistral streams parts of the content, and LiteLLM thinking_blocks.
func (p *pieces) merge(name, raw []byte, joins bool, depth int) (grown int) {
	kind := jsontext.Value(raw).Kind()
	switch {
	case kind == 'n':
		return 0
	case kind != p.kind || depth == maxMergeDepth:
		p.set(raw)
		return len(raw)
	case kind == '"':
		inner := raw[1 : len(raw)-1]
		switch {
		case len(inner) == 0, bytes.Contains(name, []byte("signature")) && bytes.Equal(p.raw[1:], inner): // with each piece again
			return 0
		case isIdentifier(name):
			before := len(p.raw)
			p.raw = append(p.raw[:1], inner...)
			return len(p.raw) - before
		}
		p.raw = append(p.raw, inner...)
		return len(inner)
	case kind == '{':
		var buffer [8]rawMember
		return p.mergeMembers(membersOf(raw, buffer[:0]), joins, depth)
	case kind == '[':
		p.takeApart()
		for _, value := range partsOf(raw) {
			grown += p.mergeItem(value, joins, depth)
		}
		return grown
	}
	grown = len(raw) - len(p.raw)
	p.raw = append(p.raw[:0], raw...)
	return grown
}

// mergeMembers adds members of an object.
func (p *pieces) mergeMembers(members []rawMember, joins bool, depth int) (grown int) {
	p.takeApart()
	for _, m := range members {
		if part := p.find(m.name); part != nil {
			grown += part.merge(m.name, m.value, joins, depth+1)
			continue
		}
		p.append(string(m.name), newPieces(m.value))
		grown += len(m.name) + len(m.value)
	}
	return grown
}

// mergeItem adds an item of an array, or what it adds to an earlier one.
func (p *pieces) mergeItem(item []byte, joins bool, depth int) (grown int) {
	var buffer [8]rawMember
	members := membersOf(item, buffer[:0])
	name := nameOf(members)
	part := p.named(&name)
	if part == nil && joins && name.index == nil && p.joins(&name) {
		part = p.parts[len(p.parts)-1]
	}
	switch {
	case part == nil:
		p.appendItem(item, name)
		return len(item) + 1
	case part.kind == '{' && depth+1 < maxMergeDepth:
		return part.mergeMembers(members, joins, depth+1)
	}
	return part.merge(nil, item, joins, depth+1)
}

// isIdentifier reports whether a string with a name is not written in pieces.
func isIdentifier(name []byte) bool {
	switch string(name) {
	case "id", "index", "type", "name", "format", "role":
		return true
	}
	return false
}

// appendTo appends the text of the value.
func (p *pieces) appendTo(text []byte) []byte {
	if p.raw != nil {
		text = append(text, p.raw...)
		if p.kind == '"' {
			text = append(text, '"')
		}
		return text
	}
	text = append(text, byte(p.kind))
	for i, part := range p.parts {
		if i > 0 {
			text = append(text, ',')
		}
		if p.kind == '{' {
			text, _ = jsontext.AppendQuote(text, p.names[i])
			text = append(text, ':')
		}
		text = part.appendTo(text)
	}
	return append(text, byte(p.kind)+2) // the closing bracket
}

// memberOf returns the value of a member of a JSON object, or nil.
func memberOf(object []byte, member string) []byte {
	for name, value := range partsOf(object) {
		if string(unquoted(name)) == member {
			return value
		}
	}
	return nil
}

// unquoted returns the text of a JSON string.
func unquoted(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw)
	return text
}

// partsOf returns the names, as JSON strings, and the values of a valid JSON object, or the items of an
// array without names.
func partsOf(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		var name []byte
		depth, start := 0, 1
		for i := 0; i < len(raw); i++ {
			switch raw[i] {
			case '"':
				i = endOfString(raw, i)
			case '{', '[':
				depth++
			case ':':
				if depth == 1 {
					name, start = trimmed(raw[start:i]), i+1
				}
			case ',', '}', ']':
				if raw[i] != ',' {
					depth--
				}
				if depth > 1 || depth == 1 && raw[i] != ',' {
					continue
				}
				if value := trimmed(raw[start:i]); len(value) > 0 && !yield(name, value) {
					return
				}
				start = i + 1
			}
		}
	}
}

// trimmed returns a text without the whitespace around it.
func trimmed(raw []byte) []byte {
	if n := len(raw); n > 0 && raw[0] > ' ' && raw[n-1] > ' ' {
		return raw // as nearly always
	}
	return bytes.TrimSpace(raw)
}

// endOfString returns the index of the quote that ends the JSON string that begins at i.
func endOfString(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}
