package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/runteam/runteam/llm"
)

// maxTools bounds the tool calls of one reply.
const maxTools = 128

// A callPiece is a tool call of a reply, or a piece of one.
type callPiece struct {
	index               []byte // names the call in a stream; empty if the endpoint does not say
	id, name, arguments []byte
	members, function   rawMembers
}

// A toolCall is a tool call as it arrives.
type toolCall struct {
	index               string
	id, name, arguments []byte
	members, function   members

	isWhole bool          // the request offers a tool of that name
	object  objectScanner // of the arguments
	latest  []byte        // the last piece of the arguments if each repeats what came before it
	repeats int           // how many pieces did
	pieces  bool          // a piece did not
}

// toolCalls are the tool calls of a reply as they arrive.
type toolCalls struct {
	offered []llm.Tool
	list    []toolCall
	whole   int // how many calls at the start of the list are known to be no pieces of others
	size    int // bytes of the calls
}

func (s *toolCalls) reset() { s.list, s.whole, s.size = nil, 0, 0 }

// size returns the bytes of the call.
func (t *toolCall) size() int { return len(t.id) + len(t.name) + len(t.arguments) + len(t.latest) }

// add adds a call or, in a stream, a piece of one. What names a call decides which: its ID, its
// index, else the order of the pieces.
func (s *toolCalls) add(p *callPiece, as arrival) error {
	i := -1
	if as != asWhole {
		i = s.find(p)
	}
	if i < 0 {
		if len(s.list) >= maxTools {
			if s.joinFragments(false); len(s.list) >= maxTools {
				return errTools
			}
		}
		i = len(s.list)
		s.list = append(s.list, toolCall{index: string(p.index)})
	}
	t := &s.list[i]
	before := t.size()
	if len(t.id) == 0 {
		t.id = append(t.id, p.id...)
	}
	if t.index == "" {
		t.index = string(p.index)
	}
	if err := s.addName(t, p); err != nil {
		return err
	}
	t.addArguments(p.arguments)
	s.size += t.size() - before
	t.members.addAll(&p.members, as)
	t.function.addAll(&p.function, as)
	return nil
}

// find returns the call that a piece of a stream continues, or -1 if it begins one.
func (s *toolCalls) find(p *callPiece) int {
	last := -1 // the last call that the piece may continue by its index
	for i := len(s.list) - 1; i >= 0; i-- {
		t := &s.list[i]
		if len(p.index) > 0 && t.index != "" && t.index != string(p.index) {
			continue
		}
		if len(p.id) > 0 && bytes.Equal(t.id, p.id) {
			if t.object.closed && len(p.name) > 0 && len(p.arguments) > 0 && !bytes.Equal(t.arguments, p.arguments) {
				return -1 // some servers give all calls one ID, such as the name of the tool
			}
			return i
		}
		if last < 0 && (t.index == string(p.index) || len(p.index) == 0 || i == len(s.list)-1) {
			last = i
		}
	}
	if last < 0 || s.begins(&s.list[last], p) {
		return -1
	}
	return last
}

// begins reports whether a piece that may continue a call begins another one. The piece has not
// the ID of the call.
func (s *toolCalls) begins(t *toolCall, p *callPiece) bool {
	switch {
	case len(p.id) > 0 && len(t.id) > 0: // some servers give each piece an ID of its own
		return len(p.name) > 0 || t.object.closed
	case len(p.name) == 0:
		return false
	case !bytes.Equal(t.name, p.name):
		return !s.isPartOfName(t, p) && (t.object.closed || len(t.arguments) == 0)
	case !t.object.closed || len(p.arguments) == 0:
		return false
	}
	return len(p.index) == 0 && len(t.id) == 0 || !bytes.Equal(t.arguments, p.arguments)
}

// isPartOfName reports whether the name of a piece is another part of the name of its call.
func (s *toolCalls) isPartOfName(t *toolCall, p *callPiece) bool {
	return len(t.arguments) == 0 && len(t.name) > 0 &&
		(s.offers(t.name, p.name) || !t.isWhole && (len(p.id) == 0 || bytes.HasPrefix(p.name, t.name)))
}

