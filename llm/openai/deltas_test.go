package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/llm"
)

// encoded returns a value as JSON, the same for a text and for its pieces one after the other.
func encoded(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// cut returns the pieces of a text: at least one, some of which may be empty.
func cut(t *rapid.T, text string) (pieces []string) {
	runes := []rune(text)
	for n := rapid.IntRange(0, 4).Draw(t, "cuts"); n > 0; n-- {
		at := rapid.IntRange(0, len(runes)).Draw(t, "at")
		pieces, runes = append(pieces, string(runes[:at])), runes[at:]
	}
	return append(pieces, string(runes))
}

// A lane is a part of a message, as the members of the deltas that write it.
type lane []string

// textLane writes a member that is a text.
func textLane(t *rapid.T, name, text string) (l lane) {
	for _, piece := range cut(t, text) {
		l = append(l, encoded(name)+":"+encoded(piece))
	}
	return l
}

// memberOf returns a member beyond the protocol: its value, and the lane that writes it.
func addedMember(t *rapid.T, name string) (value string, l lane) {
	text := rapid.StringN(1, 30, -1).Draw(t, "text")
	wrap := func(inner string) string { return inner }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 1:
		wrap = func(inner string) string { return `{"v":{"text":` + inner + `,"n":1}}` }
	case 2:
		wrap = func(inner string) string {
			return `[{"type":"reasoning.text","index":3,"text":` + inner + `},{"index":"b","data":[]}]`
		}
	case 3: // a value that is not written in pieces
		value := rapid.SampledFrom([]string{`17`, `true`, `[1,"a",{"b":null}]`, `{"google":{"thought_signature":"U0lH"}}`}).Draw(t, "value")
		return value, lane{encoded(name) + ":" + value}
	}
	for _, piece := range cut(t, text) {
		l = append(l, encoded(name)+":"+wrap(encoded(piece)))
	}
	return wrap(encoded(text)), l
}

// A drawnCall is a call and the pieces that write it.
type drawnCall struct {
	whole  string
	pieces []string
}

// How the pieces of a call name it.
type naming int

const (
	once   naming = iota // the first piece has the ID and the name
	always               // each piece has them
	anew                 // each piece has the name, and another ID
)

