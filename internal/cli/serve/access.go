package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/roles"
	"github.com/spf13/cobra"
)

// accessFlags say where a server can be reached, and who is let in.
type accessFlags struct {
	listen         string
	public         string
	rolesFile      string
	tokenFile      string
	cert, key      string
	identityHeader string
	groupsHeader   string
	proxies        []string
	secretFile     string

	publicURL *url.URL // nil without --public-url
	peers     []netip.Prefix
	socket    string // the path of the socket of the proxy; empty for none
}

// unixPrefix is before the path of a socket.
const unixPrefix = "unix:"

// AddTo adds the flags to a command.
func (a *accessFlags) AddTo(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.listen, "listen", "127.0.0.1:"+inspector.DefaultPort, "listen at `ADDRESS:PORT`; port 0 is any that is free")
	f.StringVar(&a.public, "public-url", "", "accept requests to this `URL`, such as https://runs.example.org, too")
	f.StringVar(&a.rolesFile, "roles", "", "let in the people of this `FILE` alone, each with a role")
	f.StringVar(&a.tokenFile, "token-file", "", "write a new token for programs into `FILE`, which only its owner may read")
	f.StringVar(&a.cert, "tls-cert", "", "serve over TLS, with the certificates in this PEM `FILE`")
	f.StringVar(&a.key, "tls-key", "", "with the private key in this PEM `FILE`")
	f.StringVar(&a.identityHeader, "identity-header", "", "take the name of the person from this `HEADER`, which the proxy sets")
	f.StringVar(&a.groupsHeader, "groups-header", "", "take the groups of the person from this `HEADER`, separated by commas")
	f.StringArrayVar(&a.proxies, "trusted-proxy", nil, "take requests from this proxy alone: `ADDRESSES` such as 10.0.0.7/32, or unix:PATH of a socket to listen at; can be repeated")
	f.StringVar(&a.secretFile, "proxy-secret-file", "", "take requests with the secret in this `FILE` alone, in the header "+inspector.SecretHeader)
	flags.Complete(cmd, "listen", nil)
	for _, name := range []string{"public-url", "identity-header", "groups-header", "trusted-proxy"} {
		flags.Complete(cmd, name, nil)
	}
}

// names of the flags that --mcp does not take.
var accessNames = []string{"listen", "public-url", "roles", "token-file", "tls-cert", "tls-key", "identity-header", "groups-header", "trusted-proxy", "proxy-secret-file"}

// check refuses flags that cannot be used together.
func (a *accessFlags) check(con *console.Console, cmd *cobra.Command) error {
	for _, name := range accessNames {
		if f := cmd.Flags().Lookup(name); f.Changed && strings.TrimSpace(f.Value.String()) == "" {
			return exit.Usagef("--%s is empty: %s", name, emptyAdvice(name))
		}
	}
	if token, _ := con.LookupEnv(inspector.EnvToken); a.rolesFile != "" && (a.tokenFile != "" || token != "") {
		return exit.Usagef("with --roles, each token is of a person, and is in that file: leave out --token-file and %s", inspector.EnvToken)
	}
	if (a.cert == "") != (a.key == "") {
		return exit.Usagef("--tls-cert and --tls-key need each other: name both files")
	}
	if err := a.checkPublic(); err != nil {
		return err
	}
	return a.checkProxy(cmd)
}

// emptyAdvice says what to write for a flag that was given as nothing.
func emptyAdvice(name string) string {
	if name == "listen" { // which would be every address
		return "write ADDRESS:PORT of this computer, such as 127.0.0.1:0 for a port that is free, or leave it out"
	}
	return "write a value, or leave it out"
}

func (a *accessFlags) checkPublic() error {
	if a.public == "" {
		return nil
	}
	u, err := url.Parse(a.public)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return exit.Usagef("--public-url %s: write a scheme and a host, such as https://runs.example.org", terminal.CleanLine(a.public))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return exit.Usagef("--public-url %s: the page needs a host of its own: write the scheme and the host alone, such as https://%s", terminal.CleanLine(u.Redacted()), terminal.CleanLine(u.Host))
	case a.cert != "" && u.Scheme != "https":
		return exit.Usagef("--public-url %s: with --tls-cert it begins with https://", terminal.CleanLine(a.public))
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443") // as browsers write an Origin
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	a.publicURL = &url.URL{Scheme: u.Scheme, Host: host}
	return nil
}

