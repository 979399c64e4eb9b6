package scripted

import (
	"strings"

	"github.com/runteam/runteam/llm"
)

// missing replaces context that is not in the prompt, so that the answer is visibly wrong.
const missing = "(not in the prompt)"

// A received is a prompt, which is the data of a template.
type received struct {
	Prompt string // the texts of all user messages, separated by an empty line
	System string // the texts of all system messages
	Task   string // the title in the prompt's first line; empty without one
	Last   string // the text of the last user message
	Turn   int    // 1, and 1 for each message of the assistant

	conversation []llm.Message
	titled       bool   // the first line names a task, perhaps with an empty title
	child        string // the goal of a child; empty in any other prompt
	document
}

// receive reads the structure of a prompt.
func receive(system string, messages []llm.Message) *received {
	r := &received{System: system, Turn: 1, conversation: messages}
	var users []string
	for _, m := range messages {
		switch m.Role {
		case llm.User:
			users = append(users, m.Text)
		case llm.Assistant:
			r.Turn++
		}
	}
	if len(users) == 0 {
		return r
	}
	r.Prompt = strings.Join(users, "\n\n")
	r.Last = users[len(users)-1]
	r.lines = strings.Split(r.Prompt, "\n")
	if title, ok := strings.CutPrefix(r.lines[0], "# Task: "); ok {
		r.Task, r.titled = strings.TrimSpace(title), true
	}
	r.scan()
	r.child = r.childGoal(users[0])
	return r
}

// called returns a test for one title, whatever its case.
func called(title string) func(string) bool {
	title = strings.TrimSpace(title)
	return func(s string) bool { return strings.EqualFold(s, title) }
}

// noted returns a test for a title with a note in parentheses that begins with a text, such
// as "by " for the agent.
func noted(title, note string) func(string) bool {
	fits := called(title)
	return func(s string) bool {
		i := strings.LastIndex(s, " ("+note)
		return i >= 0 && strings.HasSuffix(s, ")") && fits(s[:i])
	}
}

// Section returns the text under the heading "## <title>", including fences, or "(not in the prompt)".
func (r *received) Section(title string) string {
	s, ok := r.under(r.all(), 2, called(title))
	if !ok {
		return missing
	}
	return r.text(s)
}
