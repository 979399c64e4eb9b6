package specfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/task"
)

// schemaOf reads the schema as an editor does.
func schemaOf(t require.TestingT) *jsonschema.Resolved {
	resolved, err := resolvedSchema()
	require.NoError(t, err)
	return resolved
}

var resolvedSchema = sync.OnceValues(func() (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(specfile.JSONSchema(), &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
})

// beyond is what the schema cannot say and the loader does.
var beyond = regexp.MustCompile(strings.Join([]string{
	`^input .*: it has no text$`, `^params: \w+ has no value`, // flags may bring them
	`file: ".*": `, `offline: ".*": `, `readable: ".*": `, // files
	`baseURL: it is not the URL`,
	`(allow|block|allowedContextFields|blockedContextFields|fields|filter|paths|need|needToKnow|reveal: \w+): ".*": `, `^policy: rule .*: name: (not a name|reserved name)`, `assert: ".*": `, // what a text says
	`rule in line \d+ has this name too`, `pattern ".*": (duplicate name|another)`,
	`from: results of earlier runs are `,
	`outputSchema: no schema `, `^chat: (agent|inputs): (unknown|".*" is a person)`, // names
	`the policy is in a file of its own`, `needs the shared memory`, `answers the goal`, // what two keys say together
	`fallback \d: it is the same as`, // what two entries say together
	`(from|cut|maxContextBytes): an input with dir is a folder`, `dir: .*cannot read`, `exclude: the input is not a folder`, `not a valid glob`, `only whole names can be`, `a part of the path is empty`, `the path leaves the workspace`, `workspace: (it continues the folder of|which folder a task continues)`,
	`unknown tool`, `neither a built-in tool nor`, `is a built-in tool`, `no effect on `, `either command or url`, `only with `, `does not fit the other keys`, `stateless: not with`, `is below accepts`,
	`allow: (it is missing|it is empty)`, `allow of .* does not list`, `it needs origins`, `is no origin`, `not the URL of a server`, `beside the preset`, `is listed twice`,
	`(does not have|no agent has) the tool`, `has the same url`, `invalid name; use`, // what tools are and have
	`the environment has no`, `no parameter`, `parameters are replaced only in`, `is not the name of a variable`, `\$\{.* without `, // values from elsewhere
}, "|"))

// shapely reports whether the loader has nothing to say about the shape of a document.
func shapely(t require.TestingT, text string) (ok bool, why string) {
	_, err := specfile.Load(specfile.Options{Path: "-", Stdin: strings.NewReader(text), Lookup: env(map[string]string{"KEY": "k"}), Trusted: trusted})
	if err == nil {
		return true, ""
	}
	bad, isOurs := errors.AsType[*specfile.Error](err)
	require.True(t, isOurs, "%v", err)
	for _, p := range bad.Problems {
		// What a team says of a file is said here of one with other problems too.
		if _, ofTeam := errors.AsType[task.Problem](p.Err); !ofTeam && !beyond.MatchString(p.Message) && (p.File == "-" || p.File == "") {
			return false, p.Message
		}
	}
	return true, ""
}

// requireSame holds that schema and loader agree on a document.
func requireSame(t require.TestingT, s *jsonschema.Resolved, text string) (ok bool) {
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value), text)
	data, err := json.Marshal(value)
	require.NoError(t, err)
	var instance any
	require.NoError(t, json.Unmarshal(data, &instance))
	fits := s.Validate(instance)
	ok, why := shapely(t, text)
	require.Equal(t, ok, fits == nil, "loader: %s\nschema: %v\n%s", why, fits, text)
	return ok
}

// valuesOfEveryType are values for keys, of which each kind of key accepts some.
var valuesOfEveryType = []string{
	"5", "0", "-3", "1.5", "1e3", "2.0", "99999999999", "9000000000000", "9000000000001", "3000000000", "word", "\"\"", "\" \"", "\"\\u00a0\"", "true", "false",
	"null", "[]", "[5]", "[a]", "[\"\"]", "[[]]", "[{}]", "[memory]", "{}", "{a: 5}", "{a: b}", "{a: null}", "{a: {}}", "{a: []}",
	"{file: 5}", "{file: testdata/ok/claim.md}", "{file: \"\"}", "{file: testdata/ok/claim.md, a: b}", "{text: t}", "{text: t, file: testdata/ok/claim.md}",
	"{text: t, classification: secret}", "{classification: secret}", "openai", "pending", "secret", "all", "both", "auto", "http://localhost/v1",
	"[{name: a}]", "[{task: First}]", "[{title: T}]", "{\"a b\": c}", "{requiredTools: [a]}", "{requiredTools: a}", "[{from: a, to: b, text: t}]",
}

