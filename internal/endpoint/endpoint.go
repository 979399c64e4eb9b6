// Package endpoint finds the endpoints that a model calls, and compares base URLs.
package endpoint

import (
	"net"
	"net/url"
	"path"
	"strings"
)

// IsLocal reports whether a base URL names this machine.
func IsLocal(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
}

// Of returns the base URL that a model or an agent names with its method Endpoint() string,
// or "". One with several endpoints returns "" too; see [All].
func Of(m any) string {
	if named, ok := m.(interface{ Endpoint() string }); ok {
		return named.Endpoint()
	}
	return ""
}

// All returns every base URL that calls of a model may go to, in the order in which they
// are called: the result of its method Endpoints() []string if it has one, else [Of]. The
// list has at least one entry, and "" is an unnamed endpoint. Each endpoint may read what
// is sent to the model.
func All(m any) []string {
	if named, ok := m.(interface{ Endpoints() []string }); ok {
		if all := named.Endpoints(); len(all) > 0 {
			return all
		}
	}
	return []string{Of(m)}
}

// Normalize returns the form of a base URL by which endpoints are compared: scheme and
// host in lower case, and no final dot of the host, default port, final slash or path of
// the chat completions. A text that is not a URL is returned as it is.
func Normalize(baseURL string) string {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil || u.Host == "" {
		return baseURL
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port != "" && !(scheme == "https" && port == "443") && !(scheme == "http" && port == "80") {
		host = net.JoinHostPort(host, port)
	}
	where := strings.TrimSuffix(path.Clean("/"+u.Path), "/chat/completions")
	return scheme + "://" + host + strings.TrimSuffix(where, "/")
}
