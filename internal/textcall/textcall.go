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
	"unicode/utf8"
)

// A Call is a call of an offered tool.
type Call struct {
	Tool      string
	Arguments string // a JSON object; empty if they cannot be read as one
	Alone     bool   // the text is this call and nothing else
}

// callForms finds what models write around a call: the tags of Hermes, Qwen, Llama, MiniMax and Granite, the tokens of Kimi,
// Llama and DeepSeek, those of Mistral and gpt-oss, code blocks, lists, and the labels of ReAct.
var callForms = sync.OnceValue(func() (f struct{ around, named, parameter, assigned, marked, python *regexp.Regexp }) {
	f.around = regexp.MustCompile("<\\|(?:start|channel|constrain)\\|>(?:assistant|commentary|json)?|<[/|｜]*(?:DSML[|｜])?[\\w▁.:-]+[|｜]?>|\\[/?TOOL_CALLS\\]|\\[CALL_ID\\]\\w*|\\[ARGS\\]|```\\w*|[\\[\\];]")
	f.named = regexp.MustCompile(`<function[=/(]([\w.:-]+)\)?>?` +
		`|<(?:[|｜]DSML[|｜]|[\w-]+:)?(?:invoke|function|tool|tool_call|function_call)\s+name=["']?([\w.:-]+)["']?\s*>` +
		`|\bto=([\w.:-]+)\s*(?:<\|channel\|>\w+\s*)?(?:<\|constrain\|>)?\s*(?:json|code)?\s*<\|message\|>` +
		"|(?im:^[*#\\s]*(?:action|tool|function)(?:[ _]name)?[*\\s]*:[*`\\s]*([\\w.:-]+)[*`\\s]*\\n[*\\s]*(?:(?:action|tool)[ _])?(?:input|arguments|args|parameters)[*\\s]*:)\\**")
	const tag = `(?:[|｜]DSML[|｜]|[\w-]+:)?(?:parameter|param|argument|arg)`
	f.parameter = regexp.MustCompile(`(?s)<parameter=([^<>\s]+)>(.*?)</parameter>|<` + tag + `\s+name=["']?([^<>"']+)["']?[^<>]{0,80}>(.*?)</` + tag + `>|<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	f.assigned = regexp.MustCompile(`^(?:\w+ ?= ?)?(?:print\()?$`)
	f.marked = regexp.MustCompile("(?im:<[^<>\n]{0,40}(?:\\b|_)(?:tool|function|invoke|action|python)[^<>\n]{0,80}>|\\[TOOL_CALLS\\]|functools\\[|```tool|^action:)")
	f.python = regexp.MustCompile(`(?s)^(?:print\()?([\w.:-]+)\(.*\)$`)
	return f
})

// Limits of the search: a longer text is no call, and a call is looked for at so many places.
const (
	maxText   = 256 << 10
	maxPlaces = 64
	maxLine   = 200 // before the arguments of a call that has its name there
)

// Find finds the first call of one of the tools in a text.
func Find(text string, tools []string) (call Call, found bool) {
	if len(text) > maxText || !slices.ContainsFunc(tools, func(tool string) bool { return strings.Contains(text, tool) }) {
		return Call{}, false
	}
	whole, named := text, ""
	text = joinParameters(text)
	if m := callForms().named.FindStringSubmatch(text); m != nil {
		named = toolNamed(tools, strings.Join(m[1:], ""))
		text = callForms().named.ReplaceAllString(text, " $1$2$3$4 ")
	}
	unread := false
	for at, places := 0, 0; places < maxPlaces; {
		i := strings.IndexAny(text[at:], "{(")
		if i < 0 {
			break
		}
		at += i
		read, length := callAt(text, at, tools)
		if read.Tool != "" {
			return read, true
		}
		if text[at] == '{' {
			unread, places = unread || length == 0, places+1
		}
		at += max(length, 1)
	}
	words := outsideCall(text)
	if named != "" && len(words) == 1 && toolNamed(tools, words[0]) == named {
		return Call{named, "{}", true}, true // tags without a parameter
	}
	if m := callForms().python.FindStringSubmatch(strings.Join(words, " ")); m != nil {
		call.Tool = toolNamed(tools, m[1])
	}
	if at := callForms().marked.FindStringIndex(whole); call.Tool == "" && at != nil && (unread || !strings.Contains(text, "{")) {
		call.Tool = toolIn(whole[at[0]:], tools)
	}
	return call, call.Tool != ""
}

// callAt reads the call of a tool whose arguments, or all of it, begin at a place; length is that of what was read.
func callAt(text string, at int, tools []string) (call Call, length int) {
	before, read := text[:at], Call{}
	if text[at] == '(' {
		line := before[max(0, at-maxLine):]
		line = line[strings.LastIndexByte(line, '\n')+1:]
		name := line[strings.LastIndexFunc(line, isOutsideName)+1:]
		tool := toolNamed(tools, name)
		if tool == "" || len(line) == maxLine || !callForms().assigned.MatchString(strings.Join(outsideCall(strings.TrimSuffix(line, name)), " ")) {
			return Call{}, 0
		}
		arguments, end := readArguments(text[at:])
		after := strings.TrimLeft(text[at+end:], " \t")
		if end == 0 || after != "" && !strings.ContainsRune("\n,;])`<", rune(after[0])) {
			return Call{}, 0
		}
		before, read, length = strings.TrimSuffix(before, name), Call{tool, string(arguments), true}, end
		if inside, printed := strings.CutSuffix(before, "print("); printed && after != "" && after[0] == ')' {
			before, length = inside, len(text)-at-len(after)+1
		}
	} else {
		var value json.RawMessage
		if value, length = readLiteral(text[at:]); length == 0 {
			return Call{}, 0
		}
		read = callIn(value)
		if read.Tool = toolNamed(tools, read.Tool); read.Tool == "" || read.Arguments == "" { // the name stands before the arguments
			name := lastWord(before)
			read = Call{toolNamed(tools, name), string(value), true}
			before = strings.TrimSuffix(strings.TrimSpace(callForms().around.ReplaceAllString(before, " ")), name)
		}
	}
	read.Alone = read.Alone && len(outsideCall(before)) == 0 && len(outsideCall(text[at+length:])) == 0
	return read, length
}

// toolIn returns the first of the tools that a text names, or "".
func toolIn(text string, tools []string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return isOutsideName(r) || r == '.' || r == ':' })
	for _, tool := range tools {
		if slices.Contains(words, tool) {
			return tool
		}
	}
	return ""
}