// An edge has values for the kinds of keys that match; the first that matches counts.
type edge struct {
	kinds  *regexp.Regexp
	values []string
}

// edges are values at the edges of what kinds of keys accept.
var edges = []edge{
	{regexp.MustCompile("^`"), []string{"word", "5", "null"}},
	{regexp.MustCompile(`number|milliseconds|bytes|dollars`), []string{"0", "-3", "1.5", "99999999999", "9000000000001", "word"}},
	{regexp.MustCompile(`^text|^path|^folder|^name|^time`), []string{"5", "\"\"", "\"\\u00a0\"", "[a]", "{file: testdata/ok/claim.md}", "{file: testdata/ok/claim.md, a: b}"}},
	{regexp.MustCompile(`list`), []string{"[]", "[5]", "[\"\"]", "[[]]", "[memory]", "word"}},
	{regexp.MustCompile(`mapping`), []string{"{}", "{a: 5}", "{a: b}", "{\"a b\": c}", "{a: null}", "{a: []}"}},
	{regexp.MustCompile(``), []string{"null", "{a: {}}", "[{}]", "true", "{text: t}", "{requiredTools: a}"}},
}

// valuesFor returns the values with which a key is tried. Slow tests try every key, half of them with all values.
// Otherwise the first key of each class gets its edges and one other, and the first key of each place only its sample.
// nil means that a key is left out.
func valuesFor(w specfile.Word, index int, classes, places map[string]bool) []string {
	if slowtest.Enabled() {
		if w.Status != specfile.Works || strings.HasSuffix(w.Place, "Defaults") || index%2 > 0 {
			return []string{"5", "0", "word", "\"\"", "pending", "true", "false", "null", "[]", "[a]", "[\"\"]", "{}", "{a: 5}"}
		}
		return valuesOfEveryType
	}
	newClass, newPlace := !classes[w.Class], !places[w.Place]
	classes[w.Class], places[w.Place] = true, true
	switch {
	case newClass:
		i := slices.IndexFunc(edges, func(e edge) bool { return e.kinds.MatchString(w.Kind) })
		return append(slices.Clone(edges[i].values), valuesOfEveryType[7*len(classes)%len(valuesOfEveryType)])
	case newPlace:
		return []string{}
	}
	return nil
}

// TestSchemaAndLoaderAgreeOnEveryKey gives keys values of every type.
func TestSchemaAndLoaderAgreeOnEveryKey(t *testing.T) {
	t.Parallel()
	s := schemaOf(t)
	tried, classes, places := 0, make(map[string]bool), make(map[string]bool)
	for i, w := range specfile.Vocabulary() {
		values := valuesFor(w, i/slowtest.Every(5), classes, places)
		if values == nil || i%slowtest.Every(5) > 0 {
			continue
		}
		tried++
		t.Run(w.Place+"."+w.Key, func(t *testing.T) {
			t.Parallel()
			fits := 0
			for _, value := range values {
				if requireSame(t, s, specWith(w.Place, w.Key, value)) {
					fits++
				}
			}
			sample := samples[strings.Replace(w.Place+"."+w.Key, "Defaults.", ".", 1)]
			if sample != "" && !strings.Contains(sample, "prompt.md") {
				require.True(t, requireSame(t, s, specWith(w.Place, w.Key, sample)), "%s fits", sample)
			}
			if len(values) == len(valuesOfEveryType) {
				require.Positive(t, fits+len(sample), "nothing fits")
			}
			if slowtest.Enabled() && w.Status != specfile.Idle {
				require.Less(t, fits, len(values), "anything fits")
			}
		})
	}
	require.GreaterOrEqual(t, tried, 90/slowtest.Every(5))
	for _, place := range []string{"spec", "team", "orchestrator", "agent", "agentDefaults", "task", "taskDefaults", "input", "dependency", "use", "workspace", "endpoint", "fallback", "message", "edge", "goal", "coordinator", "chat", "provenance", "requires", "loopDetection", "spawn", "condition", "repeat", "forEach", "verify", "judge",
		"policy", "rule", "translate", "summarize", "redact", "pattern", "declassify", "endorse", "renew", "tool", "mcp"} {
		require.False(t, requireSame(t, s, specWith(place, "bogus", "1")), "%s takes unknown keys", place)
	}
}

