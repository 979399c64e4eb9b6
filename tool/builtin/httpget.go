package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/tool"
)

// Bounds on what http_get reads.
const (
	maxPage      = 4 << 20
	maxRedirects = 5
	pageTime     = 30 * time.Second
)

type httpArguments struct {
	URL string `json:"url" jsonschema:"the address, such as https://example.com/page"`
}

// HTTPGet returns the tool http_get, which reads pages of the allowed origins, such as
// https://example.com. A redirect must lead to one of them too. Names that lead to a private
// address, such as that of a service on this machine, are refused unless the origin names
// that address itself.
func HTTPGet(origins []string, o tool.Options) (*tool.Tool, error) {
	allowed := make([]string, len(origins))
	for i, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
			return nil, fmt.Errorf("http_get: %q is no origin; write such as https://example.com", origin)
		}
		allowed[i] = originOf(u)
	}
	o.Effect = tool.External
	f := &fetcher{origins: allowed}
	return tool.New("http_get", "Reads a page from the web with GET. It may read from: "+strings.Join(allowed, ", ")+".", f.get, o)
}

// A fetcher reads pages of some origins.
type fetcher struct{ origins []string }

// originOf returns scheme, host and port of an address.
func originOf(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port)
}

// check returns an error unless an address is of an allowed origin.
func (f *fetcher) check(u *url.URL) error {
	if origin := originOf(u); u.User != nil || !slices.Contains(f.origins, origin) {
		return fmt.Errorf("%s is not allowed; allowed are %s", origin, strings.Join(f.origins, ", "))
	}
	return nil
}

// get reads one page.
func (f *fetcher) get(ctx context.Context, in httpArguments) (string, error) {
	u, err := url.Parse(in.URL)
	if err != nil {
		return "", errors.New("url: not an address")
	}
	if err := f.check(u); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "runteam")
	transport := &http.Transport{DialContext: f.dialer().DialContext, DisableKeepAlives: true} // without a proxy: the check of the address would not reach through it
	client := http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return f.check(r.URL)
	}}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the server answered %s", res.Status)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "" && !isText(kind) {
		return "", fmt.Errorf("the page is %s, and not a text", kind)
	}
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxPage+1))
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxPage:
		return "", fmt.Errorf("the page is larger than %d MiB", maxPage>>20)
	case !utf8.Valid(raw):
		return "", errors.New("the page is not in UTF-8")
	}
	return string(raw), nil
}

// isText reports whether a media type is one of texts.
func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || slices.Contains([]string{"application/json", "application/xml", "application/javascript", "application/yaml"}, kind) ||
		strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// dialer returns a dialer that refuses private addresses. It looks at the address that is
// connected to, so a name that resolves differently each time gains nothing.
func (f *fetcher) dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		ip := to.Addr().Unmap()
		listed := slices.ContainsFunc(f.origins, func(o string) bool {
			return strings.HasSuffix(o, "://"+net.JoinHostPort(ip.String(), fmt.Sprint(to.Port())))
		})
		if !listed && !isPublic(ip) {
			return fmt.Errorf("%v is a private address; list it as an origin to allow it", ip)
		}
		return nil
	}}
}

// reserved are the ranges that are not on the public internet and for which netip has no
// method: IANA special-purpose address registries.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("192.88.99.0/24"),
}

// isPublic reports whether an address is on the public internet.
func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(ip) })
}
