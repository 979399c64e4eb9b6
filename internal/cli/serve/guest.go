package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/runteam/runteam/inspect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/label"
)

// A site is a journal, and what is shared by all to whom its runs are shown.
type site struct {
	con      *console.Console
	whole    *journal.Journal // with all runs; a guest sees them through a journal of their own
	flags    *journals.Flags
	accepts  label.Classification // nobody sees more
	readOnly bool                 // nobody changes anything
	version  string
	live     *liveRuns
	feeds    *feeds
	cache    *runCache
	figures  *figureCache
	plans    *planCache
	starts   *starter    // nil if no spec is served
	roles    *roles.File // nil if everybody with a token or a link is the user of the computer

	mu     sync.Mutex // guards offers
	offers map[string]*inspector.Offer
}

func newSite(con *console.Console, j *journal.Journal, flags *journals.Flags, accepts label.Classification, version string) *site {
	return &site{
		con: con, whole: j, flags: flags, accepts: accepts, version: version, live: &liveRuns{}, feeds: &feeds{}, cache: &runCache{}, figures: &figureCache{}, plans: &planCache{},
		offers: map[string]*inspector.Offer{},
	}
}

// Options returns the options of an inspector that shows the runs of a journal to a viewer with a clearance. They have no
// access, so that no request is accepted, and start no runs.
func Options(con *console.Console, j *journal.Journal, flags *journals.Flags, accepts label.Classification) inspector.Options {
	return newSite(con, j, flags, accepts, "").options()
}

// options returns the options of an inspector of the site. Without roles, everything is offered to everybody.
func (s *site) options() inspector.Options {
	o := inspector.Options{Page: page.FS, OpenAPI: inspect.OpenAPI(), Escape: escaped, Ready: s.ready, Offer: *s.userOfComputer().offer()}
	if s.roles != nil {
		o.For, o.Unseen = s.offerTo, unseen{}
	}
	return o
}

// ready returns why the journal cannot be read.
func (s *site) ready(ctx context.Context) error {
	_, err := s.whole.Newest(ctx, "", 1)
	return err
}

// A guest is someone who uses a site, and what they may see and do there.
type guest struct {
	*site
	by     string // what the journal calls them
	person string // the name with which they were authenticated; empty for the user of the computer, who may do everything
	grants []roles.Grant

	j      *journal.Journal // with the runs that they may see
	steers *journal.Journal // with those that they may steer
}

// userOfComputer returns the guest who needs no role.
func (s *site) userOfComputer() *guest {
	j := s.whole.For(journal.View{Accepts: s.accepts})
	return &guest{site: s, by: s.con.UserName(), j: j, steers: j}
}

// guestOf returns a person with roles.
func (s *site) guestOf(person string, grants []roles.Grant) *guest {
	g := &guest{site: s, by: person, person: person, grants: slices.Clone(grants)}
	var sees, steers []journal.View
	for i := range g.grants {
		of := &g.grants[i]
		of.Accepts = min(of.Accepts, s.accepts)
		sees = append(sees, g.viewOf(of))
		if of.Role == roles.Operator {
			steers = append(steers, g.viewOf(of))
		}
	}
	g.j, g.steers = s.whole.For(sees...), s.whole.For(steers...)
	return g
}

// viewOf returns the runs that a grant is about.
func (g *guest) viewOf(of *roles.Grant) journal.View {
	v := journal.View{Accepts: of.Accepts, Specs: of.Specs}
	if !of.All {
		v.Starter = g.person
	}
	return v
}

// may reports whether the guest may act in a role for a spec, and up to which label. fits limits the grants that count.
func (g *guest) may(role roles.Role, spec string, fits func(*roles.Grant) bool) (accepts label.Classification, ok bool) {
	if g.person == "" {
		return g.accepts, true
	}
	accepts = label.Public
	for i := range g.grants {
		of := &g.grants[i]
		if of.Role == role && (of.Specs == nil || slices.Contains(of.Specs, spec)) && (fits == nil || fits(of)) {
			accepts, ok = max(accepts, of.Accepts), true
		}
	}
	return accepts, ok
}

// ofAll reports whether a grant is about the runs of everybody.
func ofAll(of *roles.Grant) bool { return of.All }

// has reports whether the guest has a role for any spec.
func (g *guest) has(role roles.Role, fits func(*roles.Grant) bool) bool {
	return g.person == "" || slices.ContainsFunc(g.grants, func(of roles.Grant) bool { return of.Role == role && (fits == nil || fits(&of)) })
}

