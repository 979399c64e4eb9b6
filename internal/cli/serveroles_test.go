package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"

	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// tokenOf returns the token of a person in tests.
func tokenOf(person string) string { return "token-of-" + person }

// as is the header of a request of a person.
func as(person string) string { return "Authorization: Bearer " + tokenOf(person) }

// rolesText returns a file of roles. Each line says who has which role: "ann viewer accepts=internal runs=all". Each person has a
// token of each of their roles, the last of which is returned by tokenOf.
func rolesText(lines ...string) string {
	var text, tokens strings.Builder
	text.WriteString("roles:\n")
	tokens.WriteString("tokens:\n")
	for _, line := range lines {
		words := strings.Fields(line)
		person, role := words[0], words[1]
		fmt.Fprintf(&text, "  - role: %s\n    users: [%s]\n", role, person)
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			if name == "specs" || name == "as" {
				value = "[" + value + "]"
			}
			fmt.Fprintf(&text, "    %s: %s\n", name, value)
		}
		digest := sha256.Sum256([]byte(tokenOf(person)))
		fmt.Fprintf(&tokens, "  - {sha256: %s, user: %s, role: %s, expires: 2099-01-01}\n", hex.EncodeToString(digest[:]), person, role)
	}
	return text.String() + tokens.String()
}

// openSpec has a text of its caller in what it shows, and asks a person.
const openSpec = `
name: open
inputs: {words: {classification: confidential}}
agents: [{name: cat, accepts: confidential, backend: {kind: process, command: cat}}, {name: boss, accepts: confidential, backend: {kind: person}}]
policy: {file: policy.yaml}
tasks:
  - {title: T, assignee: cat, uses: [words], description: Repeat.}
  - {title: Ask, assignee: boss, dependsOn: [T], description: May it be?}
`

// peopleFolder has two specs, and a file of roles of these lines.
func peopleFolder(t *testing.T, lines ...string) string {
	t.Helper()
	return clitest.Folder(t, map[string]string{
		"open.yaml": openSpec, "policy.yaml": "policy: {}\n", "roles.yaml": rolesText(lines...),
		"talk.yaml": "name: talk\nagents: [{name: cat, backend: {kind: process, command: cat}}]\nchat: {agent: cat}\n",
	})
}

// A team of people has one of each kind.
var everyone = []string{
	"ann operator accepts=confidential", "otto operator accepts=internal runs=all", "vic viewer accepts=internal runs=all", "val viewer accepts=confidential",
	"carla approver accepts=confidential as=boss", "dora operator accepts=confidential specs=talk runs=all", "zoe approver accepts=public as=boss",
}

// start starts a run of the spec open as a person, and returns its ID once a person is asked.
func (s *served) start(person, words string) string {
	s.t.Helper()
	status, answer := s.do("POST", "/runs", `{"spec":"open","inputs":{"words":"`+words+`"}}`, as(person))
	require.Equal(s.t, 202, status, answer)
	run := object(s.t, answer)["runId"].(string)
	require.Eventually(s.t, func() bool {
		_, text := s.do("GET", "/runs/"+run+"/questions", "", as(person))
		return strings.Contains(text, `"agent":"boss"`)
	}, 20*time.Second, 20*time.Millisecond)
	return run
}

// What a role may do by a route, as the letters of these: it reads the run, starts, steers, or answers.
const (
	anyRole  = "any"
	reads    = "reads"
	starts   = "starts"
	steers   = "steers"
	answers  = "answers"
	unseen   = "unseen"
	replaces = "replaces the policy of a spec"
)

// needs says what each route needs.
func needs(r inspector.Route) string {
	path := strings.TrimPrefix(r.Path, inspector.API)
	switch {
	case path == "/sign-out": // which ends no token
		return anyRole
	case path == "/unseen-runs":
		return unseen
	case strings.HasPrefix(path, "/specs/") && r.Method == http.MethodPut:
		return replaces
	case strings.HasPrefix(path, "/specs"), path == "/chats", path == "/estimates", r.Method == http.MethodPost && path == "/runs":
		return starts
	case strings.HasSuffix(path, "/answer"):
		return answers
	case r.Method != http.MethodGet:
		return steers
	case strings.Contains(path, "{run}"), strings.HasPrefix(path, "/governance"):
		return reads
	}
	return anyRole
}

