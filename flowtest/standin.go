package flowtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

// answer replaces the answer of an agent.
func (c *cast) answer(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	if p.Layout() == prompt.Planning {
		text, err := ask(ctx, c.planned, p.System(), p.Text())
		return agent.Reply{Text: text, Turns: 1}, err
	}
	mine, echo := c.planted(p.Receipt().Task), c.echoed(p)
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

// lead is the start of a text: the canaries planted there, then those of the prompt.
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

// echoed returns the canaries of a prompt.
func (c *cast) echoed(p prompt.Prompt) (words []string) {
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

// instance returns a value of the schema, with the canaries of the prompt in its free texts.
func (c *cast) instance(ctx context.Context, p prompt.Prompt, shape map[string]any, echo []string) (jsonvalue.Value, error) {
	raw, err := json.Marshal(shape)
	if err != nil {
		return jsonvalue.Value{}, err
	}
	text, err := ask(ctx, c.script, "## Output schema\n\n"+string(raw), p.Text())
	if err != nil {
		return jsonvalue.Value{}, err
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return jsonvalue.Value{}, err
	}
	if p.Schema() == "" {
		if o, ok := value.(map[string]any); ok && len(echo) > 0 {
			o["retold"] = strings.Join(echo, " ")
		}
		return jsonvalue.Encode(value)
	}
	checked, err := schema.Parse(p.Schema())
	if err != nil {
		return jsonvalue.Value{}, err
	}
	plain, err := jsonvalue.Encode(value)
	if err != nil {
		return plain, err
	}
	if err := checked.Validate(plain); err != nil {
		return plain, fmt.Errorf("no small result of its schema has the canaries where they are planted: %w", err)
	}
	if len(echo) > 0 {
		if full, err := jsonvalue.Encode(repeat(value, strings.Join(echo, " "))); err == nil && checked.Validate(full) == nil {
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
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	var out struct {
		Choices []struct{ Message message }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Choices) == 0 {
		return "", fmt.Errorf("the script answered with status %d: %s", w.Code, w.Body.String())
	}
	return out.Choices[0].Message.Content, nil
}
