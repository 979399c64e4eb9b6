package inspector

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/naming"
)

// EnvToken is the environment variable with the token of programs, for a server and for who sends requests to it.
const EnvToken = "RUNTEAM_INSPECT_TOKEN"

// Access says whose requests an inspector takes.
type Access struct {
	Tokens func(token string) (Sender, bool) // returns who has a token; nil refuses all tokens
	Logins *Logins                           // the links and sessions of browsers; nil refuses all browsers, unless there is a Proxy
	Proxy  *Proxy                            // the only peer; nil takes requests of any
	Hosts  Hosts
	Public *url.URL // where a browser finds the server, in addition to Hosts: a scheme and a host; nil for nowhere else
}

// A Sender is who sent a request, as it was authenticated.
type Sender struct {
	Person string    // the authenticated name; empty for the user of the computer, who made the token or the link
	Groups []string  // of the person
	Token  string    // the ID of a token of the person; empty if another credential was used
	Caller string    // whose runs are submitted with the token; empty for the viewer's
	Until  time.Time // when the token or the session ends; zero for never

	isAmbient  bool              // a browser sends the credential with each request, whichever page makes it
	isSession  bool              // the credential is a session of this server, and not of a proxy
	credential [sha256.Size]byte // its digest
}

// OneToken returns a function for [Access] with a single token, whose sender is the user of the computer. caller is what the
// caller of the runs is called that are submitted with it. An empty token refuses all.
func OneToken(token, caller string) func(string) (Sender, bool) {
	want := sha256.Sum256([]byte(token))
	return func(given string) (Sender, bool) {
		digest := sha256.Sum256([]byte(given))
		return Sender{Caller: caller}, token != "" && subtle.ConstantTimeCompare(digest[:], want[:]) == 1
	}
}

// Hosts are the values of the Host header that the inspector accepts. This stops DNS rebinding: a page of
// another site, whose name then resolves to this address, sends its own name.
type Hosts struct {
	Names []string // without port
	Port  string
	AnyIP bool // accept every IP address, for a listener on all interfaces; only names can be rebound
}

// HostsOf returns the hosts of a listener.
func HostsOf(listening net.Addr) Hosts {
	host, port, _ := net.SplitHostPort(listening.String())
	h := Hosts{Names: []string{"localhost", "127.0.0.1", "::1", host}, Port: port}
	if at, err := netip.ParseAddr(host); err == nil {
		h.AnyIP = at.IsUnspecified()
	}
	return h
}

