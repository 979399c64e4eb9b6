package scripted

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

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
// Times and waits for rate limits are not recorded.
type Recorder struct {
	mu    sync.Mutex // guards what follows, and the replies in it
	calls []*recorded
}

// A recorded is one call: how it differs from others, and its answer.
type recorded struct {
	asked  subject
	system string
	reply  *Reply // nil until it is answered
}

// A subject is what a script can match of a call besides its system prompt.
type subject struct {
	task string // folded
	goal string // of a child
	step Step
	part int
	turn int // of the conversation
}

// none reports whether a call belongs neither to a task nor to the coordinator.
func (s subject) none() bool { return s.task == "" && s.step == "" }

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
	c, title := m.into.begin(req)
	res, err := m.model.Call(ctx, req, emit)
	if err != nil && isCanceled(ctx) {
		return res, err // a call without an answer is left out, like one that has not ended
	}
	reply := answered(res, req.Tools)
	if err != nil {
		reply = failed(err)
	}
	reply.Task, reply.Coordinator, reply.Part, reply.Turn = title, c.asked.step, c.asked.part, c.asked.turn
	m.into.end(c, reply)
	return res, err
}

// Endpoint returns the base URL of the model that is called.
func (m *recording) Endpoint() string { return endpoint.Of(m.model) }

// Endpoints returns the base URLs that the model calls.
func (m *recording) Endpoints() []string { return endpoint.All(m.model) }

// Question records that a person is asked, with the text of a prompt. Call answered with the answer;
// a question without one is left out.
func (r *Recorder) Question(system, text string) (answered func(answer string)) {
	c, title := r.begin(llm.Request{System: system, Messages: []llm.Message{{Role: llm.User, Text: text}}})
	return func(answer string) {
		r.end(c, Reply{Task: title, Turn: c.asked.turn, Text: literal(sent(answer))})
	}
}

// isCanceled reports whether the caller canceled a call. The cause of a call that took
// longer than its limit is an [llm.Error].
func isCanceled(ctx context.Context) bool {
	_, slow := errors.AsType[*llm.Error](context.Cause(ctx))
	return ctx.Err() != nil && !slow
}

// begin records that a call began. A replay gets the calls in this order.
func (r *Recorder) begin(req llm.Request) (c *recorded, title string) {
	got := receive(sent(req.System), req.Messages)
	title = strings.Clone(sent(got.Task)) // without a reference to the prompt
	c = &recorded{asked: subject{task: folded(title), goal: strings.Clone(sent(got.childGoal())), step: got.step(), part: got.part(), turn: got.Turn}, system: got.System}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return c, title
}

func (r *Recorder) end(c *recorded, reply Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.reply = &reply
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
	return &Script{Replies: transcript(ended)} // ended calls do not change
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
