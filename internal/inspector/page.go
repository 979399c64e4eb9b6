package inspector

import (
	"io/fs"
	"mime"
	"path"
)

// index serves the page.
func (q *request) index() error {
	return q.file("index.html")
}

// asset serves a file of the page.
func (q *request) asset() error {
	return q.file(q.r.PathValue("name"))
}

func (q *request) file(name string) error {
	text, err := fs.ReadFile(q.h.o.Page, name)
	kind := mime.TypeByExtension(path.Ext(name))
	if own, ok := kinds[path.Ext(name)]; ok { // the types of the system may be wrong
		kind = own
	}
	if err != nil || kind == "" {
		return &Error{Code: NotFound, Message: "the page has no such file"}
	}
	q.w.Header().Set("Content-Type", kind)
	_, err = pieces{w: q.w}.Write(text)
	return gone(err)
}

// kinds are the types of the files of a page.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
