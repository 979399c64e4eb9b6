package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: hello}]"})
	tests := []struct {
		args string
		want string // in the message
	}{
		{"chekc", "did you mean check?"},
		{"explain a b c", "takes a RUN or FILE and a TASK (quote a title of several words), not 3"},
		{"runs 0195c3a1", "takes no argument: write runteam show 0195c3a1"},
		{"show a b c", "takes a RUN and a TASK (quote a title of several words), not 3"},
		{"show a b --usage", "--usage shows the whole run"},
		{"show --journal=", "--journal is empty"},
		{"show --no-journal", "unknown flag: --no-journal"},
		{"gc", "--older-than is required"},
		{"gc 30d", "takes no argument"},
		{"gc --older-than soon", `--older-than "soon": write a time such as 30d or 720h`},
		{"gc --older-than 30", "write a time such as 30d or 720h"},
		{"gc --older-than -1h", "write a time such as 30d or 720h"},
		{"gc --older-than 99999999999d", "write a time such as 30d or 720h"},
		{"run --offline --inspect --reveal", "--inspect shows the run in a browser, which gets no secrets: leave out --reveal"},
		{"replay a b", "takes one RUN, not 2"},
		{"replay a --diff b --without c", "--diff compares two stored runs: leave --without out"},
		{"replay a --diff=", "--diff is empty"},
		{"replay --without=", "--without is empty"},
		{"replay --verbose", "--verbose shows what changed with --without or --diff"},
		{"replay --offline", "--offline is for --without"},
		{"replay --model m --diff b", "--model is for --without"},
		{"replay --no-journal", "--no-journal is for --without"},
		{"replay --reveal", "standard output is not a terminal"},
		{"replay --without a --script s", "--script needs --offline"},
		{"dashboard --port 1", `unknown command "dashboard"`},
		{"-o json resum", `unknown command "resum"; did you mean resume or rerun?`},
		{"run --journal x --no-journal", "--journal and --no-journal contradict each other"},
		{"run --journal-key x --no-journal", "--journal-key has no effect with --no-journal"},
		{"run --journal=", "--journal is empty"},
		{"task --file team.yaml --journal-key=", "--journal-key is empty"},
		{"run --audit-key x --no-journal", "--audit-key needs --trace or a journal"},
		{"run --audit-key=", "--audit-key is empty"},
		{"run team.yaml --reuse --no-journal", "--reuse needs a journal"},
		{"run team.yaml --fresh Answer", "--fresh makes exceptions from --reuse"},
		{"run team.yaml --reuse --fresh Answr", `unknown task: did you mean "Answer"?`},
		{"resume a b", "one RUN, not 2"},
		{"resume --no-journal", "unknown flag: --no-journal"},
		{"resume --force", "--force needs --save, --trace"},
		{"resume --max-concurrency 0", "write 1 or more"},
		{"run --offlin", "did you mean --offline?"},
		{"run --max-tokens 5", "did you mean --max-token-budget?"},
		{"plan -o dto", "did you mean dot?"},
		{"run -o dot", "--output dot: only plan draws a graph; runteam run prints text or json"},
		{"check -o mermaid", "only plan draws a graph; runteam check prints text or json"},
		{"plan team.yaml --save f", "--save writes what the coordinator plans: add --goal TEXT"},
		{"plan team.yaml --offline", "--offline is for the coordinator, and a plan of tasks calls no model; leave it out"},
		{"plan team.yaml --timeout 5s", "--timeout is for the coordinator, and a plan of tasks calls no model; leave it out"},
		{"plan team.yaml --max-token-budget 5", "--max-token-budget is for the coordinator, and a plan of tasks calls no model; leave it out"},
		{"plan --goal x --timeout 0s", "write a time above zero"},
		{"plan --goal x --max-token-budget 0", "write 1 or more"},
		{"plan team.yaml --force", "--force needs --save"},
		{"plan --script script.yaml", "--script needs --offline"},
		{"run --strategy x", "unknown flag: --strategy"},
		{"run --max-token-budget 0", "write 1 or more"},
		{"run --max-token-budget many", `--max-token-budget "many": write a whole number, such as 20000`},
		{"run --max-token-budget 99999999999999999999", `"99999999999999999999": write a whole number`},
		{"run --max-concurrency 1.5", `--max-concurrency "1.5": write a whole number, such as 5`},
		{"run --offline=maybe", `--offline "maybe": write true or false`},
		{"run - --goal -", "leave it to one of SPEC and --goal"},
		{"run --goal - --coordinator -", "leave it to one of --coordinator and --goal"},
		{"task --file team.yaml --goal x", "unknown flag: --goal"},
		{"init a b", "one DIR, not 2"},
		{"run a.yaml b.yaml", "one SPEC, not 2"},
		{"task", "--file is required"},
		{"task tasks.json", "write --file tasks.json"},
		{"task --file team.yaml -o text", "always prints JSON"},
		{"run --pretty", "add --output json"},
		{"run --output xml", "write text or json"},
		{"run --log-level wran", "did you mean warn?"},
		{"run --progress lice", "did you mean live?"},
		{"run --progress live", "needs a terminal"},
		{"run --script script.yaml", "--script needs --offline"},
		{"run --offline --script=", "--script is empty"},
		{"run --reveal --offline", "standard output is not a terminal"},
		{"run --input report", "write NAME=FILE"},
		{"run --input a=x --input a=y", "--input a is given twice"},
		{"run --param =x", "write K=V"},
		{"run --model=", "--model is empty"},
		{"run --timeout 0s", "write a time above zero"},
		{"run --timeout soon", `--timeout "soon": write a time such as 90s or 5m`},
		{"help nope", `unknown command "nope"`},
		{"help chekc", "did you mean check?"},
		{"help completion fisch", "did you mean fish?"},
		{"run --timeout 5", "write 5s or 5m"},
		{"run - --input claim=-", "standard input can be read only once: leave it to one of SPEC and --input claim"},
		{"run --input a=- --input b=-", "--input a and --input b"},
		{"completion fisch", "did you mean fish?"},
		{"completion tcsh", "write bash, fish, powershell or zsh"},
		{"run --max-concurrency 0", "write 1 or more"},
		{"mock", "one SCRIPT, not 0"},
		{"mock script.yaml --addr nowhere", "write host:port"},
		{"version please", "takes no argument"},
		{"schema team.yaml", "schema takes spec, which is the default, or handoff"},
		{"schema -o text", "always prints JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(tt.args)
			for i, arg := range args {
				if arg == "team.yaml" || arg == "script.yaml" {
					args[i] = filepath.Join(dir, arg)
				}
			}
			got := call{args: args}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			if got.stdout == "" {
				require.Contains(t, got.stderr, tt.want)
				require.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line: %q", got.stderr)
			}
			if strings.Contains(tt.args, " -o ") || strings.Contains(tt.args, "--output xml") || strings.Contains(tt.args, "-o text") || tt.args == "run --pretty" {
				return
			}
			got = call{args: append(args, "-o", "json")}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Empty(t, got.stderr)
			fault := object(t, got.stdout)["error"].(map[string]any)
			require.Equal(t, "usage", fault["kind"])
			require.Contains(t, fault["message"], tt.want)
		})
	}
}

