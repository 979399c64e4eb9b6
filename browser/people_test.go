package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tokenOf returns the token of a line of rolesText.
func tokenOf(name string) string { return "token-of-" + name }

// rolesText returns a file of roles. Each line says whose token has which role, until when: "ann operator 2099-01-01 accepts=internal".
// The name of a token may go on after a slash: "ann/approver".
func rolesText(lines ...string) string {
	roles, tokens := "roles:\n", "tokens:\n"
	for _, line := range lines {
		words := strings.Fields(line)
		person, _, _ := strings.Cut(words[0], "/")
		roles += fmt.Sprintf("  - role: %s\n    users: [%s]\n", words[1], person)
		for _, word := range words[3:] {
			name, value, _ := strings.Cut(word, "=")
			if name == "as" {
				value = "[" + value + "]"
			}
			roles += fmt.Sprintf("    %s: %s\n", name, value)
		}
		digest := sha256.Sum256([]byte(tokenOf(words[0])))
		tokens += fmt.Sprintf("  - {sha256: %s, user: %s, role: %s, expires: %s}\n", hex.EncodeToString(digest[:]), person, words[1], words[2])
	}
	return roles + tokens
}

// give enters a token into the form.
func (p *tab) give(token string) {
	p.t.Helper()
	p.write("label input", token)
	p.click("button", "Sign in")
}

// asks waits until the page asks for a token.
func (p *tab) asks() {
	p.t.Helper()
	p.until(`document.querySelector("h1")?.textContent === "Sign in" && document.activeElement.matches("input")`)
}

// as signs a person in, and shows a view.
func (s *server) as(t testing.TB, name, view string) *tab {
	t.Helper()
	p := blankTab(t, wide)
	p.base = s.url
	p.allow("status of 401", "Password forms should have") // of the page that asks for the token
	p.navigate(s.url + "/")
	p.give(tokenOf(name))
	p.until(`document.querySelector("header.top:not(.boot)")`)
	p.visit(view)
	return p
}

func TestPeopleSignInAndOut(t *testing.T) {
	t.Parallel()
	browser(t)
	script := axe(t)
	ann, bob := "ann operator 2099-01-01", "bob viewer 2020-01-01"
	f := newFolder(t, map[string]string{"roles.yaml": rolesText(ann, bob), "team.yaml": spring})
	s := f.serve(t, nil, "--roles", "roles.yaml", "team.yaml")
	p := blankTab(t, wide)
	p.allow("status of 401", "status of 403", "Password forms should have")
	p.base = s.url
	p.navigate(s.url + "/")
	p.asks()
	for _, token := range []string{"wrong", tokenOf("bob")} { // whose token has expired
		p.give(token)
		p.showsIn("[role=alert]", "This token is not valid here.")
		p.asks()
	}
	p.do(script)
	requireAccessible(t, p, "the form for a token")
	p.give(tokenOf("ann"))
	p.showsIn("header.top .viewer", "ann")
	p.shows("No runs yet")
	require.Empty(t, eval[string](p, `document.cookie`), "no script can read the cookie")
	p.do(script)
	narrow := look{400, 800, true}
	p.look(narrow)
	requireAccessible(t, p, "the list of a person")
	require.LessOrEqual(t, eval[int](p, `document.scrollingElement.scrollWidth`), narrow.width)
	p.look(wide)
	other := p.beside(wide, "#/runs")
	other.allow("status of 401", "Password forms should have")
	p.click("header.top button", "Sign out")
	p.asks()
	p.navigate(s.url + "/")
	p.asks()
	other.showsIn(".failure", "sign in")
	other.click(".failure button", "Reload the page")
	other.asks()

	// A session ends with its token.
	p.give(tokenOf("ann"))
	p.showsIn("header.top .viewer", "ann")
	require.NoError(t, os.WriteFile(f.path("roles.yaml"), []byte(rolesText(bob)), 0o600))
	p.showsIn(".failure", "not valid any more")
	p.click(".failure button", "Reload the page")
	p.asks()
}