// addName adds the name of a piece. One that repeats is not appended.
func (s *toolCalls) addName(t *toolCall, p *callPiece) error {
	if len(p.name) == 0 || t.isWhole && bytes.Equal(t.name, p.name) {
		return nil
	}
	switch {
	case bytes.Equal(t.name, p.name) && !s.offers(t.name, p.name):
	case len(t.name) == 0, bytes.HasPrefix(p.name, t.name) && s.isPartOfName(t, p) && !s.offers(t.name, p.name):
		t.name = append(t.name[:0], p.name...)
	case s.isPartOfName(t, p):
		t.name = append(t.name, p.name...)
	default:
		return errName
	}
	t.isWhole = s.offers(t.name, nil)
	return nil
}

// offers reports whether the request offers the tool whose name has these two parts.
func (s *toolCalls) offers(first, second []byte) bool {
	return slices.ContainsFunc(s.offered, func(o llm.Tool) bool {
		n := len(first)
		return len(o.Name) == n+len(second) && o.Name[:n] == string(first) && o.Name[n:] == string(second)
	})
}

// noArguments are the arguments of a call without any.
const noArguments = "{}"

// addArguments adds a piece of the arguments. A piece may repeat those before it, which shows only
// at the end: {"a": may be followed by {"a":1}} in either way.
func (t *toolCall) addArguments(p []byte) {
	switch {
	case len(p) == 0:
		return
	case t.object.closed && (bytes.Equal(t.arguments, p) || string(p) == noArguments):
		return // the whole call again, or what some gateways write at the end
	case t.object.closed && string(t.arguments) == noArguments: // what some gateways write at the start
		t.arguments, t.object = t.arguments[:0], objectScanner{}
	case len(t.arguments) == 0 || t.pieces:
	case t.repeats == 0 && bytes.HasPrefix(p, t.arguments), t.repeats > 0 && bytes.HasPrefix(p, t.latest):
		t.latest, t.repeats = append(t.latest[:0], p...), t.repeats+1
	default:
		t.latest, t.pieces = nil, true
	}
	t.arguments = append(t.arguments, p...)
	t.object.add(p)
}

// dropRepeated makes the arguments shorter of calls whose pieces repeat those before them.
func (s *toolCalls) dropRepeated() {
	s.size = 0
	for i := range s.list {
		t := &s.list[i]
		if t.repeats > 1 && !t.pieces && len(t.arguments) > len(t.latest) {
			t.arguments = append(t.arguments[:0], t.latest...)
			t.object = objectScanner{}
			t.object.add(t.arguments)
		}
		s.size += t.size()
	}
}

// areRepeatedBy reports whether the calls of a message are at least those that have arrived, whatever their IDs.
func (s *toolCalls) areRepeatedBy(message []callPiece) bool {
	for i := range s.list {
		if i >= len(message) || !bytes.Equal(s.list[i].name, message[i].name) || !bytes.Equal(s.list[i].arguments, message[i].arguments) {
			return false
		}
	}
	return true
}

// finished returns the calls, once all of them have arrived.
func (s *toolCalls) finished() []toolCall {
	s.list = slices.DeleteFunc(s.list, func(t toolCall) bool { return len(t.id) == 0 && len(t.name) == 0 && len(t.arguments) == 0 })
	s.joinFragments(true)
	order := make(map[string]int, len(s.list))
	for i := range s.list {
		t := &s.list[i]
		if t.repeats > 0 && !t.pieces && !json.Valid(t.arguments) && (t.repeats > 1 || json.Valid(t.latest)) {
			t.arguments = t.latest
		}
		if n, err := strconv.Atoi(t.index); err == nil {
			order[t.index] = n
		}
	}
	if !slices.ContainsFunc(s.list, func(t toolCall) bool { _, numbered := order[t.index]; return !numbered }) {
		slices.SortStableFunc(s.list, func(a, b toolCall) int { return order[a.index] - order[b.index] })
	}
	return s.list
}

