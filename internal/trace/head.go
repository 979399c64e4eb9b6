package trace

import (
	"bytes"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// writtenHead reads the first line if it is a head as a [Writer] writes it, and reports whether it is. For a run of many
// tasks it is much faster than decoding. Another line is left to [Reader.split] and [Reader.head],
// which find what is wrong with it.
func (r *Reader) writtenHead(text []byte) bool {
	kind, value := record.SplitLine(text)
	if kind != record.KindTrace {
		return false
	}
	var tasks []Task
	var err error
	short, listed := record.KeepElements(value, "tasks", func(element []byte) bool {
		var t Task
		if err == nil && !t.readPlain(element) {
			err = record.DecodeStrict(element, &t)
		}
		if tasks == nil {
			tasks = make([]Task, 0, len(value)/len(element)+1)
		}
		tasks = append(tasks, t)
		return false
	})
	var h header
	if err != nil || record.DecodeStrict(short, &h) != nil || h.Version < 1 || h.Version > Version {
		return false
	}
	if listed {
		h.Tasks = tasks
	}
	r.begin(&h)
	return true
}

// readPlain reads a task from JSON in which all members are texts of ASCII without escapes. It reports whether
// they are; if not, the task has perhaps a part of them.
func (t *Task) readPlain(object []byte) bool {
	rest, ok := bytes.CutPrefix(object, []byte(`{`))
	for ok && len(rest) > 0 {
		var name, value []byte
		if name, rest, ok = cutPlain(rest, ':'); !ok {
			return false
		}
		if value, rest, ok = cutPlain(rest, ','); !ok && !bytes.Equal(rest, []byte(`}`)) {
			return false
		}
		switch string(name) {
		case "id":
			t.ID = task.ID(value)
		case "key":
			t.Key = string(value)
		case "title":
			t.Title = string(value)
		case "name":
			t.Name = string(value)
		case "assignee":
			t.Assignee = string(value)
		case "line":
			t.Line = string(value)
		case "status":
			t.Status = task.Status(value)
		case "rounds":
			t.Rounds = string(value)
		default:
			return false
		}
		if !ok {
			return true
		}
	}
	return false
}

// cutPlain returns a text that rest begins with, and what follows the byte behind it. Without that byte, ok is false,
// and rest is what follows the text; it is empty if there is no text, or one with escapes or beyond ASCII.
func cutPlain(text []byte, behind byte) (value, rest []byte, ok bool) {
	text, ok = bytes.CutPrefix(text, []byte(`"`))
	end := bytes.IndexByte(text, '"')
	if !ok || end < 0 {
		return nil, nil, false
	}
	for _, c := range text[:end] {
		if c == '\\' || c < ' ' || c > '~' {
			return nil, nil, false
		}
	}
	value, rest = text[:end], text[end+1:]
	if len(rest) > 0 && rest[0] == behind {
		return value, rest[1:], true
	}
	return value, rest, false
}
