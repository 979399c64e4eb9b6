package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/serve"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
)

// hiddenSpec is a team with a task that its caller sees and tasks that work on a value above the caller.
const hiddenSpec = `
model: m
baseURL: http://127.0.0.1:1/v1
output: Open
maxConcurrency: 1
maxTokenBudget: 100000000
maxCostBudget: 100000
prices: {m: {input: 3, output: 15, reasoning: 20}}
agents:
  - {name: open}
  - {name: solo, systemPrompt: You work., accepts: secret, toolPreset: readwrite, spawn: {max: 8}}
  - {name: helper, systemPrompt: You help., accepts: secret, toolPreset: readonly}
  - {name: boss, accepts: secret, backend: {kind: person}}
edges:
  - {from: solo, to: helper, delegate: true, transfer: true}
  - {from: open, to: helper}
tools:
  file_edit: {approve: boss}
inputs: {key: {file: key.md, classification: LEVEL, maxContextBytes: 65536, cut: true}}
policy:
  rules: [RULES]
tasks:
  - {title: Open, assignee: open, description: Say what is open.}
  - {title: Closed, assignee: solo, uses: [key], dependsOn: [Open], description: Say what is secret., outputFiles: ["*.md"], maxRetries: 1, retryDelayMs: 1}
  - {title: Count, assignee: helper, dependsOn: [Closed], description: Count it., outputSchema: {type: object, properties: {items: {type: array, items: {type: string}}}, required: [items]}}
  - {title: Ask, assignee: boss, uses: [key], dependsOn: [Count], description: May it be?}
  - {title: End, assignee: open, dependsOn: [Open, Ask], description: Say the end.}
`

// hiddenTeam returns the spec, in which every agent may read what every agent makes. A rule withholds it from the
// caller, or else the label of the value does.
func hiddenTeam(byRule bool) string {
	var rules []string
	names := []string{"user", "open", "solo", "helper", "boss", "tool:file_read", "tool:file_write", "tool:file_edit", "tool:glob", "tool:grep"}
	for _, from := range names {
		for _, to := range names {
			if isUser := from == "user" || to == "user"; from != to || !isUser {
				mode := "full"
				if to == "open" && from != "user" || byRule && to == "user" && from != "open" {
					mode = "minimal"
				}
				rules = append(rules, fmt.Sprintf("{from: %q, to: %q, mode: %s}", from, to, mode))
			}
		}
	}
	level := "secret"
	if byRule {
		level = "confidential"
	}
	return strings.NewReplacer("RULES", strings.Join(rules, ", "), "LEVEL", level).Replace(hiddenSpec)
}

// An ending is what may be seen of hidden tasks, so it is the same in both runs of a pair.
type ending struct {
	Retried bool // the first attempt at a task runs out of time
	Fails   bool // its last attempt fails
	ByRule  bool // what agents say is hidden, and the value is not
	Again   bool // a second run reuses the answers
}

// A hiddenWork is what agents do because of a value that the caller may not see.
type hiddenWork struct {
	Words     int      // of the value
	Turns     []string // in which the agent calls tools
	Size      int      // words of what it writes to tools, and the number of children
	Approves  bool     // a person allows the calls that are asked about
	Transfers bool     // another agent ends the conversation
	Answer    int      // words of the answer
	Reasons   int      // words before the answer
	Tokens    int      // that each call takes
	Corrected bool     // an answer does not match the schema at first
	Items     int      // of a list
	Delay     int      // milliseconds of a call
	Refused   []int    // statuses of the first calls of a task
}

// drawHiddenWork draws what agents do.
func drawHiddenWork(name string) *rapid.Generator[hiddenWork] {
	return rapid.Custom(func(t *rapid.T) hiddenWork {
		draw := func(what string, most int) int { return rapid.IntRange(0, most).Draw(t, name+" "+what) }
		is := func(what string) bool { return rapid.Bool().Draw(t, name+" "+what) }
		turns := rapid.SliceOfN(rapid.SampledFrom([]string{"write", "read", "bad", "unknown", "edit", "spawn", "delegate", "several", "message"}), 0, 4)
		w := hiddenWork{
			Words: 1 + draw("words", 20000), Turns: turns.Draw(t, name+" turns"), Size: draw("size", 3), Approves: is("approves"), Transfers: is("transfers"), Answer: 1 + draw("answer", 300),
			Reasons: max(0, draw("reasons", 100)-50), Tokens: draw("tokens", 50000), Corrected: is("corrected"), Items: draw("items", 5), Delay: draw("delay", 3),
			Refused: rapid.SliceOfN(rapid.SampledFrom([]int{429, 500, 503}), 0, 2).Draw(t, name+" refused"),
		}
		return w
	})
}