// checkProxy refuses what would let others than the proxy name a person.
func (a *accessFlags) checkProxy(cmd *cobra.Command) error {
	if a.identityHeader == "" {
		for name, given := range map[string]bool{"groups-header": a.groupsHeader != "", "trusted-proxy": len(a.proxies) > 0, "proxy-secret-file": a.secretFile != ""} {
			if given {
				return exit.Usagef("--%s is about the proxy that names people: add --identity-header", name)
			}
		}
		return nil
	}
	switch {
	case a.rolesFile == "":
		return exit.Usagef("--identity-header needs --roles FILE, which says who may do what")
	case a.publicURL == nil:
		return exit.Usagef("--identity-header needs --public-url, the address of the proxy, where pages may send requests from")
	case len(a.proxies) == 0:
		return exit.Usagef("--identity-header needs --trusted-proxy, since anybody else can send that header")
	}
	if err := a.checkHeaders(); err != nil {
		return err
	}
	shared := ""
	for _, text := range a.proxies {
		path, isSocket := strings.CutPrefix(text, unixPrefix)
		if isSocket {
			if path == "" || len(a.proxies) > 1 || cmd.Flags().Changed("listen") {
				return exit.Usagef("--trusted-proxy %s: the server listens at the socket, and nowhere else: write unix:PATH alone, without --listen", terminal.CleanLine(text))
			}
			a.socket = path
			continue
		}
		peers, err := parsePeers(text)
		if err != nil {
			return exit.Usagef("--trusted-proxy %s: write an address such as 10.0.0.7, a range such as 10.0.0.0/24, or unix:PATH", terminal.CleanLine(text))
		}
		if a.peers = append(a.peers, peers); !peers.IsSingleIP() || isOfThisComputer(peers.Addr()) {
			shared = text
		}
	}
	if shared != "" && a.secretFile == "" {
		return exit.Usagef("--trusted-proxy %s: others may send requests from there too: add --proxy-secret-file, and have the proxy send that secret in the header %s", terminal.CleanLine(shared), inspector.SecretHeader)
	}
	return nil
}

// checkHeaders refuses headers that cannot name people.
func (a *accessFlags) checkHeaders() error {
	for _, f := range [...]struct{ flag, header, example string }{{"identity-header", a.identityHeader, "X-Forwarded-Email"}, {"groups-header", a.groupsHeader, "X-Forwarded-Groups"}} {
		switch name := http.CanonicalHeaderKey(f.header); {
		case !isHeader(name):
			return exit.Usagef("--%s %s: it is no name of a header: write one such as %s", f.flag, terminal.CleanLine(name), f.example)
		case slices.Contains(otherHeaders, name):
			return exit.Usagef("--%s %s: that header has another use: write one that the proxy alone sets, such as %s", f.flag, name, f.example)
		}
	}
	if strings.EqualFold(a.identityHeader, a.groupsHeader) {
		return exit.Usagef("--groups-header %s: it is the --identity-header: write the header with the groups, such as X-Forwarded-Groups, or leave it out", a.groupsHeader)
	}
	return nil
}

// otherHeaders are headers that never name a person.
var otherHeaders = []string{"Host", "Authorization", "Cookie", "Origin", "Connection", inspector.SecretHeader}

// isOfThisComputer reports whether every program of this computer can send requests from an address.
func isOfThisComputer(at netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return at.IsLoopback() || err != nil || slices.ContainsFunc(own, func(of net.Addr) bool {
		p, err := netip.ParsePrefix(of.String())
		return err == nil && p.Addr().Unmap().WithZone("") == at
	})
}

