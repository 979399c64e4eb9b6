package inspector

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// The limits of logins.
const (
	keyTime     = 15 * time.Minute // how long a link is valid
	sessionTime = 24 * time.Hour   // how long a browser that used one stays in
	maxKeys     = 16
	maxEnded    = 10_000 // sessions that are remembered as signed out
)

// Logins are one-time links, and the sessions of browsers that used one or signed in with a token. A session is in the cookie
// of its browser alone, signed; this process remembers which ones were signed out. Links of the zero value are valid, and its
// sessions end with the process. It is safe for concurrent use.
type Logins struct {
	Now func() time.Time // nil means time.Now

	// Sign returns a text that only servers can return which accept each other's sessions. Nil accepts the sessions of this
	// value alone.
	Sign func(text string) string

	// NoLinks has the page ask for a token: links let in nobody.
	NoLinks bool

	mu   sync.Mutex // guards the rest
	keys []loginKey
	used bool
	own  []byte // the key of Sign, if that is nil

	ended map[[sha256.Size]byte]time.Time // until when sessions would be valid that were signed out, by the digests of their cookies
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
			return l.newSession(&Sender{}), true
		}
	}
	return "", false
}

// A sessionText is what the cookie of a session says.
type sessionText struct {
	Person string `json:"person,omitempty"`
	Token  string `json:"token,omitempty"`
	Until  int64  `json:"until"` // in seconds since 1970
	Random string `json:"random"`
}

// newSession returns a session of a sender. The lock is held.
func (l *Logins) newSession(s *Sender) string {
	until := l.now().Add(sessionTime)
	if !s.Until.IsZero() && s.Until.Before(until) {
		until = s.Until
	}
	l.used = true
	text, _ := json.Marshal(sessionText{s.Person, s.Token, until.Unix(), newSecret()}) // strings and numbers
	said := base64.RawURLEncoding.EncodeToString(text)
	return said + "." + l.sign(said)
}

// sign returns the signature of what a session says. The lock is held.
func (l *Logins) sign(said string) string {
	var signed string
	if l.Sign != nil {
		signed = l.Sign(said)
	} else {
		if l.own == nil {
			l.own = []byte(newSecret())
		}
		mac := hmac.New(sha256.New, l.own)
		_, _ = mac.Write([]byte(said)) // a hash never fails
		signed = string(mac.Sum(nil))
	}
	digest := sha256.Sum256([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// session returns the sender whose session it is, unless it has ended or was signed by nobody.
func (l *Logins) session(cookie string) (s Sender, ok bool) {
	said, signature, found := strings.Cut(cookie, ".")
	if l == nil || !found {
		return s, false
	}
	l.mu.Lock()
	want := l.sign(said)
	l.mu.Unlock()
	if !hmac.Equal([]byte(signature), []byte(want)) {
		return s, false
	}
	text, err := base64.RawURLEncoding.DecodeString(said)
	var of sessionText
	if err != nil || json.Unmarshal(text, &of) != nil {
		return s, false
	}
	s = Sender{Person: of.Person, Token: of.Token, Until: time.Unix(of.Until, 0), isAmbient: true, isSession: true, credential: sha256.Sum256([]byte(cookie))}
	return s, !l.hasEnded(&s, l.now())
}

// hasEnded reports whether the token or the session of a sender has ended, or the session was signed out.
func (l *Logins) hasEnded(s *Sender, now time.Time) bool {
	isOut := false
	if l != nil {
		l.mu.Lock()
		_, isOut = l.ended[s.credential]
		l.mu.Unlock()
	}
	return isOut || !s.Until.IsZero() && !now.Before(s.Until)
}

// end ends a session before its time.
func (l *Logins) end(s *Sender) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.ended, func(_ [sha256.Size]byte, until time.Time) bool { return !now.Before(until) })
	if l.ended == nil || len(l.ended) >= maxEnded {
		l.ended = map[[sha256.Size]byte]time.Time{}
	}
	l.ended[s.credential] = s.Until
}

// Used reports whether a browser has come in by a link.
func (l *Logins) Used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// loginPath is the path of links, and of the form for a token.
const loginPath = "/login"

// askAgain says how to get another link.
const askAgain = "press Enter where runteam serve runs. If it has no terminal, send it the signal USR1, with kill -USR1 PID, or start it again."

// login exchanges the key of a link, or a token, for a session cookie, and leads to the page.
func (a *Access) login(w http.ResponseWriter, r *http.Request) {
	logins := a.Logins
	switch {
	case r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "": // a prefetch would use up the link
		notice(w, http.StatusForbidden, "Open the link", "A prefetched link cannot be used. Open it instead.")
	case logins != nil && logins.NoLinks && r.Method == http.MethodPost:
		a.signIn(w, r)
	case logins != nil && logins.NoLinks:
		askForToken(w, http.StatusOK, "")
	default:
		session, ok := "", false
		if logins != nil && r.Method == http.MethodGet { // a look at the head must not use up the link
			session, ok = logins.use(r.URL.Query().Get("key"))
		}
		if !ok {
			notice(w, http.StatusForbidden, "This link does not work any more", "A link works once, for a short time. To get another one, "+askAgain)
			return
		}
		a.letIn(w, r, session)
	}
}

// signIn exchanges a token that a form sent for a session.
func (a *Access) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	s, ok := Sender{}, false
	if err := r.ParseForm(); err == nil && a.Tokens != nil {
		s, ok = a.Tokens(strings.TrimSpace(r.PostForm.Get("token")))
	}
	if !ok {
		askForToken(w, http.StatusForbidden, "This token is not valid here. It may have ended.")
		return
	}
	l := a.Logins
	l.mu.Lock()
	session := l.newSession(&s)
	l.mu.Unlock()
	a.letIn(w, r, session)
}