// inside names the places that stand behind keys.
var inside = map[string]struct {
	place string
	many  string // "": one; list, map
}{
	"spec.goal": {"goal", ""}, "spec.coordinator": {"coordinator", ""}, "spec.chat": {"chat", ""}, "spec.inputs": {"input", "map"}, "spec.agentDefaults": {"agentDefaults", ""},
	"spec.taskDefaults": {"taskDefaults", ""}, "spec.agents": {"agent", "list"}, "spec.tasks": {"task", "list"}, "spec.messages": {"message", "list"}, "spec.edges": {"edge", "list"},
	"spec.tools": {"tool", "map"}, "tool.mcp": {"mcp", ""},
	"spec.endpoints": {"endpoint", "map"}, "spec.fallback": {"fallback", "list"}, "agent.fallback": {"fallback", "list"}, "coordinator.fallback": {"fallback", "list"}, "spec.team": {"team", ""}, "spec.orchestrator": {"orchestrator", ""}, "team.agents": {"agent", "list"},
	"task.dependsOn": {"dependency", "list"}, "task.uses": {"use", "list"}, "task.workspace": {"workspace", ""}, "taskDefaults.workspace": {"workspace", ""}, "taskDefaults.uses": {"use", "list"},
	"spec.policy": {"policy", ""}, "policy.rules": {"rule", "list"}, "policy.redact": {"redact", ""}, "policy.declassify": {"declassify", "list"},
	"policy.endorse": {"endorse", "list"}, "policy.renew": {"renew", "list"}, "rule.redact": {"redact", ""}, "rule.translate": {"translate", ""},
	"translate.summarize": {"summarize", ""}, "redact.patterns": {"pattern", "list"},
	"agent.spawn": {"spawn", ""}, "agentDefaults.spawn": {"spawn", ""},
	"agent.loopDetection": {"loopDetection", ""}, "agentDefaults.loopDetection": {"loopDetection", ""},
	"task.repeat": {"repeat", ""}, "repeat.tasks": {"task", "list"}, "task.forEach": {"forEach", ""}, "task.verify": {"verify", ""}, "verify.judges": {"judge", "list"}, "judge.uses": {"use", "list"}, "judge.dependsOn": {"dependency", "list"}, "task.when": {"condition", ""}, "condition.not": {"condition", ""}, "condition.any": {"condition", "list"},
	"task.requires": {"requires", ""}, "taskDefaults.requires": {"requires", ""},
}

// good are values that fit, by what the reference says may be written.
var good = map[string][]any{
	"text": {"a", " b "}, "text, `${ENV}`": {"m", ""}, "path, `${ENV}`": {"testdata/ok/claim.md"}, "folder, `${ENV}`": {"testdata/folder"}, "list of globs": {[]any{"*.md", "src/**"}}, "list of paths of files": {[]any{"**"}, []any{"a/*/b"}}, "true or false": {true, false},
	"whole number": {0, -2, 7}, "whole number from 1": {1, 40}, "milliseconds": {0, 1.5, 1000}, "bytes": {1, 262144}, "number": {1, 1.0}, "US dollars": {0, 2.5}, "US dollars, more than 0": {0.000001, 2.5, 40}, "list of texts": {[]any{}, []any{"a", "b"}},
	"list of `memory`, `inputs`": {[]any{}, []any{"inputs"}}, "text or `{file: PATH}`": {"text", map[string]any{"file": "testdata/ok/claim.md"}},
	"text, `{file: PATH}`, or see goal": {"A goal."}, "mapping of texts, `${ENV}`": {map[string]any{}, map[string]any{"X-A": "b"}},
	"mapping of texts, numbers, booleans and lists of them": {map[string]any{"a": 1, "b": true, "c": "d", "e": []any{"f", "g"}, "h": []any{}}},
	"JSON Schema, `{file: PATH}` or name":                   {map[string]any{"type": "object"}, true, "s"},
	"list of paths":                                         {[]any{""}, []any{"/a", "/b/*/c/**"}}, "list of paths and names": {[]any{"a"}, []any{"/a", "/b/0", "/**/c"}},
	"mapping of lists of paths, by kind":                           {map[string]any{}, map[string]any{"iban": []any{"/a"}, "ip": []any{""}}},
	"list of `card`, `iban`, `email`, `phone`, `ssn`, `ip`, `mac`": {[]any{"ip", "mac"}}, "list of assertions": {[]any{}, []any{"notes never reaches a"}},
	"text, number, boolean or null": {nil, "a", 1.5, true}, "list of texts, numbers, booleans and null": {[]any{1, nil}}, "see condition, list of them, or `else`": {"else"},
	"any value but null":         {"text", 5, []any{1}, map[string]any{"file": "x"}},
	"whole number from 1 to 100": {1, 100}, "whole number from 1 to 10000": {1, 10000}, "see condition, or list of them": {map[string]any{"task": "First", "path": "/x", "exists": true}},
	"mapping": {map[string]any{}}, "list": {[]any{}}, "text, or list of 1 to 32": {"END", " ", []any{"a", "b"}},
}

