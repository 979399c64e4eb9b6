package specfile_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
)

// chainOf writes the connections of an agent, with everything that is sent.
func chainOf(c specfile.Connection) (all []string) {
	for _, one := range append([]specfile.Connection{c}, c.Fallback...) {
		var headers []string
		for name, value := range one.Headers {
			headers = append(headers, name+"="+value)
		}
		slices.Sort(headers)
		all = append(all, strings.Join(slices.DeleteFunc(slices.Concat([]string{one.Model, one.BaseURL, one.APIKey.Reveal()}, headers), func(s string) bool { return s == "" }), " "))
	}
	return all
}

const (
	one = "https://one.example/v1"
	two = "https://two.example/v1"
)

// TestFallbackInheritsUnsetSettings, but never a key or headers for another host.
func TestFallbackInheritsUnsetSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // of agent a
		warned     string
	}{
		{"another model at the same endpoint", "agents: [{name: a, model: m, baseURL: " + one + ", apiKey: k, headers: {X: y}, fallback: [{model: n}]}]",
			[]string{"m " + one + " k X=y", "n " + one + " k X=y"}, ""},
		{"the same model elsewhere", "agents: [{name: a, model: m, baseURL: " + one + ", apiKey: k, headers: {X: y}, fallback: [{baseURL: " + two + "}]}]",
			[]string{"m " + one + " k X=y", "m " + two}, "apiKey of line 1: for another host, so not sent to this one"},
		{"its own key and headers", "agents: [{name: a, model: m, baseURL: " + one + ", apiKey: k, headers: {X: y}, fallback: [{baseURL: " + two + ", apiKey: l, headers: {Z: z}}]}]",
			[]string{"m " + one + " k X=y", "m " + two + " l Z=z"}, "headers of line 1: for another host"},
		{"headers are joined at the same host", "agents: [{name: a, model: m, baseURL: " + one + ", headers: {X: y, W: v}, fallback: [{baseURL: https://one.example/v2, headers: {x: z}}]}]",
			[]string{"m " + one + " W=v X=y", "m https://one.example/v2 W=v x=z"}, ""},
		{"a key beside no base URL", "agents: [{name: a, model: m, apiKey: k, headers: {X: y}, fallback: [{baseURL: " + two + "}, {model: n}]}]",
			[]string{"m k X=y", "m " + two, "n k X=y"}, "apiKey of line 1: for another host"},
		{"a key of the spec beside no base URL", "apiKey: k\nheaders: {X: y}\nagents: [{name: a, model: m, baseURL: " + one + ", fallback: [{baseURL: " + two + "}]}]",
			[]string{"m " + one + " k X=y", "m " + two}, "apiKey of line 1: for another host"},
		{"back to the spec's endpoint", "baseURL: " + one + "\napiKey: k\nagents: [{name: a, model: m, baseURL: " + two + ", apiKey: l, fallback: [{baseURL: " + one + ", apiKey: k}]}]",
			[]string{"m " + two + " l", "m " + one + " k"}, ""},
		{"another key at the same endpoint", "agents: [{name: a, model: m, apiKey: k, fallback: [{apiKey: l}]}]", []string{"m k", "m l"}, ""},
		{"another port", "agents: [{name: a, model: m, baseURL: http://localhost:1, apiKey: k, fallback: [{baseURL: http://localhost:2}]}]",
			[]string{"m http://localhost:1 k", "m http://localhost:2"}, "for another host"},
		{"of the spec", "model: m\nfallback: [{model: n}, {model: o}]\nagents: [{name: a}]", []string{"m", "n", "o"}, ""},
		{"of agentDefaults, before the spec's", "model: m\nfallback: [{model: n}]\nagentDefaults: {fallback: [{model: o}]}\nagents: [{name: a}]", []string{"m", "o"}, ""},
		{"its own, before both", "model: m\nfallback: [{model: n}]\nagentDefaults: {fallback: [{model: o}]}\nagents: [{name: a, fallback: [{model: p}]}]", []string{"m", "p"}, ""},
		{"a shared list for an agent that is in it", "model: m\nfallback: [{model: m}, {model: n}]\nagents: [{name: a}]", []string{"m", "n"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := load(t, tt.text, specfile.Options{})
			require.NoError(t, err)
			require.Equal(t, tt.want, chainOf(f.Agents[0].Connection))
			var warned []string
			for _, w := range f.Warnings {
				if strings.Contains(w.Message, "another host") {
					warned = append(warned, w.Message)
				}
			}
			require.Equal(t, tt.warned != "", len(warned) > 0, "%v", warned)
			require.Contains(t, strings.Join(warned, "\n"), tt.warned)
		})
	}
	f, err := load(t, "model: m\nfallback: [{model: n}]\ngoal: g\ncoordinator: {model: big}\nagents: [{name: a}]", specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"big", "n"}, chainOf(f.Coordinator.Connection), "the coordinator has the spec's too")
	f, err = load(t, "agents: [{name: a, model: m, maxTokensKey: max_tokens, systemRole: merge, extraBody: {user: u}, seed: 5, fallback: [{model: n}, {baseURL: "+two+"}, {baseURL: "+one+", systemRole: developer}]}]", specfile.Options{})
	require.NoError(t, err)
	var settings []string
	for _, c := range f.Agents[0].Fallback {
		settings = append(settings, fmt.Sprint(c.MaxTokensKey, " ", c.SystemRole, " ", string(c.ExtraBody), " ", *c.Seed))
	}
	require.Equal(t, []string{`max_tokens merge {"user":"u"} 5`, "   5", " developer  5"}, settings, "another endpoint has other habits")
	f, err = load(t, "model: m\nfallback: [{baseURL: "+two+"}, {model: n}]\nagents: [{name: a}]", specfile.Options{Models: []string{"flag"}})
	require.NoError(t, err)
	require.Equal(t, []string{"flag", "flag " + two, "n"}, chainOf(f.Agents[0].Connection), "an entry without a model has that of Options.Models")
}

