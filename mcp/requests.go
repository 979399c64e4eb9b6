package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/runteam/runteam/internal/membudget"
)

// requests give the requests of a connection IDs that cannot be guessed, in place of the SDK's, which
// count them. So a text that a server writes to its standard output cannot be taken for a response
// unless its author read the request.
type requests struct {
	mu      sync.Mutex            // guards pending
	pending map[string]ownRequest // the requests without a response, by the IDs that were sent
}

// An ownRequest is a request without a response.
type ownRequest struct {
	id  jsonrpc.ID      // the SDK's
	ctx context.Context // of the call, whose memory the response takes
}

// sent returns a message with the IDs that are sent.
func (r *requests) sent(ctx context.Context, m jsonrpc.Message) jsonrpc.Message {
	request, ok := m.(*jsonrpc.Request)
	if !ok {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := *request
	switch {
	case request.IsCall():
		changed.ID = r.newID(ownRequest{request.ID, ctx})
	case request.Method == "notifications/cancelled":
		changed.Params = r.cancel(request.Params)
	}
	return &changed
}

// newID returns the ID under which a request is sent. It has 31 bits, since servers may not read
// larger numbers.
func (r *requests) newID(own ownRequest) jsonrpc.ID {
	for {
		var random [4]byte
		_, _ = rand.Read(random[:]) // it returns no error
		n := binary.LittleEndian.Uint32(random[:]) >> 1
		key := strconv.FormatUint(uint64(n), 10)
		if _, used := r.pending[key]; used {
			continue
		}
		if r.pending == nil {
			r.pending = map[string]ownRequest{}
		}
		r.pending[key] = own
		id, _ := jsonrpc.MakeID(float64(n)) // it takes numbers
		return id
	}
}

// cancel returns the parameters of a notification that a request is given up, which has no response
// from then on.
func (r *requests) cancel(params json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil {
		return params
	}
	for key, own := range r.pending {
		if id, err := json.Marshal(own.id.Raw()); err == nil && bytes.Equal(id, p["requestId"]) {
			delete(r.pending, key)
			p["requestId"] = json.RawMessage(key)
			if changed, err := json.Marshal(p); err == nil {
				return changed
			}
		}
	}
	return params
}

// keyOf returns the key of an ID in pending. A server may return a number as a text.
func keyOf(id jsonrpc.ID) string { return fmt.Sprint(id.Raw()) }

// answer gives a response the SDK's ID of its request. It reports whether there is one that had no
// response. A result that takes too much memory becomes an error.
func (r *requests) answer(m *jsonrpc.Response) bool {
	r.mu.Lock()
	own, ok := r.pending[keyOf(m.ID)]
	delete(r.pending, keyOf(m.ID))
	r.mu.Unlock()
	if m.ID = own.id; !ok {
		return false
	}
	if err := membudget.Take(own.ctx, membudget.Decoded(m.Result)); err != nil {
		m.Result, m.Error = nil, err
	}
	return true
}

// isPending reports whether a message is a response to a request that has none.
func (r *requests) isPending(m jsonrpc.Message) bool {
	response, ok := m.(*jsonrpc.Response)
	if !ok || response.Result == nil && response.Error == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok = r.pending[keyOf(response.ID)]
	return ok
}

// maxTries bounds how many braces of a line may begin no value. To find that out, the line may have
// to be read to its end.
const maxTries = 256

// responsesIn returns the responses that a line has beside a log without a newline, and the log.
// A value in another value is none: that is a log of it.
func (r *requests) responsesIn(line []byte) (responses []jsonrpc.Message, log []byte) {
	for tries := 0; tries < maxTries; {
		start := bytes.IndexByte(line, '{')
		if start < 0 {
			break
		}
		var value json.RawMessage
		d := json.NewDecoder(bytes.NewReader(line[start:]))
		if d.Decode(&value) != nil {
			tries++
			log, line = append(log, line[:start+1]...), line[start+1:]
			continue
		}
		if m, err := jsonrpc.DecodeMessage(value); err == nil && r.isPending(m) {
			responses, value = append(responses, m), nil
		}
		log = append(append(log, line[:start]...), value...)
		line = line[start+int(d.InputOffset()):]
	}
	return responses, append(log, line...)
}