func TestOriginalFormsAlwaysPrintJSON(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"task", "--file", "none.json"}, {"run", "--team", "t.json", "--goal", "g"}, {"task", "--bogus"}, {"--log-level", "error", "task"}} {
		got := call{args: args, env: map[string]string{console.EnvOutput: "text"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, object(t, got.stdout), "error", "%v", args)
		require.Empty(t, got.stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"run", "--help"}} {
		got := call{args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status)
		require.Contains(t, got.stdout, "Usage:")
		require.Empty(t, got.stderr)
	}
	require.Equal(t, call{args: []string{"version"}}.run(t), call{args: []string{"--version"}}.run(t))
	require.Equal(t, call{args: []string{"version", "-o", "json"}}.run(t), call{args: []string{"--version", "-o", "json"}}.run(t))
	got := call{args: []string{"version"}}.run(t)
	require.Regexp(t, `^runteam \S+ .*\(go1\.\S+, \w+/\w+\)\n$`, got.stdout)
	require.Contains(t, object(t, call{args: []string{"version", "-o", "json"}}.run(t).stdout), "go")
}

func TestFormOfTheOutput(t *testing.T) {
	t.Parallel()
	json := func(args []string, env string) bool {
		got := call{args: args, env: map[string]string{console.EnvOutput: env}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return strings.HasPrefix(got.stdout, "{")
	}
	require.False(t, json([]string{"version"}, ""))
	require.True(t, json([]string{"version"}, "json"), "the environment")
	require.False(t, json([]string{"version", "-o", "text"}, "json"), "a flag takes precedence")
	require.True(t, json([]string{"-ojson", "version"}, "text"))
	require.Contains(t, call{args: []string{"version", "--pretty"}, env: map[string]string{console.EnvOutput: "json"}}.run(t).stdout, "\n  \"version\"")
	bad := call{args: []string{"version"}, env: map[string]string{console.EnvOutput: "yaml"}}.run(t)
	require.Equal(t, exit.StatusUsage, bad.status)
	require.Contains(t, bad.stderr, console.EnvOutput+` "yaml"`)
}

func TestSpecIsFound(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"yaml":        {"team.yaml": one},
		"yml":         {"team.yml": one},
		"json":        {"team.json": `{"name":"one","agents":[{"name":"solo","model":"m"}],"tasks":[{"title":"Answer","assignee":"solo","description":"Say."}]}`},
		"yaml before": {"team.yaml": one, "team.json": "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, files)
			for _, c := range []call{
				{dir: dir, args: []string{"check"}},
				{args: []string{"check", dir}},
				{args: []string{"check", dir + string(filepath.Separator)}},
			} {
				got := c.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.Contains(t, got.stdout, "ok: 1 task, 1 agent, 0 inputs")
			}
		})
	}
	got := call{args: []string{"check", "-"}, stdin: one}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{args: []string{"check"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	require.Contains(t, got.stderr, "team.yaml")
	require.Equal(t, "io", object(t, call{args: []string{"check", "-o", "json"}}.run(t).stdout)["error"].(map[string]any)["kind"])
}

func TestBadSpecsRunNothing(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	bad := func(replace ...string) string { return strings.NewReplacer(replace...).Replace(one) }
	tests := map[string]string{
		"empty":                   "",
		"binary":                  "\x00\x01\x02\xff",
		"wrong type":              bad("name: one", "name: [1]"),
		"unknown key":             bad("assignee: solo", "asignee: solo"),
		"unknown agent":           bad("assignee: solo", "assignee: sola"),
		"self-dependency":         bad("assignee: solo", "assignee: solo, dependsOn: [Answer]"),
		"title with a line break": bad("title: Answer", `title: "Ans\nwer"`),
		"builder's opener":        bad("Say something.", `"Say.\n## Inputs"`),
		"two agents of one name":  bad("agents: [", "agents: [{name: Solo},"),
		"an alias":                "a: &a [1]\nb: *a\n",
		"unknown input":           bad("assignee: solo", "assignee: solo, uses: [nothing]"),
		"no tasks":                bad("tasks: [{title: Answer, assignee: solo, description: Say something.}]", ""),
		"a cycle":                 bad("tasks: [", "tasks: [{title: Other, assignee: solo, dependsOn: [Answer], description: x}, ", "title: Answer,", "title: Answer, dependsOn: [Other],"),
		"two tasks of one title":  bad("tasks: [", "tasks: [{title: answer, assignee: solo, description: x}, "),
		"a missing input":         bad("agents:", "inputs: {a: {file: nowhere.md}}\nagents:"),
		"a folder as an input":    bad("agents:", "inputs: {a: {file: sub}}\nagents:"),
		"a path outside":          bad("agents:", "inputs: {a: {file: ../x.md}}\nagents:"),
		"an empty goal":           bad("name: one", "name: one\ngoal: \"\""),
		"a coordinator's key":     bad("name: one", "name: one\ngoal: Be happy.\ncoordinator: {maxTurn: 3}"),
		"2 MiB":                   one + "#" + strings.Repeat("x", 2<<20),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": text, "sub/file": ""})
			spec := filepath.Join(dir, "team.yaml")
			got := call{args: []string{"run", spec}, env: server.env()}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, "team.yaml")
			require.Contains(t, got.stderr, "nothing was run")
			got = call{args: []string{"run", spec, "-o", "json"}, env: server.env()}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			fault := object(t, got.stdout)["error"].(map[string]any)
			require.Contains(t, []any{"validation", "io"}, fault["kind"])
			require.Contains(t, fault["details"].([]any)[0], "message")
		})
	}
	t.Cleanup(func() { require.Zero(t, server.calls.Load(), "nothing was run") })
}

