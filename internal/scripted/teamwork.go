package scripted

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/llm"
)

// ChildTitle is the title in the prompt of a child, which spawn_agent or delegate_to_agent began. Its
// description is the goal.
const ChildTitle = "Goal"

// childGoal returns the goal in the first message to a child; empty for any other prompt. That of a task with
// the title of a child has none if it has sections, which a child does not get.
func (r *received) childGoal(first string) string {
	if !r.titled || !called(ChildTitle)(r.Task) {
		return ""
	}
	_, goal, _ := strings.Cut(first, "\n")
	last := strings.Count(first, "\n")
	if at := r.next(-1, isTaskSection); at >= 0 && r.headings[at].line <= last {
		return ""
	}
	return strings.TrimSpace(goal)
}

// isTaskSection reports whether a section belongs to the prompt of a task.
func isTaskSection(title string) bool {
	return slices.ContainsFunc([]string{"Inputs", "Context from prerequisite tasks", "Shared Team Memory", "Messages from team members"},
		func(name string) bool { return called(name)(title) })
}

// teamMessages are the messages of the team in a conversation, in its order.
type teamMessages []teamMessage

// A teamMessage is a message or a handoff in a prompt.
type teamMessage struct {
	from string // a member of the team
	id   string // of a handoff that can be answered; empty if it cannot
}

// The first line of a message: in the first prompt, and in that of a later turn or as the result of a call that
// waited for a reply. The ID of a handoff that can be answered is in parentheses.
var (
	sender      = regexp.MustCompile(`^- \*\*([^*]+)\*\*(?: \(handoff ([0-9a-f-]+)\))?:`)
	laterSender = regexp.MustCompile(`^(?:Message|Reply) from (.+?)(?: \(handoff ([0-9a-f-]+)\))?:$`)
)

// messages returns the messages of the team in the conversation.
func (r *received) messages() (all teamMessages) {
	opened := false // the section of the first prompt was read
	for _, m := range r.conversation {
		if m.Role == llm.Assistant {
			continue
		}
		d := &document{lines: strings.Split(m.Text, "\n")}
		d.scan()
		if in, ok := d.under(d.all(), 2, called("Messages from team members")); ok && !opened && m.Role == llm.User {
			opened, all = true, append(all, d.messagesIn(in, sender)...)
		}
		all = append(all, d.messagesIn(d.all(), laterSender)...)
	}
	return all
}

// messagesIn returns the messages in a part of a text.
func (d *document) messagesIn(in span, first *regexp.Regexp) (all []teamMessage) {
	for i := in.from; i < in.to; i++ {
		if f, ok := d.fenceAt(i); ok {
			i = f.shut
		} else if m := first.FindStringSubmatch(d.lines[i]); m != nil {
			all = append(all, teamMessage{m[1], m[2]})
		}
	}
	return all
}

// handoff returns the ID of a handoff of a member that can be answered: of the nth in the conversation, counted
// from 1, or of the last.
func (all teamMessages) handoff(agent string, n ...int) (string, error) {
	if len(n) > 1 || len(n) == 1 && n[0] < 1 {
		return "", errors.New("handoff takes a member of the team and at most one number from 1")
	}
	var ids []string
	from := called(agent)
	for _, m := range all {
		if m.id != "" && from(m.from) {
			ids = append(ids, m.id)
		}
	}
	at := len(ids)
	if len(n) == 1 {
		at = n[0]
	}
	if at < 1 || at > len(ids) {
		return missing, nil
	}
	return ids[at-1], nil
}

// references returns templates that print the IDs of the handoffs that can be answered, by ID.
func (all teamMessages) references() map[string]string {
	templates := map[string]string{}
	count := map[string]int{} // by member
	for _, m := range all {
		if m.id != "" {
			from := folded(sent(m.from))
			count[from]++
			templates[m.id] = fmt.Sprintf("{{ handoff %s %d }}", strconv.Quote(sent(m.from)), count[from])
		}
	}
	return templates
}

// userName is the sender of messages with which a person steers a run.
const userName = "user"

// agents returns the agents whose messages these are. The user does not send its messages again in another run.
func (all teamMessages) agents() (names []string) {
	for _, m := range all {
		if m.from != userName && !slices.ContainsFunc(names, called(m.from)) {
			names = append(names, m.from)
		}
	}
	return names
}

// checkMessages returns an error if a message is not in the prompt that the reply needs.
func (r *Reply) checkMessages(got *received) error {
	if len(r.Messages) == 0 {
		return nil
	}
	there := got.messages().agents()
	for _, name := range r.Messages {
		if !slices.ContainsFunc(there, called(name)) {
			return fmt.Errorf("messages: the prompt has no message of %q; have it sent before this call, with delay: in an earlier reply", name)
		}
	}
	return nil
}
