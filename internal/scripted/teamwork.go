package scripted

import (
	"errors"
	"regexp"
	"strings"
)

// memory returns the entries of an agent in the shared memory, or the value of one key.
func (r *received) memory(agent string, key ...string) (string, error) {
	in, ok := r.find(called("Shared Team Memory"), called(agent))
	switch {
	case len(key) > 1:
		return "", errors.New("memory takes an agent and at most one key")
	case !ok:
		return missing, nil
	case len(key) == 0:
		return r.payload(in), nil
	}
	_, escaped := r.fenced(in)
	for line := range strings.SplitSeq(r.payload(in), "\n") {
		value, ok := strings.CutPrefix(line, "- "+key[0]+": ")
		switch {
		case ok && escaped:
			return unescape(value), nil
		case ok:
			return value, nil
		}
	}
	return missing, nil
}

// escapes undoes the escapes of line breaks in prompts.
var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\v`, "\v", `\f`, "\f",
	`\x1c`, "\x1c", `\x1d`, "\x1d", `\x1e`, "\x1e", `\u0085`, "\u0085", `\u2028`, "\u2028", `\u2029`, "\u2029")

func unescape(value string) string { return escapes.Replace(value) }

// sender matches the first line of a message, which may contain all of it: in the first prompt, and in that of a
// later turn. The ID of a handoff that can be answered is in parentheses.
var (
	sender      = regexp.MustCompile(`^- \*\*([^*]+)\*\*(?: \(handoff [0-9a-f-]+\))?:(?: (.*))?$`)
	laterSender = regexp.MustCompile(`^Message from (.+?)(?: \(handoff [0-9a-f-]+\))?:()$`)
)

// message returns the messages of a member of the team, joined by line breaks.
func (r *received) message(agent string) string {
	var all []string
	if in, ok := r.under(r.all(), 2, called("Messages from team members")); ok {
		all = r.messagesIn(in, sender, agent)
	}
	if all = append(all, r.messagesIn(r.all(), laterSender, agent)...); all == nil {
		return missing
	}
	return strings.Join(all, "\n")
}

// messagesIn returns the messages of a member in a part of the prompt.
func (r *received) messagesIn(in span, first *regexp.Regexp, agent string) (all []string) {
	from := called(agent)
	for i := in.from; i < in.to; i++ {
		if f, ok := r.fenceAt(i); ok {
			i = f.shut
			continue
		}
		m := first.FindStringSubmatch(r.lines[i])
		if m == nil || !from(m[1]) {
			continue
		}
		text := m[2]
		if f, ok := r.fenceAt(i + 1); ok && text == "" {
			text = r.within(f)
		}
		all = append(all, text)
	}
	return all
}