func TestProblemsOfAFallback(t *testing.T) {
	t.Parallel()
	nine := "[" + strings.Repeat("{model: x},", 8) + "{model: y}]"
	tests := []struct{ name, text, where, want string }{
		{"empty", "agents: [{name: a, fallback: []}]", "1:30", "fallback: it is empty"},
		{"too many", "agents: [{name: a, fallback: " + nine + "}]", "1:30", "fallback: it has 9 entries"},
		{"no list", "agents: [{name: a, fallback: {model: m}}]", "1:30", "a list of connections belongs"},
		{"a text", "agents: [{name: a, fallback: [m]}]", "1:31", "an entry of fallback belongs"},
		{"says nothing", "agents: [{name: a, fallback: [{}]}]", "1:31", "fallback 1: it says nothing"},
		{"says nothing but an empty object", "agents: [{name: a, fallback: [{extraBody: {}}]}]", "1:31", "fallback 1: it says nothing"},
		{"an unknown key", "agents: [{name: a, fallback: [{model: m, modle: n}]}]", "1:42", `unknown key "modle" in an entry of fallback`},
		{"a fallback of a fallback", "agents: [{name: a, fallback: [{model: m, fallback: [{model: n}]}]}]", "1:42", `unknown key "fallback"`},
		{"its own connection", "agents: [{name: a, model: m, fallback: [{model: m}]}]", "1:41", `agent "a": fallback 1: it is the same as the connection that it follows`},
		{"one twice", "agents: [{name: a, model: m, fallback: [{model: n}, {model: o}, {model: n}]}]", "1:65", `fallback 3: it is the same as entry 1`},
		{"a wrong base URL", "agents: [{name: a, fallback: [{model: m}, {baseURL: ftp://x}]}]", "1:53", `agent "a": fallback 2: baseURL: it is not the URL of an endpoint`},
		{"another provider", "agents: [{name: a, fallback: [{provider: gemini}]}]", "1:42", `write provider: openai, baseURL: https://generativelanguage`},
		{"of the spec, for many", "fallback: [{model: n}, {model: n}]\nagents: [{name: a}, {name: b}]", "1:24", "fallback 2: it is the same as entry 1"},
		{"of the spec, for nobody", "fallback: [{modle: n}]\nagents: [{name: a, fallback: [{model: m}]}]", "1:13", `unknown key "modle"`},
		{"of agentDefaults, for nobody", "agentDefaults: {fallback: [{modle: n}]}\nagents: [{name: a, fallback: [{model: m}]}]", "1:29", `unknown key "modle"`},
		{"the coordinator's", "goal: g\ncoordinator: {fallback: [{modle: n}]}\nagents: [{name: a}]", "2:27", `unknown key "modle"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tt.text, specfile.Options{})
			bad, ok := errors.AsType[*specfile.Error](err)
			require.True(t, ok, "%v", err)
			require.Len(t, bad.Problems, 1, "%v", err)
			require.Contains(t, err.Error(), tt.want)
			require.Equal(t, tt.where, fmt.Sprintf("%d:%d", bad.Problems[0].Line, bad.Problems[0].Column))
		})
	}
}

// TestVariableOfAFallbackGoesNowhereWithoutConsent: each entry is asked about for
// its own endpoint.
func TestVariableOfAFallbackGoesNowhereWithoutConsent(t *testing.T) {
	t.Parallel()
	const evil = "https://evil.example"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"a known key elsewhere", "agents: [{name: a, model: m, fallback: [{baseURL: " + evil + ", apiKey: \"${GROQ_API_KEY}\"}]}]", []string{"GROQ_API_KEY=" + evil}},
		{"a known key at its provider", "agents: [{name: a, model: m, fallback: [{baseURL: https://api.groq.com/v1, apiKey: \"${GROQ_API_KEY}\"}]}]", nil},
		{"an inherited model", "agents: [{name: a, model: \"${M}\", baseURL: " + one + ", fallback: [{baseURL: " + evil + "}]}]", []string{"M=" + evil, "M=https://one.example"}},
		{"an inherited key is not sent", "agents: [{name: a, model: m, apiKey: \"${OPENAI_API_KEY}\", headers: {X: \"${OPENAI_API_KEY}\"}, fallback: [{baseURL: " + evil + "}]}]", nil},
		{"a key of the spec is not sent", "apiKey: ${OPENAI_API_KEY}\nheaders: {X: \"${OPENAI_API_KEY}\"}\nfallback: [{baseURL: " + evil + "}]\nagents: [{name: a, model: m}]", nil},
		{"a base URL", "agents: [{name: a, model: m, fallback: [{baseURL: \"" + evil + "/${A}\", headers: {X: \"${B}\"}}]}]", []string{"A=" + evil, "B=" + evil}},
		{"the coordinator's", "goal: g\ncoordinator: {fallback: [{baseURL: " + evil + ", apiKey: \"${A}\"}]}\nagents: [{name: a}]", []string{"A=" + evil}},
		{"of a coordinator that is not asked", "coordinator: {fallback: [{baseURL: " + evil + ", apiKey: \"${A}\"}]}\nagents: [{name: a}]\ntasks: [{title: T, description: d}]", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := specfile.Options{Path: filepath.Join(t.TempDir(), "team.yaml"), Lookup: hostile(nil)}
			write(t, filepath.Dir(o.Path), "team.yaml", tt.text)
			_, err := specfile.Load(o)
			if tt.want == nil {
				require.NoError(t, err)
			} else {
				uses := refused(t, err)
				slices.Sort(uses)
				require.Equal(t, tt.want, uses)
				require.NotContains(t, err.Error(), envCanary)
			}
			o.Offline = true
			f, err := specfile.Load(o)
			require.NoError(t, err)
			var listed []string
			for _, u := range f.Env {
				if !u.Known {
					listed = append(listed, u.String())
				}
			}
			require.Equal(t, tt.want, listed, "check and plan list the same")
			for _, a := range f.Agents {
				for _, c := range a.Fallback {
					if c.BaseURL != "https://api.groq.com/v1" {
						require.NotContains(t, c.Model+c.BaseURL+c.APIKey.Reveal()+c.Headers["X"], envCanary, "what is not allowed is not replaced")
					}
				}
			}
		})
	}
	dir := t.TempDir()
	write(t, dir, "team.yaml", "model: \"${M}\"\nagents: [{name: a, fallback: [{baseURL: \""+one+"/${T}\"}]}]")
	f, err := specfile.Load(specfile.Options{Path: dir, Models: []string{"m"}, Lookup: hostile(map[string]string{"T": "x"}), AllowEnv: []specfile.EnvUse{use(t, "T=https://one.example")}})
	require.NoError(t, err, "Options.Models takes the place of the variable in the fallback too")
	require.Equal(t, []string{one + "/${T}"}, f.Agents[0].Member.EndpointNames[1:])
}

func use(t *testing.T, text string) specfile.EnvUse {
	t.Helper()
	u, err := specfile.ParseEnvUse(text)
	require.NoError(t, err)
	return u
}

// TestStoredCopiesOfAFallbackHoldNoKeys: keys that stand in it are taken out.
func TestStoredCopiesOfAFallbackHoldNoKeys(t *testing.T) {
	t.Parallel()
	const text = "fallback: [{baseURL: " + two + ", apiKey: word-one}]\nagents: [{name: a, model: m, baseURL: " + one + ", fallback: [{baseURL: " + two + ", apiKey: word-two, headers: {X-Who: word-three}}]}]\n"
	f, err := load(t, text, specfile.Options{})
	require.NoError(t, err)
	copies := f.Stored()
	require.Len(t, copies, 1)
	require.NotContains(t, copies[0].Text, "word-")
	require.Equal(t, []string{"agents[0].fallback[0].apiKey", "agents[0].fallback[0].headers.X-Who", "fallback[0].apiKey"}, copies[0].Without)
	again, err := load(t, copies[0].Text, specfile.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"m " + one, "m " + two + " X-Who="}, chainOf(again.Agents[0].Connection))
	_, err = load(t, strings.ReplaceAll(text, two, "ftp://x"), specfile.Options{})
	require.NotContains(t, err.Error(), "word-", "excerpts hide them")
}

// TestFallbackIsSaved with a plan, in one file and from several.
func TestFallbackIsSaved(t *testing.T) {
	t.Parallel()
	const agents = "agents: [{name: a, model: m, baseURL: " + one + ", fallback: [{model: n}, {baseURL: " + two + ", apiKey: \"${KEY}\"}, {model: n, apiKey: word-one}]}, {name: b}]\n"
	lookup := env(map[string]string{"KEY": "fake-key"})
	for _, o := range []specfile.Options{{}, {Models: []string{"n"}}, {Team: "roster.yaml"}, {Team: "roster.yaml", Models: []string{"n"}}} {
		dir := t.TempDir()
		write(t, dir, "team.yaml", "model: top\nfallback: [{model: spare}]\n"+agents, "roster.yaml", "fallback: [{model: other}]\n"+agents)
		o.Path, o.Lookup, o.Trusted = filepath.Join(dir, "team.yaml"), lookup, trusted
		if o.Team != "" {
			o.Team = filepath.Join(dir, o.Team)
			write(t, dir, "team.yaml", "model: top\nfallback: [{model: spare}]\ngoal: g\n")
		}
		f, err := specfile.Load(o)
		require.NoError(t, err)
		data, left, err := f.WithPlan(engine.Goal{Text: "g"}, nil, dir)
		require.NoError(t, err)
		require.Contains(t, fmt.Sprint(left), `agent "a": fallback 3: apiKey: not saved`)
		require.NotContains(t, string(data), "word-one")
		again, err := load(t, string(data), specfile.Options{Lookup: lookup, Trusted: trusted})
		require.NoError(t, err, "%s", data)
		want := chainOf(f.Agents[0].Connection)[:3]
		if len(o.Models) > 0 {
			want = slices.Delete(want, 1, 2) // Options.Models made it the first one again
		}
		require.Equal(t, want, chainOf(again.Agents[0].Connection), "%s", data)
		require.Equal(t, chainOf(f.Agents[1].Connection), chainOf(again.Agents[1].Connection), "%s", data)
		require.Equal(t, chainOf(f.Agents[1].Connection)[0]+" spare", strings.Join(chainOf(again.Agents[1].Connection), " "))
	}
}