// words returns a text of n words.
func words(n int) string { return strings.TrimSuffix(strings.Repeat("word ", n), " ") }

// script returns the answers that make agents do the work.
func (w hiddenWork) script(t *testing.T, e ending) string {
	usage := map[string]any{"input": w.Tokens, "output": w.Tokens / 3}
	var replies []map[string]any
	add := func(task, system string, turn int, reply map[string]any) {
		r := map[string]any{"task": task}
		if system != "" {
			r["system"], r["turn"] = system, turn
		}
		if reply["text"] != nil || reply["toolCalls"] != nil {
			r["usage"] = usage
			if w.Delay > 0 {
				r["delay"] = fmt.Sprintf("%dms", w.Delay)
			}
		}
		maps.Copy(r, reply)
		replies = append(replies, r)
	}
	calls := func(list ...map[string]any) map[string]any { return map[string]any{"toolCalls": list} }
	tool := func(name string, arguments map[string]any) map[string]any {
		return map[string]any{"name": name, "arguments": arguments}
	}
	add("Open", "", 0, map[string]any{"text": "open", "usage": map[string]any{"input": 5, "output": 1}, "delay": "0ms"})
	add("End", "", 0, map[string]any{"usage": map[string]any{"input": 5, "output": 1}, "delay": "0ms", "toolCalls": []map[string]any{tool("send_handoff", map[string]any{"to": "helper", "message": "the end"})}})
	add("End", "", 0, map[string]any{"text": "end", "usage": map[string]any{"input": 5, "output": 1}, "delay": "0ms"})
	turn := 1
	for _, kind := range w.Turns {
		write := tool("file_write", map[string]any{"path": "notes.md", "content": words(1 + w.Size*50)})
		read := tool("file_read", map[string]any{"path": "notes.md"})
		switch kind {
		case "write":
			add("Closed", "You work.", turn, calls(write))
		case "read":
			add("Closed", "You work.", turn, calls(read))
		case "several":
			add("Closed", "You work.", turn, calls(write, read, tool("glob", map[string]any{"pattern": "*"})))
		case "bad":
			add("Closed", "You work.", turn, calls(tool("file_read", map[string]any{"nothing": w.Size})))
		case "unknown":
			add("Closed", "You work.", turn, map[string]any{"body": `{"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"guess","arguments":"{}"}}]}}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`})
		case "edit":
			add("Closed", "You work.", turn, calls(tool("file_edit", map[string]any{"path": "notes.md", "old": "word", "new": words(w.Size)})))
		case "spawn":
			var list []map[string]any
			for i := range w.Size {
				list = append(list, tool("spawn_agent", map[string]any{"goal": fmt.Sprint("Find ", i)}))
			}
			if len(list) == 0 {
				continue
			}
			add("Closed", "You work.", turn, calls(list...))
		case "message":
			add("Closed", "You work.", turn, calls(tool("send_handoff", map[string]any{"to": "helper", "message": words(1 + w.Size)})))
		case "delegate":
			add("Closed", "You work.", turn, calls(tool("delegate_to_agent", map[string]any{"to": "helper", "goal": "Find it."})))
		}
		turn++
	}
	if e.Retried {
		add("Closed", "You work.", turn, map[string]any{"ended": "timeout", "times": 1})
	}
	answers := map[string]any{"text": words(w.Answer)}
	switch {
	case e.Fails:
		answers = map[string]any{"status": 400}
	case w.Reasons > 0:
		answers = map[string]any{"body": fmt.Sprintf(`{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q,"reasoning_content":%q}}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"completion_tokens_details":{"reasoning_tokens":%d}}}`,
			words(w.Answer), words(w.Reasons), w.Tokens, w.Tokens/2+1, w.Tokens/3)}
	}
	if w.Transfers {
		add("Closed", "You work.", turn, calls(tool("transfer_to_helper", map[string]any{"reason": words(w.Size)})))
		add("Closed", "You help.", 1, answers)
	} else {
		add("Closed", "You work.", turn, answers)
	}
	add("Goal", "", 0, map[string]any{"text": words(w.Size + 1)})
	turn = 1
	for _, status := range w.Refused {
		add("Count", "You help.", turn, map[string]any{"status": status, "retryAfter": "0s", "times": 1})
	}
	if w.Corrected {
		add("Count", "You help.", turn, map[string]any{"text": "none"})
		turn++
	}
	list, err := json.Marshal(map[string]any{"items": strings.Fields(words(w.Items))})
	require.NoError(t, err)
	add("Count", "You help.", turn, map[string]any{"text": string(list)})
	add("Ask", "", 0, map[string]any{"text": words(w.Answer)})
	decision := `{"decision":"no","reason":"not now"}`
	if w.Approves {
		decision = `{"decision":"yes"}`
	}
	add("Approve file_edit", "", 0, map[string]any{"text": decision})
	text, err := json.Marshal(map[string]any{"replies": replies})
	require.NoError(t, err)
	return string(text)
}