// TestRolesByRoutes asks each route of the API as a person of each kind, about a run of ann's, and holds the status to what the
// roles say.
func TestRolesByRoutes(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "open.yaml", "talk.yaml"}})
	run := s.start("ann", "hello")
	may := map[string][]string{ // of the run of ann, whose label is confidential, since that is what she may see
		"ann":   {reads, starts, steers},
		"otto":  {starts, unseen, replaces}, // replaces is refused, as he is not cleared for it
		"vic":   {},
		"val":   {},
		"carla": {answers},
		"dora":  {unseen},
		"zoe":   {answers},
	}
	for person, abilities := range may {
		for _, r := range inspector.Routes() {
			path := strings.NewReplacer(inspector.API, "", "{run}", run, "{other}", run, "{task}", "T", "{from}", "cat", "{to}", "boss", "{question}", "none", "{spec}", "open").Replace(r.Path)
			if strings.HasSuffix(path, "/handoffs") {
				path += "?task=T"
			}
			need := needs(r)
			body := map[string]string{http.MethodGet: "", http.MethodPut: `{"policy":{}}`, http.MethodPost: `{}`}[r.Method]
			if strings.HasSuffix(path, "/answer") {
				body = `{"text":"yes"}`
			}
			method := r.Method
			if strings.HasSuffix(path, "/stream") {
				method = http.MethodHead // a stream lasts as long as the run
			}
			status, answer := s.do(method, path, body, as(person), `If-Match: "x"`)
			at := fmt.Sprintf("%s: %s %s: %d %s", person, r.Method, path, status, answer)
			can := slices.Contains(abilities, need) || need == anyRole
			isOperator := slices.Contains([]string{"ann", "otto", "dora"}, person)
			blind := isOperator && slices.Contains(abilities, unseen) && (strings.HasSuffix(path, run+"/pause") || strings.HasSuffix(path, run+"/cancel"))
			switch {
			case blind:
				require.Equal(t, 200, status, at)
			case need == replaces && person == "otto":
				require.Equal(t, 403, status, at)
			case can && need == answers, can && need == replaces: // there is no such question, and no such policy
				require.Contains(t, []int{404, 412}, status, at)
			case can && need == steers && r.Method == http.MethodPut:
				require.Contains(t, []int{409, 412}, status, at)
			case can && need == steers, can && need == starts && r.Method == http.MethodPost:
				require.Contains(t, []int{200, 202, 400, 404, 409, 422}, status, at)
				require.NotContains(t, answer, "no such run", at)
			case can && strings.HasPrefix(path, "/governance"): // one run of hers at most works
				require.Contains(t, []int{200, 409}, status, at)
			case can && strings.HasSuffix(path, "/session"):
				require.Contains(t, answer, "no turn of a session", at)
			case can && strings.HasSuffix(path, "/stream"), can && strings.HasSuffix(path, "/flow"):
				require.Contains(t, []int{200, 404}, status, at)
				require.NotContains(t, answer, "no such run", at)
			case can:
				require.Equal(t, 200, status, at)
			case need == steers && isOperator && strings.Contains(path, run), need == reads && strings.Contains(path, run):
				require.Equal(t, 404, status, at)
				require.True(t, method == http.MethodHead || strings.Contains(answer, "there is no such run"), at)
			case r.Method == http.MethodPut: // the policy is read first
				require.Contains(t, []int{403, 404, 409}, status, at)
			case strings.HasPrefix(path, "/governance"):
				require.Contains(t, []int{403, 409}, status, at)
			case person == "dora" && need == starts: // she starts runs of another spec
				require.Contains(t, []int{200, 403, 404, 422}, status, at)
			default:
				require.Equal(t, 403, status, at)
				require.True(t, method == http.MethodHead || strings.Contains(answer, "none of your roles"), at)
			}
		}
		status, answer := s.do("GET", "/runs", "", as(person))
		require.Equal(t, 200, status)
		require.Equal(t, person == "ann", strings.Contains(answer, run), "%s: %s", person, answer)
	}
	for _, header := range []string{"Authorization: Bearer token-of-eve", "Authorization: Bearer ", "Authorization: Basic x", "X-Forwarded-User: ann"} {
		for _, r := range inspector.Routes() {
			req, err := http.NewRequestWithContext(t.Context(), r.Method, s.url+r.Path, nil)
			require.NoError(t, err)
			name, value, _ := strings.Cut(header, ": ")
			req.Header.Set(name, value)
			res, err := s.client.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, 401, res.StatusCode, "%s %s %s", header, r.Method, r.Path)
		}
	}
}

