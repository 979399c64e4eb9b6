package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// taught returns a folder with a run of an example.
func taught(t testing.TB, name string) folder {
	t.Helper()
	f := newFolder(t, nil)
	require.NoError(t, os.CopyFS(string(f), os.DirFS(filepath.Join("..", "examples", name))))
	f.run(t, "run", "--offline", "--progress", "none")
	return f
}

// callsTool calls a tool.
func (c *modelCall) callsTool(name string, arguments any) {
	text, _ := json.Marshal(arguments)
	call := map[string]any{"index": len(c.calls), "id": "call" + string(rune('a'+len(c.calls))), "type": "function", "function": map[string]any{"name": name, "arguments": string(text)}}
	if c.signature != "" {
		call["extra_content"] = map[string]string{"signature": c.signature}
	}
	if c.calls = append(c.calls, call); c.streams {
		c.chunk(map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{call}}, "finish_reason": nil})
	}
}

func TestHandoffsOfTheNewsroom(t *testing.T) {
	t.Parallel()
	s := taught(t, "newsroom").serve(t, nil)
	run := s.newest(t)
	p := s.open(t, wide, "#/runs/"+run.RunID)
	p.until(`document.querySelectorAll(".way .line").length > 0`)
	to := eval[string](p, `document.querySelector(".way").dataset.to`)
	p.visit("#/runs/" + run.RunID + "/tasks/" + to + "?tab=handoffs")
	p.showsIn(".panel h3", "Inbox")
	p.showsIn(".panel .sent summary", "read")
}

func TestChildrenOfTheFanout(t *testing.T) {
	t.Parallel()
	f := taught(t, "research-fanout")
	s := f.serve(t, nil)
	run := s.newest(t)
	look := func(p *tab) {
		p.showsIn(".node .kids text", "4 children")
		p.click(".node .title", "Report")
		p.click(".subtabs button", "Children")
		p.until(`document.querySelectorAll(".panel .call").length === 4`)
		require.Equal(t, []string{"complete", "complete", "timeout", "failed"}, eval[[]string](p, `[...document.querySelectorAll(".panel .call .status bdi")].map((e) => e.textContent)`))
		p.showsIn(".panel .goal", "What does a heat pump for an office cost?")
		p.showsIn(".panel .call code", "MODEL_BAD_REQUEST")
		p.click(".panel .call summary", "Result")
		p.showsIn(".panel .call .quoted", "No fan stands outside.")
		p.click(".panel .call button", "prompts of call_1_3")
		p.until(`document.querySelector(".turns [aria-pressed=true]")?.textContent === "child call_1_3"`)
	}
	look(s.open(t, wide, "#/runs/"+run.RunID))
	look(f.exported(t))
}

func TestTransferOfTheCustomerService(t *testing.T) {
	t.Parallel()
	s := taught(t, "customer-service").serve(t, nil)
	run := s.newest(t)
	p := s.open(t, wide, "#/runs/"+run.RunID)
	p.showsIn(".node .sub", "triage → billing")
	p.click(".node .title", "Help the customer")
	p.showsIn(".facts .wide", "triage to turn 1 → billing")
	p.click(".facts .wide button", "billing")
	p.until(`document.querySelector(".turns [aria-pressed=true]")?.textContent === "billing"`)
	require.NotContains(t, eval[string](p, `document.querySelector(".turns").textContent`), "child")
}

func TestReplyOfTheDevTeam(t *testing.T) {
	t.Parallel()
	s := taught(t, "dev-team").serve(t, nil)
	run := s.newest(t)
	p := s.open(t, wide, "#/runs/"+run.RunID+"/tasks/"+run.taskID(t, "Code")+"?tab=handoffs")
	p.showsIn(".panel .sent .reply", "answered")
}

// family is a team in which one agent has a child, and waits for a reply of another.
const family = `
name: family
model: scripted
agents:
  - {name: lead, systemPrompt: You lead., spawn: {max: 3}}
  - {name: helper, systemPrompt: You help.}
edges:
  - {from: lead, to: helper, bidirectional: true}
tasks:
  - {title: Lead, assignee: lead, description: Lead it.}
  - {title: Help, assignee: helper, description: Help it.}
`

// Children and waits for replies are shown while they last, and a goal is a text.
func TestTeamworkIsShownLive(t *testing.T) {
	t.Parallel()
	child, help, end := make(gate), make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Lead": func(c *modelCall) {
			switch c.turn {
			case 1:
				c.signature = "canary"
				c.callsTool("spawn_agent", map[string]string{"goal": `Find <img src=x onerror="window.ran = 1">`})
			case 2:
				c.callsTool("send_handoff", map[string]any{"to": "helper", "message": "May I?", "response": map[string]any{"expectation": "required"}})
			default:
				c.write("led")
			}
		},
		"Goal": func(c *modelCall) {
			c.await(child)
			c.write("found <b>it</b>")
		},
		"Help": func(c *modelCall) {
			c.await(help)
			c.write("helped")
			c.await(end)
		},
	})
	f := newFolder(t, map[string]string{"team.yaml": family})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.showsIn(".node .kids text", "1 working, 0 ended")
	p.click(".node .title", "Lead")
	p.click(".subtabs button", "Children")
	p.showsIn(".panel .call .status", "working")
	p.showsIn(".panel .goal", `Find <img src=x onerror="window.ran = 1">`)
	require.Zero(t, eval[int](p, `document.querySelectorAll(".goal img").length + (window.ran ?? 0)`))
	close(child)
	p.showsIn(".node .kids text", "1 child")
	p.showsIn(".panel .call .status", "complete")
	p.until(`document.querySelector(".panel .call details .quoted")?.textContent === "found <b>it</b>"`)

	p.showsIn(".panel .status", "waiting for a reply of helper")
	p.click(".subtabs button", "Handoffs")
	p.showsIn(".panel .sent .reply", "waiting for a reply")
	run := s.newest(t)
	var lead struct{ WaitingFor string }
	s.get(t, "/runs/"+run.RunID+"/tasks/"+run.taskID(t, "Lead"), &lead)
	require.Equal(t, "helper", lead.WaitingFor)
	p.reload()
	p.showsIn(".panel .status", "waiting for a reply of helper")
	p.click(".subtabs button", "Handoffs")
	p.showsIn(".panel .sent .reply", "waiting for a reply")

	// The prompt after the first call says what went back to the provider, and nothing of it. The one that is chosen stays
	// when the panel reads the task again, as it does for turn 3.
	p.click(".subtabs button", "Prompt")
	p.click(".turns button", "turn 2")
	p.showsIn(".prompt p", "Returned to the provider: extra_content of call_1_1")
	require.NotContains(t, p.text(".prompt"), "canary")
	close(help)
	close(end)
	p.showsIn(".turns button", "turn 3")
	p.showsIn(".prompt p", "Returned to the provider: extra_content of call_1_1")
	p.click(".subtabs button", "Handoffs")
	p.showsIn(".panel .sent .reply", "no reply: NO_REPLY")
	p.until(`document.querySelectorAll(".node.n-completed").length === 2`)
}
