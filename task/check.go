package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// The delays before retries of a spec that names none.
const (
	defaultRetryDelay   = time.Second
	defaultRetryBackoff = 2.0
)

// Limits of a task's metadata.
const (
	maxMetadata      = 16   // entries
	maxMetadataValue = 1024 // characters of a string
	maxMetadataList  = 16   // values of a list
)

// fill copies everything but title, id and dependencies from a spec to its
// task, with defaults, and finds what is wrong with it.
func fill(t *Task, s *Spec, at time.Time, i int, found *findings) {
	t.Spec, t.Status, t.CreatedAt, t.UpdatedAt = *s, Pending, at, at
	t.Title, t.DependsOn, t.NeedToKnow = strings.TrimSpace(s.Title), nil, nil
	t.MaxRetries = max(s.MaxRetries, 0)
	if s.Source.Record != nil {
		t.Source.Record = new(*s.Source.Record)
	}
	if s.Workspace != nil {
		t.Workspace = new(*s.Workspace)
	}
	c := checker{t: t, i: i, found: found}
	c.texts()
	c.words()
	c.numbers()
	if len(s.Source.Params)+len(s.Uses)+len(s.RequiredTags)+len(s.OutputSchema)+len(s.OutputFiles)+len(s.Metadata) > 0 {
		t.Source.Params, t.Uses, t.RequiredTags = slices.Clone(s.Source.Params), usesOf(s.Uses), slices.Clone(s.RequiredTags)
		t.OutputSchema, t.OutputFiles, t.Metadata = slices.Clone(s.OutputSchema), slices.Clone(s.OutputFiles), cloneMetadata(s.Metadata)
		c.lists()
		c.metadata()
	}
	if s.Tools != nil {
		t.Tools = trimAll(s.Tools)
		c.tools()
	}
	if t.Requires = s.Requires.trimmed(); t.Requires != nil {
		c.requires()
	}
	if s.Value != nil || s.Template != "" {
		t.Value = slices.Clone(s.Value)
		c.computed(s)
	}
}

// payload returns the form that a reference asks for; unset, it is Output.
func payload(p Payload) Payload {
	if p == "" {
		return Output
	}
	return p
}

// resolved returns a reference of a spec as the dependency of its task, which shares
// nothing with the spec.
func resolved(ref *Ref, id ID, needToKnow []Path) Ref {
	d := *ref
	d.Task, d.As = string(id), payload(ref.As)
	if d.Need == nil {
		d.Need = needToKnow
	}
	d.Need, d.Files = slices.Clone(d.Need), slices.Clone(d.Files)
	return d
}

// usesOf returns a copy that shares nothing with uses.
func usesOf(uses []Use) []Use {
	own := slices.Clone(uses)
	for i := range own {
		own[i].Need = slices.Clone(own[i].Need)
		if own[i].Reveal != nil {
			own[i].Reveal = maps.Clone(own[i].Reveal)
			for kind, paths := range own[i].Reveal {
				own[i].Reveal[kind] = slices.Clone(paths)
			}
		}
	}
	return own
}

// A checker finds what is wrong with the fields of one task, and fills in defaults.
type checker struct {
	t     *Task
	i     int
	found *findings
}

// bad adds a problem of a field, given as the path of its pointer.
func (c *checker) bad(err error, message, hint string, path ...any) {
	if err == nil {
		err = ErrInvalid
	}
	c.found.add(c.i, Problem{
		Pointer: pointer(c.i, path...), Subject: subject(c.i, c.t.Title), Message: message, Hint: hint, Err: err,
	})
}

func (c *checker) texts() {
	t := c.t
	switch {
	case !utf8.ValidString(t.Description):
		c.bad(nil, "description: it is not valid UTF-8", "", "description")
	case strings.TrimSpace(t.Description) == "" && !t.IsComputed():
		c.bad(nil, "description: it is empty", "say what the agent must do", "description")
	}
	if t.Key != "" {
		if fault := naming.KeyFault(t.Key); fault != "" {
			c.bad(nil, "key: "+fault, "", "key")
		}
	}
	if t.Assignee != "" {
		if err := naming.CheckName(t.Assignee); err != nil {
			c.bad(err, "assignee: "+err.Error(), "write the name of an agent", "assignee")
		}
	}
	if t.Role != "" {
		if err := naming.CheckTitle(t.Role); err != nil {
			c.bad(err, "role: "+err.Error(), "", "role")
		}
	}
}

