package textcall

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

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
	var value any
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return true
	}
	members := membersOf(value, "", nil)
	if full := slices.DeleteFunc(slices.Clone(members), isEmpty); len(full) > 0 {
		members = full
	}
	if len(members) > maxMembers {
		return true
	}
	read, known := readingsOf(strings.Join(texts, " ")) // a value may begin in one text and end in the next
	if !known {
		return true
	}
	if len(members) == 0 {
		return between > 0 && read.has(tool, "", 0)
	}
	found := 0
	for _, m := range members {
		if slices.ContainsFunc(m.texts, read.hasLong) {
			return true
		}
		if read.has(m.name, m.value, between) {
			found++
		}
	}
	return 2*found > len(members)
}

// A member is one of the arguments.
type member struct {
	name, value string
	texts       []string // those that value consists of
}

// membersOf appends each member of a value that has no members itself.
func membersOf(value any, name string, list []member) []member {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = membersOf(v[key], key, list)
		}
		return list
	case []any:
		var items []member
		for _, item := range v {
			items = membersOf(item, name, items)
		}
		if slices.ContainsFunc(items, func(m member) bool { return m.name != name }) || len(v) > 0 && len(items) == 0 {
			return append(list, items...)
		}
		all := member{name: name}
		for _, m := range items {
			all.value += " " + m.value
			all.texts = append(all.texts, m.texts...)
		}
		return append(list, all)
	case string:
		return append(list, member{name, v, []string{v}})
	}
	raw, _ := json.Marshal(value) // it was decoded from JSON
	return append(list, member{name: name, value: string(raw)})
}

// isEmpty reports whether a member has no value that can be compared.
func isEmpty(m member) bool {
	words := wordsOf(fold(m.value)).list
	return len(words) == 0 || len(words) == 1 && words[0] == "null"
}
