// Package openai calls models behind OpenAI-compatible endpoints.
//
//	model, err := openai.New(openai.Config{Model: "llama3.2", BaseURL: "http://localhost:11434/v1"})
//
// A [Model] uses the chat completions API, and guards against what servers do: streams that
// end early, errors inside a stream or under status 200, HTML instead of JSON, replies
// without end. If the endpoint refuses an optional part of a request, such as the
// temperature, the request is sent again without it, and the response has a warning. Schemas of tools
// are sent in a form that the endpoint takes; arguments are returned as the tool's own schema has them. Every
// failure is an [*llm.Error]; it repeats neither the key nor the prompt. A Model does not
// repeat failed calls: wrap it in [llm.Retry], as agent.New does.
package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// Config says which model to call, and how. Its Headers may hold
// credentials, so printing and logging a Config shows their names only.
type Config struct {
	Model string // as the endpoint names it; required

	// BaseURL includes the version, such as http://localhost:11434/v1. A base URL of Azure
	// may end with ?api-version=…. Empty means https://api.openai.com/v1.
	BaseURL string

	APIKey     Key               // required for api.openai.com only
	Headers    map[string]string // sent with each request; an Authorization here takes the place of APIKey
	HTTPClient *http.Client      // copied; nil means one of the model's own; redirects stay within the endpoint in any case
	MaxReply   int               // bound on text and reasoning, and on an unstreamed body, in bytes; zero means 4 MiB

	// MaxTokensKey is the name under which Request.MaxTokens is sent:
	// max_tokens or max_completion_tokens. Empty means the second for
	// api.openai.com, whose reasoning models refuse the first, and the first
	// for every other endpoint, many of which do not know the second. The name
	// of the model plays no part: a local model may be called anything. If the
	// endpoint refuses one name, the other is used from then on.
	MaxTokensKey string

	// LookupEnv, such as [os.LookupEnv], completes the configuration from the environment;
	// nil does not. An empty BaseURL becomes OPENAI_BASE_URL. An empty APIKey becomes
	// OPENAI_API_KEY, but only for api.openai.com and the origin of OPENAI_BASE_URL: no
	// other host is sent that key.
	LookupEnv func(name string) (string, bool)

	// StructuredOutput is the form in which a request with a Schema asks for JSON:
	//
	//   - "auto", also "": a response_format of the type json_schema, in strict mode if that
	//     allows the schema. If the endpoint refuses a form, the next weaker one is sent:
	//     json_schema without strict mode, json_object, none.
	//   - "schema": json_schema, with or without strict mode. A refusal is an error.
	//   - "object": json_object, if the schema requires an object. A refusal is an error.
	//   - "prompt": no response_format.
	//
	// In every form the prompt must ask for JSON too.
	StructuredOutput string

	// SystemRole is the role of the system prompt: system, developer or merge. merge puts
	// it at the start of the first user message, for models without a system prompt.
	// Empty means system, and merge once the endpoint refused system.
	SystemRole string

	// ExtraBody is a JSON object of at most 64 KiB whose members are added to each
	// request. A member that this package writes itself is an error.
	ExtraBody json.RawMessage
}

// defaultMaxReply bounds a reply whose configuration sets no bound, in bytes.
const defaultMaxReply = 4 << 20

// Model is one model behind one endpoint. It implements [llm.Model] and is
// safe for concurrent use.
type Model struct {
	name      string
	base      string
	query     string // of the URL, without the question mark
	azure     bool   // the key is sent in the header api-key
	key       Key
	headers   http.Header
	secrets   []string // masked in every text of the endpoint
	client    *http.Client
	own       *http.Transport // nil if the client was given
	maxReply  int
	maxTokens string
	output    string
	lists     bool                       // the endpoint may accept schemas of values other than objects
	role      string                     // how the system prompt is sent
	extra     map[string]json.RawMessage // members that are added to each request
	version   string
	toolForms toolForms
	changes   atomic.Pointer[changes] // how requests differ from the usual form; nil means not at all
	shortIDs  atomic.Bool             // the endpoint gave a call an ID of nine letters and digits
	answered  atomic.Bool             // a call succeeded, so the base URL is right
}

// FromEnv returns the model called name behind OPENAI_BASE_URL, or api.openai.com if that
// is not set, with the key OPENAI_API_KEY.
func FromEnv(name string) (*Model, error) {
	return New(Config{Model: name, LookupEnv: os.LookupEnv})
}