func TestProblemsAreLocated(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `name: two
model: m
agents:
  - {name: solo, systemPromt: hi}
tasks:
  - title: Answer
    assignee: sola
    description: Say.
`})
	got := call{dir: dir, args: []string{"check", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status)
	details := object(t, got.stdout)["error"].(map[string]any)["details"].([]any)
	first := details[0].(map[string]any)
	require.Equal(t, "team.yaml", filepath.Base(first["file"].(string)))
	require.InEpsilon(t, 4, first["line"], 0.1)
	require.InEpsilon(t, 18, first["column"], 0.1)
	require.Contains(t, first["message"].(string)+first["hint"].(string), "systemPrompt")
}

func TestBadScriptsAreLocated(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies:\n  - {txet: a}\n  - {text: a, staus: 1}\n"})
	got := call{dir: dir, args: []string{"run", "--offline", "--script", "script.yaml", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	fault := object(t, got.stdout)["error"].(map[string]any)
	require.Equal(t, "validation", fault["kind"])
	require.Len(t, fault["details"], 2)
	for args, want := range map[string]string{
		"run --offline --script nowhere.yaml":           "--script nowhere.yaml: there is no such file",
		"run --offline --script none/nowhere.yaml":      "--script none/nowhere.yaml: there is no such file",
		"plan --goal x --offline --script .":            "--script .: cannot read: it is a folder: name a file, or use <(command) of your shell",
		"mock nowhere.yaml":                             "nowhere.yaml: there is no such file",
		"run --offline --script team.yaml/nowhere.yaml": "--script team.yaml/nowhere.yaml: not a directory",
	} {
		got = call{dir: dir, args: strings.Fields(args)}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Equal(t, "runteam: "+want+"\n", got.stderr)
		got = call{dir: dir, args: append(strings.Fields(args), "-o", "json")}.run(t)
		require.Equal(t, "io", object(t, got.stdout)["error"].(map[string]any)["kind"])
	}
}
