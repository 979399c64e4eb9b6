package specfile

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// errOrigin reports a URL without a valid origin.
var errOrigin = errors.New("no scheme and host")

// originOf returns the origin of a base URL: scheme, host in lower case, and the port unless
// it is the default. Base URLs with the same origin are served by the same server. A host
// with other characters than those of host names in ASCII is an error, since its different
// spellings could not be compared.
func originOf(baseURL string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return "", errOrigin
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if !isHost(host) {
		return "", errOrigin
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port() == "" {
		return u.Scheme + "://" + host, nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		return "", errOrigin
	}
	if u.Scheme == "http" && port == 80 || u.Scheme == "https" && port == 443 {
		return u.Scheme + "://" + host, nil
	}
	return u.Scheme + "://" + host + ":" + strconv.FormatUint(port, 10), nil
}

// isHost reports whether a text is a host name in ASCII without empty labels, or an IP address.
func isHost(host string) bool {
	if strings.Contains(host, ":") {
		_, err := netip.ParseAddr(host)
		return err == nil
	}
	return !strings.Contains("."+host+".", "..") && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// originPart returns the part of a base URL that determines its origin, as written: up to
// the first slash, question mark or number sign after the host that is not inside ${…}.
func originPart(text string) string {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], opening):
			depth++
			i++
		case depth > 0:
			if text[i] == '}' {
				depth--
			}
		case from == 0 && strings.HasPrefix(text[i:], "://"):
			from = i + len("://")
			i = from - 1
		case strings.IndexByte(`/?#\`, text[i]) >= 0:
			return text[:i]
		}
	}
	return text
}