// clearance returns up to which label the guest sees a run that is there for them.
func (g *guest) clearance(of *journal.Summary) label.Classification {
	if g.person == "" {
		return g.accepts
	}
	most := label.Public
	for i := range g.grants {
		v := g.viewOf(&g.grants[i])
		if (v.Specs == nil || slices.Contains(v.Specs, of.Spec)) && (v.Starter == "" || v.Starter == of.Starter) {
			most = max(most, v.Accepts)
		}
	}
	return most
}

// viewer says what the guest may see and do.
func (g *guest) viewer() inspector.Viewer {
	v := inspector.Viewer{Accepts: g.accepts, By: g.by, CanSteer: g.has(roles.Operator, nil), CanAnswer: g.has(roles.Approver, nil), Version: g.version}
	if g.readOnly {
		v.CanSteer, v.CanAnswer = false, false
	}
	v.CanStart = v.CanSteer && g.starts != nil
	if g.person != "" {
		v.Accepts = label.Public
		for i := range g.grants {
			v.Accepts = max(v.Accepts, g.grants[i].Accepts)
		}
	}
	return v
}

// key is equal for guests who may see and do the same under the same name.
func (g *guest) key() string {
	text, _ := json.Marshal([]any{g.person, g.grants}) // texts, labels and flags
	return string(text)
}

// offer returns what is offered to the guest.
func (g *guest) offer() *inspector.Offer {
	documents := &documents{guest: g, of: g.key(), finder: &history.RunFinder{Journal: g.j, Now: g.con.Now}}
	graphs := &graphs{documents: documents}
	o := &inspector.Offer{
		Viewer:    g.viewer(),
		Documents: inspector.Documents{Runs: documents, Receipts: documents, Questions: questions{g}, Graph: graphs, Flow: graphs, Handoffs: graphs, Comparer: graphs, Exporter: graphs},
		Watcher:   watcher{g}, Streams: streams{g}, Governor: governor{steerer{g}},
		Grants: documents.of,
	}
	if o.Viewer.CanSteer {
		o.Steerer = steerer{g}
	}
	if o.Viewer.CanAnswer {
		o.Answerer = answerer{g}
	}
	if o.Viewer.CanStart {
		o.Starter = launcher{g, g.starts}
	}
	if g.person != "" && g.has(roles.Operator, ofAll) {
		o.Unseen = unseen{g}
	}
	return o
}

// maxOffers is for how many guests what is offered to them is kept.
const maxOffers = 256

// offerTo returns what is offered to the sender of a request, by the file of roles as it is now.
func (s *site) offerTo(sender inspector.Sender) (*inspector.Offer, error) {
	if sender.Person == "" {
		return nil, &inspector.Error{Code: inspector.Unauthorized, Message: "the request names nobody", Hint: "sign in again"}
	}
	grants := s.roles.Grants(sender.Person, sender.Groups)
	if sender.Token != "" {
		if grants = s.roles.GrantsOf(roles.Token{ID: sender.Token, Person: sender.Person}); grants == nil {
			return nil, &inspector.Error{Code: inspector.Unauthorized, Message: "the token is not valid any more, or its person has no such role", Hint: "sign in with another one"}
		}
	}
	if len(grants) == 0 {
		return nil, &inspector.Error{Code: inspector.Forbidden, Message: fmt.Sprintf("%s has no role on this server", sender.Person), Hint: "ask whoever runs it for one"}
	}
	g := s.guestOf(sender.Person, grants)
	key := g.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.offers[key]; o != nil {
		return o, nil
	}
	if len(s.offers) >= maxOffers {
		clear(s.offers)
	}
	s.offers[key] = g.offer()
	return s.offers[key], nil
}

// senderOf returns the person who has a token.
func (s *site) senderOf(secret string) (inspector.Sender, bool) {
	token, ok := s.roles.Token(secret)
	return inspector.Sender{Person: token.Person, Token: token.ID, Until: token.Expires}, ok
}

// sessionScope is what a session is signed for: it is not valid at a server that shows more, or at another address.
func (s *site) sessionScope(address string) string {
	text, _ := json.Marshal([]any{address, s.accepts, s.readOnly, s.con.UserName(), s.roles != nil})
	return string(text)
}

// sign returns a function that signs sessions, as each server of the journal with this scope does; nil if the journal has no key.
func (s *site) sign(scope string) func(string) string {
	if _, ok := s.whole.Signature(scope); !ok {
		return nil
	}
	return func(said string) string {
		signature, _ := s.whole.Signature(scope + " " + said)
		return signature
	}
}
