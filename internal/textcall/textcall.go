// Package textcall finds calls of tools that a model wrote into its text, in place of the calls that its endpoint reports.
//
//	call, found := textcall.Find("<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}</tool_call>", []string{"add"})
package textcall

import (
	"encoding/json"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A Call is a call of an offered tool.
type Call struct {
	Tool      string
	Arguments string // a JSON object; empty if they are not written as JSON
	Alone     bool   // the text is this call and nothing else
}

// callForms finds what models write around a call: the tags of Hermes, Qwen, Llama and Granite, the tokens of Kimi, Llama
// and DeepSeek, those of Mistral and gpt-oss, code blocks, and lists.
var callForms = sync.OnceValue(func() (f struct{ around, named, parameter, python *regexp.Regexp }) {
	f.around = regexp.MustCompile("</?(?:[|｜]DSML)?[|｜]?[\\w▁.-]+[|｜]?>|\\[/?TOOL_CALLS\\]|\\[ARGS\\]|```\\w*|[\\[\\];]")
	f.named = regexp.MustCompile(`<function=([^<>\s]+)>|<(?:[|｜]DSML[|｜])?invoke\s+name="([^<>"]+)"\s*>|<\|channel\|>commentary to=([^<>\s]+)\s*(?:<\|constrain\|>)?\s*(?:json)?\s*<\|message\|>`)
	f.parameter = regexp.MustCompile(`(?s)<parameter=([^<>\s]+)>(.*?)</parameter>|<(?:[|｜]DSML[|｜])?parameter\s+name="([^<>"]+)"[^<>]{0,80}>(.*?)</(?:[|｜]DSML[|｜])?parameter>|<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
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
	if len(text) > maxText || !slices.ContainsFunc(tools, func(tool string) bool { return strings.Contains(text, tool) }) {
		return Call{}, false
	}
	text = callForms().named.ReplaceAllString(text, " $1$2$3 ")
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
		form := 2 // the first group of the form that matched
		for at[form] < 0 {
			form += 4
		}
		value := json.RawMessage(strings.TrimSpace(text[at[form+2]:at[form+3]]))
		if !json.Valid(value) {
			value, _ = json.Marshal(string(value)) // a text can always be encoded
		}
		object[strings.TrimSpace(text[at[form]:at[form+1]])], end = value, at[1]
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

// callMembers are the members that a call may have.
var callMembers = []string{
	"tool_calls", "function", "name", "tool", "tool_name", "function_name", "arguments", "parameters", "args", "input", "tool_input",
	"id", "call_id", "type", "index", "role", "content",
}

// callIn returns the name and the arguments of a call that is a JSON object; the name is empty if the object is none.
func callIn(raw json.RawMessage) (name, arguments string) {
	var call map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(raw, &call) != nil {
		return "", ""
	}
	for key := range call { // a value with other members is data
		if !slices.Contains(callMembers, key) {
			return "", ""
		}
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

// What was read decides whether a model only repeats a call, in whatever notation, order or escapes.
const (
	maxMembers = 256 // of a call that can be compared; more count as read
	maxBetween = 6   // words between the name of a member and its value, as in <parameter name="to" type="string">
	minNotable = 16  // letters and digits of a text that was read without the name of its member, too
)

// WasRead reports whether texts have most of the arguments of a call, each member by its name and value, in any notation and
// order, or a long text among the arguments in any place. Members without a value do not count beside others. Arguments
// without members were read if the name of the tool was.
func WasRead(texts []string, tool, arguments string) bool {
	return wasRead(texts, tool, arguments, maxBetween)
}

// WasDefined reports the same of the definitions of tools. They have the names of all members and tools, so a name and its
// value must stand side by side there.
func WasDefined(texts []string, tool, arguments string) bool {
	return wasRead(texts, tool, arguments, 0)
}

func wasRead(texts []string, tool, arguments string, between int) bool {
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
	text := strings.ReplaceAll(read.String(), "  ", " ") // a value may begin in one text and end in the next
	members := memberWords(value, "", nil)
	if full := slices.DeleteFunc(slices.Clone(members), func(m member) bool { return m.value == "  " || m.value == " null " }); len(full) > 0 {
		members = full
	}
	if len(members) > maxMembers {
		return true
	}
	if len(members) == 0 {
		return between > 0 && strings.Contains(text, wordsOf(tool))
	}
	squeezed := ""
	for _, m := range members {
		if whole := strings.ReplaceAll(m.value, " ", ""); m.isText && utf8.RuneCountInString(whole) >= minNotable {
			if squeezed == "" {
				squeezed = strings.ReplaceAll(text, " ", "")
			}
			if strings.Contains(squeezed, whole) {
				return true
			}
		}
	}
	found := 0
	for i := range members {
		if members[i].isIn(text, between) {
			found++
		}
	}
	return 2*found > len(members)
}

// A member is one of the arguments, as [wordsOf] writes them.
type member struct {
	name, value string
	isText      bool
}

// isIn reports whether a text of words has the name of the member, and its value behind that.
func (m *member) isIn(text string, between int) bool {
	switch "  " { // has no words
	case m.name:
		return m.value == "  " || strings.Contains(text, m.value)
	case m.value:
		return strings.Contains(text, m.name)
	}
	for at := strings.Index(text, m.name); at >= 0; {
		behind := text[at+len(m.name)-1:] // from the space behind the name
		for range between + 1 {
			if strings.HasPrefix(behind, m.value) {
				return true
			}
			next := strings.IndexByte(behind[min(1, len(behind)):], ' ')
			if next < 0 {
				break
			}
			behind = behind[1+next:]
		}
		next := strings.Index(text[at+1:], m.name)
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

// memberWords appends each member of a value that has no members itself.
func memberWords(value any, name string, list []member) []member {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = memberWords(v[key], key, list)
		}
		return list
	case []any:
		if slices.ContainsFunc(v, func(item any) bool { _, isObject := item.(map[string]any); return isObject }) {
			for _, item := range v {
				list = memberWords(item, name, list)
			}
			return list
		}
	}
	_, isText := value.(string)
	raw, _ := json.Marshal(value) // it was decoded from JSON
	return append(list, member{wordsOf(name), wordsOf(string(raw)), isText})
}

// escapes finds runes that are escaped in JSON, alone or in pairs, and the other escapes of it.
var escapes = sync.OnceValue(func() (f struct{ runes, others *regexp.Regexp }) {
	f.runes, f.others = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+`), regexp.MustCompile(`\\[nrtbf]`)
	return f
})

// wordsOf returns the words of a text in lower case, with one space before and behind each. A text in JSON or HTML has the
// words of what it encodes, and marks that nobody sees separate none.
func wordsOf(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, html.UnescapeString(text))
	text = escapes().runes.ReplaceAllStringFunc(text, func(escaped string) string {
		var runes string
		_ = json.Unmarshal([]byte(`"`+escaped+`"`), &runes) // hexadecimal digits are always read
		return runes
	})
	text = escapes().others.ReplaceAllString(text, " ")
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	return " " + strings.Join(words, " ") + " "
}
