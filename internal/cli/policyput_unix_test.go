//go:build unix

package cli

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/policytext"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/stretchr/testify/require"
)

// A putAnswer is what a client that puts a policy is told.
type putAnswer struct {
	status int // zero if the process died before it answered
	text   string
}

// narrowPut is the request that takes everything of the reader from the writer.
func narrowPut(t *testing.T, url, digest string) *http.Request {
	t.Helper()
	const narrow = `{"policy":{"rules":[{"name":"nothing","from":"reader","to":"writer","mode":"minimal"},{"from":"writer","to":"reader","block":["ssn"]}]},"reason":"less"}`
	r, err := http.NewRequestWithContext(t.Context(), "PUT", url+"/api/v1/governance/handoff-rules", strings.NewReader(narrow))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+serveToken)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("If-Match", `"`+digest+`"`)
	return r
}

// put sends a request, and returns what the client is told.
func put(r *http.Request) (told putAnswer) {
	got, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return putAnswer{}
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return putAnswer{}
	}
	return putAnswer{got.StatusCode, string(text)}
}

// The process of a run is killed around the moment at which it stores a policy that came over HTTP: as soon as
// the client is told that the policy holds, and at any moment before. After a resume, the run has the policy
// that the client was told, or, if it was told nothing, the old one or the new one.
func TestARunIsKilledAroundThePutOfItsPolicy(t *testing.T) {
	t.Parallel()
	took := 50 * time.Millisecond // of the last request
	for i := range 2 * policyKills() {
		server, dir := startCounting(t, "Second"), crashPolicies(t)
		env := maps.Clone(server.env())
		env["RUNTEAM_INSPECT_TOKEN"] = serveToken
		b, url := startBackground(t, call{dir: dir, args: []string{"run", "--inspect", "--progress", "none"}, env: env}, `http://127\.0\.0\.1:\d+`)
		<-server.blockedCalls
		send := func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
		_, id, _ := strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
		before := object(t, send("policy", id[:8], "-o", "json").stdout)["digest"].(string)

		answered, start, request := make(chan putAnswer, 1), time.Now(), narrowPut(t, url, before)
		go func() { answered <- put(request) }()
		var told putAnswer
		if i%2 == 0 {
			told = <-answered
			took = time.Since(start)
			require.Equal(t, 200, told.status, told.text)
			require.NoError(t, b.Process.Kill())
		} else {
			time.Sleep(rand.N(took))
			require.NoError(t, b.Process.Kill())
			told = <-answered
		}
		<-b.ended
		narrow := requirePolicy(t, server, id[:8], send, dir)
		held, err := journal.HeldPolicies(t.Context(), stored(t, dir), id[:36])
		require.NoError(t, err)
		now := held[len(held)-1]
		if told.status != 0 {
			require.Equal(t, 200, told.status, told.text)
			require.True(t, narrow, "the client was told of a policy that is not stored")
			require.Equal(t, now.Digest, object(t, told.text)["digest"])
			_, p, err := specfile.LoadPolicy("", "-", strings.NewReader(`{"policy":`+string(now.Text)+`}`), nil)
			require.NoError(t, err)
			text, err := policytext.Write(p)
			require.NoError(t, err)
			require.Equal(t, string(text), string(now.Text), "a stored policy has the text that it was sent with")
		}
		require.Equal(t, narrow, now.Digest != before)
	}
}