// has reports whether a Host header is accepted.
func (h *Hosts) has(given string, isTLS bool) bool {
	host, port := splitHost(given, isTLS)
	if port != h.Port {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil && h.AnyIP {
		return true
	}
	for _, name := range h.Names {
		if strings.EqualFold(host, name) {
			return true
		}
	}
	return false
}

// splitHost returns the name and the port of a Host header.
func splitHost(given string, isTLS bool) (host, port string) {
	host, port, err := net.SplitHostPort(given)
	switch {
	case err == nil:
		return host, port
	case isTLS:
		return strings.Trim(given, "[]"), "443"
	}
	return strings.Trim(given, "[]"), "80"
}

// isPublic reports whether a Host header is that of the public address.
func (a *Access) isPublic(given string) bool {
	if a.Public == nil {
		return false
	}
	isTLS := a.Public.Scheme == "https"
	host, port := splitHost(given, isTLS)
	want, wantPort := splitHost(a.Public.Host, isTLS)
	return strings.EqualFold(host, want) && port == wantPort
}

// publicOrigin returns the Origin of pages at the public address.
func (a *Access) publicOrigin() string { return a.Public.Scheme + "://" + a.Public.Host }

// isSecure reports whether the browser that sent a request uses TLS.
func (a *Access) isSecure(r *http.Request) bool {
	return r.TLS != nil || a.isPublic(r.Host) && a.Public.Scheme == "https"
}

// cookieName returns the name of the session cookie. Browsers share cookies between the ports of a host,
// so the name has the port unless it is [DefaultPort].
func (a *Access) cookieName(r *http.Request) string {
	name := "runteam"
	if a.isSecure(r) {
		name = "__Host-runteam" // which no other host can set
	}
	if a.isPublic(r.Host) || a.Hosts.Port == DefaultPort {
		return name
	}
	return name + "_" + a.Hosts.Port
}

// DefaultPort is the default port of an inspector.
const DefaultPort = "7337"

// unauthorized returns the error of a request without a valid credential.
func (a *Access) unauthorized() error {
	e := &Error{Code: Unauthorized, Message: "the request has no valid token", Hint: "send Authorization: Bearer TOKEN, or open the link that runteam printed"}
	switch {
	case a.Proxy != nil:
		e.Message = "the request has no valid token, and the proxy has named nobody in the header " + a.Proxy.UserHeader
		e.Hint = "sign in at the proxy, or send Authorization: Bearer TOKEN"
	case a.Logins != nil && a.Logins.NoLinks:
		e.Hint = "send Authorization: Bearer TOKEN, or sign in with the token at " + loginPath
	}
	return e
}

// senderOf returns the sender of a request: whom the proxy names, or whose token or session it has.
func (a *Access) senderOf(r *http.Request) (s Sender, err error) {
	if a.Proxy != nil {
		s, err := a.Proxy.senderOf(r)
		if err != nil || s.Person != "" {
			return s, err
		}
	}
	if given := r.Header.Get("Authorization"); given != "" {
		if token, is := strings.CutPrefix(given, "Bearer "); is && a.Tokens != nil {
			if s, ok := a.Tokens(token); ok {
				s.credential = sha256.Sum256([]byte(token))
				return s, nil
			}
		}
		return s, a.unauthorized()
	}
	if a.Proxy != nil { // which has the session of the browser
		return s, a.unauthorized()
	}
	for _, c := range r.CookiesNamed(a.cookieName(r)) {
		if s, ok := a.Logins.session(c.Value); ok {
			return s, nil
		}
	}
	return s, a.unauthorized()
}

// check refuses a request with a foreign Host or from a page of another site.
func (a *Access) check(r *http.Request, by *Sender) error {
	if a.Proxy == nil && !a.Hosts.has(r.Host, r.TLS != nil) && !a.isPublic(r.Host) { // a proxy may give any Host, and is trusted with it
		return &Error{Code: Forbidden, Message: "the Host of the request is not an address of this server", Hint: "use the address that runteam printed, or start it with --public-url"}
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if r.URL.Path == loginPath && reads { // links may be opened from anywhere, and need a valid key
		return nil
	}
	site, origins := r.Header.Get("Sec-Fetch-Site"), r.Header.Values("Origin")
	foreign := &Error{Code: Forbidden, Message: "the request comes from another site", Hint: "open the page at the address that runteam printed, or start it with --public-url"}
	for _, origin := range origins {
		if !a.isOrigin(origin, r) {
			foreign.Message += ": its Origin is " + naming.Quote(origin)
			if a.Public != nil {
				foreign.Message += ", and the address of this server " + a.publicOrigin()
				foreign.Hint = "open the page at that address, or start runteam with the right --public-url"
			}
			return foreign
		}
	}
	if len(origins) == 0 && !reads && a.Proxy != nil && by.isAmbient {
		foreign.Message = "the request may come from another site, since it has no Origin"
		foreign.Hint = "send the header Origin: " + a.publicOrigin()
		return foreign
	}
	if site == "" || site == "same-origin" || site == "none" && reads {
		return nil
	}
	return foreign
}

// isOrigin reports whether an Origin is that of the page of this server.
func (a *Access) isOrigin(origin string, r *http.Request) bool {
	if a.Public != nil && origin == a.publicOrigin() {
		return true
	}
	if a.Proxy != nil {
		return false
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return origin == scheme+r.Host
}

// newSecret returns a random text that nobody can guess.
func newSecret() string { return rand.Text() + rand.Text() }