// isOutsideName reports whether a character cannot be in the name of a tool, as [toolNamed] takes it.
func isOutsideName(r rune) bool {
	return !strings.ContainsRune("_-.:", r) && (r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsNumber(r))
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
		name, value := strings.TrimSpace(text[at[form]:at[form+1]]), json.RawMessage(strings.TrimSpace(text[at[form+2]:at[form+3]]))
		if object[name] != nil {
			break // given twice
		}
		if !json.Valid(value) {
			value, _ = json.Marshal(string(value)) // a text can always be encoded
		}
		object[name], end = value, at[1]
	}
	raw, _ := json.Marshal(object) // its values are valid
	return text[:all[0][0]] + string(raw) + text[end:]
}

// lastWord returns the last word of a text beside what models write around a call.
func lastWord(text string) string {
	words := outsideCall(text[max(0, len(text)-maxLine):])
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// outsideCall returns the words of a text beside what models write around a call.
func outsideCall(text string) []string {
	words := strings.Fields(callForms().around.ReplaceAllString(text, " "))
	return slices.DeleteFunc(words, func(word string) bool {
		return slices.Contains([]string{"function", "functools", "tool_call", "tool_code", "Action:"}, word)
	})
}

// toolNamed returns the tool that a model means by a name, or "". Kimi writes functions.NAME:0, Gemini default_api.NAME and
// call:NAME, Llama NAME.call, and functionary >>>NAME.
func toolNamed(tools []string, name string) string {
	short := strings.TrimLeft(name, ">")
	for _, prefix := range []string{"call:", "functions.", "default_api.", "tools."} {
		short = strings.TrimPrefix(short, prefix)
	}
	short, _, _ = strings.Cut(strings.TrimSuffix(short, ".call"), ":")
	for _, tool := range tools {
		if tool != "" && (tool == name || tool == short) {
			return tool
		}
	}
	return ""
}

// What the members of a call are, by their names in small letters without underscores. A value with other members is data.
var (
	calleeMembers   = []string{"name", "tool", "toolname", "function", "functionname", "recipientname", "action", "toolcall", "toolcalls", "tooluse", "tooluses", "functioncall"}
	argumentMembers = []string{"arguments", "parameters", "args", "input", "toolinput", "actioninput", "kwargs"}
	otherMembers    = []string{"id", "callid", "toolcallid", "tooluseid", "type", "index", "role", "status", "content"}
)

// callIn returns the call that a JSON object is, with its tool as it is written; it is empty if the object is none. A call in
// a list of several is not alone, and neither is one that has a text, or two names.
func callIn(raw json.RawMessage) (call Call) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return Call{}
	}
	call.Alone = true
	var inner []json.RawMessage
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value, text, list := members[key], "", []json.RawMessage(nil)
		isText := json.Unmarshal(value, &text) == nil
		switch key = memberRole(key); {
		case slices.Contains(calleeMembers, key) && isText:
			call.Alone = call.Alone && (call.Tool == "" || call.Tool == text)
			call.Tool = text
		case slices.Contains(calleeMembers, key) && value[0] == '{':
			inner = append(inner, value)
		case slices.Contains(calleeMembers, key) && json.Unmarshal(value, &list) == nil:
			inner = append(inner, list...)
		case slices.Contains(argumentMembers, key):
			call.Alone = call.Alone && call.Arguments == ""
			if call.Arguments = argumentsIn(value, text, isText); call.Arguments == "" {
				return Call{}
			}
		case !slices.Contains(otherMembers, key):
			return Call{}
		default:
			call.Alone = call.Alone && (key != "content" || text == "" && isText)
		}
	}
	if call.Tool == "multi_tool_use.parallel" && call.Arguments != "" {
		return callIn(json.RawMessage(call.Arguments))
	}
	if len(inner) > 0 {
		only := call.Alone && len(inner) == 1 && call.Tool == "" && call.Arguments == ""
		call = callIn(inner[0])
		call.Alone = call.Alone && only
	}
	return call
}

// memberRole returns the name of a member in the form of the lists of them.
func memberRole(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_':
			return -1
		case 'A' <= r && r <= 'Z':
			return r | 0x20
		}
		return r
	}, key)
}

// argumentsIn returns the arguments of a call, which may be an object in a text, or "".
func argumentsIn(value json.RawMessage, text string, isText bool) string {
	text = strings.TrimSpace(text)
	if value[0] == '{' {
		return string(value)
	}
	if isText && text == "" {
		return "{}"
	}
	if object, length := readLiteral(text); length == len(text) && length > 0 && text[0] == '{' {
		return string(object)
	}
	return ""
}
