package postgres_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A proxy stands between journals and their server. It passes on the messages of clients one at a time, each with all
// statements up to the end of a transaction or a round trip, and does to one of them what its fault says.
type proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex // held while a message is passed on
	passed  int        // messages: each is a round trip
	fault   *fault
	open    []net.Conn // to clients
	blocked bool       // clients are refused
}

// A fault is what happens to the first message that ends a transaction with certain statements: its client is cut off.
type fault struct {
	matches []string // texts that the statements of the transaction have

	// late is how many other messages reach the server before this one, or one of the constants below.
	late    int
	hit     chan struct{} // closed once the client is cut off
	deliver func()        // passes a late message on, once
}

const (
	answerLost = -1 // the message comes first, and its answer is lost
	stalled    = -2 // the server gets all but the end of the message, and the client stays
)

// maxHeld is how long a late message waits for others at most: one that the server does not answer may wait for it.
const maxHeld = 300 * time.Millisecond

// newProxy returns a proxy in front of a server, and the address of the database through it.
func newProxy(t testing.TB, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: listener, server: u.Host}
	var all sync.WaitGroup
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		p.block(true)
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			refused := p.blocked
			p.open = append(p.open, client)
			p.mu.Unlock()
			all.Go(func() {
				defer client.Close() //nolint:errcheck // the test looks at the database
				if !refused {
					_ = p.serve(client)
				}
			})
		}
	})
	u.Host = listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return p, u.String()
}

// block cuts all clients off and refuses others, or lets them in again.
func (p *proxy) block(blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// roundTrips returns how many messages do sends, at the least of several times: a lease may be renewed meanwhile, and a
// statement takes one more when it is used first.
func (p *proxy) roundTrips(do func()) int {
	least := math.MaxInt
	for range 4 {
		before := p.count()
		do()
		least = min(least, p.count()-before)
	}
	return least
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// inject sets what happens to the next message that matches.
func (p *proxy) inject(late int, matches ...string) *fault {
	f := &fault{matches: matches, late: late, hit: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	return f
}

// A session is one connection through the proxy.
type session struct {
	client, server net.Conn
	prepared       map[string]string // statements, by their names
	executed       []string          // in the transaction
}

var errCut = errors.New("the connection was cut")

func (p *proxy) serve(client net.Conn) error {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return err
	}
	s := &session{client: client, server: server, prepared: map[string]string{}}
	held := false
	defer func() {
		if !held {
			_ = server.Close()
		}
	}()
	start, err := readStart(client)
	if err == nil {
		err = s.forward(start, true)
	}
	for err == nil {
		var message []byte
		if message, err = s.readMessage(); err != nil {
			return err
		}
		p.mu.Lock()
		p.passed++
		f := p.fault
		switch {
		case !f.meets(s.executed):
			err = s.forward(message, true)
			if f != nil && f.deliver != nil {
				if f.late--; f.late <= 0 {
					f.deliver()
				}
			}
		case f.late == stalled:
			_, err = s.server.Write(message[:len(message)-1])
			close(f.hit)
			p.mu.Unlock()
			_, _ = io.Copy(io.Discard, s.server) // until it gives up
			return err
		case f.late == answerLost:
			_ = s.forward(message, false)
			close(f.hit)
			err = errCut
		default:
			held, err = true, errCut
			f.deliver = sync.OnceFunc(func() {
				_ = s.forward(message, false)
				_ = server.Close()
			})
			close(f.hit)
			if f.late == 0 {
				f.deliver()
			} else {
				time.AfterFunc(maxHeld, f.deliver)
			}
		}
		p.mu.Unlock()
	}
	return err
}

// meets reports whether the fault waits for a transaction with these statements.
func (f *fault) meets(executed []string) bool {
	if f == nil {
		return false
	}
	select {
	case <-f.hit:
		return false
	default:
	}
	all := strings.Join(executed, "\n")
	for _, text := range f.matches {
		if !strings.Contains(all, text) {
			return false
		}
	}
	return true
}

// readStart reads the message that begins a connection, which has no type.
func readStart(from io.Reader) ([]byte, error) {
	size := make([]byte, 4)
	if _, err := io.ReadFull(from, size); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(size)-4)
	_, err := io.ReadFull(from, rest)
	return append(size, rest...), err
}

// readPart reads one message of the protocol: its type, its length and its content.
func readPart(from io.Reader) (part []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(from, rest)
	return append(head, rest...), err
}

// readMessage reads from the client until it waits for an answer.
func (s *session) readMessage() (message []byte, err error) {
	for {
		part, err := readPart(s.client)
		if err != nil {
			return nil, err
		}
		message = append(message, part...)
		texts := bytes.SplitN(part[5:], []byte{0}, 3)
		switch part[0] {
		case 'P': // a statement gets a name
			s.prepared[string(texts[0])] = string(texts[1])
		case 'B': // a statement of a name is executed
			s.executed = append(s.executed, s.prepared[string(texts[1])])
		case 'Q':
			s.executed = append(s.executed, string(texts[0]))
			return message, nil
		case 'S':
			return message, nil
		case 'X':
			return nil, io.EOF
		}
	}
}

// forward passes a message on and waits for its answer, which the client gets if it is to.
func (s *session) forward(message []byte, answered bool) error {
	if _, err := s.server.Write(message); err != nil {
		return err
	}
	for {
		part, err := readPart(s.server)
		if err != nil {
			return err
		}
		if answered {
			if _, err := s.client.Write(part); err != nil {
				return err
			}
		}
		if part[0] == 'Z' { // the server is ready for the next one
			if part[5] == 'I' { // and in no transaction
				s.executed = slices.Delete(s.executed, 0, len(s.executed))
			}
			return nil
		}
	}
}