// shown returns all that the caller of the run gets, by what was asked.
func (w hiddenWork) shown(t *testing.T, e ending) map[string]string {
	dir := clitest.Folder(t, map[string]string{"team.yaml": hiddenTeam(e.ByRule), "key.md": words(w.Words), "script.yaml": w.script(t, e)})
	forms := map[string]string{}
	got := offlineRun(t, call{dir: dir}, "--script", "script.yaml", "-o", "json", "--events", "events.jsonl", "--trace", "run.trace")
	if !e.Fails {
		require.Equal(t, 0, got.status, "%+v", got)
	}
	forms["run"] = fmt.Sprint(got.status, got.stdout, got.stderr)
	for _, name := range []string{"events.jsonl", "run.trace"} {
		forms[name] = clitest.Contents(t, filepath.Join(dir, name))
	}
	if e.Again {
		got := offlineRun(t, call{dir: dir}, "--script", "script.yaml", "--reuse", "--stream")
		forms["run again"] = fmt.Sprint(got.status, got.stdout, got.stderr)
	}
	commands := []string{
		"show", "show -o json", "show --usage -o json", "show --handoffs -o json", "show Closed", "show Closed -o json --reasoning", "show Count -o json",
		"explain --contains word -o json", "explain Closed", "explain run.trace -o json", "artifacts", "runs -o json", "replay",
	}
	if slowtest.Enabled() { // forms that differ less from those
		commands = append(commands, "show --usage", "show Ask -o json", "explain", "explain -o json", "explain Closed -o json", "explain run.trace", "artifacts -o json", "artifacts Closed --patch", "runs", "questions", "policy -o json")
	}
	for _, line := range commands {
		got := call{dir: dir, args: strings.Fields(line)}.run(t)
		forms[line] = fmt.Sprint(got.status, got.stdout, got.stderr)
	}
	j, err := journal.Open(filepath.Join(dir, ".runteam", "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	runs, err := j.Runs(t.Context())
	require.NoError(t, err)
	con, _, _ := clitest.Console(t)
	o := serve.Options(con, j, &journals.Flags{}, label.Confidential)
	o.Access = inspector.Access{Tokens: inspector.OneToken(serveToken, ""), Hosts: inspector.Hosts{Names: []string{"127.0.0.1"}, Port: "80"}}
	h := inspector.New(o)
	for _, r := range inspector.Routes() {
		for _, task := range []string{"Closed", "Count", "Ask"} {
			for _, query := range queriesOf(r) {
				isPage := strings.HasSuffix(r.Path, "/export") // which has what other routes have
				if isPage && !slowtest.Enabled() || strings.HasSuffix(r.Path, "/openapi.json") || r.Method != http.MethodGet || task != "Closed" && !strings.Contains(r.Path, "{task}") {
					continue
				}
				path := strings.NewReplacer("{run}", runs[0].Run, "{other}", runs[0].Run, "{task}", task, "{from}", "solo", "{to}", "helper").Replace(r.Path) + query
				q := httptest.NewRequest(r.Method, path, nil)
				q.Host = "127.0.0.1"
				q.Header.Set("Authorization", "Bearer "+serveToken)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, q)
				text := fmt.Sprint(w.Code, w.Header(), w.Body)
				if isPage {
					text, _, _ = strings.Cut(text[strings.Index(text, runs[0].Run):], "<script>") // the rest is the same in every page
				}
				forms[r.Path+" "+task+query] = text
			}
		}
	}
	for name, text := range forms {
		for _, r := range runs {
			text = withoutTimes(text, r.Run)
		}
		forms[name] = strings.ReplaceAll(text, dir, "DIR")
	}
	lines := strings.SplitAfter(placesInTrace.ReplaceAllString(forms["run.trace"], ""), "\n")
	slices.Sort(lines) // events come when they are durable
	forms["run.trace"] = strings.Join(lines, "")
	return forms
}

var (
	// placesInTrace finds what a line of a trace says of the lines before it.
	placesInTrace = regexp.MustCompile(`"(seq|previous|beside|digest)": ?("[^"]*"|\d+),?`)
	// shortIDs finds what may be the beginning of the ID of a run, and columns of places in files.
	shortIDs = regexp.MustCompile(`:\d{4,5}:|[0-9a-f]{4,8}(-[0-9a-f-]+)?`)
	// digestsShown finds digests under the key of a journal, and those of records with their numbers of lines, which the
	// file of the journal shows too.
	digestsShown = regexp.MustCompile(`hmac-sha256:[0-9a-f]{64}|[0-9a-f]{64}:\d+`)
	// durations finds members that are left out if they are 0.
	durations = regexp.MustCompile(`,?"(took|duration|start|end|firstToken)Ms": ?\d+`)
	// timesShown finds times, the time between two of them, the width of its column, and numbers that an endpoint gives to
	// all its calls.
	timesShown = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?|\b\d+\.\ds\b *|\btook  +|chatcmpl-\d+`)
)

// withoutTimes replaces the ID of a run, times, and digests under the key of a journal.
func withoutTimes(text, run string) string {
	text = timesShown.ReplaceAllString(durations.ReplaceAllString(strings.ReplaceAll(text, run, "RUN"), ""), "time")
	text = digestsShown.ReplaceAllString(text, "digest")
	if strings.Contains(text, `{"`) {
		return text
	}
	return shortIDs.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(run, found) {
			return "RUN"
		}
		return found
	})
}

