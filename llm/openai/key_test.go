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

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

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
		require.Equal(t, callfault.NotFound, e.Kind, status)
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
	require.Equal(t, callfault.NotFound, e.Kind)
	require.ErrorContains(t, e, "/v1/login, which is not followed")
}

func TestKeyIsNeverPrinted(t *testing.T) {
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
	require.Empty(t, fmt.Sprint(openai.Key{}))
}

func TestEchoedKeyIsMasked(t *testing.T) {
	t.Parallel()
	m := modelOf(t, openai.Config{
		Model: "m", APIKey: openai.NewKey(fakeKey), Headers: map[string]string{"X-Key": "fake-header-key"},
		BaseURL: serve(t, sayJSON(401, `{"error":{"message":"Incorrect API key provided: `+fakeKey+` or sk-f****cdef or `+fakeKey[8:]+` or fake-header-key.","code":"invalid_api_key"}}`)),
	})
	e := failure(t, m, false)
	require.Equal(t, callfault.Unauthorized, e.Kind)
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
