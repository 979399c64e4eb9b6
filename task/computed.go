package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// computed finds what is wrong with a task that has a value or a template, and settings that
// only an agent could follow. s is the spec without defaults.
func (c *checker) computed(s *Spec) {
	what := "value"
	switch {
	case s.Value != nil && s.Template != "":
		c.bad(nil, "template: value is set too", "keep one of them", "template")
		return
	case s.Template != "":
		what = "template"
		if !utf8.ValidString(s.Template) {
			c.bad(nil, "template: it is not valid UTF-8", "", "template")
		}
	case !json.Valid(s.Value):
		c.bad(nil, "value: it is not JSON", "write one JSON value", "value")
	case strings.TrimSpace(string(s.Value)) == "null":
		c.bad(nil, "value: it is null", "write another value", "value")
	}
	for _, setting := range []struct {
		key  string
		used bool
	}{
		{"assignee", s.Assignee != ""},
		{"requires", !s.Requires.isEmpty()},
		{"tools", s.Tools != nil},
		{"memoryScope", s.MemoryScope == ScopeAll},
		{"requiredTags", len(s.RequiredTags) > 0},
		{"outputFiles", len(s.OutputFiles) > 0},
		{"workspace", s.Workspace != nil},
		{"acceptTruncated", s.AcceptTruncated},
		{"maxRetries", s.MaxRetries > 0},
		{"retryDelayMs", s.RetryDelay != 0 && s.RetryDelay != defaultRetryDelay},
		{"retryBackoff", s.RetryBackoff != 0 && s.RetryBackoff != defaultRetryBackoff},
		{"provenance", s.Source.Record != nil},
		{"uses", s.Value != nil && len(s.Uses) > 0},
		{"onTimeout", s.OnTimeout != ""},
		{"timeoutMs", s.Value != nil && s.Timeout != 0},
	} {
		if setting.used {
			c.bad(nil, fmt.Sprintf("%s: no effect on a task that has a %s and no agent", setting.key, what), "remove it, or the "+what, setting.key)
		}
	}
	for k := range s.DependsOn {
		if len(s.DependsOn[k].Files) > 0 {
			c.bad(nil, fmt.Sprintf("dependsOn[%d]: files: a task that has a %s has no workspace", k, what), "remove files", "dependsOn", k, "files")
		}
	}
}
