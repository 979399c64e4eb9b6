package inspector

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// EnvToken is the environment variable with the token of programs, for a server and for who sends requests to it.
const EnvToken = "RUNTEAM_INSPECT_TOKEN"

// Access says who may use an inspector.
type Access struct {
	Token   string  // the bearer token of programs; empty refuses all programs
	TokenBy string  // what the caller of the runs is called that are submitted with the token
	Logins  *Logins // the links for browsers; nil refuses all browsers
	Hosts   Hosts
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
func (h *Hosts) has(given string) bool {
	host, port, err := net.SplitHostPort(given)
	if err != nil { // without a port
		host, port = strings.Trim(given, "[]"), "80"
	}
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

// The limits of logins.
const (
	keyTime     = 15 * time.Minute // how long a link is valid
	maxKeys     = 16
	maxSessions = 64
)

// Logins are one-time links, and the sessions of browsers that used one. The zero value has none. It is
// safe for concurrent use.
type Logins struct {
	Now func() time.Time // nil means time.Now

	mu       sync.Mutex // guards the rest
	keys     []loginKey
	sessions [][sha256.Size]byte // digests, the oldest first
}

// A loginKey is the key of a link that was not used yet.
type loginKey struct {
	digest [sha256.Size]byte
	until  time.Time
}

func (l *Logins) now() time.Time {
	if l.Now == nil {
		return time.Now()
	}
	return l.Now()
}

// NewKey returns the key of a new link, for GET /login?key=KEY. It is valid once, for [keyTime].
func (l *Logins) NewKey() string {
	key := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, loginKey{sha256.Sum256([]byte(key)), l.now().Add(keyTime)})
	l.keys = l.keys[max(0, len(l.keys)-maxKeys):]
	return key
}

// use turns the key of a link into a session, once.
func (l *Logins) use(key string) (session string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	digest := sha256.Sum256([]byte(key))
	for i := range l.keys {
		if k := l.keys[i]; k.digest == digest { // the time of the comparison reveals nothing: these are digests of random keys
			l.keys = append(l.keys[:i:i], l.keys[i+1:]...)
			if l.now().After(k.until) {
				return "", false
			}
			session = rand.Text() + rand.Text()
			l.sessions = append(l.sessions, sha256.Sum256([]byte(session)))
			l.sessions = l.sessions[max(0, len(l.sessions)-maxSessions):]
			return session, true
		}
	}
	return "", false
}

// has reports whether there is a session.
func (l *Logins) has(session string) bool {
	if l == nil || session == "" {
		return false
	}
	digest := sha256.Sum256([]byte(session))
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.sessions, digest)
}

// Used reports whether a browser has come in by a link.
func (l *Logins) Used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sessions) > 0
}

// A holder identifies the sender of a request by its token or the session of its browser.
type holder struct {
	id        [sha256.Size]byte
	isBrowser bool
}

// cookieName returns the name of the session cookie. Browsers share cookies between the ports of a host,
// so the name has the port unless it is [DefaultPort].
func (a *Access) cookieName() string {
	if a.Hosts.Port == DefaultPort {
		return "runteam"
	}
	return "runteam_" + a.Hosts.Port
}

// DefaultPort is the default port of an inspector.
const DefaultPort = "7337"

// holderOf returns the sender of a request. ok is false without a valid token or session.
func (a *Access) holderOf(r *http.Request) (h holder, ok bool) {
	if given := r.Header.Get("Authorization"); given != "" {
		token, is := strings.CutPrefix(given, "Bearer ")
		h.id = sha256.Sum256([]byte(token))
		want := sha256.Sum256([]byte(a.Token))
		return h, is && a.Token != "" && subtle.ConstantTimeCompare(h.id[:], want[:]) == 1
	}
	for _, c := range r.CookiesNamed(a.cookieName()) {
		if a.Logins.has(c.Value) {
			return holder{sha256.Sum256([]byte(c.Value)), true}, true
		}
	}
	return h, false
}

// check refuses a request with a foreign Host or from a page of another site.
func (a *Access) check(r *http.Request) error {
	if !a.Hosts.has(r.Host) {
		return &Error{Code: Forbidden, Message: "the Host of the request is not an address of this server", Hint: "use the address that runteam printed"}
	}
	if r.URL.Path == "/login" { // links may be opened from anywhere, and need a valid key
		return nil
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	site := r.Header.Get("Sec-Fetch-Site")
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			site = "foreign"
		}
	}
	if site == "" || site == "same-origin" || site == "none" && reads {
		return nil
	}
	return &Error{Code: Forbidden, Message: "the request comes from another site", Hint: "open the page at the address that runteam printed"}
}
