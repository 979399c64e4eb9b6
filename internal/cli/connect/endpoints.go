package connect

import (
	"net/url"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/specfile"
)

// AllBaseURLs returns the base URLs of a connection and its fallback.
func AllBaseURLs(own specfile.Connection, lookup func(string) (string, bool)) (bases []string, err error) {
	for i, one := range connections(own) {
		base, err := BaseURLOf(one, lookup)
		if err != nil {
			return nil, inFallback(i, err)
		}
		bases = append(bases, base)
	}
	return bases, nil
}

// BaseURLs returns the known base URLs of the agents of a spec and its coordinator, and those of
// their fallback.
func BaseURLs(file *specfile.File, lookup func(string) (string, bool)) (own map[string]string, fallback map[string][]string) {
	own, fallback = map[string]string{}, map[string][]string{}
	add := func(name string, c specfile.Connection) {
		bases, err := AllBaseURLs(c, lookup)
		if err != nil {
			return
		}
		own[name] = storedURL(c, bases[0])
		for i, base := range bases[1:] {
			fallback[name] = append(fallback[name], storedURL(c.Fallback[i], base))
		}
	}
	for _, ag := range file.Agents {
		if ag.HasModel() {
			add(ag.Member.Name, ag.Connection)
		}
	}
	if c := file.Coordinator; c != nil {
		add(handoff.Coordinator, c.Connection)
	}
	return own, fallback
}

// storedURL returns a base URL for the journal: the origin, which determines the clearance, and the
// path as written in the spec.
func storedURL(c specfile.Connection, base string) string {
	written := c.URLAsWritten()
	if !strings.Contains(written, "${") {
		return base
	}
	u, err := url.Parse(base)
	if err != nil {
		return written
	}
	_, behind, _ := strings.Cut(written, "://")
	_, path, _ := strings.Cut(behind, "/")
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+"/"+path, "/")
}
