package inspector

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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

// senderOf returns the person whom the proxy names; without one, a Sender without a name. It refuses other peers.
func (p *Proxy) senderOf(r *http.Request) (s Sender, err error) {
	if !p.isPeer(r.RemoteAddr) || !p.hasSecret(r) {
		return s, &Error{Code: Forbidden, Message: "this server takes requests from its proxy alone", Hint: "use the address of the proxy"}
	}
	names := r.Header.Values(p.UserHeader)
	if len(names) == 0 || len(names) == 1 && strings.TrimSpace(names[0]) == "" {
		return s, nil
	}
	bad := &Error{Code: Forbidden, Message: "the header " + p.UserHeader + " names nobody", Hint: "have the proxy send one name in it, and remove the header from what it gets"}
	if len(names) > 1 {
		return s, bad
	}
	if s.Person, err = p.Name(strings.TrimSpace(names[0])); err != nil {
		bad.Message += ": " + err.Error()
		return Sender{}, bad
	}
	if p.GroupsHeader != "" {
		for _, list := range r.Header.Values(p.GroupsHeader) {
			for group := range strings.SplitSeq(list, ",") {
				if group = strings.TrimSpace(group); group != "" && !slices.Contains(s.Groups, group) {
					s.Groups = append(s.Groups, group)
				}
			}
		}
	}
	s.isAmbient, s.credential = true, sha256.Sum256([]byte("person "+s.Person))
	return s, nil
}

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
