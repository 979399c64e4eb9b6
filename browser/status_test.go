package browser

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// background starts a run in a process of its own, which the end of the test kills, and waits until its model is called.
func (f folder) background(t testing.TB, m *model, title string) *exec.Cmd {
	t.Helper()
	cmd := f.command(t.Context(), "run", "--progress", "none")
	cmd.Env = append(cmd.Env, m.env()...)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(m.seen(title)) > 0 }, patience, 20*time.Millisecond)
	return cmd
}

// A run that is paused says so in the list and on its page, also after its process was killed.
func TestAPausedRunIsPausedEverywhere(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){"Read": func(c *modelCall) { <-c.ctx.Done() }})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	process := f.background(t, m, "Read")
	s := f.serve(t, nil)
	run := s.newest(t).RunID
	f.run(t, "pause", run)
	p := s.open(t, wide, "#/runs")
	p.allow("404") // what its model writes is known to its process alone
	p.until(`document.querySelector("tr.live-row .status")?.textContent === "paused"`)
	p.click("td a", "spring")
	p.until(`document.querySelector(".summary .status")?.textContent === "paused"`)
	require.Equal(t, []string{"Resume", "Message", "Cancel", "Export"}, eval[[]string](p, `[...document.querySelectorAll(".summary .commands > *")].map((e) => e.textContent)`))

	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
	p.until(`document.querySelector(".summary .commands").textContent === "ResumeExport"`, "no process takes a command")
	require.Equal(t, "paused", p.text(".summary .status"))
	p.visit("#/runs")
	p.until(`document.querySelector("tbody tr:not(.live-row) .status")?.textContent === "paused"`)
	require.Equal(t, "paused", s.newest(t).Status)

	// This server has no spec, so it says who can resume the run.
	p.allow("409")
	p.click("td a", "spring")
	p.click(".summary button", "Resume")
	p.click("dialog button[type=submit]", "Resume")
	p.showsIn("dialog [role=alert]", "is not running (paused)")
	p.showsIn("dialog [role=alert]", "to continue: runteam resume "+run[:1])
}

// connecting is a team of which one task waits for a person while the model of another one writes.
const connecting = `
name: connecting
model: scripted
agents: [{name: writer, systemPrompt: You write.}, {name: editor, backend: {kind: person}}]
tasks:
  - {title: Write, assignee: writer, description: Write the letter.}
  - {title: Review, assignee: editor, description: May we write?}
  - {title: Send, assignee: writer, dependsOn: [Write, Review], description: Send the letter.}
`

// The page has the connection of a task from its document, and follows the events of the run.
func TestConnectionOfATask(t *testing.T) {
	t.Parallel()
	begins, ends := make(gate), make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Write": func(c *modelCall) {
			c.await(begins)
			c.write(strings.Repeat("We write to you about the boxes. ", 20))
			c.await(ends)
		},
		"Send": says("It was sent."),
	})
	f := newFolder(t, map[string]string{"team.yaml": connecting})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.showsIn(".summary .status", "running")
	shown := func(title, state, doing string) {
		p.click(".node .title", title)
		p.showsIn(".panel h2", title)
		p.showsIn(".panel .conn", state+doing)
	}
	shown("Write", "connected", ", waits for the model")
	shown("Review", "idle", ", waits for editor")
	shown("Send", "disconnected", "")
	close(begins)
	shown("Write", "connected", ", streaming")
	p.visit("#/runs")
	p.visit("#/runs/" + s.newest(t).RunID + "/tasks/Write")
	p.showsIn(".panel .conn", "connected, streaming")
	close(ends)
	p.showsIn(".panel .conn", "disconnected")
}

// A run that was started in the page with inputs and parameters is resumed there.
func TestARunOfARequestIsResumedInThePage(t *testing.T) {
	t.Parallel()
	broken := make(chan struct{})
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) { c.write("Seven: " + c.prompt[strings.Index(c.prompt, "canary"):][:11]) },
		"Write": func(c *modelCall) {
			select {
			case <-broken:
				c.write("Seven boxes in June.")
			default: // an empty answer is a failure
			}
		},
	})
	f := newFolder(t, map[string]string{"team.yaml": `
name: asked
model: scripted
params: {month: null}
inputs: {report: {classification: confidential}}
agents: [{name: reader, accepts: confidential, systemPrompt: You read reports.}]
tasks:
  - {title: Read, assignee: reader, uses: [report], description: "List the figures of ${params.month}."}
  - {title: Write, assignee: reader, dependsOn: [Read], description: "Write about ${params.month}."}
`})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	p.click("button", "Start a run")
	p.click("dialog button[type=submit]", "Start")
	require.True(t, eval[bool](p, `document.querySelector("#in-report:invalid, #par-month:invalid") !== null`), "both have no default")
	p.write("#in-report", "canary-1234: seven boxes.")
	p.write("#par-month", "June")
	p.click("dialog button[type=submit]", "Start")
	p.showsIn(".summary .status", "error")
	require.Len(t, m.seen("Read"), 1)
	require.Contains(t, m.seen("Read")[0], "List the figures of June.")

	close(broken)
	p.click(".summary button", "Resume")
	p.click("dialog button[type=submit]", "Resume")
	p.showsIn(".summary .status", "ok")
	require.Len(t, m.seen("Read"), 1, "it was not read again")
	require.Contains(t, m.seen("Write")[len(m.seen("Write"))-1], "Seven: canary-1234")
	require.Equal(t, "Seven boxes in June.", s.newest(t).Tasks[1].Result)
	p.until(`document.querySelector(".summary .commands").textContent === "Export"`, "there is nothing to resume")
}

