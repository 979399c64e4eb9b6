package llm

import (
	"encoding/json"
	"fmt"
)

// ProviderData is what a provider attached to a reply beyond the protocol, such as the signatures of
// its reasoning, and the IDs that it gave its calls. Some providers refuse a conversation with tools
// whose earlier turns come back without it. A caller that continues a conversation sets it on the
// [Message] of that reply, unchanged; a model sends it to the endpoint and the model that it is of, and
// to no other.
//
// It may have parts of the prompt and of the reasoning, so it is printed by size alone and left out of JSON.
type ProviderData struct {
	Endpoint string          // the base URL that answered
	Model    string          // the model that was called, as its requests name it
	Message  json.RawMessage // a JSON object: members of the message, and as content the parts of it that are reasoning; nil if there are none
	Calls    []ProviderCall  // one for each of the message's calls, in their order
}

// A ProviderCall is the [ProviderData] of one call of a tool.
type ProviderCall struct {
	ID       string          // as the provider wrote it; empty if it gave none that can be sent back
	Members  json.RawMessage // a JSON object: members of the call; nil if there are none
	Function json.RawMessage // a JSON object: members of its function; nil if there are none
}

// Limits of provider data, in bytes.
const (
	MaxProviderData             = 256 << 10 // of one message
	MaxConversationProviderData = 4 << 20   // of all messages of a request
)

// Size returns how many bytes the members and the IDs have. That of nil is zero.
func (d *ProviderData) Size() int {
	if d == nil {
		return 0
	}
	n := len(d.Message)
	for i := range d.Calls {
		n += len(d.Calls[i].ID) + len(d.Calls[i].Members) + len(d.Calls[i].Function)
	}
	return n
}

// Format prints the size, whatever the verb.
func (d ProviderData) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "provider data of %d bytes", d.Size())
}

// Format prints the size, whatever the verb.
func (c ProviderCall) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "provider data of %d bytes", len(c.ID)+len(c.Members)+len(c.Function))
}
