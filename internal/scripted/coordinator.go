package scripted

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Step is a kind of call of a coordinator. The headings of a prompt outside of its fences
// determine it.
type Step string

// The steps of a coordinator. The zero Step is any other call.
const (
	Plan      Step = "plan"      // plan the tasks of a goal
	Repair    Step = "repair"    // correct an invalid plan
	Digest    Step = "digest"    // shorten a part of the results
	Synthesis Step = "synthesis" // write the answer from the results or their digests
)

// steps lists them in the order of a run.
var steps = []Step{Plan, Repair, Digest, Synthesis}

// step returns the step of the coordinator that a prompt is for; empty for any other prompt.
func (r *received) step() Step {
	at, plan := r.goalAt()
	switch {
	case at < 0:
		return ""
	case plan && r.next(at, endsPlanGoal) < 0:
		return Plan
	case plan:
		return Repair
	case r.next(at, endsGoal) < 0:
		return ""
	}
	if r.part() > 0 {
		return Digest
	}
	return Synthesis
}

// goalAt returns the heading of the goal, or -1, and whether it asks for a plan.
// The prompt of a task has none, even if its description mentions one.
func (r *received) goalAt() (at int, plan bool) {
	if r.titled {
		return -1, false
	}
	at = r.next(-1, func(title string) bool { return called("Goal")(title) || called("Original Goal")(title) })
	return at, at >= 0 && called("Goal")(r.headings[at].title)
}

// endsPlanGoal reports whether a section follows the goal in a prompt that asks for a plan.
func endsPlanGoal(title string) bool {
	return called("Your previous plan")(title) || called("What is wrong with it")(title)
}

// endsGoal reports whether a section follows the goal in any other prompt of a coordinator.
func endsGoal(title string) bool {
	return results(title) || slices.ContainsFunc([]string{
		"Failed Tasks", "Skipped Tasks", "Shared Team Memory", "Messages from team members", "Your Task",
	}, func(name string) bool { return called(name)(title) })
}

// partly matches the heading of one part of the results.
var partly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^Task Results \(part ([1-9][0-9]{0,5}) of [1-9][0-9]{0,5}\)$`)
})

// results reports whether a section holds the results of tasks.
func results(title string) bool { return called("Task Results")(title) || partly().MatchString(title) }

// part returns the number of the part that a digest is for; 0 if the results are whole.
func (r *received) part() int {
	at, plan := r.goalAt()
	if at < 0 || plan {
		return 0
	}
	if at = r.next(at, results); at < 0 {
		return 0
	}
	m := partly().FindStringSubmatch(r.headings[at].title)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// goal returns the goal in a prompt that asks for a plan, including its own headings.
func (r *received) goal() string {
	at, _ := r.goalAt()
	s := span{r.headings[at].line + 1, len(r.lines)}
	if end := r.next(at, endsPlanGoal); end >= 0 {
		s.to = r.headings[end].line
	}
	return r.payload(s)
}

// rosterHeading opens the part of a coordinator's system prompt that lists the agents as JSON.
const rosterHeading = "## Team Roster"

// roster returns the names of the agents in a coordinator's system prompt.
func (r *received) roster() []string {
	text := "\n" + r.System
	for {
		at := strings.LastIndex(text, "\n"+rosterHeading+"\n")
		if at < 0 {
			return nil
		}
		if list := rosterIn(text[at+len(rosterHeading)+2:]); len(list) > 0 {
			return list
		}
		text = text[:at]
	}
}

// rosterIn returns the names in the first JSON value that begins a line: a
// list of agents, or an object whose agents are one.
func rosterIn(text string) []string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "## ") {
			return nil
		}
		if !strings.HasPrefix(line, "[") && !strings.HasPrefix(line, "{") {
			text = text[len(line):]
			continue
		}
		return namesIn(text)
	}
	return nil
}

func namesIn(text string) []string {
	type agent struct {
		Name string `json:"name"`
	}
	var raw json.RawMessage
	var list []agent
	if json.NewDecoder(strings.NewReader(text)).Decode(&raw) != nil {
		return nil
	}
	if json.Unmarshal(raw, &list) != nil {
		var team struct {
			Agents []agent `json:"agents"`
		}
		_ = json.Unmarshal(raw, &team) // another form lists no agent
		list = team.Agents
	}
	var all []string
	for _, a := range list {
		if a.Name != "" {
			all = append(all, a.Name)
		}
	}
	return all
}
