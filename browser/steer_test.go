package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

func TestATaskIsInterrupted(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){
		"Read": func(c *modelCall) {
			if c.turn == 1 {
				c.write("I begin at the wrong end, with all that is not asked, ")
				<-c.ctx.Done() // only the interrupt ends it
				return
			}
			c.write("412 boxes.")
		},
		"Write": says("412 boxes were sold."),
		"Check": says("They agree."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.click(".node .title", "Read")
	p.showsIn(".stream", "wrong end")

	// A text is needed.
	p.click(".panel .commands button", "Interrupt")
	p.click("dialog button[type=submit]", "Interrupt")
	require.True(t, eval[bool](p, `document.querySelector("#steer-text:invalid") !== null`))
	p.write("#steer-text", "Begin with the boxes <b>of March</b>.")
	p.write("#steer-reason", "it reads the wrong page")
	p.click("dialog button[type=submit]", "Interrupt")
	p.until(`!document.querySelector("dialog")`)
	p.until(`document.querySelectorAll(".node.n-completed").length === 3`)

	require.Len(t, m.seen("Read"), 2)
	require.Contains(t, m.seen("Read")[1], "Begin with the boxes <b>of March</b>.")
	// The page shows it in the prompt of that turn, with its source.
	p.click(".node .title", "Write")
	p.click(".node .title", "Read")
	p.until(`[...document.querySelectorAll(".panel .tv-row")].some((e) => e.textContent.includes("Begin with the boxes <b>of March</b>."))`)
	require.Zero(t, eval[int](p, `document.querySelectorAll(".tv-row b").length`))
	p.visit(eval[string](p, `location.hash.split("/tasks")[0]`) + "/answer")
	p.showsIn(".answer", "it reads the wrong page")
	require.Equal(t, "ok", s.newest(t).Status)
}

func TestARunIsPausedAndContinues(t *testing.T) {
	t.Parallel()
	read := make(gate)
	m := newModel(t, map[string]func(*modelCall){
		"Read":  func(c *modelCall) { c.await(read); c.write("412 boxes.") },
		"Write": says("412 boxes were sold."), "Check": says("They agree."),
	})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.press("p") // the shortcut
	p.write("#steer-reason", "the March report is missing")
	p.press(kb.Enter)
	p.showsIn(".summary .status", "paused")
	close(read)
	p.until(`document.querySelector(".node.n-completed")`)
	require.Empty(t, m.seen("Write"), "nothing begins while the run is paused")

	p.reload()
	p.until(`document.querySelector(".summary .status")?.textContent.includes("paused")`)
	p.click(".summary button", "Resume")
	p.click("dialog button[type=submit]", "Resume")
	p.until(`document.querySelectorAll(".node.n-completed").length === 3`)
	p.showsIn(".summary .status", "ok")
}

func TestARunIsCanceled(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){"Read": func(c *modelCall) { <-c.ctx.Done() }})
	f := newFolder(t, map[string]string{"team.yaml": spring})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.until(`document.querySelector(".node.n-in_progress")`)
	p.click(".summary button", "Cancel")
	p.write("#steer-reason", "not needed any more")
	p.click("dialog button[type=submit]", "Cancel the run")
	p.showsIn(".summary .status", "cancelled")
	p.until(`![...document.querySelectorAll(".summary button")].some((b) => /Pause|Cancel/.test(b.textContent))`, "there is nothing to steer")
	require.Equal(t, "cancelled", s.newest(t).Status)
	p.visit("#/runs")
	p.showsIn("tr", "cancelled")
	require.False(t, strings.Contains(p.text("main"), "Live"))
}

// asks is a team in which a person decides, and approves a call of a tool.
const asks = `
name: letters
model: scripted
agents:
  - {name: writer, systemPrompt: You write letters.}
  - {name: editor, backend: {kind: person}}
tasks:
  - {title: Write the letter, assignee: writer, description: Answer the complaint.}
  - title: Decide
    assignee: editor
    dependsOn: [Write the letter]
    description: May this letter be sent?
    outputSchema:
      type: object
      properties: {choice: {enum: [send, stop]}, copies: {type: integer, minimum: 1, maximum: 9}, note: {type: string}}
      required: [choice, copies]
  - {title: Say why, assignee: editor, dependsOn: [Decide], description: Say in your words why.}
  - {title: Send the letter, assignee: writer, dependsOn: [Decide, Say why], description: Say whether it was sent.}
`