// Canaries of each label are in no answer to a person who is not cleared for them, whatever their role.
func TestRolesSeeNoCanaryAboveThem(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	var args []string
	canary := func(level label.Classification) string { return "canary-of-" + level.String() }
	for _, level := range levels[:3] {
		name := level.String()
		files[name+".yaml"] = fmt.Sprintf("name: %[1]s\ninputs: {words: {text: %[2]s, classification: %[1]s}}\nagents: [{name: cat, accepts: %[1]s, backend: {kind: process, command: cat}}]\ntasks: [{title: T, classification: %[1]s, assignee: cat, uses: [words], description: Repeat.}]\n", name, canary(level))
		args = append(args, name+".yaml")
	}
	var lines []string
	for _, role := range []string{"viewer", "operator", "approver"} {
		for _, level := range levels[:3] {
			for _, runs := range []string{"own", "all"} {
				line := fmt.Sprintf("%s-%v-%s %s accepts=%v runs=%s", role, level, runs, role, level, runs)
				if role == "approver" {
					line += " as=boss"
				}
				lines = append(lines, line)
			}
		}
	}
	files["roles.yaml"] = rolesText(append(lines, "root operator accepts=confidential runs=all")...)
	dir := clitest.Folder(t, files)
	s := serveHere(t, call{dir: dir, args: append([]string{"--roles", "roles.yaml"}, args...)})
	var runs []string
	for _, level := range levels[:3] {
		status, answer := s.do("POST", "/runs", `{"spec":"`+level.String()+`"}`, as("root"))
		require.Equal(t, 202, status, answer)
		run := object(t, answer)["runId"].(string)
		runs = append(runs, run)
		require.Eventually(t, func() bool { return strings.Contains(s.as("root", "/runs/"+run), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
	}
	found := 0
	for _, line := range lines {
		person := strings.Fields(line)[0]
		words := strings.Split(person, "-")
		accepts, err := label.ParseClassification(words[1])
		require.NoError(t, err)
		for _, r := range inspector.Routes() {
			if r.Method != http.MethodGet {
				continue
			}
			for i, run := range runs {
				path := strings.NewReplacer(inspector.API, "", "{run}", run, "{other}", runs[(i+1)%3], "{task}", "T", "{from}", "cat", "{to}", "user", "{spec}", levels[i].String()).Replace(r.Path)
				for _, query := range queriesOf(r) {
					status, answer := s.do("GET", path+query, "", as(person))
					for _, level := range levels[:3] {
						if level > accepts || words[2] == "own" {
							require.NotContains(t, answer, canary(level), "%s: %s%s: %d", person, path, query, status)
						} else if strings.Contains(answer, canary(level)) {
							found++
						}
					}
				}
			}
		}
	}
	require.Greater(t, found, 50, "who is cleared sees them")
}

// as returns a document as a person gets it.
func (s *served) as(person, path string) string {
	s.t.Helper()
	status, text := s.do("GET", path, "", as(person))
	require.Equal(s.t, 200, status, "%s: %s", path, text)
	return text
}

// What a person does carries their name.
func TestPeopleAreNamed(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "open.yaml"}})
	run := s.start("ann", "hello")
	var list []struct{ ID, RunID, Prompt string }
	require.NoError(t, json.Unmarshal([]byte(s.as("carla", "/questions")), &list))
	require.Len(t, list, 1)
	require.Empty(t, list[0].RunID, "she may not see the run")
	require.Equal(t, "[]\n", s.as("zoe", "/questions"), "who is not cleared for the question")
	status, answer := s.do("POST", "/questions/"+list[0].ID+"/answer", `{"text":"yes"}`, as("ann"))
	require.Equal(t, 403, status, answer)
	status, answer = s.do("POST", "/runs/"+run+"/nodes/T/cancel", `{}`, as("ann"))
	require.Equal(t, 409, status, answer)
	status, answer = s.do("POST", "/runs/"+run+"/pause", `{"reason":"lunch"}`, as("ann"))
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, `"by":"ann"`)
	status, answer = s.do("POST", "/questions/"+list[0].ID+"/answer", `{"text":"yes"}`, as("carla"))
	require.Equal(t, 200, status, answer)
	require.Eventually(t, func() bool { return strings.Contains(s.as("ann", "/runs/"+run), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
	events := s.as("ann", "/runs/"+run+"/events")
	require.Contains(t, events, `"code":"pause","message":"lunch","from":"ann"`)
	require.Contains(t, s.as("ann", "/runs/"+run), `"carla"`)
	require.Contains(t, s.as("ann", "/runs"), `"starter":"ann"`)
	require.Contains(t, s.as("ann", "/runs?starter=Ann"), run)
	require.NotContains(t, s.as("ann", "/runs?starter=otto"), run)
	require.Contains(t, call{dir: dir, args: []string{"runs", "--starter", "ann", "-o", "json"}}.run(t).stdout, run)
	require.Equal(t, "[]\n", call{dir: dir, args: []string{"runs", "--starter", "otto", "-o", "json"}}.run(t).stdout)
	require.Contains(t, call{dir: dir, args: []string{"runs", "--starter", "a  b"}}.run(t).stderr, `--starter "a  b": it has two spaces in a row`)
}

// Two persons of a run are two people, nobody approves their own calls, and a person may name who answers.
func TestApproversAreOthers(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"two.yaml": `
name: two
agents: [{name: boss, backend: {kind: person}}, {name: chief, backend: {kind: person}}, {name: legal, backend: {kind: person, users: [Lea@example.org]}}]
tasks: [{title: A, assignee: boss, description: May it be?}, {title: B, assignee: chief, description: May it be?}, {title: C, assignee: legal, description: Is it legal?}]
`,
		"roles.yaml": rolesText("ann operator", "carla approver as=boss,chief,legal", "ben approver as=chief", "lea@example.org approver as=legal"),
	})
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "two.yaml"}})
	status, answer := s.do("POST", "/runs", `{"spec":"two"}`, as("ann"))
	require.Equal(t, 202, status, answer)
	run := object(t, answer)["runId"].(string)
	open := func(person string) (ids []string) {
		var list []struct {
			ID   string
			Asks struct{ Title string }
		}
		require.NoError(t, json.Unmarshal([]byte(s.as(person, "/questions")), &list))
		for _, q := range list {
			ids = append(ids, q.Asks.Title+" "+q.ID)
		}
		slices.Sort(ids)
		return ids
	}
	require.Eventually(t, func() bool { return len(open("carla")) == 2 && len(open("lea@example.org")) == 1 }, 20*time.Second, 20*time.Millisecond, "the third names who can answer")
	reply := func(person, question string) (int, string) {
		_, id, _ := strings.Cut(question, " ")
		return s.do("POST", "/questions/"+id+"/answer", `{"text":"yes"}`, as(person))
	}
	both, third := open("carla"), open("lea@example.org")[0]
	require.NotContains(t, s.as("carla", "/questions"), `"denied"`)
	require.Equal(t, 3, strings.Count(s.as("ann", "/runs/"+run+"/questions"), `none of your roles answers as that person"`), "she sees the run, and answers nothing")
	status, answer = reply("carla", both[0])
	require.Equal(t, 200, status, answer)
	require.Contains(t, s.as("carla", "/questions"), `"denied":"carla has answered as boss in this run, and may not answer as chief too; another person must answer"`)
	status, answer = reply("carla", both[1])
	require.Equal(t, 403, status, answer)
	require.Contains(t, answer, "carla")
	status, answer = reply("carla", third)
	require.Equal(t, 404, status, answer)
	status, answer = reply("ben", both[1])
	require.Equal(t, 200, status, answer)
	status, answer = reply("lea@example.org", third)
	require.Equal(t, 200, status, answer)
	require.Eventually(t, func() bool { return strings.Contains(s.as("ann", "/runs/"+run), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
}

// Who started a run is told that they may not approve what it does, and who is not named that they are not.
func TestAQuestionSaysWhoMayNotAnswer(t *testing.T) {
	t.Parallel()
	text := rolesText("ann operator accepts=confidential", "annie approver accepts=confidential as=editor", "ben approver accepts=confidential runs=all as=editor", "self approver accepts=confidential as=editor self=true")
	text = strings.NewReplacer("[annie]", "[ann]", "user: annie", "user: ann", "[self]", "[ann]", "user: self", "user: ann").Replace(text) // her other tokens
	named := strings.Replace(loweredSpec, "kind: person", "kind: person, users: [ann]", 1)
	dir := clitest.Folder(t, map[string]string{"roles.yaml": strings.Replace(text, "    self: true\n", "", 1), "letters.yaml": named})
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "letters.yaml"}})
	status, answer := s.do("POST", "/runs", `{"spec":"letters"}`, as("ann"))
	require.Equal(t, 202, status, answer)
	path := "/runs/" + object(t, answer)["runId"].(string) + "/questions"
	require.Eventually(t, func() bool { return strings.Contains(s.as("ann", path), `"users":["ann"]`) }, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, s.as("annie", path), `"denied":"ann started the run, and may not approve what it does; another person must answer"`)
	require.Contains(t, s.as("ben", path), `"denied":"ben may not answer as editor; another person must answer: ann"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "roles.yaml"), []byte(text), 0o600))
	require.Eventually(t, func() bool { return !strings.Contains(s.as("annie", path), "denied") }, 20*time.Second, 20*time.Millisecond, "her role has self: true")
}

// An operator of all runs learns nothing by a command to a run that is not there for them.
func TestUnseenRunsAreStoppedBlindly(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "open.yaml"}})
	run := s.start("ann", "hello")
	require.JSONEq(t, `[{"runId":"`+run+`","spec":"open","starter":"ann"}]`, s.as("otto", "/unseen-runs"))
	require.Equal(t, "[]\n", s.as("dora", "/unseen-runs"), "of another spec")
	var same []string
	for _, c := range []struct{ person, run string }{{"dora", run}, {"otto", run[:8]}, {"otto", "none"}, {"otto", run}, {"otto", run}} {
		status, answer := s.do("POST", "/runs/"+c.run+"/cancel", `{"reason":"who reads this?"}`, as(c.person))
		require.Equal(t, 200, status, answer)
		doc := object(t, answer)
		require.Equal(t, c.person, doc["by"])
		delete(doc, "by")
		delete(doc, "time")
		same = append(same, fmt.Sprint(doc))
		if c.run != run || c.person != "otto" {
			require.NotContains(t, s.as("ann", "/runs/"+run), `"status":"cancelled"`)
		}
	}
	require.Len(t, slices.Compact(same), 1)
	require.Eventually(t, func() bool {
		return strings.Contains(s.as("ann", "/runs"), `"canceled"`) || strings.Contains(s.as("ann", "/runs"), `"cancelled"`)
	}, 20*time.Second, 20*time.Millisecond, s.as("ann", "/runs"))
	require.Equal(t, "[]\n", s.as("otto", "/unseen-runs"))
	status, _ := s.do("POST", "/runs/"+run+"/resume", `{}`, as("otto"))
	require.Equal(t, 404, status, "only to pause and to cancel")
}

// Roles change with their file: a person who lost theirs is refused at once, and streams end.
func TestRolesAreRevoked(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "open.yaml"}})
	run := s.start("ann", "hello")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/runs/"+run+"/events", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+tokenOf("ann"))
	r.Header.Set("Accept", "text/event-stream")
	stream, err := s.client.Do(r)
	require.NoError(t, err)
	defer stream.Body.Close()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "roles.yaml"), []byte(rolesText(everyone[1:]...)), 0o600))
	require.Eventually(t, func() bool {
		status, _ := s.do("GET", "/viewer", "", as("ann"))
		return status == 401
	}, 10*time.Second, 100*time.Millisecond)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, stream.Body) // it ends
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("the stream goes on")
	}
	require.Contains(t, s.as("otto", "/unseen-runs"), run, "the run goes on")
}

func TestAccessFlags(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"roles.yaml": rolesText(everyone...), "secret": "short", "open.yaml": openSpec, "policy.yaml": "policy: {}\n"})
	proxy := func(more ...string) []string {
		return append([]string{"--roles", "roles.yaml", "--identity-header", "X-User", "--public-url", "https://runs.example.org"}, more...)
	}
	for want, args := range map[string][]string{
		"write a scheme and a host":                      {"--public-url", "runs.example.org"},
		"the page needs a host of its own":               {"--public-url", "https://runs.example.org/runteam"},
		"need each other":                                {"--tls-cert", "c.pem"},
		"begins with https://":                           {"--public-url", "http://runs.example.org", "--tls-cert", "c", "--tls-key", "k"},
		"c.pem: no such file":                            {"--tls-cert", "c.pem", "--tls-key", "k.pem"},
		"--roles is empty":                               {"--roles", ""},
		"each token is of a person":                      {"--roles", "roles.yaml", "--token-file", "t"},
		"--groups-header is about the proxy":             {"--groups-header", "X-Groups"},
		"--trusted-proxy is about the proxy":             {"--trusted-proxy", "10.0.0.7"},
		"--identity-header needs --roles":                {"--identity-header", "X-User"},
		"--identity-header needs --public-url":           {"--identity-header", "X-User", "--roles", "roles.yaml"},
		"--identity-header needs --trusted-proxy":        proxy(),
		"--identity-header Host: that header has":        {"--roles", "roles.yaml", "--identity-header", "host", "--public-url", "https://runs.example.org", "--trusted-proxy", "10.0.0.7"},
		"it is the --identity-header":                    proxy("--trusted-proxy", "10.0.0.7", "--groups-header", "x-user"),
		"make the folder of the socket first":            proxy("--trusted-proxy", "unix:none/s.sock"),
		"X User: it is no name of a header":              {"--roles", "roles.yaml", "--identity-header", "X User", "--public-url", "https://runs.example.org", "--trusted-proxy", "10.0.0.7"},
		"or unix:PATH":                                   proxy("--trusted-proxy", "proxy.local"),
		"without --listen":                               proxy("--trusted-proxy", "unix:s.sock", "--listen", "127.0.0.1:0"),
		"127.0.0.1: others may send requests":            proxy("--trusted-proxy", "127.0.0.1"),
		"::1/128: others may send requests":              proxy("--trusted-proxy", "::1/128"),
		"10.0.0.0/24: others may send":                   proxy("--trusted-proxy", "10.0.0.0/24"),
		"write one with openssl rand -hex 32":            proxy("--trusted-proxy", "127.0.0.1", "--proxy-secret-file", "secret", "--listen", "127.0.0.1:0"),
		"--proxy-secret-file none: no such file":         proxy("--trusted-proxy", "127.0.0.1", "--proxy-secret-file", "none", "--listen", "127.0.0.1:0"),
		"none.yaml":                                      {"--roles", "none.yaml", "--listen", "127.0.0.1:0"},
		"--roles is for the page, and --mcp serves none": {"--mcp", "--roles", "roles.yaml"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			got := call{dir: dir, args: append([]string{"serve", "open.yaml"}, args...)}.run(t)
			require.Contains(t, []int{2, 3}, got.status, got.stderr)
			require.Contains(t, got.stderr, want)
		})
	}
}

// A server with a certificate is reached over TLS, and the certificate can be renewed while it works.
func TestServeWithACertificate(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, everyone...)
	writeCertificate(t, dir, "one")
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "--tls-cert", "cert.pem", "--tls-key", "key.pem", "open.yaml"}})
	name := func() string {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://")) //nolint:gosec // the name is what is looked at
		require.NoError(t, err)
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	require.Equal(t, "one", name())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half a cert"), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "cert.pem"), time.Now(), time.Now().Add(time.Minute)))
	require.Equal(t, "one", name(), "until the new one can be used")
	writeCertificate(t, dir, "two")
	require.NoError(t, os.Chtimes(filepath.Join(dir, "cert.pem"), time.Now(), time.Now().Add(2*time.Minute)))
	require.Equal(t, "two", name())
	s.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a test
	require.Contains(t, s.as("ann", "/viewer"), `"by":"ann"`)
	require.Contains(t, s.stderr.String(), "the new certificate cannot be used")
	require.NotContains(t, s.stderr.String(), "does not encrypt")
	require.NotContains(t, s.stderr.String(), "/login", "with roles there are no links")
}

// writeCertificate writes a certificate of this computer, with a name, and its key.
func writeCertificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
}

// A submitted run is for who submitted it, whatever the worker that takes it shows.
func TestASubmittedRunKeepsItsCaller(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, append([]string{"pia operator accepts=public", "root viewer accepts=confidential runs=all"}, everyone...)...)
	open := "name: open\ninputs: {words: {classification: public}}\nagents: [{name: cat, backend: {kind: process, command: cat}}]\ntasks: [{title: T, assignee: cat, uses: [words], description: Repeat.}, {title: P, classification: public, assignee: cat, description: Nothing.}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "open.yaml"), []byte(open), 0o600))
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "--work", "1", "open.yaml"}})
	status, answer := s.do("POST", "/runs", `{"spec":"open","inputs":{"words":"hello"},"queue":{}}`, as("pia"))
	require.Equal(t, 202, status, answer)
	run := object(t, answer)["runId"].(string)
	require.Eventually(t, func() bool { return strings.Contains(s.as("root", "/runs/"+run), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
	require.Contains(t, s.as("root", "/runs/"+run), "[withheld", "the result of T is internal")
	_, answer = s.do("GET", "/runs/"+run, "", as("pia"))
	require.NotContains(t, answer, "hello")
}

// Nobody continues a session from what others wrote in it and is not there for them.
func TestASessionIsContinuedByWhoSeesIt(t *testing.T) {
	t.Parallel()
	dir := peopleFolder(t, append([]string{"olga operator accepts=confidential runs=all"}, everyone...)...)
	s := serveHere(t, call{dir: dir, args: []string{"--roles", "roles.yaml", "talk.yaml"}})
	say := func(person, message string) (int, string) {
		status, answer := s.do("POST", "/chats", message, as(person))
		if status == 202 {
			run := object(t, answer)["runId"].(string)
			require.Eventually(t, func() bool { return strings.Contains(s.as(person, "/runs/"+run), `"status":"ok"`) }, 20*time.Second, 20*time.Millisecond)
		}
		return status, answer
	}
	status, answer := say("ann", `{"spec":"talk","text":"one"}`)
	require.Equal(t, 202, status, answer)
	more := fmt.Sprintf(`{"session":%q,"text":"more"}`, object(t, answer)["session"])
	status, answer = say("ann", more)
	require.Equal(t, 202, status, answer)
	status, answer = say("val", more)
	require.Equal(t, 403, status, answer)
	status, answer = say("olga", more)
	require.Equal(t, 202, status, answer)
	status, answer = say("ann", more)
	require.Equal(t, 409, status, answer)
	require.Contains(t, answer, "others have continued this session")
	status, answer = say("olga", more)
	require.Equal(t, 202, status, answer)
}

// An operator of their own runs does not have a turn go on that somebody else began in their session, even if they may see it:
// they could not resume it by its ID either.
func TestNobodyResumesTheTurnOfAnother(t *testing.T) {
	t.Parallel()
	const secret = "of-the-proxy-0123456789abcdef0123456789abcdef"
	dir := clitest.Folder(t, map[string]string{
		"secret": secret, "talk.yaml": "name: talk\nagents: [{name: cat, backend: {kind: process, command: ./wait}}]\nchat: {agent: cat}\n",
		"roles.yaml": "roles:\n  - {role: viewer, users: [ann], runs: all}\n  - {role: operator, users: [ann]}\n  - {role: operator, users: [olga], runs: all}\n",
	})
	door := filepath.Join(dir, "open") // an agent answers while it is there
	require.NoError(t, os.WriteFile(door, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wait"), []byte("#!/bin/sh\nuntil [ -e '"+door+"' ]; do sleep 0.05; done\ncat\n"), 0o700)) //nolint:gosec // it is run
	const public = "http://runs.example.org"
	serveBehind := func() *served {
		return serveHere(t, call{dir: dir, args: []string{
			"--roles", "roles.yaml", "--identity-header", "X-User", "--public-url", public,
			"--trusted-proxy", "127.0.0.1", "--proxy-secret-file", "secret", "--drain", "0s", "talk.yaml",
		}})
	}
	s := serveBehind()
	do := func(person, method, path, body string) (int, string) {
		return s.do(method, path, body, "X-User: "+person, inspector.SecretHeader+": "+secret, "Origin: "+public, "X-Runteam: 1")
	}
	say := func(person, message string) (run string) {
		status, answer := do(person, "POST", "/chats", message)
		require.Equal(t, 202, status, answer)
		return object(t, answer)["runId"].(string)
	}
	has := func(run, text string) {
		require.Eventually(t, func() bool {
			_, answer := do("olga", "GET", "/runs/"+run, "")
			return strings.Contains(answer, text)
		}, 20*time.Second, 20*time.Millisecond)
	}
	first := say("ann", `{"spec":"talk","text":"one"}`)
	has(first, `"status":"ok"`)
	require.NoError(t, os.Remove(door))
	more := `{"session":"` + first + `","text":"more"}`
	second := say("olga", more)
	s.signal(syscall.SIGTERM)
	s.wait()
	s = serveBehind()
	has(second, `"status":"interrupted"`)
	require.NoError(t, os.WriteFile(door, nil, 0o600))
	status, answer := do("ann", "POST", "/runs/"+second+"/resume", `{}`)
	require.Equal(t, 403, status, answer)
	status, answer = do("ann", "POST", "/chats", more)
	require.Equal(t, 403, status, answer)
	require.Contains(t, answer, "none of your roles steers it")
	has(second, `"status":"interrupted"`)
}

// Every program of this computer can send requests from its addresses.
func TestOwnAddressesNeedASecret(t *testing.T) {
	t.Parallel()
	own, err := net.InterfaceAddrs()
	require.NoError(t, err)
	require.NotEmpty(t, own)
	dir := peopleFolder(t, everyone...)
	for _, of := range own {
		at, _, err := net.ParseCIDR(of.String())
		require.NoError(t, err)
		got := call{dir: dir, args: []string{
			"serve", "open.yaml", "--listen", "nowhere", "--roles", "roles.yaml", "--identity-header", "X-User", "--public-url", "https://runs.example.org", "--trusted-proxy", at.String(),
		}}.run(t)
		require.Contains(t, got.stderr, "others may send requests from there too")
	}
}
