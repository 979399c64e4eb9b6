package journal

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/record"
)

// questionLine is the stored form of a record.Question.
type questionLine struct {
	record.Question
	Key    *record.Digest `json:"key,omitempty"`
	List   *record.Digest `json:"list,omitempty"`
	Hidden *hidden        `json:"hidden,omitempty"` // the schema, if the prompt is above the plaintext limit
}

// question returns a Question with a masked key. Its schema may quote the task.
func (e *encoder) question(q *record.Question) (*questionLine, error) {
	out := &questionLine{Question: *q, Key: e.key(q.Key), List: e.key(q.List)}
	if !e.vault.hides(q.Label) || q.Schema == "" {
		return out, nil
	}
	var err error
	out.Schema = ""
	out.Hidden, err = e.vault.hide([]byte(q.Schema), record.KindQuestion, e.run, q.Session)
	return out, err
}

func (d *decoder) question(value []byte) (*record.Question, error) {
	var x questionLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	q := &x.Question
	if q.Key, q.List = keyOf(x.Key), keyOf(x.List); x.Hidden != nil {
		var text []byte
		text, q.Missing = d.vault.show(x.Hidden, record.KindQuestion, d.run, q.Session)
		q.Schema = string(text)
	}
	return q, nil
}

// answerLine is the stored form of a record.Answer.
type answerLine struct {
	record.Answer
	Key    *record.Digest `json:"key,omitempty"`
	Hidden *hidden        `json:"hidden,omitempty"` // the answerWords, if they are above the plaintext limit
	Digest record.Digest  `json:"digest"`
}

// answerWords is what a person wrote.
type answerWords struct{ Text, Reason string }

// digestInput returns what the digest of an answer covers: who answered what to which
// question.
func (l *answerLine) digestInput(run string) []byte {
	key := keyOf(l.Key)
	at, _ := l.Time.MarshalText() // of a time that JSON holds
	return joinLengths(run, l.Session, string(l.Task), l.Agent, l.By, string(at), l.Reason, l.Label.String(), string(key[:]), l.Text)
}

// answer returns the stored form of an Answer. Its key is masked already.
func (e *encoder) answer(a *record.Answer) (*answerLine, error) {
	out := &answerLine{Answer: *a, Key: new(record.Digest(a.Key))}
	out.Time = out.Time.UTC().Round(0)
	out.Digest = e.vault.digest("answer", out.digestInput(e.run))
	if !e.vault.hides(a.Label) {
		return out, nil
	}
	text, err := json.Marshal(answerWords{a.Text, a.Reason})
	if err == nil {
		out.Text, out.Reason = "", ""
		out.Hidden, err = e.vault.hide(text, record.KindAnswer, e.run, a.Session)
	}
	return out, err
}

func (d *decoder) answer(value []byte) (*record.Answer, error) {
	var x answerLine
	if err := json.Unmarshal(value, &x); err != nil {
		return nil, err
	}
	a := &x.Answer
	if a.Key = keyOf(x.Key); x.Hidden != nil {
		var text []byte
		var w answerWords
		if text, a.Missing = d.vault.show(x.Hidden, record.KindAnswer, d.run, a.Session); a.Missing == "" {
			if err := json.Unmarshal(text, &w); err != nil {
				return nil, err
			}
		}
		a.Text, a.Reason = w.Text, w.Reason
	}
	if a.Missing == "" && d.vault.digests != nil && d.vault.digest("answer", x.digestInput(d.run)) != x.Digest {
		a.Text, a.Reason, a.Missing = "", "", ErrAltered.Error()
	}
	return a, nil
}
