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

// Access says who may use an inspector.
type Access struct {
	Token  string  // of programs: Authorization: Bearer TOKEN; empty lets none in
	Logins *Logins // the links that let a browser in; nil lets none in
	Hosts  Hosts
}

// Hosts are the values of the header Host that are answered. A page of another site whose name was
// rebound to this address has another one.
type Hosts struct {
	Names []string // without port
	Port  string
	AnyIP bool // any address, as when all interfaces are listened on: only a name can be rebound
}

// HostsOf returns what requests to a listener name.
func HostsOf(listening net.Addr) Hosts {
	host, port, _ := net.SplitHostPort(listening.String())
	h := Hosts{Names: []string{"localhost", "127.0.0.1", "::1", host}, Port: port}
	if at, err := netip.ParseAddr(host); err == nil {
		h.AnyIP = at.IsUnspecified()
	}
	return h
}

// has reports whether a request with this Host is answered.
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

// The times and numbers of logins.
const (
	keyTime     = 15 * time.Minute // that a link is good for
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

// NewKey returns the key of a new link, for GET /login?key=KEY. It is good once, for [keyTime].
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
		if k := l.keys[i]; k.digest == digest { // of random texts, whose digests tell nothing by their time
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

// A holder is whose token a request has: a program's, or the session of a browser.
type holder struct {
	id        [sha256.Size]byte
	isBrowser bool
}

// cookieName is that of the cookie. Browsers keep one for all ports of a host, so inspectors at other
// ports than the usual one have their own.
func (a *Access) cookieName() string {
	if a.Hosts.Port == DefaultPort {
		return "runteam"
	}
	return "runteam_" + a.Hosts.Port
}

// DefaultPort is where an inspector listens unless told otherwise.
const DefaultPort = "7337"

// holderOf returns whose token a request has.
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

// check refuses a request that no page of this server and no program of its user can have sent.
func (a *Access) check(r *http.Request) error {
	if !a.Hosts.has(r.Host) {
		return &Error{Code: Forbidden, Message: "the host of the request is not this server", Hint: "use the address that runteam printed"}
	}
	if r.URL.Path == "/login" { // a link may be anywhere, and without its key nothing happens
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
	return &Error{Code: Forbidden, Message: "the request comes from another site", Hint: "open the page of this server itself"}
}
