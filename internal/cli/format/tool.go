package format

import (
	"regexp"
	"strings"
)

// ToolName returns the name of a tool as a spec writes it, SERVER/TOOL, for the one that models see,
// SERVER__TOOL. Every other name stays as it is.
func ToolName(name string) string {
	if server, tool, ok := strings.Cut(name, "__"); ok && server != "" && tool != "" {
		return server + "/" + tool
	}
	return name
}

// ToolNames returns several names.
func ToolNames(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = ToolName(name)
	}
	return out
}

// toolReader matches the name of a tool of a server as a reader.
var toolReader = regexp.MustCompile(`\btool:[A-Za-z0-9_-]+__[A-Za-z0-9_-]+`)

// Readers returns a text with tool:SERVER/TOOL for each tool:SERVER__TOOL in it.
func Readers(text string) string {
	return toolReader.ReplaceAllStringFunc(text, func(name string) string {
		return "tool:" + ToolName(strings.TrimPrefix(name, "tool:"))
	})
}

// Rounds returns how often a task in a loop may run, such as " ×≤4"; "" for a task that runs once.
func Rounds(most int) string {
	if most == 0 {
		return ""
	}
	return " ×≤" + Number(most)
}

// Instances names n rounds or items of a task together, such as "Search ×1,000".
func Instances(title string, n int) string { return title + " ×" + Number(n) }

// quotedInstance matches the rounds and items at the end of a title in quotes.
var quotedInstance = regexp.MustCompile(`(\[\d+\]|#\d+(\.\d+)*)+"`)

// CommonReason returns why an instance did not begin with the titles in it as written, for all instances of its
// task: because "Search" failed, for because "Search[3]" failed.
func CommonReason(reason string) string { return quotedInstance.ReplaceAllString(reason, `"`) }
