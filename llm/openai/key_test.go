package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
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
			base, key, err := openai.Resolve(tt.spec, openai.NewKey(tt.own), env(map[string]string{"OPENAI_API_KEY": " " + theirs + "\n", "OPENAI_BASE_URL": tt.envURL}))
			require.NoError(t, err)
			require.Equal(t, tt.wantBase, base)
			require.True(t, key.Equal(openai.NewKey(tt.wantKey)))
			require.Equal(t, tt.wantKey == "", key.IsZero())
		})
	}
}

func TestResolveRequiresAKeyOnlyForOpenAI(t *testing.T) {
	t.Parallel()
	_, _, err := openai.Resolve("", openai.Key{}, env(nil))
	require.ErrorIs(t, err, llm.ErrNoKey)
	require.ErrorContains(t, err, "OPENAI_API_KEY")
	_, _, err = openai.Resolve("", openai.Key{}, env(map[string]string{"OPENAI_API_KEY": "  ", "OPENAI_BASE_URL": ""}))
	require.ErrorIs(t, err, llm.ErrNoKey, "blanks are no key")
	base, key, err := openai.Resolve("", openai.Key{}, env(map[string]string{"OPENAI_BASE_URL": "http://localhost:1/v1"}))
	require.NoError(t, err)
	require.Equal(t, "http://localhost:1/v1", base)
	require.True(t, key.IsZero())
	_, _, err = openai.Resolve("", openai.Key{}, env(map[string]string{"OPENAI_BASE_URL": "localhost"}))
	require.ErrorContains(t, err, "OPENAI_BASE_URL")
}

func TestKeyGoesToItsEndpointOnly(t *testing.T) {
	t.Parallel()
	var elsewhere http.Header
	other := serve(t, func(w http.ResponseWriter, r *http.Request) { elsewhere = r.Header.Clone(); answer(w, r) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		m := modelOf(t, openai.Config{
			Model: "m", APIKey: openai.NewKey(fakeKey), Headers: map[string]string{"X-Api-Key": "fake-header-key"},
			BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "Bearer "+fakeKey, r.Header.Get("Authorization"))
				require.Equal(t, "fake-header-key", r.Header.Get("X-Api-Key"))
				http.Redirect(w, r, other+"/chat/completions?secret=hunter2", status)
			}),
		})
		e := failure(t, m, false)
		require.Equal(t, llm.NotFound, e.Kind, status)
		require.ErrorContains(t, e, "redirects to "+other)
		require.NotContains(t, e.Error(), "hunter2")
		require.Nil(t, elsewhere, "neither key nor prompt leaves")
	}
}

func TestRedirectsWithinTheEndpointAreFollowed(t *testing.T) {
	t.Parallel()
	m := modelOf(t, openai.Config{Model: "m", APIKey: openai.NewKey(fakeKey), BaseURL: serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/chat/completions" {
			http.Redirect(w, r, "/v2/chat/completions", http.StatusTemporaryRedirect)
			return
		}
		require.Equal(t, "Bearer "+fakeKey, r.Header.Get("Authorization"))
		answer(w, r)
	})})
	res, err := call(t, m, true)
	require.NoError(t, err)
	require.Equal(t, good, res)
	e := failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	}), false)
	require.ErrorContains(t, e, "over and over")
	e = failure(t, model(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // what a POST becomes, without its body
			answer(w, r)
			return
		}
		http.Redirect(w, r, "/v1/login", http.StatusFound)
	}), false)
	require.Equal(t, llm.NotFound, e.Kind)
	require.ErrorContains(t, e, "/v1/login, which is not followed")
}

func TestNothingPrintsAKey(t *testing.T) {
	t.Parallel()
	key := openai.NewKey(fakeKey)
	cfg := openai.Config{Model: "m", BaseURL: "http://u:" + fakeKey + "@h/v1", APIKey: key, Headers: map[string]string{"X-Key": fakeKey}}
	m := modelOf(t, openai.Config{Model: "m", BaseURL: "http://h/v1", APIKey: key, Headers: map[string]string{"X-Key": fakeKey}})
	hidden := struct{ key openai.Key }{key} // fmt does not ask unexported fields
	var out bytes.Buffer
	for _, v := range []any{key, &key, cfg, &cfg, m, hidden, &hidden, []any{key, cfg}, map[string]any{"k": key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		data, err := json.Marshal(v)
		require.NoError(t, err)
		out.Write(data)
	}
	require.NotContains(t, out.String(), fakeKey)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", fakeKey))
	require.Contains(t, out.String(), "[key]")
	require.Contains(t, out.String(), "X-Key")
	require.Empty(t, openai.Key{}.String())
}

func TestServersThatRepeatTheKey(t *testing.T) {
	t.Parallel()
	m := modelOf(t, openai.Config{
		Model: "m", APIKey: openai.NewKey(fakeKey), Headers: map[string]string{"X-Key": "fake-header-key"},
		BaseURL: serve(t, sayJSON(401, `{"error":{"message":"Incorrect API key provided: `+fakeKey+` or sk-f****cdef or `+fakeKey[8:]+` or fake-header-key.","code":"invalid_api_key"}}`)),
	})
	e := failure(t, m, false)
	require.Equal(t, llm.Unauthorized, e.Kind)
	require.Equal(t, "Incorrect API key provided: [key] or [key] or [key] or [key].", e.Message)
	require.NotContains(t, fmt.Sprintf("%+v %#v", e, e), fakeKey[8:])
}

func TestFromEnv(t *testing.T) { // not parallel: it sets the environment
	var auth string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Authorization")
		answer(w, r)
	}))
	defer srv.Close()
	t.Setenv("OPENAI_API_KEY", fakeKey)
	t.Setenv("OPENAI_BASE_URL", srv.URL+"/v1/")
	m, err := openai.FromEnv("m")
	require.NoError(t, err)
	defer m.Close()
	res, err := call(t, m, false)
	require.NoError(t, err)
	require.Equal(t, good, res)
	require.Equal(t, "Bearer "+fakeKey, auth)

	require.NoError(t, os.Unsetenv("OPENAI_API_KEY"))
	require.NoError(t, os.Unsetenv("OPENAI_BASE_URL"))
	_, err = openai.FromEnv("m")
	require.ErrorIs(t, err, llm.ErrNoKey)
}