func (c *checker) words() {
	t := c.t
	if t.MemoryScope == "" {
		t.MemoryScope = ScopeDependencies
	} else if !t.MemoryScope.valid() {
		c.word("memoryScope", string(t.MemoryScope), string(ScopeDependencies), string(ScopeAll))
	}
	if t.Priority == "" {
		t.Priority = Normal
	} else if !t.Priority.valid() {
		c.word("priority", string(t.Priority), string(Low), string(Normal), string(High), string(Critical))
	}
	if t.Reuse != "" && t.Reuse != "never" {
		c.word("reuse", t.Reuse, "never")
	}
	if t.OnFailure != "" && t.OnFailure != FailRun && t.OnFailure != ContinueRun {
		c.word("onFailure", t.OnFailure, FailRun, ContinueRun)
	}
	switch t.OnTimeout {
	case "", "suspend", "fail":
		if t.OnTimeout != "" && t.Timeout == 0 {
			c.bad(nil, "onTimeout: the task has no time limit", "set timeoutMs too, or remove onTimeout", "onTimeout")
		}
	default:
		c.word("onTimeout", t.OnTimeout, "suspend", "fail")
	}
	if !t.Classification.Valid() {
		c.bad(nil, fmt.Sprintf("classification: there is no level %v", t.Classification),
			"write public, internal, confidential or secret", "classification")
	}
}

// word adds the problem of a word that is none of those known.
func (c *checker) word(field, word string, known ...string) {
	c.bad(nil, fmt.Sprintf("%s: unknown word %s", field, naming.Quote(word)), wordHint(word, known), field)
}

func badPayload(t *Task, i, k int, as Payload) Problem {
	return Problem{
		Pointer: pointer(i, "dependsOn", k, "as"), Subject: subject(i, t.Title), Err: ErrInvalid,
		Message: fmt.Sprintf("dependsOn[%d]: as: unknown word %s", k, naming.Quote(string(as))),
		Hint:    wordHint(string(as), []string{string(Output), string(Structured), string(Both)}),
	}
}

func wordHint(word string, known []string) string {
	if best, ok := naming.Nearest(word, known); ok {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "write one of " + strings.Join(known, ", ")
}

func (c *checker) numbers() {
	t := c.t
	switch {
	case t.RetryDelay == NoDelay:
		t.RetryDelay = 0
	case t.RetryDelay == 0:
		t.RetryDelay = defaultRetryDelay
	case t.RetryDelay < 0:
		c.bad(nil, fmt.Sprintf("the retry delay %v is negative", t.RetryDelay), "use a positive delay, or leave it out for the default of 1s", "retryDelayMs")
	}
	if t.RetryBackoff == 0 {
		t.RetryBackoff = defaultRetryBackoff
	} else if !(t.RetryBackoff >= 1) || math.IsInf(t.RetryBackoff, 0) {
		c.bad(nil, fmt.Sprintf("the retry backoff factor %v is out of range", t.RetryBackoff), "use 1 or more, or leave it out for the default of 2", "retryBackoff")
	}
	if t.Timeout < 0 {
		c.bad(nil, fmt.Sprintf("the timeout %v is negative", t.Timeout), "use a positive time, or 0 for no limit", "timeoutMs")
	}
	if l := t.Workspace; l != nil && min(l.MaxBytes, l.MaxFiles, l.MaxOutputs, l.MaxOutputBytes, l.MaxTotalOutputBytes) < 0 {
		c.bad(nil, "a limit of the workspace is negative", "use positive limits, or 0 for the default", "workspace")
	}
	if t.TTL < 0 {
		c.bad(nil, fmt.Sprintf("the TTL %v is negative", t.TTL), "use a positive time, or 0 for no expiry", "ttlMs")
	}
}

func (c *checker) lists() {
	t := c.t
	end := 0
	for k, p := range t.Source.Params {
		if p.Start < end || p.End < p.Start || p.End > len(t.Description) {
			c.bad(nil, fmt.Sprintf("params[%d]: bytes %d to %d are not a part of the description after byte %d", k, p.Start, p.End, end), "", "params", k)
			break
		}
		end = p.End
	}
	seen := make(map[string]bool)
	for k, use := range t.Uses {
		if err := naming.CheckName(use.Name); err != nil {
			c.bad(err, fmt.Sprintf("uses[%d]: %v", k, err), "write the name of an input", "uses", k)
			continue
		}
		if use.Item != "" && t.Instance == nil {
			c.bad(nil, fmt.Sprintf("uses[%d]: only an instance of a task has an item", k), "run the task for each item of the input with ForEach, or grant a part of it with Need", "uses", k)
		}
		if name := naming.Normalize(use.Name); seen[name] {
			c.bad(ErrDuplicate, fmt.Sprintf("uses[%d]: %s is named before", k, naming.Quote(use.Name)), "remove it", "uses", k)
		} else {
			seen[name] = true
		}
	}
	clear(seen)
	for k, tag := range t.RequiredTags {
		if err := naming.CheckTitle(tag); err != nil {
			c.bad(err, fmt.Sprintf("requiredTags[%d]: %v", k, err), "", "requiredTags", k)
		} else if seen[tag] {
			c.bad(ErrDuplicate, fmt.Sprintf("requiredTags[%d]: %s is named before", k, naming.Quote(tag)), "remove it", "requiredTags", k)
		}
		seen[tag] = true
	}
	if len(t.OutputSchema) > 0 && !json.Valid(t.OutputSchema) {
		c.bad(nil, "outputSchema: it is not JSON", "write a JSON Schema", "outputSchema")
	}
}

func (c *checker) metadata() {
	if n := len(c.t.Metadata); n > maxMetadata {
		c.bad(nil, fmt.Sprintf("metadata: %d entries, more than %d", n, maxMetadata), "", "metadata")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.t.Metadata)) {
		if fault, hint := metadataFault(key, c.t.Metadata[key]); fault != "" {
			c.bad(nil, fmt.Sprintf("metadata: %s: %s", naming.Quote(key), fault), hint, "metadata", key)
		}
	}
}