func TestAPersonAnswersInThePage(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){
		"Write the letter": says("Dear **customer** <script>document.title = 'ran'</script>, write to ann@example.com."),
		"Send the letter": func(c *modelCall) {
			if strings.Contains(c.prompt, "send") && strings.Contains(c.prompt, "They waited for weeks.") {
				c.write("It was sent.")
			}
		},
	})
	f := newFolder(t, map[string]string{"team.yaml": asks})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.showsIn(".question[open] summary", "Question: Decide") // the only one is open

	// It is asked in words for people, about a text with its marks, as the person gets it. The prompt is a click away.
	require.Equal(t, "May this letter be sent?", p.text(".question .q-decide"))
	require.Regexp(t, `^Write the letter\s+from writer\s+internal\s+redacted 1`, p.text(".question .tv-about"))
	p.until(`document.querySelector(".question .tv-row")?.textContent === "Dear **customer** <script>document.title = 'ran'</script>, write to [REDACTED:email]."`)
	require.NotContains(t, p.text(".question"), "[envelope")
	p.click(".question .q-prompt summary", "As the agent would see it")
	p.showsIn(".question .q-prompt .tv-row", "[envelope")
	p.showsIn(".question .q-prompt .tv-row", "# Task: Decide")

	// What does not fit the form is refused, and what was entered stays.
	p.allow("status of 422")
	p.click(".question label.choice", "send")
	p.write(".question input[type=number]", "12")
	p.click(".question button[type=submit]", "Answer")
	p.until(`document.querySelector(".question [role=alert]").textContent !== ""`)
	require.Contains(t, p.text(".question [role=alert]"), "copies")
	p.write(".question input[type=number]", "2")
	p.click(".question button[type=submit]", "Answer")

	p.showsIn(".question[open] summary", "Say why")
	p.look(look{width: 360, height: 740})
	p.click(".node .title", "Say why")
	p.click(".panel .commands button", "Answer") // which leads to it
	p.until(`document.activeElement.matches(".question textarea")`)
	p.write(".question textarea", "They waited for weeks.")
	p.click(".question button[type=submit]", "Answer")
	p.showsIn(".summary .status", "ok")
	p.visit(eval[string](p, `location.hash`) + "/answer")
	p.shows("It was sent.")
	require.NotEqual(t, "ran", eval[string](p, `document.title`))
}

// approves is a team in which a person approves what is declassified.
const approves = `
name: scores
model: scripted
agents:
  - {name: fraud, accepts: confidential, systemPrompt: You score.}
  - {name: letters, systemPrompt: You write.}
  - {name: editor, accepts: confidential, backend: {kind: person}}
inputs:
  claim: {text: "Water in the kitchen.", classification: confidential}
tasks:
  - title: Score
    assignee: fraud
    uses: [claim]
    description: Score the claim.
    outputSchema: {type: object, properties: {fraud_score: {type: integer, minimum: 0, maximum: 100}}, required: [fraud_score], additionalProperties: false}
  - {title: Write letter, assignee: letters, dependsOn: [Score], description: Write the letter.}
policy:
  declassify:
    - {name: score-to-letters, from: fraud, to: letters, paths: [/fraud_score], lowerTo: internal, reason: a number, approve: editor}
`

func TestAPersonApprovesInThePage(t *testing.T) {
	t.Parallel()
	m := newModel(t, map[string]func(*modelCall){
		"Score": says(`{"fraud_score": 17}`),
		"Write letter": func(c *modelCall) {
			if strings.Contains(c.prompt, "17") {
				c.write("The score is 17.")
			}
		},
	})
	f := newFolder(t, map[string]string{"team.yaml": approves})
	s := f.serve(t, m.env(), "team.yaml")
	p := s.open(t, wide, "#/runs")
	startRun(p)
	p.showsIn(".question", "Approve score-to-letters?")
	p.showsIn(".question summary", "in the task Write letter")
	require.Regexp(t, `^May exactly this be delivered to agent letters for the task "Write letter"\?`, p.text(".question .q-decide"))
	p.until(`document.querySelector(".question .tv-row")?.textContent === '{"fraud_score":17}'`, "all of what is approved, as it is")
	p.visit("#/runs") // the list has it, too
	p.until(`/[0-9a-f]{8} 1 question/.test(document.querySelector("td.c-name")?.innerText)`)
	p.click(".question label.choice", "yes")
	p.write(".question input[type=text]", "seventeen is no name")
	p.click(".question button[type=submit]", "Answer")
	p.until(`!document.querySelector(".question, td .tag")`, "the row is not drawn again under the click")
	p.click("td a", "scores")
	p.showsIn(".summary .status", "ok")
	require.Equal(t, "The score is 17.", s.newest(t).Tasks[1].Result)
}