// Two runs that differ in a value above the caller give the caller equal bytes, by all commands and routes.
//
// Requirement: G68.
func TestStoredPairsOfHiddenValuesGiveEqualBytes(t *testing.T) {
	t.Parallel()
	pairs := 1
	if slowtest.Enabled() {
		pairs = 5 // each kind of ending
	}
	if many, err := strconv.Atoi(os.Getenv("PAIRS")); err == nil {
		pairs = many / 10 // each takes some seconds
	}
	draw := rapid.Custom(func(t *rapid.T) [2]hiddenWork {
		return [2]hiddenWork{drawHiddenWork("one").Draw(t, "one"), drawHiddenWork("other").Draw(t, "other")}
	})
	for i := range pairs {
		pair := draw.Example(i)
		e := ending{Retried: i%3 == 1, Fails: i%5 == 4, ByRule: i%2 == 1, Again: i%4 >= 2}
		if e.ByRule { // the caller sees the value
			pair[1].Words = pair[0].Words
		}
		one, other := pair[0].shown(t, e), pair[1].shown(t, e)
		for _, name := range slices.Sorted(maps.Keys(one)) {
			require.Equal(t, one[name], other[name], "%s: %+v %+v", name, e, pair)
		}
		require.Contains(t, one["show --usage -o json"], `"partial":true`)
		require.Equal(t, e.ByRule, strings.Contains(one["show -o json"], "fingerprint"), "it differs by what is secret")
	}
}
