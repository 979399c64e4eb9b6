// Package scripted runs a model endpoint that answers from a script, for tests and
// demonstrations without a network or a key.
//
//	script, err := scripted.Parse("script.yaml", []byte(`
//	replies:
//	  - task: Research
//	    text: The answer is 42.
//	`))
//	server, err := scripted.Start(script)
//	defer server.Close()
//	model, err := server.Model("any")
//	researcher := agent.New(model, agent.Options{})
//
// The first reply whose conditions a call meets answers it. Replies are templates that can
// quote the prompt, so that an answer shows whether context arrived. A reply can call tools,
// and the reply after it can quote their results. A reply can also fail, with an HTTP status
// or a broken connection. A call that no reply matches gets a small answer that matches its
// schema and is marked OFFLINE. docs/reference/scripts.md describes the format.
package scripted

import (
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// A Script lists the replies of a [Server]. A nil Script has none.
type Script struct{ script *scripted.Script }

// Parse reads a script in YAML or JSON. Its error lists all problems, each with the file
// name.
func Parse(name string, data []byte) (*Script, error) {
	s, err := scripted.Parse(name, data)
	if err != nil {
		return nil, err
	}
	return &Script{s}, nil
}

// A Server is a running OpenAI-compatible endpoint on a port of the loopback interface.
// It is safe for concurrent use.
type Server struct{ server *scripted.Server }

// Start serves a script until [Server.Close].
func Start(s *Script) (*Server, error) {
	if s == nil {
		s = &Script{}
	}
	server, err := scripted.Start(s.script, scripted.Options{Keep: true})
	if err != nil {
		return nil, err
	}
	return &Server{server}, nil
}

// URL returns the base URL, such as http://127.0.0.1:40123/v1.
func (s *Server) URL() string { return s.server.URL() }

// Model returns a model of the endpoint, which accepts every name that is not empty.
func (s *Server) Model(name string) (llm.Model, error) {
	return openai.New(openai.Config{Model: name, BaseURL: s.URL()})
}

// A Request is a call that the endpoint received.
type Request struct {
	Model    string
	System   string        // the system prompt
	Messages []llm.Message // with tool calls and their results
	Tools    []llm.Tool    // that the model may call
}

// Requests returns the calls received so far, oldest first.
func (s *Server) Requests() []Request {
	var all []Request
	for _, r := range s.server.Requests() {
		all = append(all, Request{Model: r.Model, System: r.System, Messages: r.Messages, Tools: r.Tools})
	}
	return all
}

// Close ends all calls and waits until the server has stopped. It may be called twice.
func (s *Server) Close() error { return s.server.Close() }
