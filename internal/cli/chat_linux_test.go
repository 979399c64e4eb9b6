package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/stretchr/testify/require"
)

// typeKeys waits until the terminal has written a text, and then types keys.
func (p *pty) typeKeys(t *testing.T, steps ...string) {
	t.Helper()
	for i := 0; i < len(steps); i += 2 {
		var rest string
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			p.mu.Lock()
			rest = p.raw.String()[p.seen:]
			p.mu.Unlock()
			if at := strings.Index(rest, steps[i]); at >= 0 {
				p.seen += at + len(steps[i])
				break
			}
			require.True(t, time.Now().Before(deadline), "%q is not in %q", steps[i], rest)
		}
		_, err := p.master.WriteString(steps[i+1])
		require.NoError(t, err)
	}
}

// prompted is what the terminal gets when the chat waits for a turn.
const prompted = "\x1b[?2004hyou> "

// A person types turns, commands and several lines; Ctrl-C ends a turn, and Ctrl-D the session.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": chatSpec, "script.yaml": `replies:
  - {turn: 1, text: "First.\nyou> not the chat"}
  - {turn: 2, times: 1, text: never, delay: 60s}
  - {text: "Turn {{ .Turn }}: {{ .Last }}"}
`})
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"chat", "--offline"}, env: map[string]string{"TERM": "xterm"}})
	const ctrlC, ctrlD, up = "\x03", "\x04", "\x1b[A"
	p.typeKeys(t,
		prompted, "Hello.\r", "│ First.\r\n│ you> not the chat\r\n", "",
		prompted, "/exlain\r", "unknown command /exlain: did you mean /explain?; to send a text that begins with /, write //", "",
		prompted, "dropped"+ctrlC, "^C", "",
		prompted, "two\r", "two", "")
	time.Sleep(500 * time.Millisecond) // until the turn has begun: nothing shows that
	p.typeKeys(t, "", ctrlC, "the turn was cancelled, and is not part of the conversation", "",
		prompted, "//three \\\r", "...> ", "lines\r", "│ Turn 2: /three ", "", "│ lines", "",
		prompted, "\x1b[200~pasted\rtext\x1b[201~\r", "│ Turn 3: pasted", "", "│ text", "",
		prompted, up+"\r", "│ Turn 4: text", "",
		prompted, "/label confidential\r", "what you write is confidential", "",
		prompted, "/cost\r", "4 of 5 turns answered, ", "",
		prompted, "/runs\r", "turn  run ", "", "\r\n2     ", "", "cancelled", "", "\r\n5     ", "", "ok", "",
		prompted, "/explain\r", "answer 1 from helper, internal, turns", "",
		prompted, ctrlD, "Continue with: runteam chat --resume=", "")
	require.Equal(t, exit.StatusOK, statusAfter(t, p.cmd.Wait()))

	p = atTerminal(t, 100, 40, call{dir: dir, args: []string{"chat", "--continue"}, env: map[string]string{"TERM": "xterm"}})
	p.typeKeys(t, prompted, "/runs\r", "\r\n2     ", "", "cancelled", "", "\r\n5     ", "", "ok", "", prompted, "six\r", "│ Turn 5: six", "",
		prompted, "/runs\r", "\r\n5     ", "", "\r\n6     ", "", "ok", "", prompted, ctrlD, "Continue with: ", "")
	require.Equal(t, exit.StatusOK, statusAfter(t, p.cmd.Wait()))
}

// People of the team are asked in the chat.
func TestChatAsksPeople(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
agents:
  - {name: helper, model: m, baseURL: "http://127.0.0.1:1/v1"}
  - {name: boss, backend: {kind: person}}
coordinator: {model: m, approve: boss}
`})
	planner, err := scripted.Start(&scripted.Script{Replies: []scripted.Reply{{Coordinator: "plan", Text: `[{"title":"Help","description":"Help.","assignee":"helper"}]`}}}, scripted.Options{})
	require.NoError(t, err)
	defer planner.Close()
	p := atTerminal(t, 100, 40, call{dir: dir, args: []string{"chat", "--agent", "coordinator"}, env: map[string]string{"TERM": "xterm", "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": planner.URL()}})
	p.typeKeys(t, prompted, "Hello.\r", "a question for boss", "", "decision (no, yes, edit): ", "no\n", "reason (text, may be empty): ", "Not now.\n", "decision (no, yes, edit): ", "/later\n", "the turn waits for a person", "", prompted, "/help\r", prompted, "/exit\r")
	require.Equal(t, exit.StatusOK, statusAfter(t, p.cmd.Wait()))
}
