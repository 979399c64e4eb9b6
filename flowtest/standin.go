package flowtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/spec"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// openAI is where prompts go for whom neither the spec nor the environment names an endpoint.
const openAI = "https://api.openai.com/v1"

// A cast is everybody who works in one run, and what they were asked.
type cast struct {
	f    *Flow
	base string // endpoint of whoever has none of its own

	script  *scripted.Handler // answers whatever nothing is planted in
	planned *scripted.Handler // answers the coordinator's planning: the spec's own script, if it has one

	mu      sync.Mutex // guards what follows
	prompts []sent
	faults  []string
}

// sent is a prompt as an agent got it.
type sent struct {
	agent  string
	task   task.ID // empty for the coordinator
	layout prompt.Layout
	text   string // system prompt and message
}

func newCast(f *Flow, base string) (*cast, error) {
	c := &cast{f: f, base: base}
	var err error
	if c.script, err = scripted.New(nil, false); err != nil {
		return nil, err
	}
	plans := new(scripted.Script)
	if f.file.Offline != "" {
		script, err := scripted.ReadFile(f.file.Offline)
		if err != nil {
			return nil, err
		}
		for _, r := range script.Replies {
			if r.Coordinator == scripted.Plan || r.Coordinator == scripted.Repair {
				r.Delay = 0 // nobody watches
				plans.Replies = append(plans.Replies, r)
			}
		}
	}
	c.planned, err = scripted.New(plans, false)
	return c, err
}

// member is one agent of a cast.
type member struct {
	cast     *cast
	name     string
	endpoint string
	own      team.Agent // the one that the test brought, or nil
}

func (c *cast) connect(a spec.Agent) (team.Agent, error) {
	name := a.Member.Name
	return &member{cast: c, name: name, endpoint: cmp.Or(a.BaseURL, c.base, openAI), own: c.f.agents[name]}, nil
}

// Endpoint returns where the agent's prompts would go.
func (m *member) Endpoint() string { return m.endpoint }

// Run notes the prompt and answers it.
func (m *member) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	m.cast.note(sent{agent: m.name, task: p.Receipt().Task, layout: p.Layout(), text: p.System() + "\n" + p.Text()})
	if m.own != nil {
		return m.own.Run(ctx, p)
	}
	reply, err := m.cast.answer(ctx, p)
	if err != nil {
		m.cast.blame("%s could not answer: %v", m.name, err)
	}
	return reply, err
}

func (c *cast) note(s sent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts = append(c.prompts, s)
}

func (c *cast) blame(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *cast) answer(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if p.Layout() == prompt.Planning {
		text, err := ask(ctx, c.planned, p.System(), p.Text())
		return agent.Reply{Text: text, Turns: 1}, err
	}
	mine, echo := c.planted(p.Receipt().Task), c.heard(p)
	structured := p.Schema() != ""
	for _, x := range mine {
		structured = structured || x.path != ""
	}
	if structured {
		return c.structured(ctx, p, mine, echo)
	}
	text, err := ask(ctx, c.script, p.System(), p.Text())
	return agent.Reply{Text: lead(mine, echo) + text, Turns: 1}, err
}

// lead is what a text begins with: what is planted there, then what was heard.
func lead(mine []*planted, echo []string) string {
	var words []string
	for _, x := range mine {
		if x.path == "" {
			words = append(words, x.word)
		}
	}
	if words = append(words, echo...); len(words) == 0 {
		return ""
	}
	return strings.Join(words, " ") + "\n"
}

// planted returns the canaries for the result of a task.
func (c *cast) planted(id task.ID) (out []*planted) {
	for _, x := range c.f.canaries {
		if x.made() && x.id == id {
			out = append(out, x)
		}
	}
	return out
}

// heard returns the canaries that stand in a prompt.
func (c *cast) heard(p prompt.Prompt) (words []string) {
	lower := strings.ToLower(p.System() + "\n" + p.Text())
	for _, x := range c.f.canaries {
		if _, ok := x.in(lower); ok {
			words = append(words, x.word)
		}
	}
	return words
}

// structured answers with a small instance of the schema that has the
// canaries at their paths.
func (c *cast) structured(ctx context.Context, p prompt.Prompt, mine []*planted, echo []string) (agent.Reply, error) {
	schema, err := decoded(p.Schema())
	if err != nil {
		return agent.Reply{}, err
	}
	for _, x := range mine {
		if x.path == "" {
			continue
		}
		if schema, _, err = demand(schema, x.keys, x.word); err != nil {
			return agent.Reply{}, fmt.Errorf("%v: %w", x, err)
		}
	}
	if !c.f.careless && p.Schema() != "" {
		echo = nil
	}
	value, err := c.instance(ctx, p, schema, echo)
	if err != nil {
		return agent.Reply{}, err
	}
	reply := agent.Reply{Text: value.Canonical(), Turns: 1}
	if p.Schema() != "" {
		reply.JSON, reply.Text = value, lead(mine, nil)+reply.Text
	}
	return reply, nil
}

// instance returns a value of the schema, with what was heard in its free texts.
func (c *cast) instance(ctx context.Context, p prompt.Prompt, schema map[string]any, echo []string) (envelope.JSON, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return envelope.JSON{}, err
	}
	text, err := ask(ctx, c.script, "## Output schema\n\n"+string(raw), p.Text())
	if err != nil {
		return envelope.JSON{}, err
	}
	value, err := envelope.DecodeJSON(text)
	if err != nil {
		return envelope.JSON{}, err
	}
	if p.Schema() == "" {
		if o, ok := value.(map[string]any); ok && len(echo) > 0 {
			o["retold"] = strings.Join(echo, " ")
		}
		return envelope.EncodeJSON(value)
	}
	checked, err := agent.ParseSchema(p.Schema())
	if err != nil {
		return envelope.JSON{}, err
	}
	plain, err := envelope.EncodeJSON(value)
	if err != nil {
		return plain, err
	}
	if err := checked.Validate(plain); err != nil {
		return plain, fmt.Errorf("no small result of its schema has the canaries where they are planted: %w", err)
	}
	if len(echo) > 0 {
		if full, err := envelope.EncodeJSON(repeat(value, strings.Join(echo, " "))); err == nil && checked.Validate(full) == nil {
			return full, nil
		}
	}
	return plain, nil
}

// repeat adds words to every text that is free: the script marks those.
func repeat(v any, words string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			v[k] = repeat(member, words)
		}
	case []any:
		for i, element := range v {
			v[i] = repeat(element, words)
		}
	case string:
		if strings.HasPrefix(v, "OFFLINE") {
			return words + " " + v
		}
	}
	return v
}

// ask asks a scripted endpoint, without a network.
func ask(ctx context.Context, h http.Handler, system, user string) (string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(map[string]any{"model": "scripted", "messages": []message{{"system", system}, {"user", user}}})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	w := &response{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(w, req)
	var out struct {
		Choices []struct{ Message message }
	}
	if err := json.Unmarshal(w.body.Bytes(), &out); err != nil || len(out.Choices) == 0 {
		return "", fmt.Errorf("the script answered with status %d: %s", w.status, w.body.String())
	}
	return out.Choices[0].Message.Content, nil
}

// response is what a handler writes.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(b []byte) (int, error) { return r.body.Write(b) }
