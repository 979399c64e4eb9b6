package plan

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
)

// A JournalDatabase is the database in which the journal of a run is. Others may operate it, so it is a reader of what the
// run stores in the clear.
type JournalDatabase struct {
	Host        string               // with the port, if the address has one
	Name        string               // of the database; empty if the address has none
	EncryptFrom label.Classification // the lowest label of what is encrypted there
}

// NewJournalDatabase returns the database that has a URL, without user, password and settings. The error does not quote
// the URL.
func NewJournalDatabase(address string, encryptFrom label.Classification) (*JournalDatabase, error) {
	u, err := url.Parse(address)
	_, behind, _ := strings.Cut(address, "@")
	switch {
	case err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Opaque != "",
		strings.ContainsAny(behind, "@#") || u.User == nil && strings.ContainsAny(address, "@#"): // of a password, in part
		return nil, errors.New("the address of the database of a journal cannot be read: write postgres://USER@HOST:PORT/DATABASE")
	}
	d := &JournalDatabase{Host: u.Hostname(), Name: strings.TrimPrefix(u.Path, "/"), EncryptFrom: encryptFrom}
	if port := u.Port(); port != "" {
		d.Host = net.JoinHostPort(d.Host, port)
	}
	if d.Host == "" {
		d.Host = "this computer"
	}
	return d, nil
}

// String returns what plans call the database.
func (d *JournalDatabase) String() string {
	name := "journal postgres at " + d.Host
	if d.Name != "" {
		name += fmt.Sprintf(" (database %s)", d.Name)
	}
	return name
}

// ruleJournal is the rule by which a journal reads what is stored in the clear.
const ruleJournal handoff.Rule = "journal"

// addJournal adds the database of the journal as a reader of every source whose value may have a label that is not
// encrypted. What a task makes may have a lower label than its bound.
func addJournal(g *flow.Graph, p *Plan) {
	d := p.Options().Database
	if d == nil || d.EncryptFrom <= label.Public {
		return
	}
	reader := len(g.Readers)
	g.Readers = append(g.Readers, flow.Reader{Kind: flow.Journal, Name: d.String(), Clearance: d.EncryptFrom - 1})
	for i := range g.Sources {
		s := &g.Sources[i]
		least := s.Label
		switch {
		case s.Task < 0, s.Kind == handoff.ToolResult: // their labels are written
		case s.Kind == handoff.Dependency && s.Task < len(p.least):
			least = p.least[s.Task]
		default:
			least = label.Public
		}
		g.Sights = append(g.Sights, flow.Sight{
			Source: i, Reader: reader, Rule: ruleJournal, Note: fmt.Sprintf("encrypted from %v", d.EncryptFrom),
			Delivers: pick.Everything(), Withheld: least >= d.EncryptFrom,
		})
	}
}
