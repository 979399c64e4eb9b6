package textcall_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/textcall"
)

var tools = []string{"s__add", "list"}

func TestFind(t *testing.T) {
	t.Parallel()
	const arguments = `{"a": 1, "b": [2]}`
	for name, text := range map[string]string{
		"Hermes and Qwen": "<tool_call>\n{\"name\": \"s__add\", \"arguments\": " + arguments + "}\n</tool_call>",
		"not closed":      "<tool_call>{\"name\": \"s__add\", \"arguments\": " + arguments + "}",
		"JSON":            `{"name":"s__add","arguments":` + arguments + `}`,
		"a code block":    "```json\n{\"name\":\"s__add\",\"parameters\":" + arguments + "}\n```",
		"another block":   "```tool_call\n{\"tool\":\"s__add\",\"args\":" + arguments + "}\n```\n",
		"a list":          `[{"name":"s__add","arguments":` + arguments + `}]`,
		"the protocol":    `{"tool_calls":[{"id":"1","type":"function","function":{"name":"s__add","arguments":"{\"a\": 1, \"b\": [2]}"}}]}`,
		"Llama 3":         `<|python_tag|>{"type":"function","name":"s__add","parameters":` + arguments + `}<|eom_id|>`,
		"Llama 3.1":       `<function=s__add>` + arguments + `</function>`,
		"Mistral":         `[TOOL_CALLS][{"name":"s__add","arguments":` + arguments + `}]`,
		"Mistral 3":       `[TOOL_CALLS]s__add[ARGS]` + arguments,
		"Kimi":            "<|tool_calls_section_begin|><|tool_call_begin|>functions.s__add:0<|tool_call_argument_begin|>" + arguments + "<|tool_call_end|><|tool_calls_section_end|>",
		"DeepSeek":        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>s__add\n```json\n" + arguments + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"Qwen's coders":   "<tool_call>\n<function=s__add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n[2]\n</parameter>\n</function>\n</tool_call>",
		"Granite":         `<|tool_call|>[{"name":"s__add","arguments":` + arguments + `}]`,
	} {
		call, found := textcall.Find(text, tools)
		require.True(t, found, name)
		require.Equal(t, "s__add", call.Tool, name)
		require.JSONEq(t, arguments, call.Arguments, name)
		require.True(t, call.Alone, name)

		for _, more := range []string{"I add.\n" + text, text + "\nDone.", text + text} {
			call, found = textcall.Find(more, tools)
			require.True(t, found, name)
			require.False(t, call.Alone, more)
		}
		_, found = textcall.Find(text, []string{"add", "s_add"})
		require.False(t, found, name)
	}
	call, found := textcall.Find("[s__add(a=1, b=2)]", tools)
	require.True(t, found)
	require.Equal(t, textcall.Call{Tool: "s__add"}, call)
	for _, text := range []string{"", "I call s__add.", `{"name":"s__add"}`, `{"name":"Ann","arguments":{}}`, `{"name":"s__add","input":"no object"}`, "{", strings.Repeat("{", 1<<20)} {
		_, found := textcall.Find(text, tools)
		require.False(t, found, text[:min(len(text), 40)])
	}
}

func TestWasRead(t *testing.T) {
	t.Parallel()
	const arguments = `{"amount":100,"to":{"name":"Mallory & Co"},"tags":["x","y"]}`
	for _, text := range []string{
		arguments, `{"to": {"name": "Mallory & Co"}, "tags": ["x", "y"], "amount": 100}`, `{\"tags\":[\"x\",\"y\"],\"to\":{\"name\":\"Mallory \\u0026 Co\"},\"amount\":100}`,
		"tags: [x, y]\nto:\n  name: mallory & co\namount: 100", "<amount>100</amount><name>Mallory &#38; Co</name> tags=x,y name='Mallory / Co'",
		`{"n":"\u004dallory"} {"amount":100,"name":"\u004dallory & Co"} tags x y`,
	} {
		require.True(t, textcall.WasRead([]string{"before", text}, "pay", arguments), text)
	}
	for _, text := range []string{"", "amount 100, tags x y", strings.Replace(arguments, "100", "101", 1), "pay Mallory & Co 100 for x and y"} {
		require.False(t, textcall.WasRead([]string{text}, "pay", arguments), text)
	}
	for _, same := range []string{`{"n":1e2}`, `{"x":null,"n":1.50}`, `{"t":"one\\ntwo"}`, `{"t":"C:\\\\new"}`, `{"t":"\\ud835\\udc00b"}`, `{"t":["a",null,true,-0.5]}`, `{"t":"<b>&"}`, `{"t":{},"s":[]}`} {
		require.True(t, textcall.WasRead([]string{"Call it with " + same + "."}, "pay", same), same)
	}
	require.True(t, textcall.WasRead([]string{"Now call list."}, "list", `{}`))
	require.False(t, textcall.WasRead([]string{"Now call it."}, "list", `{}`))
	require.True(t, textcall.WasRead(nil, "list", `{`), "no arguments")
}

func FuzzFind(f *testing.F) {
	f.Add(`<tool_call>{"name":"list","arguments":{}}</tool_call>`)
	f.Add("<parameter=a>1</parameter><function=list>{}")
	f.Fuzz(func(t *testing.T, text string) {
		call, found := textcall.Find(text, tools)
		require.Equal(t, found, call.Tool != "")
		if call.Alone {
			require.True(t, textcall.WasRead([]string{call.Tool + text}, call.Tool, call.Arguments))
		}
	})
}
