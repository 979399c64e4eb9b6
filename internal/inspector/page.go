package inspector

import (
	"fmt"
	"html"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// index serves the page.
func (h *Handler) index(w http.ResponseWriter, _ *http.Request) error {
	return h.file(w, "index.html")
}

// asset serves a file of the page.
func (h *Handler) asset(w http.ResponseWriter, r *http.Request) error {
	return h.file(w, r.PathValue("name"))
}

func (h *Handler) file(w http.ResponseWriter, name string) error {
	text, err := fs.ReadFile(h.o.Page, name)
	kind := mime.TypeByExtension(path.Ext(name))
	if own, ok := kinds[path.Ext(name)]; ok { // the types of the system may be wrong
		kind = own
	}
	if err != nil || kind == "" {
		return &Error{Code: NotFound, Message: "the page has no such file"}
	}
	w.Header().Set("Content-Type", kind)
	_, err = pieces{w}.Write(text)
	return gone(err)
}

// kinds are the types of the files of a page.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// login exchanges the key of a link for a session cookie, and leads to the page.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" { // a prefetch would use up the link
		h.notice(w, http.StatusForbidden, "Open the link", "A prefetched link cannot be used. Open it instead.")
		return
	}
	session, ok := "", false
	if h.o.Access.Logins != nil {
		session, ok = h.o.Access.Logins.use(r.URL.Query().Get("key"))
	}
	if !ok {
		h.notice(w, http.StatusForbidden, "This link does not work any more", "A link works once, for a short time. To get another one, press Enter where runteam serve runs. If it has no terminal, send it the signal USR1, with kill -USR1 PID, or start it again.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: h.o.Access.cookieName(), Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	// After a redirect, the browser would not send this cookie if the link was opened from another site.
	// After a page that refreshes itself, it does.
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url=/\"><link rel=\"icon\" href=\"data:,\"><title>runteam</title>\n<p><a href=\"/\">Continue</a></p>\n</html>\n") // the client may be gone
}

// notice writes a page with a heading and a sentence.
func (h *Handler) notice(w http.ResponseWriter, status int, heading, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>%s</title>\n<h1>%s</h1>\n<p>%s</p>\n</html>\n", html.EscapeString(heading), html.EscapeString(heading), html.EscapeString(text)) // the client is gone
}
