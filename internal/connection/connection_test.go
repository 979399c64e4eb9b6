package connection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/llm"
)

// env is an environment.
func env(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := pairs[name]; return v, ok }
}

func TestResolve(t *testing.T) {
	t.Parallel()
	const theirs = "sk-" + "of-the-environment"
	tests := []struct {
		name     string
		spec     string // base URL of the spec
		own      string // key of the spec
		envURL   string
		wantBase string
		wantKey  string
	}{
		{"nothing set", "", "", "", "https://api.openai.com/v1", theirs},
		{"the environment's host", "", "", "http://localhost:11434/v1", "http://localhost:11434/v1", theirs},
		{"a spec's host", "https://evil.example/v1", "", "", "https://evil.example/v1", ""},
		{"a spec's host beside the environment's", "https://evil.example/v1", "", "https://good.example/v1", "https://evil.example/v1", ""},
		{"the environment's host in the spec", "https://GOOD.example:443/v2", "", "https://good.example/v1", "https://good.example:443/v2", theirs},
		{"OpenAI in the spec", "https://api.openai.com/v1", "", "http://localhost:1/v1", "https://api.openai.com/v1", theirs},
		{"OpenAI with a dot", "https://API.openai.com./v1", "", "", "https://api.openai.com./v1", theirs},
		{"a host that only begins so", "https://api.openai.com.evil.example/v1", "", "", "https://api.openai.com.evil.example/v1", ""},
		{"a host that only ends so", "https://evil-api.openai.com/v1", "", "", "https://evil-api.openai.com/v1", ""},
		{"another port of OpenAI", "https://api.openai.com:8443/v1", "", "", "https://api.openai.com:8443/v1", ""},
		{"another port of the host", "http://localhost:8000/v1", "", "http://localhost:11434/v1", "http://localhost:8000/v1", ""},
		{"without encryption", "http://good.example:443/v1", "", "https://good.example/v1", "http://good.example:443/v1", ""},
		{"a key of its own", "https://other.example/v1", "sk-own", "https://good.example/v1", "https://other.example/v1", "sk-own"},
		{"its own key comes first", "", "sk-own", "", "https://api.openai.com/v1", "sk-own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base, key, err := connection.Resolve(tt.spec, tt.own, env(map[string]string{"OPENAI_API_KEY": " " + theirs + "\n", "OPENAI_BASE_URL": tt.envURL}))
			require.NoError(t, err)
			require.Equal(t, tt.wantBase, base)
			require.Equal(t, tt.wantKey, key)
		})
	}
}

func TestResolveRequiresAKeyOnlyForOpenAI(t *testing.T) {
	t.Parallel()
	_, _, err := connection.Resolve("", "", env(nil))
	require.ErrorIs(t, err, llm.ErrNoKey)
	require.ErrorContains(t, err, "OPENAI_API_KEY")
	_, _, err = connection.Resolve("", "", env(map[string]string{"OPENAI_API_KEY": "  ", "OPENAI_BASE_URL": ""}))
	require.ErrorIs(t, err, llm.ErrNoKey, "whitespace is no key")
	base, key, err := connection.Resolve("", "", env(map[string]string{"OPENAI_BASE_URL": "http://localhost:1/v1"}))
	require.NoError(t, err)
	require.Equal(t, "http://localhost:1/v1", base)
	require.Empty(t, key)
	_, _, err = connection.Resolve("", "", env(map[string]string{"OPENAI_BASE_URL": "localhost"}))
	require.ErrorContains(t, err, "OPENAI_BASE_URL")
}