// anyValues fit here and there.
var anyValues = []any{nil, true, 0, -1, 1.5, 1e15, "", " ", "word", "secret", []any{}, []any{1}, []any{"a"}, map[string]any{}, map[string]any{"a": 1}, map[string]any{"file": "testdata/ok/claim.md"}}

// family draws documents: keys of the vocabulary with values that fit, some
// that do not, now and then a key too many or one too few.
type family struct {
	t     *rapid.T
	words map[string][]specfile.Word
	share int // of 100: how many of the keys of a place an object has
	odd   int // of 100: how often something is wrong
}

// vocabulary is what may stand in each place.
func vocabulary() map[string][]specfile.Word {
	words := map[string][]specfile.Word{}
	for _, w := range specfile.Vocabulary() {
		words[w.Place] = append(words[w.Place], w)
	}
	return words
}

func (f *family) chance(of100 int) bool { return rapid.IntRange(0, 99).Draw(f.t, "chance") < of100 }

func (f *family) object(place string, depth int) map[string]any {
	out := map[string]any{}
	for _, w := range f.words[place] {
		needed := strings.HasPrefix(w.Says, "required")
		switch {
		case needed && !f.chance(f.odd), w.Status == specfile.Works && f.chance(f.share):
			out[w.Key] = f.value(place, w, depth)
		case w.Status != specfile.Works && f.chance(f.odd):
			out[w.Key] = rapid.SampledFrom(anyValues).Draw(f.t, "any")
		}
	}
	for _, pair := range [...][3]string{{"goal", "text", "file"}, {"input", "text", "file"}, {"spec", "agents", "team"}, {"spec", "model", "orchestrator"}, {"task", "value", "template"}, {"task", "value", "file"}, {"task", "template", "file"}} {
		if place == pair[0] && out[pair[1]] != nil && out[pair[2]] != nil && !f.chance(30) {
			delete(out, pair[2])
		}
	}
	if place == "dependency" { // a team, not the loader, says that only one fits
		switch {
		case out["task"] != nil:
			delete(out, "oneOf")
			delete(out, "each")
		case out["oneOf"] != nil:
			delete(out, "each")
		}
	}
	if place == "forEach" && !f.chance(f.odd) { // a result with a path, or an input
		for _, key := range []string{"task", "path", "files"} {
			delete(out, key)
		}
		if out["input"] == nil {
			out["task"], out["path"] = "First", "/x"
		}
		if !f.chance(30) { // beside tasks, few keys of the task fit
			delete(out, "tasks")
			delete(out, "output")
		}
	}
	if place == "task" && out["repeat"] != nil && !f.chance(f.odd) {
		out = map[string]any{"title": "Loop", "repeat": out["repeat"]}
	} else if place == "task" && !f.chance(f.odd) {
		out["description"] = "Do it."
	}
	if place == "goal" && len(out) == 0 {
		out["text"] = "A goal."
	}
	if f.chance(f.odd) {
		out[rapid.SampledFrom([]string{"bogus", "agnets", "text", "name"}).Draw(f.t, "key")] = 1
	}
	return out
}

func (f *family) value(place string, w specfile.Word, depth int) any {
	if f.chance(f.odd) {
		return rapid.SampledFrom(anyValues).Draw(f.t, "any")
	}
	in, nested := inside[place+"."+w.Key]
	if nested && depth < 3 && f.chance(90) {
		switch in.many {
		case "":
			return f.object(in.place, depth+1)
		case "map":
			return map[string]any{"n": f.object(in.place, depth+1)}
		}
		items := make([]any, rapid.IntRange(0, 3).Draw(f.t, "items"))
		for i := range items {
			items[i] = f.object(in.place, depth+1)
		}
		return items
	}
	if all, known := good[w.Kind]; known {
		return rapid.SampledFrom(all).Draw(f.t, "good")
	}
	return rapid.SampledFrom(strings.Split(strings.Trim(w.Kind, "`"), "`, `")).Draw(f.t, "word")
}

