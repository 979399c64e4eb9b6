package inspector

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A Proxy stands between browsers and the inspector. It has authenticated the person whom a header of a request names, and
// removes that header from what browsers send.
type Proxy struct {
	Peers        []netip.Prefix // its addresses; empty if only it can connect, as over a socket
	UserHeader   string         // the header with the name of the person
	GroupsHeader string         // the header with the groups, separated by commas; empty for none

	// Secret is what [SecretHeader] has in requests of the proxy; empty if its address is enough.
	Secret string

	// Name returns a name in the form that is compared and recorded.
	Name func(string) (string, error)
}

// SecretHeader is the header with the secret of a [Proxy].
const SecretHeader = "X-Runteam-Proxy-Secret"

// namedTime is for how long a stream goes on after the proxy has named its person. Only a request says whether the person is
// still signed in, and in which groups, so the client has to open the stream again.
const namedTime = 45 * time.Second

// senderOf returns the person whom the proxy names; without one, a Sender without a name. It refuses other peers.
func (p *Proxy) senderOf(r *http.Request) (s Sender, err error) {
	if !p.isPeer(r.RemoteAddr) {
		return s, &Error{
			Code: Forbidden, Message: "this server takes requests from its proxy alone, which does not have the address " + r.RemoteAddr,
			Hint: "use the address of the proxy; if this is the proxy, start runteam with its address as --trusted-proxy",
		}
	}
	if !p.hasSecret(r) {
		return s, &Error{
			Code: Forbidden, Message: "this server takes requests from its proxy alone, whose secret the request does not have",
			Hint: "use the address of the proxy; if this is the proxy, have it send the secret in the header " + SecretHeader,
		}
	}
	names := r.Header.Values(p.UserHeader)
	if len(names) == 0 || len(names) == 1 && trim(names[0]) == "" {
		return s, nil
	}
	if len(names) > 1 {
		return s, p.repeated(p.UserHeader, len(names))
	}
	if s.Person, err = p.Name(trim(names[0])); err != nil {
		return Sender{}, &Error{Code: Forbidden, Message: "the header " + p.UserHeader + " names nobody: " + err.Error(), Hint: "have the proxy send the name of one person in it"}
	}
	if p.GroupsHeader != "" {
		lists := r.Header.Values(p.GroupsHeader)
		if len(lists) > 1 {
			return Sender{}, p.repeated(p.GroupsHeader, len(lists))
		}
		for group := range strings.SplitSeq(strings.Join(lists, ""), ",") {
			if group = trim(group); group != "" && !slices.Contains(s.Groups, group) {
				s.Groups = append(s.Groups, group)
			}
		}
	}
	s.Until = time.Now().Add(namedTime)
	s.isAmbient, s.credential = true, sha256.Sum256([]byte("person "+s.Person))
	return s, nil
}

// repeated returns the error of a header that came several times: one may be of the browser.
func (p *Proxy) repeated(name string, times int) error {
	return &Error{
		Code: Forbidden, Message: fmt.Sprintf("the request has %d headers %s, and the proxy should send one", times, name),
		Hint: "have the proxy replace the " + name + " that it gets from the browser, and not add another one",
	}
}

// trim removes the spaces around a value of a header. Other white space is part of it: somebody else may have that name.
func trim(value string) string { return strings.Trim(value, " \t") }

// isPeer reports whether an address is one of the proxy.
func (p *Proxy) isPeer(address string) bool {
	if len(p.Peers) == 0 {
		return true
	}
	at, err := netip.ParseAddrPort(address)
	return err == nil && slices.ContainsFunc(p.Peers, func(of netip.Prefix) bool { return of.Contains(at.Addr().Unmap().WithZone("")) })
}

// hasSecret reports whether a request has the secret of the proxy.
func (p *Proxy) hasSecret(r *http.Request) bool {
	given := r.Header.Values(SecretHeader)
	if p.Secret == "" {
		return true
	}
	return len(given) == 1 && subtle.ConstantTimeCompare([]byte(given[0]), []byte(p.Secret)) == 1
}
