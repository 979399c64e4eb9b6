// Package connection checks the settings of a connection to a model: its base URL, its key
// and the members that are added to each request.
package connection

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/oneline"
	"github.com/runteam/runteam/llm"
)

// defaultBaseURL is the endpoint without any setting.
const defaultBaseURL = "https://api.openai.com/v1"

// Resolve returns the base URL at which a model is called, and the key that is sent there.
// lookup reads the environment, as os.LookupEnv does.
//
// The base URL is baseURL, else OPENAI_BASE_URL, else that of api.openai.com. The key is
// key, if it is set. Otherwise it is OPENAI_API_KEY, but only for api.openai.com and for
// the origin of OPENAI_BASE_URL; any other endpoint gets none. A missing key for
// api.openai.com is an [*llm.Error] that wraps [llm.ErrNoKey]; elsewhere an empty key
// means that none is sent.
func Resolve(baseURL, key string, lookup func(name string) (string, bool)) (base, resolved string, err error) {
	env := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	fromEnv := env("OPENAI_BASE_URL")
	if strings.TrimSpace(baseURL) == "" {
		if baseURL = fromEnv; baseURL != "" {
			if _, err := Parse(baseURL); err != nil {
				return "", "", fmt.Errorf("OPENAI_BASE_URL: %w", err)
			}
		}
	}
	at, err := Parse(baseURL)
	if err != nil {
		return "", "", err
	}
	if key = strings.TrimSpace(key); key == "" && (at.IsOpenAI() || at.sameOrigin(fromEnv)) {
		key = env("OPENAI_API_KEY")
	}
	if key == "" && at.IsOpenAI() {
		return "", "", at.NoKey()
	}
	return at.withQuery(), key, CheckKey(key)
}

// CheckKey refuses a key that no header can carry.
func CheckKey(key string) error {
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return errors.New("the API key contains whitespace or a character that no key has; set it again")
		}
	}
	return nil
}

// NoKey returns the error of an endpoint that requires a key if none is set.
func (b BaseURL) NoKey() error {
	return &llm.Error{Kind: callfault.Unauthorized, Endpoint: b.String(), Err: llm.ErrNoKey}
}

// A BaseURL is a base URL that was checked: scheme, host and path, and for Azure possibly the
// version of its API.
type BaseURL struct {
	u     *url.URL // scheme, host and path
	Query string   // api-version=…, or empty
}

// APIVersion matches the query of a base URL of Azure
// (learn.microsoft.com/azure/ai-services/openai/reference).
var APIVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^api-version=[A-Za-z0-9.-]{1,40}$`)
})

// Parse checks a base URL. Errors do not repeat it where it may hold credentials.
func Parse(s string) (BaseURL, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = defaultBaseURL
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return BaseURL{}, errors.New("the base URL cannot be read: write one such as http://localhost:11434/v1")
	case u.User != nil:
		return BaseURL{}, errors.New("the base URL holds a user or password: write the key as OPENAI_API_KEY or apiKey")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return BaseURL{}, fmt.Errorf("base URL %q: write scheme and host, such as http://localhost:11434/v1", oneline.Of(Redact(s)))
	case u.ForceQuery || u.Fragment != "" || u.RawQuery != "" && !APIVersion().MatchString(u.RawQuery):
		return BaseURL{}, fmt.Errorf("base URL %q: leave out what follows the path; only ?api-version=… of Azure is accepted", oneline.Of(Redact(s)))
	}
	clean := &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host), Path: strings.TrimRight(u.Path, "/")}
	clean.Path = strings.TrimSuffix(clean.Path, "/chat/completions") // a common way to write it
	b := BaseURL{clean, u.RawQuery}
	if clean.Scheme == "http" && b.host() == openAIHost {
		return BaseURL{}, errors.New("the base URL has http for api.openai.com: write https")
	}
	return b, nil
}

const openAIHost = "api.openai.com"

// String returns the URL without the query.
func (b BaseURL) String() string { return b.u.String() }

// withQuery returns the whole URL.
func (b BaseURL) withQuery() string {
	if b.Query == "" {
		return b.String()
	}
	return b.String() + "?" + b.Query
}

// IsAzure reports whether the endpoint is one of Azure or a gateway in front of one, which
// take the key in the header api-key.
func (b BaseURL) IsAzure() bool {
	return b.Query != "" || slices.ContainsFunc(azureHosts[:], func(host string) bool { return strings.HasSuffix(b.host(), host) })
}

// azureHosts are the domains of Azure's endpoints.
var azureHosts = [...]string{
	".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com",
	".openai.azure.us", ".cognitiveservices.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.cn",
}

// host returns the host name without port and final dot.
func (b BaseURL) host() string { return strings.TrimSuffix(b.u.Hostname(), ".") }

// IsOpenAI reports whether b is OpenAI's own endpoint.
func (b BaseURL) IsOpenAI() bool {
	return b.host() == openAIHost && b.u.Scheme == "https" && port(b.u) == "443"
}

// sameOrigin reports whether other has the scheme, host and port of b.
func (b BaseURL) sameOrigin(other string) bool {
	if other == "" {
		return false
	}
	o, err := Parse(other)
	return err == nil && Origin(o.u) == Origin(b.u)
}

// Origin returns the scheme, host and port of a URL, by which endpoints differ.
func Origin(u *url.URL) string {
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

// Redact returns s without what may be a credential: user, password, query, fragment.
func Redact(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return "[unreadable]"
	}
	u.User, u.RawQuery, u.Fragment, u.ForceQuery = nil, "", "", false
	return u.String()
}