// unwrapped returns the JSON object that arguments hold as a JSON text, or within a code fence; else the arguments.
func unwrapped(arguments []byte) []byte {
	text := bytes.TrimSpace(arguments)
	switch {
	case bytes.HasPrefix(text, []byte("```")) && bytes.HasSuffix(text, []byte("\n```")):
		_, text, _ = bytes.Cut(text[:len(text)-len("\n```")], []byte("\n"))
	case len(text) > 0 && text[0] == '"' && json.Valid(text):
		text = unquoted(text)
	default:
		return arguments
	}
	if text = bytes.TrimSpace(text); len(text) == 0 || !isObject(text) {
		return arguments
	}
	return text
}

// An objectScanner finds the end of a JSON object in pieces of a text.
type objectScanner struct {
	depth            int
	quoted, escaping bool
	closed           bool // the object has ended
}

func (o *objectScanner) add(text []byte) {
	for _, b := range text {
		switch {
		case o.escaping:
			o.escaping = false
		case o.quoted:
			o.escaping, o.quoted = b == '\\', b != '"'
		case b == '"':
			o.quoted = true
		case b == '{', b == '[':
			o.depth++
		case b == '}', b == ']':
			o.depth--
			o.closed = o.closed || o.depth == 0
		}
	}
}

// toolCall reads a tool call.
func (d *completionReader) toolCall(c *choicePiece) error {
	p, err := c.addCall()
	if err != nil {
		return err
	}
	return d.object(func(name []byte) (err error) {
		start := d.tokens.InputOffset()
		switch string(name) {
		case "index":
			p.index, err = d.callIndex(p.index[:0])
		case "id":
			p.id, err = d.verbatim(p.id[:0])
		case "function":
			err = d.function(p)
		}
		if err != nil || isOfProtocol(ofCall, name) {
			return err
		}
		return d.keep(&p.members, name, start)
	})
}

// addCall adds an empty call.
func (c *choicePiece) addCall() (*callPiece, error) {
	if len(c.calls) >= maxTools {
		return nil, errTools
	}
	if len(c.calls) < cap(c.calls) {
		c.calls = c.calls[:len(c.calls)+1] // with the memory of an earlier piece
	} else {
		c.calls = append(c.calls, callPiece{})
	}
	p := &c.calls[len(c.calls)-1]
	*p = callPiece{index: p.index[:0], id: p.id[:0], name: p.name[:0], arguments: p.arguments[:0], members: p.members.reset(), function: p.function.reset()}
	return p, nil
}

// function reads the function of a call.
func (d *completionReader) function(p *callPiece) error {
	return d.object(func(name []byte) (err error) {
		start := d.tokens.InputOffset()
		switch string(name) {
		case "name":
			p.name, err = d.optional(p.name[:0])
		case "arguments":
			p.arguments, err = d.verbatim(p.arguments[:0]) // Ollama's own format has an object (docs/api.md of github.com/ollama/ollama)
		}
		if err != nil || isOfProtocol(ofFunction, name) {
			return err
		}
		return d.keep(&p.function, name, start)
	})
}

// legacyCall reads a call as endpoints wrote it before there could be several: the member function_call.
func (d *completionReader) legacyCall(c *choicePiece) error {
	p, err := c.addCall()
	if err != nil {
		return err
	}
	return d.function(p)
}

// callIndex appends the index of a call: an integer in its shortest form, else a text. Other
// values are no index.
func (d *completionReader) callIndex(index []byte) ([]byte, error) {
	start := d.tokens.InputOffset()
	kind := d.tokens.PeekKind()
	n, known, err := d.integer()
	switch {
	case err != nil:
		return index, err
	case known:
		return strconv.AppendInt(index, int64(n), 10), nil
	case kind == '"':
		raw := d.since(start)
		return append(index, raw[1:min(len(raw)-1, 65)]...), nil
	}
	return index, nil
}