// drawCall draws a call with a unique number.
func drawCall(t *rapid.T, n, index int, numbered bool, names naming) drawnCall {
	id, name := fmt.Sprintf("call_%d", n), rapid.SampledFrom([]string{"add", "mul"}).Draw(t, "name")
	arguments := encoded(rapid.MapOfN(rapid.StringN(0, 8, -1), rapid.String(), 0, 3).Draw(t, "arguments"))
	members, ofFunction := "", ""
	var lanes [2]lane
	if names != anew && rapid.Bool().Draw(t, "has members") {
		var value string
		value, lanes[0] = addedMember(t, "extra_content")
		members = `,"extra_content":` + value
	}
	if names != anew && rapid.Bool().Draw(t, "function has members") {
		var value string
		value, lanes[1] = addedMember(t, "note")
		ofFunction = `,"note":` + value
	}
	c := drawnCall{whole: fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s%s}%s}`, id, name, encoded(arguments), ofFunction, members)}
	pieces := cut(t, arguments)
	if names == anew { // an empty piece may be a call of its own
		pieces = slices.DeleteFunc(pieces, func(piece string) bool { return piece == "" })
	}
	for len(pieces) < max(len(lanes[0]), len(lanes[1])) {
		pieces = append(pieces, "")
	}
	for i, piece := range pieces {
		var call, function []string
		if numbered {
			call = append(call, fmt.Sprintf(`"index":%d`, index))
		}
		if i > 0 && names == anew {
			id = fmt.Sprintf("call_%d_%d", n, i)
		}
		if i == 0 || names != once {
			call = append(call, fmt.Sprintf(`"id":%q,"type":"function"`, id))
			function = append(function, fmt.Sprintf(`"name":%q`, name))
		}
		function = append(function, `"arguments":`+encoded(piece))
		if i < len(lanes[0]) {
			call = append(call, lanes[0][i])
		}
		if i < len(lanes[1]) {
			function = append(function, lanes[1][i])
		}
		call = append(call, `"function":{`+strings.Join(function, ",")+`}`)
		c.pieces = append(c.pieces, "{"+strings.Join(call, ",")+"}")
	}
	return c
}

// Any split of a reply into legal deltas has the same response as the whole reply: pieces of texts,
// calls and members in any mixture, with indexes anywhere or without, with IDs and names once or each time, or with another ID each time.
func TestAnySplitOfAReplyIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		message := []string{`"role":"assistant"`}
		var lanes []lane
		for _, name := range []string{"content", "reasoning_content", "vendor_note", "reasoning_details"} {
			if name == "vendor_note" || name == "reasoning_details" {
				if rapid.Bool().Draw(rt, name) {
					value, l := addedMember(rt, name)
					message, lanes = append(message, encoded(name)+":"+value), append(lanes, l)
				}
				continue
			}
			text := rapid.String().Draw(rt, name)
			message, lanes = append(message, encoded(name)+":"+encoded(text)), append(lanes, textLane(rt, name, text))
		}
		numbered := rapid.Bool().Draw(rt, "numbered")
		names := rapid.SampledFrom([]naming{once, always, anew}).Draw(rt, "names")
		index := rapid.IntRange(0, 9).Draw(rt, "first index")
		var calls []drawnCall
		var list []string
		for n := range rapid.IntRange(1, 4).Draw(rt, "calls") {
			c := drawCall(rt, n, index, numbered, names)
			calls, list = append(calls, c), append(list, c.whole)
			index += rapid.IntRange(1, 3).Draw(rt, "gap")
		}
		message = append(message, `"tool_calls":[`+strings.Join(list, ",")+`]`)
		wholeReply := `{"choices":[{"message":{` + strings.Join(message, ",") + `},"finish_reason":"tool_calls"}]}`

		var b strings.Builder
		for len(lanes)+len(calls) > 0 {
			var members, pieces []string
			for i := 0; i < len(lanes); i++ {
				if !rapid.Bool().Draw(rt, "this lane") {
					continue
				}
				members, lanes[i] = append(members, lanes[i][0]), lanes[i][1:]
				if len(lanes[i]) == 0 {
					lanes = append(lanes[:i], lanes[i+1:]...)
					i--
				}
			}
			for i := 0; i < len(calls) && (names != anew && (numbered || names == always) || i == 0); i++ { // else the order says whose a piece is
				if !rapid.Bool().Draw(rt, "this call") {
					continue
				}
				pieces, calls[i].pieces = append(pieces, calls[i].pieces[0]), calls[i].pieces[1:]
				if len(calls[i].pieces) == 0 {
					calls = append(calls[:i], calls[i+1:]...)
					i--
				}
			}
			if len(pieces) > 0 {
				members = append(members, `"tool_calls":[`+strings.Join(pieces, ",")+`]`)
			}
			b.WriteString(`data: {"choices":[{"delta":{` + strings.Join(members, ",") + "}}]}\n\n")
		}
		b.WriteString(`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n")

		want, err := asked(t, answering(t, wholeReply), calculate, false)
		require.NoError(rt, err, wholeReply)
		got, err := asked(t, answering(t, b.String()), calculate, true)
		require.NoError(rt, err, b.String())
		if !numbered { // the calls come in the order in which they begin
			got.ToolCalls, got.Provider.Calls = inOrder(got.ToolCalls, got.Provider.Calls)
		}
		require.Equal(rt, want.ToolCalls, got.ToolCalls, b.String())
		require.Equal(rt, want.Provider.Calls, got.Provider.Calls, b.String())
		require.JSONEq(rt, string(want.Provider.Message), string(got.Provider.Message), b.String())
		want.Provider, got.Provider = nil, nil
		require.Equal(rt, want, got, b.String())
	})
}

// inOrder returns calls in the order of their IDs.
func inOrder(calls []llm.ToolCall, data []llm.ProviderCall) (sorted []llm.ToolCall, sortedData []llm.ProviderCall) {
	for n := range calls {
		for i := range calls {
			if calls[i].ID == fmt.Sprintf("call_%d", n) {
				sorted, sortedData = append(sorted, calls[i]), append(sortedData, data[i])
			}
		}
	}
	return sorted, sortedData
}