// New returns the model that cfg describes. It opens no connection. A missing
// key or name is an [*llm.Error] that wraps [llm.ErrNoKey] or
// [llm.ErrNoModel].
func New(cfg Config) (*Model, error) {
	if cfg.LookupEnv != nil {
		base, key, err := connection.Resolve(cfg.BaseURL, cfg.APIKey.secret(), cfg.LookupEnv)
		if err != nil {
			return nil, err
		}
		cfg.BaseURL, cfg.APIKey = base, NewKey(key)
	}
	base, err := connection.Parse(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(cfg.Model) == "" {
		return nil, &llm.Error{Kind: callfault.UnknownModel, Endpoint: base.String(), Err: llm.ErrNoModel}
	}
	headers, err := headersOf(cfg.Headers)
	if err != nil {
		return nil, err
	}
	if err := connection.CheckKey(cfg.APIKey.secret()); err != nil {
		return nil, err
	}
	if base.IsOpenAI() && cfg.APIKey == (Key{}) && headers.Get("Authorization") == "" {
		return nil, base.NoKey()
	}
	m := &Model{
		name: cfg.Model, base: base.String(), query: base.Query, azure: base.IsAzure(), key: cfg.APIKey, headers: headers, secrets: secretsOf(cfg.APIKey, headers),
		maxReply: defaultMaxReply, maxTokens: cfg.MaxTokensKey, output: cfg.StructuredOutput,
		lists: !base.IsOpenAI() && !base.IsAzure(), // platform.openai.com/docs/guides/structured-outputs
	}
	switch m.output {
	case "", autoOutput, schemaOutput, objectOutput, promptOutput:
	default:
		return nil, fmt.Errorf("StructuredOutput %q: write auto, schema, object or prompt", oneline.Of(m.output))
	}
	if cfg.MaxReply > 0 {
		m.maxReply = cfg.MaxReply
	}
	switch m.maxTokens {
	case "max_tokens", "max_completion_tokens":
	case "":
		m.maxTokens = "max_tokens"
		if base.IsOpenAI() {
			m.maxTokens = "max_completion_tokens"
		}
	default:
		return nil, fmt.Errorf("MaxTokensKey %q: write max_tokens or max_completion_tokens", m.maxTokens)
	}
	switch m.role = cmp.Or(cfg.SystemRole, systemRole); m.role {
	case systemRole, developerRole, mergedRole:
	default:
		return nil, fmt.Errorf("SystemRole %q: write system, developer or merge", oneline.Of(m.role))
	}
	if m.extra, err = connection.ParseExtraBody(cfg.ExtraBody); err != nil {
		return nil, err
	}
	m.version = versionOf(m.role, m.output, m.extra)
	m.connect(cfg.HTTPClient)
	return m, nil
}

// connect sets the client: a copy of c, or one with connections of its own.
func (m *Model) connect(c *http.Client) {
	if c == nil {
		m.own = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   math.MaxInt, // keep as many as were in use at once
			IdleConnTimeout:       90 * time.Second,

			MaxResponseHeaderBytes: 256 << 10,
		}
		c = &http.Client{Transport: m.own}
	}
	own := *c
	own.CheckRedirect = withinOrigin(c.CheckRedirect)
	m.client = &own
}

// Name returns the name of the model, as it is sent to the endpoint.
func (m *Model) Name() string { return m.name }

// Endpoint returns the base URL, which has no credentials.
func (m *Model) Endpoint() string { return m.base }

// Close closes the idle connections of a model that was made without an
// HTTPClient. It ends no call, may be called twice, and returns nil.
func (m *Model) Close() error {
	if m.own != nil {
		m.own.CloseIdleConnections()
	}
	return nil
}

// Format prints the name and the endpoint, whatever the verb.
func (m *Model) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "%s at %s", m.name, m.base) }

// Format prints the settings with the key redacted and the headers by name, whatever the
// verb.
func (c Config) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "{model %q, base URL %q, key %q, headers %q, max reply %d}",
		c.Model, connection.Redact(c.BaseURL), c.APIKey.mask(), slices.Sorted(maps.Keys(c.Headers)), c.MaxReply)
}

// MarshalText returns what Format prints, for JSON, YAML and structured logs.
func (c Config) MarshalText() ([]byte, error) { return fmt.Append(nil, c), nil }
