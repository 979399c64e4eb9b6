package postgres

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Name returns the URL of a database without user, password and settings.
func Name(c *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", Path: "/" + c.Database}
	switch {
	case strings.HasPrefix(c.Host, "/"): // a socket
	case c.Port == 5432:
		u.Host = c.Host
	default:
		u.Host = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	}
	return u.String()
}

var errAddress = errors.New("the address cannot be read: write postgres://USER@HOST:PORT/DATABASE, with % and two hex digits for characters with a meaning in it")

// Public returns an address without passwords, for messages and commands. Neither the address nor the error has them. It
// accepts only a URL in which no part of a password can be taken for another part.
func Public(address string) (string, error) {
	u, err := url.Parse(address)
	switch _, behind, _ := strings.Cut(address, "@"); {
	case err != nil, u.Scheme != "postgres" && u.Scheme != "postgresql", u.Opaque != "", strings.ContainsAny(behind, "@#"):
		return "", errAddress
	case u.User == nil && strings.ContainsAny(address, "@#"): // behind a /, a ? or a #
		return "", errAddress
	case u.User != nil:
		u.User = url.User(u.User.Username())
	}
	u.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(setting string) bool {
		plain, err := url.QueryUnescape(setting)
		return err != nil || strings.Contains(strings.ToLower(plain), "password")
	}), "&")
	return u.String(), nil
}

// parse reads the address of a database. Without sslmode, a server on another host must prove who it is; with a weaker
// one, it is refused.
func parse(address string) (*pgx.ConnConfig, error) {
	_, settings, isURL := strings.Cut(address, "://")
	if isURL {
		if _, err := Public(address); err != nil {
			return nil, err
		}
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errAddress
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	if isVerified(config) {
		return config, nil
	}
	if isURL && !strings.Contains(settings, "sslmode=") {
		join := "?"
		if strings.Contains(settings, "?") {
			join = "&"
		}
		return parse(address + join + "sslmode=verify-full")
	}
	return nil, errors.New("the server is on another host, and the connection would not verify it: write sslmode=verify-full in the address, and sslrootcert=FILE if its certificate is signed by an authority of your own")
}

// isVerified reports whether all servers that the settings name are on this host, or must have a certificate for their name.
func isVerified(c *pgx.ConnConfig) bool {
	servers := []*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}
	for _, f := range append(servers, c.Fallbacks...) {
		if !isHere(f.Host) && (f.TLSConfig == nil || f.TLSConfig.InsecureSkipVerify || f.TLSConfig.ServerName == "") {
			return false
		}
	}
	return true
}

// isHere reports whether a host is this one.
func isHere(host string) bool {
	ip := net.ParseIP(host)
	return strings.HasPrefix(host, "/") || host == "localhost" || ip != nil && ip.IsLoopback()
}