// parsePeers reads an address or a range of addresses.
func parsePeers(text string) (netip.Prefix, error) {
	if at, err := netip.ParseAddr(text); err == nil {
		at = at.Unmap().WithZone("")
		return netip.PrefixFrom(at, at.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err == nil && p.Addr().Is4In6() {
		err = errors.New("an address of IPv4 is written as one of IPv6")
	}
	return p.Masked(), err
}

// isHeader reports whether a header can have a name; the empty one names none.
func isHeader(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// A doorway is where a server listens.
type doorway struct {
	net.Listener
	secure *tls.Config // nil without TLS
}

// address returns the address at which a browser finds the server.
func (a *accessFlags) address(d *doorway) string {
	switch {
	case a.publicURL != nil:
		return a.publicURL.String()
	case d.secure != nil:
		return "https" + strings.TrimPrefix(addressOf(d.Addr()), "http")
	}
	return addressOf(d.Addr())
}

// listening says where the proxy finds the server, if browsers find it elsewhere.
func (a *accessFlags) listening(d *doorway) string {
	switch {
	case a.socket != "":
		return ", listening at " + terminal.CleanLine(unixPrefix+a.socket)
	case a.publicURL != nil:
		return ", listening at " + d.Addr().String()
	}
	return ""
}

// open begins to listen.
func (a *accessFlags) open(ctx context.Context, con *console.Console) (*doorway, error) {
	var secure *tls.Config
	if a.cert != "" {
		c := &certificate{cert: con.WorkDir.Path(a.cert), key: con.WorkDir.Path(a.key), con: con}
		if _, err := c.load(); err != nil {
			return nil, exit.Errorf(exit.KindIO, "--tls-cert and --tls-key: %w", err)
		}
		secure = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.load() }}
	}
	if a.socket != "" {
		l, err := listenAtSocket(ctx, con.WorkDir.Path(a.socket))
		if err != nil {
			return nil, exit.Errorf(exit.KindIO, "--trusted-proxy %s: %w%s", terminal.CleanLine(unixPrefix+a.socket), withoutAddress(err), socketAdvice(err))
		}
		return &doorway{l, secure}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.listen)
	if err != nil {
		return nil, exit.Errorf(exit.KindIO, "--listen %s: %w; %s", a.listen, withoutAddress(err), listenAdvice(err, a.listen))
	}
	return &doorway{l, secure}, nil
}

// listenAtSocket listens at a socket that its owner and its group may use. One that a server left which was killed is replaced.
func listenAtSocket(ctx context.Context, path string) (net.Listener, error) {
	if s, err := os.Lstat(path); err == nil && s.Mode().Type() == fs.ModeSocket {
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(errors.New("another server listens there"), c.Close())
		}
		_ = os.Remove(path) // or listening fails
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// A certificate is read again when its file changes, so that it can be renewed. It is safe for concurrent use.
type certificate struct {
	cert, key string
	con       *console.Console

	mu      sync.Mutex // guards the rest
	changed time.Time
	pair    *tls.Certificate
}

// load returns the certificate. If the new one cannot be read, it is the old one.
func (c *certificate) load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var changed time.Time
	for _, path := range []string{c.cert, c.key} {
		if s, err := os.Stat(path); err == nil && s.ModTime().After(changed) {
			changed = s.ModTime()
		}
	}
	if c.pair != nil && changed.Equal(c.changed) {
		return c.pair, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.pair = &pair
	case c.pair == nil:
		return nil, err
	default:
		c.con.Say("runteam: --tls-cert and --tls-key: the new certificate cannot be used, and the one before stays in use: %s", terminal.Clean(err.Error()))
	}
	c.changed = changed
	return c.pair, nil
}

// letIn returns who is let into a site. Its file of roles is read, if there is one.
func (a *accessFlags) letIn(con *console.Console, s *site, l net.Listener) (in inspector.Access, err error) {
	in = inspector.Access{Hosts: inspector.HostsOf(l.Addr()), Public: a.publicURL, Logins: &inspector.Logins{Now: con.Now}}
	where := l.Addr().String()
	if a.publicURL != nil {
		where = a.publicURL.String()
	}
	in.Logins.Sign = s.sign(s.sessionScope(where))
	if a.rolesFile == "" {
		return in, nil
	}
	if s.roles, err = roles.Open(con.WorkDir, a.rolesFile, con.Now, func(text string) { con.Say("runteam: %s", text) }); err != nil {
		return in, err
	}
	in.Tokens, in.Logins.NoLinks = s.senderOf, true
	if a.identityHeader == "" {
		return in, nil
	}
	in.Logins = nil
	in.Proxy = &inspector.Proxy{Peers: a.peers, UserHeader: a.identityHeader, GroupsHeader: a.groupsHeader, Name: roles.Name}
	if a.secretFile != "" {
		if in.Proxy.Secret, err = readSecret(con, a.secretFile); err != nil {
			return in, err
		}
	}
	return in, nil
}

// readSecret reads the secret of the proxy.
func readSecret(con *console.Console, path string) (string, error) {
	text, err := os.ReadFile(con.WorkDir.Path(path))
	if err != nil {
		return "", exit.Errorf(exit.KindIO, "--proxy-secret-file %s: %w: write one with openssl rand -hex 32", terminal.CleanLine(path), exit.WithoutPath(err))
	}
	secret := strings.TrimSpace(string(text))
	if !isToken().MatchString(secret) {
		return "", exit.Usagef("--proxy-secret-file %s: a secret has %d to 256 letters, digits, _ or -: write one with openssl rand -hex 32", terminal.CleanLine(path), minToken)
	}
	return secret, nil
}
