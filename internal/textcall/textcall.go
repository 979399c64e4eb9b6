// Package textcall finds calls of tools that a model wrote into its text, in place of the calls that its endpoint reports.
//
//	call, found := textcall.Find("<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>", []string{"add"})
package textcall

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// A Call is a call of an offered tool.
type Call struct {
	Tool      string
	Arguments string // a JSON object; empty if they are not written as JSON
	Alone     bool   // the text is this call and nothing else
}

// callForms finds what models write around a call: the tags of Hermes, Qwen, Llama and Granite, the tokens of Kimi, Llama
// and DeepSeek, those of Mistral, code blocks, and lists.
var callForms = sync.OnceValue(func() (f struct{ around, named, parameter, python *regexp.Regexp }) {
	f.around = regexp.MustCompile("</?[|｜]?[\\w▁.-]+[|｜]?>|\\[/?TOOL_CALLS\\]|\\[ARGS\\]|```\\w*|[\\[\\];]")
	f.named = regexp.MustCompile(`<function=([^<>\s]+)>`)
	f.parameter = regexp.MustCompile(`(?s)<parameter=([^<>\s]+)>(.*?)</parameter>`)
	f.python = regexp.MustCompile(`(?s)^([\w-]+)\(.*\)$`)
	return f
})

// Limits of the search: a longer text is no call, and a call is looked for at so many places.
const (
	maxText   = 256 << 10
	maxPlaces = 64
)

// Find finds the first call of one of the tools in a text.
func Find(text string, tools []string) (call Call, found bool) {
	if len(text) > maxText {
		return Call{}, false
	}
	text = callForms().named.ReplaceAllString(text, " $1 ")
	text = joinParameters(text)
	for place, start := 0, 0; place < maxPlaces; place++ {
		i := strings.IndexByte(text[start:], '{')
		if i < 0 {
			break
		}
		start += i
		decoder := json.NewDecoder(strings.NewReader(text[start:]))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			start++
			continue
		}
		end := start + int(decoder.InputOffset())
		name, arguments := callIn(value)
		before := text[:start]
		if name == "" {
			name, arguments = lastWord(before), string(value)
			before = strings.TrimSuffix(strings.TrimSpace(callForms().around.ReplaceAllString(before, " ")), name)
		}
		if tool := toolNamed(tools, name); tool != "" && arguments != "" {
			return Call{tool, arguments, len(outsideCall(before)) == 0 && len(outsideCall(text[end:])) == 0}, true
		}
		start = end
	}
	if words := outsideCall(text); len(words) > 0 {
		if m := callForms().python.FindStringSubmatch(strings.Join(words, " ")); m != nil {
			if tool := toolNamed(tools, m[1]); tool != "" {
				return Call{Tool: tool}, true
			}
		}
	}
	return Call{}, false
}

// joinParameters writes the parameters of a call, as Qwen's coders write them, as one JSON object.
func joinParameters(text string) string {
	all := callForms().parameter.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return text
	}
	object, end := map[string]json.RawMessage{}, all[0][0]
	for _, at := range all {
		if strings.TrimSpace(text[end:at[0]]) != "" {
			break // those of another call
		}
		value := json.RawMessage(strings.TrimSpace(text[at[4]:at[5]]))
		if !json.Valid(value) {
			value, _ = json.Marshal(string(value)) // a text can always be encoded
		}
		object[text[at[2]:at[3]]], end = value, at[1]
	}
	raw, _ := json.Marshal(object) // its values are valid
	return text[:all[0][0]] + string(raw) + text[end:]
}

// lastWord returns the last word of a text beside what models write around a call.
func lastWord(text string) string {
	words := outsideCall(text[max(0, len(text)-200):])
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// outsideCall returns the words of a text beside what models write around a call.
func outsideCall(text string) []string {
	words := strings.Fields(callForms().around.ReplaceAllString(text, " "))
	return slices.DeleteFunc(words, func(word string) bool { return word == "function" || word == "tool_call" })
}

// toolNamed returns the tool that a model means by a name, or "". Kimi writes functions.NAME:0.
func toolNamed(tools []string, name string) string {
	short, _, _ := strings.Cut(strings.TrimPrefix(name, "functions."), ":")
	for _, tool := range tools {
		if tool != "" && (tool == name || tool == short) {
			return tool
		}
	}
	return ""
}

// callIn returns the name and the arguments of a call that is a JSON object; the name is empty if the object is none.
func callIn(raw json.RawMessage) (name, arguments string) {
	var call map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(raw, &call) != nil {
		return "", ""
	}
	if json.Unmarshal(call["tool_calls"], &list) == nil && len(list) == 1 {
		return callIn(list[0])
	}
	if inner := call["function"]; len(inner) > 0 && inner[0] == '{' {
		return callIn(inner)
	}
	for _, key := range []string{"name", "tool", "tool_name", "function", "function_name"} {
		if name == "" {
			_ = json.Unmarshal(call[key], &name) // stays empty if it is no text
		}
	}
	for _, key := range []string{"arguments", "parameters", "args", "input", "tool_input"} {
		text := ""
		switch value, given := call[key]; {
		case !given || arguments != "":
		case json.Unmarshal(value, &text) == nil && json.Valid([]byte(text)):
			arguments = text
		case value[0] == '{':
			arguments = string(value)
		}
	}
	return name, arguments
}

// WasRead reports whether texts have the arguments of a call, each member by its name and value, in any notation and order.
// Arguments without members were read if the name of the tool was.
func WasRead(texts []string, tool, arguments string) bool {
	var read strings.Builder
	for _, text := range texts {
		read.WriteString(wordsOf(text))
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return true
	}
	parts := memberWords(value, "", nil)
	if len(parts) == 0 {
		parts = []string{wordsOf(tool)}
	}
	text := read.String()
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// memberWords appends the words of each member of a value that has no members itself: its name and its value.
func memberWords(value any, name string, parts []string) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = memberWords(v[key], key, parts)
		}
		return parts
	case []any:
		if slices.ContainsFunc(v, func(item any) bool { _, isObject := item.(map[string]any); return isObject }) {
			for _, item := range v {
				parts = memberWords(item, name, parts)
			}
			return parts
		}
	}
	raw, _ := json.Marshal(value) // it was decoded from JSON
	return append(parts, wordsOf(name+" "+string(raw)))
}

// escapes finds runes that are escaped in JSON, alone or in pairs, and the other escapes of it.
var escapes = sync.OnceValue(func() (f struct{ runes, others *regexp.Regexp }) {
	f.runes, f.others = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+`), regexp.MustCompile(`\\[nrtbf]`)
	return f
})

// wordsOf returns the words of a text in lower case, with one space before and behind each. A text in JSON has the words of
// what it encodes.
func wordsOf(text string) string {
	text = escapes().runes.ReplaceAllStringFunc(text, func(escaped string) string {
		var runes string
		_ = json.Unmarshal([]byte(`"`+escaped+`"`), &runes) // hexadecimal digits are always read
		return runes
	})
	text = escapes().others.ReplaceAllString(text, " ")
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return " " + strings.Join(words, " ") + " "
}
