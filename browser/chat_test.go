package browser

import (
	"encoding/json"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A person chats in the page: the answer appears while it is written, the next message continues the session, the terminal
// continues it too, and the page goes on from there.
func TestAPersonChatsInThePageAndOnTheTerminal(t *testing.T) {
	t.Parallel()
	first := make(gate)
	var mu sync.Mutex
	turn := 0
	m := newModel(t, nil)
	m.any = func(c *modelCall) {
		mu.Lock()
		turn++
		n := turn
		mu.Unlock()
		if n == 1 {
			c.write("Good evening at the desk of the small hotel by the lake, ")
			c.await(first)
			c.write("where breakfast is at seven.")
			return
		}
		c.write([]string{"You **said** more.\n\n- One.\n- Two.", "On the terminal.", "And here again."}[n-2])
	}
	f := newFolder(t, map[string]string{"team.yaml": "name: desk team\nmodel: scripted\nagents: [{name: desk, systemPrompt: You help.}]\nchat: {agent: desk}\n"})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	p.click("button", "Chat with desk")
	p.write("#chat-text", "Hello <b>there</b>, my card is 4111 1111 1111 1111.")
	p.press("\r")
	p.showsIn(".said-person", "Hello <b>there</b>, my card is [REDACTED:card].")
	p.showsIn(".said-agent", "Good evening")
	require.NotContains(t, p.text(".said-agent"), "breakfast", "it is written now")
	close(first)
	p.showsIn(".said-agent", "breakfast is at seven.")
	p.until(`!document.querySelector("#chat-text").disabled`)

	p.write("#chat-text", "More.")
	p.click(".chat-form button", "Send")
	p.showsIn(".said-agent", "You said more.")
	p.until(`document.querySelector(".said-agent strong")?.textContent === "said"`)
	require.Equal(t, "0px", eval[string](p, `getComputedStyle(document.querySelector(".said-agent .md li")).borderTopWidth`), "an item is not a message of its own")
	p.until(`!document.querySelector("#chat-text").disabled`)
	prompt := func(turn string) string {
		_, body := s.call(t, http.MethodGet, "/api/v1/runs/"+eval[string](p, `document.querySelectorAll(".said-agent")[`+turn+` - 1].dataset.run`)+"/receipts", "")
		return string(body)
	}
	require.Contains(t, prompt("2"), "breakfast is at seven.", "it gets what was said before")
	require.NotContains(t, prompt("2"), "4111", "through the gate")
	session := eval[string](p, `location.hash.split("/").at(-1)`)

	cmd := f.command(t.Context(), "chat", "--resume", session, "--message", "From the terminal.", "-o", "json")
	cmd.Env, cmd.Stderr = append(cmd.Env, m.env()...), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var answered struct {
		Session string
		Turn    int
		Answer  string
	}
	require.NoError(t, json.Unmarshal(out, &answered))
	require.Equal(t, 3, answered.Turn)
	require.Equal(t, session, answered.Session)

	p.reload()
	p.showsIn(".said-agent", "On the terminal.")
	p.write("#chat-text", "Back.")
	p.press("\r")
	p.showsIn(".said-agent", "And here again.")
	require.Contains(t, prompt("4"), "On the terminal.")
	p.visit("#/runs")
	p.click(".runs a.tag", "turn 4")
	p.until(`document.querySelectorAll(".said-agent").length === 4`)
}
