package scripted

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/llm"
)

// A Recorder records the answers of models and people as a [Script]. A run with the same prompts gets the
// same answers and failures, byte for byte, each task and each step of the coordinator in the
// order of its own calls. The zero value is ready for use. A Recorder is safe for concurrent
// use.
//
// A recording is as sensitive as its run, since it contains everything that they wrote,
// including secrets. Store it in a file of mode 0600.
//
// Times and waits for rate limits are not recorded, except for a run whose agents sent each other messages:
// delays keep the order of its calls, see [paced].
type Recorder struct {
	Now func() time.Time // the clock; nil means time.Now

	// Ended says how the end of its context ended a call, by the cause of that; nil for a call that is made again.
	// Such calls are left out, and all calls that their context ended are if Ended is nil.
	Ended func(cause error) *callfault.EndedError

	mu    sync.Mutex // guards what follows, and the replies in it
	calls []*recorded
}

// A recorded is one call: how it differs from others, and its answer.
type recorded struct {
	asked  subject
	system string
	began  time.Time
	ended  time.Time
	reply  *Reply // nil until it is answered
}

// A subject is what a script can match of a call besides its system prompt.
type subject struct {
	task string // folded; empty for a child
	goal string // of a child, in lower case
	step Step
	part int
	turn int // of the conversation
}

// none reports whether a call belongs neither to a task, nor to a child, nor to the coordinator.
func (s subject) none() bool { return s.task == "" && s.goal == "" && s.step == "" }

// first returns the subject of the first turn.
func (s subject) first() subject {
	s.turn = 1
	return s
}

// Model returns m with its calls recorded. Wrap it in [llm.Retry], not the reverse, so that
// failed attempts are recorded too. It has the Endpoint and Endpoints of m. With a nil m,
// every call fails with [llm.ErrNoModel].
func (r *Recorder) Model(m llm.Model) llm.Model {
	if m == nil {
		m = llm.ModelFunc(nil)
	}
	return &recording{m, r}
}

// A recording is a model whose calls are recorded.
type recording struct {
	model llm.Model
	into  *Recorder
}

// Call makes a call and records its outcome. A nil ctx is an error.
func (m *recording) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if ctx == nil {
		return llm.Response{}, errors.New("scripted: the context is nil; use context.Background")
	}
	c, got := m.into.begin(req)
	res, err := m.model.Call(ctx, req, emit)
	var reply Reply
	switch ended, repeated := errors.AsType[*callfault.EndedError](err); {
	case err != nil && isCanceled(ctx):
		if ended = m.into.endOf(ctx, got); ended == nil {
			return res, err // it is left out, like a call that has not ended
		}
		reply = endedReply(ended, got)
	case repeated:
		reply = endedReply(ended, got)
	case err != nil:
		reply = failed(err)
	default:
		reply = answered(res, req.Tools, got)
		reply.Messages = got.messages().agents()
	}
	m.into.end(c, got, reply)
	return res, err
}

// Endpoint returns the base URL of the model that is called.
func (m *recording) Endpoint() string { return endpoint.Of(m.model) }

// Endpoints returns the base URLs that the model calls.
func (m *recording) Endpoints() []string { return endpoint.All(m.model) }

// A Question is put to a person. It is left out of the recording until it has ended.
type Question struct {
	ctx  context.Context // in which the person is asked
	into *Recorder
	call *recorded
	got  *received
}

// Question records that a person is asked, with the text of a prompt. The question is open at most until ctx ends.
func (r *Recorder) Question(ctx context.Context, system, text string) *Question {
	c, got := r.begin(llm.Request{System: system, Messages: []llm.Message{{Role: llm.User, Text: text}}})
	return &Question{ctx, r, c, got}
}

// Answered records the answer.
func (q *Question) Answered(answer string) {
	q.into.end(q.call, q.got, Reply{Text: literal(sent(answer)), Messages: q.got.messages().agents()})
}

// Unanswered records a question that was not answered before somebody or a time limit ended it, if that is so.
func (q *Question) Unanswered() {
	if cause := context.Cause(q.ctx); cause == nil || cause == context.Canceled { //nolint:errorlint // nothing ended it but the end of the run
		return
	}
	if ended := q.into.endOf(q.ctx, q.got); ended != nil {
		q.into.end(q.call, q.got, endedReply(ended, q.got))
	}
}

// isCanceled reports whether the caller canceled a call. The cause of a call that took
// longer than its limit is an [llm.Error].
func isCanceled(ctx context.Context) bool {
	_, slow := errors.AsType[*llm.Error](context.Cause(ctx))
	return ctx.Err() != nil && !slow
}

// begin records that a call began. A replay gets the calls in this order.
func (r *Recorder) begin(req llm.Request) (c *recorded, got *received) {
	got = receive(sent(req.System), req.Messages)
	c = &recorded{asked: subject{step: got.step(), part: got.part(), turn: got.Turn}, system: got.System, began: r.now()}
	if got.child != "" {
		c.asked.goal = strings.ToLower(sent(got.child))
	} else {
		c.asked.task = folded(sent(got.Task))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return c, got
}

// end records the reply to a prompt. What it keeps of the prompt is a copy, which does not hold the rest of it.
func (r *Recorder) end(c *recorded, got *received, reply Reply) {
	if got.child != "" {
		reply.Goal = strings.Clone(sent(got.child))
	} else {
		reply.Task = strings.Clone(sent(got.Task))
	}
	reply.Coordinator, reply.Part, reply.Turn = c.asked.step, c.asked.part, c.asked.turn
	for i, name := range reply.Messages {
		reply.Messages[i] = strings.Clone(sent(name))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.reply, c.ended = &reply, r.now()
}

// now returns the time.
func (r *Recorder) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Script returns the recording so far as a script, without calls that have not ended. The
// last reply for a task or for a step of the coordinator also answers all further calls.
func (r *Recorder) Script() *Script {
	r.mu.Lock()
	var ended []*recorded
	for _, c := range r.calls {
		if c.reply != nil {
			ended = append(ended, c)
		}
	}
	r.mu.Unlock()
	return &Script{Replies: transcript(paced(ended))} // ended calls do not change
}

// Empty reports whether there is nothing to replay: no call has ended, or each was canceled.
func (r *Recorder) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(r.calls, func(c *recorded) bool { return c.reply != nil && c.reply.Ended != callfault.Canceled })
}

// recordedHead opens the file of a recording.
const recordedHead = "# Recorded by runteam: what models and people answered, unabridged. As sensitive as the run.\n"

// WriteTo writes the script of the recording so far, as [Script.WriteTo] does.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	f, err := r.Script().file(recordedHead)
	if err != nil {
		return 0, err
	}
	return f.writeTo(w)
}

// sent returns a text as it arrives over the wire: each byte that is not UTF-8
// is the replacement character.
func sent(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// folded returns the same text for all titles that a script does not distinguish.
func folded(title string) string {
	runes := []rune(title)
	for i, r := range runes {
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			runes[i] = min(runes[i], next)
		}
	}
	return string(runes)
}