func TestAQuestionSaysWhoMayAnswer(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){"Score": says(`{"fraud_score": 17}`), "Write letter": says("The score is 17.")})
	f := newFolder(t, map[string]string{
		"team.yaml": strings.Replace(approves, "backend: {kind: person}", "backend: {kind: person, users: [ann, carla]}", 1),
		"roles.yaml": rolesText("ann operator 2099-01-01 accepts=confidential", "ann/approver approver 2099-01-01 accepts=confidential as=editor",
			"ben approver 2099-01-01 accepts=confidential as=editor runs=all", "carla approver 2099-01-01 accepts=confidential as=editor runs=all"),
	})
	s := f.serve(t, m.env(), "--roles", "roles.yaml", "team.yaml")
	p := s.as(t, "ann", "#/runs")
	startRun(p)
	p.showsIn(".question", "Who may answer: ann, carla")
	p.showsIn(".question .notice", "none of your roles answers as that person")
	for name, why := range map[string]string{"ann/approver": "ann started the run", "ben": "another person must answer: ann or carla"} {
		q := s.as(t, name, "#/runs")
		q.showsIn(".question .notice", why)
		require.Zero(t, eval[int](q, `document.querySelectorAll(".question form").length`))
		if name == "ben" {
			q.do(axe(t))
			requireAccessible(t, q, "a question of others")
		}
	}
	q := s.as(t, "carla", "#/runs")
	q.showsIn(".question", "Who may answer: ann, carla")
	q.click(".question label.choice", "yes")
	q.click(".question button[type=submit]", "Answer")
	p.showsIn(".summary .status", "ok")
}

func TestUnseenRunsAreStopped(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){"Read": func(c *modelCall) { <-c.ctx.Done() }})
	f := newFolder(t, map[string]string{
		"team.yaml": spring, "open.yaml": "name: open\nmodel: m\nagents: [{name: a, systemPrompt: x}]\ntasks: [{title: T, assignee: a, description: d}]\n",
		"roles.yaml": rolesText("ann operator 2099-01-01 accepts=confidential", "otto operator 2099-01-01 runs=all"),
	})
	s := f.serve(t, m.env(), "--roles", "roles.yaml", "team.yaml", "open.yaml")
	p := s.as(t, "ann", "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	s.token = tokenOf("otto")
	status, answer := s.call(t, http.MethodPost, "/api/v1/runs", `{"spec": "open", "queue": {"at": "2099-01-01T00:00:00Z"}}`)
	require.Equal(t, http.StatusAccepted, status, "%s", answer)

	q := s.as(t, "otto", "#/runs")
	q.showsIn(".runs td", "by otto")
	q.showsIn(".runs td", "for a worker of open, from 2099-01-01 00:00 UTC no worker serves it")
	q.until(`document.querySelector("[aria-label='Runs that you may not see'] tbody tr")?.innerText.includes("spring\tann")`)
	q.do(axe(t))
	narrow := look{400, 800, true}
	q.look(narrow)
	requireAccessible(t, q, "unseen runs")
	require.LessOrEqual(t, eval[int](q, `document.scrollingElement.scrollWidth`), narrow.width)
	q.look(wide)
	q.click(".unseen button", "Pause")
	q.showsIn("dialog", "it does not say what becomes of the run")
	q.click("dialog button[type=submit]", "Pause")
	q.shows("If the run still works, it pauses")
	p.showsIn(".summary .status", "paused")
	q.click(".unseen button", "Cancel")
	q.click("dialog button[type=submit]", "Cancel the run")
	p.showsIn(".summary .status", "cancelled")
	q.until(`!document.querySelector(".unseen")`)

	// The list is filtered by who started the runs.
	q.write("[aria-label='Started by']", "ann")
	q.showsIn(".runs .empty", "No run fits")
	q.write("[aria-label='Started by']", "Otto")
	q.showsIn(".runs td", "by otto")
	q.visit(eval[string](q, `location.hash.replace("runs", "runs/" + document.querySelector(".runs tr[data-id]").dataset.id).split("?")[0]`))
	q.showsIn(".summary", "submitted by otto")
	q.showsIn(".summary", "no worker serves it")
}