// metadataFault says what is wrong with one entry, and what to write instead.
func metadataFault(key string, value any) (fault, hint string) {
	switch {
	case !isMetadataKey(key):
		return "not a key", fmt.Sprintf("begin with a letter, then letters, digits, '_', '.' and '-', at most %d in all", naming.MaxName)
	case strings.HasPrefix(strings.ToLower(key), "oma."):
		return "keys that begin with oma. are reserved", "choose another"
	case isCredential(key):
		return "it looks like the name of a credential", "keep credentials out of tasks: metadata is shown and stored"
	}
	if list, ok := value.([]any); ok {
		return metadataListFault(list)
	}
	return metadataValueFault(value)
}

// cloneMetadata copies metadata with its lists.
func cloneMetadata(all map[string]any) map[string]any {
	out := maps.Clone(all)
	for key, value := range out {
		if list, ok := value.([]any); ok {
			out[key] = slices.Clone(list)
		}
	}
	return out
}

// metadataListFault says what is wrong with a list: its values are scalars of one
// type.
func metadataListFault(list []any) (fault, hint string) {
	if n := len(list); n > maxMetadataList {
		return fmt.Sprintf("%d values, more than %d", n, maxMetadataList), "write fewer values"
	}
	for i, v := range list {
		if fault, hint := metadataValueFault(v); fault != "" {
			return fmt.Sprintf("value %d: %s", i+1, fault), hint
		}
		if metadataType(v) != metadataType(list[0]) {
			return fmt.Sprintf("value %d is a %s, and the first is a %s", i+1, metadataType(v), metadataType(list[0])), "write values of one type"
		}
	}
	return "", ""
}

// metadataType is the type of a value in JSON.
func metadataType(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	}
	return "number"
}

// metadataValueFault says what is wrong with a scalar.
func metadataValueFault(value any) (fault, hint string) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "it is not valid UTF-8", ""
		}
		if n := utf8.RuneCountInString(v); n > maxMetadataValue {
			return fmt.Sprintf("%d characters, more than %d", n, maxMetadataValue), ""
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("%v is not a number of JSON", v), ""
		}
	case float32:
		return metadataValueFault(float64(v))
	case json.Number:
		if !json.Valid([]byte(v)) {
			return "it is not a number of JSON", ""
		}
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
	case nil:
		return "it has no value", "write a string, a number, a boolean or a list of them"
	default:
		return fmt.Sprintf("it is a %T", v), "write a string, a number, a boolean or a list of them"
	}
	return "", ""
}

// isMetadataKey reports whether key matches [A-Za-z][A-Za-z0-9_.-]{0,63}.
func isMetadataKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		rest := '0' <= c && c <= '9' || c == '_' || c == '.' || c == '-'
		if !letter && (i == 0 || !rest) {
			return false
		}
	}
	return 0 < len(key) && len(key) <= naming.MaxName
}

// credentials are words that name a secret; a pair means two words in a row.
var credentials = []string{
	"password", "passwd", "pwd", "passphrase", "secret", "secrets", "token", "credential", "credentials",
	"authorization", "bearer", "cookie", "apikey", "privatekey", "accesskey",
	"api key", "access key", "private key", "signing key", "encryption key", "secret key", "pass word",
}

// isCredential reports whether a word of key, in camelCase or between `_`, `.`
// and `-`, names a secret. Counts such as maxTokens do not.
func isCredential(key string) bool {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		upper := 'A' <= c && c <= 'Z'
		if upper && i > 0 && key[i-1] >= 'a' && key[i-1] <= 'z' || c == '_' || c == '.' || c == '-' {
			b.WriteByte(' ')
		}
		if c != '_' && c != '.' && c != '-' {
			b.WriteByte(c)
		}
	}
	words := " " + strings.Join(strings.Fields(strings.ToLower(b.String())), " ") + " "
	return slices.ContainsFunc(credentials, func(word string) bool { return strings.Contains(words, " "+word+" ") })
}