// letIn sets the cookie of a session.
func (a *Access) letIn(w http.ResponseWriter, r *http.Request, session string) {
	http.SetCookie(w, a.cookie(r, session))
	// After a redirect, the browser would not send this cookie if the link was opened from another site.
	// After a page that refreshes itself, it does.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\"><link rel=\"icon\" href=\"data:,\"><title>runteam</title>\n<p><a href=\"/\">Continue</a></p>\n</html>\n") // the client may be gone
}

// cookie returns the cookie of a session.
func (a *Access) cookie(r *http.Request, session string) *http.Cookie {
	return &http.Cookie{Name: a.cookieName(r), Value: session, Path: "/", HttpOnly: true, Secure: a.isSecure(r), SameSite: http.SameSiteStrictMode}
}

// askForToken writes the page on which a person signs in.
func askForToken(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'none'", "form-action 'self'", 1))
	w.Header().Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send the form with Origin: null
	writeNotice(w, status, "Sign in", `<form method="post" action="`+loginPath+`"><p><label>Token <input name="token" type="password" autocomplete="current-password" required autofocus></label> <button>Sign in</button></p></form><p role="alert">`+html.EscapeString(problem)+`</p>`)
}

// notice writes a page with a heading and a sentence.
func notice(w http.ResponseWriter, status int, heading, text string) {
	writeNotice(w, status, heading, "<p>"+html.EscapeString(text)+"</p>")
}

func writeNotice(w http.ResponseWriter, status int, heading, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>%s</title>\n<main>\n<h1>%s</h1>\n%s\n</main>\n</html>\n", html.EscapeString(heading), html.EscapeString(heading), body) // the client is gone
}

// denyPage answers a browser that may not see the page.
func (a *Access) denyPage(w http.ResponseWriter, why *Error) {
	switch {
	case why.Code != Unauthorized:
		notice(w, why.Status(), "This page is not for you", strings.TrimSuffix(why.Message+"; "+why.Hint, "; ")+".")
	case a.Proxy != nil:
		notice(w, http.StatusUnauthorized, "Sign in first", "The proxy in front of this server has named nobody in the header "+a.Proxy.UserHeader+". Open the page at the address of the proxy, "+a.publicOrigin()+", and sign in there.")
	case a.Logins != nil && a.Logins.NoLinks:
		askForToken(w, http.StatusUnauthorized, "")
	default:
		notice(w, http.StatusUnauthorized, "This page needs a link", "Open the link that runteam printed. Each link works once; to get another one, "+askAgain)
	}
}