func TestSchemaAndLoaderAgreeOnDocuments(t *testing.T) {
	t.Parallel()
	s := schemaOf(t)
	words := vocabulary()
	fit, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := &family{t: t, words: words, share: rapid.SampledFrom([]int{1, 1, 3, 6}).Draw(t, "share"), odd: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "odd")}
		data, err := json.Marshal(f.object("spec", 0))
		require.NoError(t, err)
		if all++; requireSame(t, s, string(data)) {
			fit++
		}
	})
	t.Logf("%d of %d fit", fit, all)
	require.Positive(t, fit, "some fit")
	require.Less(t, fit, all, "some do not")
}

func TestSchemaAndLoaderAgreeOnContradictions(t *testing.T) {
	t.Parallel()
	s := schemaOf(t)
	for _, text := range []string{
		"agents: []\nteam: {}", "goal: {}", "goal: {text: a, file: testdata/ok/claim.md}", "inputs: {i: {text: a, file: testdata/ok/claim.md}}",
		"model: m\norchestrator: {defaultModel: m}", "provider: openai\norchestrator: {defaultProvider: openai}", "apiKey: k\norchestrator: {defaultApiKey: k}",
		"baseURL: http://localhost\norchestrator: {defaultBaseURL: http://localhost}", "maxConcurrency: 1\norchestrator: {maxConcurrency: 1}",
		"maxTokenBudget: 1\norchestrator: {maxTokenBudget: 1}", "maxCostBudget: 1\norchestrator: {maxCostBudget: 1}", "schedulingStrategy: capability-match\norchestrator: {schedulingStrategy: composite}",
		"strictAssignees: true\norchestrator: {strictAssignees: true}",
	} {
		require.False(t, requireSame(t, s, text), text)
	}
	for _, text := range []string{"{}", "team: {}\norchestrator: {defaultModel: m}", "model: m\norchestrator: {maxConcurrency: 1}", "goal: {file: testdata/ok/claim.md}", "inputs: {i: {}, j: null}"} {
		require.True(t, requireSame(t, s, text), text)
	}
}

// TestSchemaAndLoaderAgreeOnTestdata reads the files that people might write.
func TestSchemaAndLoaderAgreeOnTestdata(t *testing.T) {
	t.Parallel()
	s := schemaOf(t)
	read := 0
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/bad/*.json", "testdata/ok/team.yaml", "testdata/ok/goal.yaml", "testdata/ok/tasks.json"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var value any
			_, err = specfile.Load(specfile.Options{Path: path})
			if yaml.Unmarshal(text, &value) != nil || errors.Is(err, specfile.ErrSyntax) || strings.Contains(path, "duplicate") {
				continue // says nothing that a schema could judge
			}
			read++
			ok := requireSame(t, s, string(text))
			require.True(t, ok || !strings.Contains(path, "/ok/"), path)
		}
	}
	require.Greater(t, read, 20)
}

// TestSchemaMarksWhatDoesNotWork checks that each key is there with its words,
// and marked if it does not work.
func TestSchemaMarksWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	var s struct {
		Schema     string `json:"$schema"`
		Properties map[string]struct {
			Description string
			Deprecated  bool
			Enum        []any
		}
		Defs map[string]struct {
			Properties map[string]struct {
				Description string
				Deprecated  bool
			}
			Required []string
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(specfile.JSONSchema(), &s))
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema)
	for _, w := range specfile.Vocabulary() {
		p := s.Properties[w.Key].Description
		deprecated := s.Properties[w.Key].Deprecated
		if w.Place != "spec" {
			p, deprecated = s.Defs[w.Place].Properties[w.Key].Description, s.Defs[w.Place].Properties[w.Key].Deprecated
		}
		require.Contains(t, p, strings.ReplaceAll(w.Says, "`", ""), "%s.%s", w.Place, w.Key)
		require.Equal(t, w.Status != specfile.Works, deprecated, "%s.%s", w.Place, w.Key)
		if strings.HasPrefix(w.Says, "required") {
			require.True(t, slices.Contains(s.Defs[w.Place].Required, w.Key), "%s.%s", w.Place, w.Key)
		}
	}
	require.Equal(t, []any{nil, false, "", []any{}, map[string]any{}}, s.Properties["mcp"].Enum)
	for _, b := range specfile.JSONSchema() {
		require.True(t, b == '\n' || ' ' <= b && b <= '~', "one can see every character")
	}
}
