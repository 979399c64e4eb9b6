package openai

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// DefaultBaseURL is the endpoint without any setting.
const DefaultBaseURL = "https://api.openai.com/v1"

// Resolve decides which endpoint a model is called at, and which key may go
// there. It is pure: lookup gives the environment (os.LookupEnv, or a
// substitute).
//
// The base URL is the one given (by a flag, an agent or a spec), else
// OPENAI_BASE_URL, else [DefaultBaseURL]. The key is own, if there is one.
// Else it is OPENAI_API_KEY, but only for api.openai.com and for the host of
// OPENAI_BASE_URL (with its scheme and port); any other host gets none. No key
// for api.openai.com is an [*llm.Error] that wraps [llm.ErrNoKey]; elsewhere
// the zero Key means that none is sent.
func Resolve(baseURL string, own Key, lookup func(name string) (string, bool)) (base string, key Key, err error) {
	env := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	fromEnv := env("OPENAI_BASE_URL")
	if strings.TrimSpace(baseURL) == "" {
		if baseURL = fromEnv; baseURL != "" {
			if _, err := parseBase(baseURL); err != nil {
				return "", Key{}, fmt.Errorf("OPENAI_BASE_URL: %w", err)
			}
		}
	}
	at, err := parseBase(baseURL)
	if err != nil {
		return "", Key{}, err
	}
	if key = own; key.IsZero() && (at.openAI() || at.sameOrigin(fromEnv)) {
		key = NewKey(env("OPENAI_API_KEY"))
	}
	if key.IsZero() && at.openAI() {
		return "", Key{}, noKey(at)
	}
	if err := key.check(); err != nil {
		return "", Key{}, err
	}
	return at.withQuery(), key, nil
}

func noKey(at base) error {
	return &llm.Error{Kind: llm.Unauthorized, Endpoint: at.String(), Err: llm.ErrNoKey}
}

// base is a base URL that was checked: scheme, host and path, and for Azure possibly the
// version of its API.
type base struct {
	u     *url.URL // scheme, host and path
	query string   // api-version=…, or empty
}

// apiVersion matches the query of a base URL of Azure
// (learn.microsoft.com/azure/ai-services/openai/reference).
var apiVersion = regexp.MustCompile(`^api-version=[A-Za-z0-9.-]{1,40}$`)

// parseBase checks a base URL. Errors do not repeat it where it may hold credentials.
func parseBase(s string) (base, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = DefaultBaseURL
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return base{}, errors.New("the base URL cannot be read: write one such as http://localhost:11434/v1")
	case u.User != nil:
		return base{}, errors.New("the base URL holds a user or password: give the key apart, as OPENAI_API_KEY or apiKey")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return base{}, fmt.Errorf("base URL %q: write scheme and host, such as http://localhost:11434/v1", oneline.Of(redactURL(s)))
	case u.ForceQuery || u.Fragment != "" || u.RawQuery != "" && !apiVersion.MatchString(u.RawQuery):
		return base{}, fmt.Errorf("base URL %q: leave out what follows the path; only ?api-version=… of Azure is accepted", oneline.Of(redactURL(s)))
	}
	clean := &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	clean.Path = strings.TrimSuffix(clean.Path, "/chat/completions") // a common way to write it
	b := base{clean, u.RawQuery}
	if clean.Scheme == "http" && b.host() == openAIHost {
		return base{}, errors.New("the base URL has http for api.openai.com: write https")
	}
	return b, nil
}

const openAIHost = "api.openai.com"

// String returns the URL without the query.
func (b base) String() string { return b.u.String() }

// withQuery returns the whole URL.
func (b base) withQuery() string {
	if b.query == "" {
		return b.String()
	}
	return b.String() + "?" + b.query
}

// azure reports whether the endpoint is one of Azure or a gateway in front of one, which
// take the key in the header api-key.
func (b base) azure() bool {
	return b.query != "" || slices.ContainsFunc(azureHosts[:], func(host string) bool { return strings.HasSuffix(b.host(), host) })
}

// azureHosts are the domains of Azure's endpoints.
var azureHosts = [...]string{
	".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com",
	".openai.azure.us", ".cognitiveservices.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.cn",
}

// host returns the host name without port and final dot.
func (b base) host() string { return strings.TrimSuffix(b.u.Hostname(), ".") }

// openAI reports whether b is OpenAI's own endpoint.
func (b base) openAI() bool {
	return b.host() == openAIHost && b.u.Scheme == "https" && port(b.u) == "443"
}

// sameOrigin reports whether other has the scheme, host and port of b.
func (b base) sameOrigin(other string) bool {
	if other == "" {
		return false
	}
	o, err := parseBase(other)
	return err == nil && origin(o.u) == origin(b.u)
}

func origin(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + ":" + port(u)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// redactURL returns s without what may be a credential: user, password, query, fragment.
func redactURL(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return "[unreadable]"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.String()
}

// headersOf checks and copies the headers of a configuration.
func headersOf(given map[string]string) (http.Header, error) {
	h := make(http.Header, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		canonical := http.CanonicalHeaderKey(strings.TrimSpace(name))
		switch canonical {
		case "", "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding":
			return nil, fmt.Errorf("header %q cannot be set", oneline.Of(name))
		}
		if _, twice := h[canonical]; twice {
			return nil, fmt.Errorf("header %q is there twice, in other letters", oneline.Of(name))
		}
		if strings.ContainsFunc(canonical, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return nil, fmt.Errorf("header %q: not a name of a header", oneline.Of(name))
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("header %q: its value holds a control character", oneline.Of(name))
		}
		h.Set(canonical, value)
	}
	return h, nil
}

// A strayError is a redirect that would leave the endpoint. It holds words of
// the server, so it has no text of its own.
type strayError struct{ to string }

func (*strayError) Error() string { return "a redirect that is not followed" }

// stayAt returns a redirect policy that follows a redirect only within the
// origin of the first request, with the same method: neither the key nor the
// prompt goes to a host that nobody named.
func stayAt(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if origin(r.URL) != origin(via[0].URL) || r.Method != via[0].Method {
			return &strayError{to: redactURL(r.URL.String())}
		}
		if next != nil {
			return next(r, via)
		}
		if len(via) >= 5 {
			return &strayError{to: "itself, over and over"}
		}
		return nil
	}
}
