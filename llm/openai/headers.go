package openai

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/connection"
	"github.com/runteam/runteam/internal/oneline"
)

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
			return nil, fmt.Errorf("header %q is set twice, in different letter case", oneline.Of(name))
		}
		if strings.ContainsFunc(canonical, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return nil, fmt.Errorf("header %q: invalid name", oneline.Of(name))
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("header %q: its value has a control character", oneline.Of(name))
		}
		h.Set(canonical, value)
	}
	return h, nil
}

// A redirectError reports a redirect that leaves the endpoint. Its text leaves out the
// address, which the server chose.
type redirectError struct{ to string }

func (*redirectError) Error() string { return "a redirect that is not followed" }

// withinOrigin returns a redirect policy that follows a redirect only within the origin of
// the first request and with the same method, so that neither the key nor the prompt goes
// to a host that is not configured.
func withinOrigin(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if connection.Origin(r.URL) != connection.Origin(via[0].URL) || r.Method != via[0].Method {
			return &redirectError{to: connection.Redact(r.URL.String())}
		}
		if next != nil {
			return next(r, via)
		}
		if len(via) >= 5 {
			return &redirectError{to: "itself, over and over"}
		}
		return nil
	}
}