// breaks is a team of which one task fails, one waits for it, and one does not.
const breaks = `
name: breaks
model: scripted
agents: [{name: reader, systemPrompt: You read.}]
tasks:
  - {title: Read, assignee: reader, description: Read the report.}
  - {title: Count, assignee: reader, description: Count the boxes.}
  - {title: Sum up, assignee: reader, dependsOn: [Read, Count], description: Sum up.}
`

// The page counts the tasks as the command does.
func TestAFailedRunIsCountedAlike(t *testing.T) {
	t.Parallel()
	fail := make(gate)
	m := newModel(t, map[string]func(*modelCall){"Read": func(c *modelCall) { c.await(fail) }, "Count": says("412 boxes.")}) // an empty answer is a failure
	f := newFolder(t, map[string]string{"team.yaml": breaks})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-completed")`)
	close(fail)
	for range 2 { // as its events say, and as its document does
		p.showsIn(".summary .status", "error")
		require.Equal(t, "1 completed, 1 failed, 1 skipped", eval[string](p, `document.querySelector(".summary .progress").title`))
		require.Equal(t, 1, eval[int](p, `document.querySelectorAll(".node.n-skipped").length`))
		p.reload()
		p.until(`document.querySelector(".node.n-failed")`)
	}
	require.Contains(t, f.run(t, "show"), "1 of 3 tasks completed, 1 failed, 1 skipped\n")
	p.visit("#/runs")
	p.until(`document.querySelector("tr .progress")?.title === "1 completed, 1 failed, 1 skipped"`)
}

// A row of the list takes a click while the list is refreshed.
func TestARowIsOpenedWhileTheListIsRefreshed(t *testing.T) {
	t.Parallel()
	read := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) { c.await(read); c.write("412 boxes.") }, "Write": says("412 boxes were sold."), "Check": says("They agree."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.visit("#/runs")
	p.do(`window.row = document.querySelector("tr.live-row")`)
	for _, cell := range []string{"tr.live-row .c-took", "tr.live-row .c-name a"} {
		p.visit("#/runs")
		p.until(`document.querySelector("tr.live-row .c-took")?.textContent.endsWith("s")`)
		at := p.at(cell, "")
		p.do(`window.cell = document.querySelector("tr.live-row .c-took")`)
		p.pressMouse(at)
		p.until(`document.querySelector("tr.live-row .c-took") !== window.cell`, "its time changes every second")
		p.releaseMouse(at)
		p.until(`/^#\/runs\/[0-9a-f-]{36}$/.test(location.hash)`)
	}
	p.visit("#/runs")
	p.do(`window.row = document.querySelector("tr.live-row")`)
	p.click(".c-name .mono", "") // has no link
	p.until(`/^#\/runs\/[0-9a-f-]{36}$/.test(location.hash)`)
	close(read)
}

// A task that waits for a person says for whom, and what works shows its time.
func TestATaskWaitsForAPerson(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){
		"Write the letter": says("Dear customer, we are sorry."), "Send the letter": says("It was sent."),
	})
	f := newFolder(t, map[string]string{"team.yaml": asks})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-waiting .sub.num")?.textContent.startsWith("waiting for editor")`)
	p.until(`document.querySelector(".summary .progress .sr").textContent.includes("1 waiting")`)
	p.do(`window.time = document.querySelector(".node.n-waiting .sub.num").textContent`)
	p.until(`document.querySelector(".node.n-waiting .sub.num").textContent !== window.time`, "it shows its time")
	p.click(".tabs a", "Tasks")
	p.showsIn(".tr .c-state", "waiting for editor")
	p.do(`window.time = [...document.querySelectorAll(".tr .c-took")].find((e) => e.parentElement.textContent.includes("waiting for")).textContent`)
	p.until(`[...document.querySelectorAll(".tr .c-took")].find((e) => e.parentElement.textContent.includes("waiting for")).textContent !== window.time`)
	p.click(".tr .c-title", "Decide")
	p.showsIn(".panel-sub .status", "waiting for editor")
	p.visit("#/runs") // which counts it as its page does
	p.until(`document.querySelector("tr .progress")?.title === "1 completed, 1 waiting, 2 pending"`)
}
