package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// An itemNamer names instances by the keys of their items, for the caller. The keys pass the gate to
// the caller first, once for all items of a list. No prompt has a name.
type itemNamer struct {
	run     *results
	keyed   map[keyedList]*namedList // the lists whose items have keys; nil until one is known
	unnamed map[string]bool          // the places of lists with a warning of items that keys do not name
}

// A keyedList identifies a list whose items have keys: where it is written, and the task whose result
// has it, of which rounds and items of other lists have several.
type keyedList struct{ pointer, task string }

// A namedList is the names of the items of a list.
type namedList struct {
	tasks []int32  // the instances that are for its items
	names []string // empty for items that are known by position; nil until the list is known
}

// nameItems names the instances of a list that has a key, once the list is known.
func (n *itemNamer) nameItems(ctx context.Context, l *task.List, now time.Time) {
	if l.Key == "" {
		return
	}
	if n.keyed == nil {
		n.keyed = keyedLists(n.run.plan)
	}
	list := n.keyed[keyedList{l.Pointer, l.Task}]
	if list.names != nil {
		return
	}
	keys := n.itemKeys(ctx, l, now)
	list.names = naming.ItemNames(keys, plan.KeyName(l))
	n.warnUnnamed(l, keys[:min(len(keys), l.Most)], list.names)
	for _, i := range list.tasks {
		t, lists := n.run.plan.Graph.Task(int(i)), plan.ListsOf(n.run.plan, int(i))
		items := make([]string, len(lists))
		for k, of := range lists {
			if list := n.keyed[keyedList{of.Pointer, of.Task}]; list != nil && of.Index < len(list.names) {
				items[k] = list.names[of.Index]
			}
		}
		n.run.tasks[i].Name = naming.WithItems(t.Title, plan.WrittenTitle(t), items)
		n.run.bus.name(t.ID, n.run.tasks[i].Name)
		n.run.fresh.named(t.ID, n.run.tasks[i].Name)
	}
}

// warnUnnamed warns, once for each list of the spec, that items are known by their positions, and why.
// It counts only keys that the caller was delivered.
func (n *itemNamer) warnUnnamed(l *task.List, keys []any, names []string) {
	var equal, empty, hidden int
	for i, key := range keys {
		text, isText := key.(string)
		switch {
		case names[i] != "":
		case key == nil:
			hidden++
		case isText && strings.TrimSpace(text) == "":
			empty++
		default:
			equal++
		}
	}
	what := plan.KeyText(n.run.plan, l)
	switch count := equal + empty + hidden; {
	case n.unnamed[l.Pointer], len(keys) > 0 && count == 0, len(keys) == 0 && !plan.SeesKeys(n.run.plan, l):
		return
	case len(keys) == 0:
		n.run.warn(what + ": the items are named by position, since the user is not delivered their keys, or not for as long as events are kept")
	default:
		var why []string
		for _, one := range []struct {
			name  string
			count int
		}{{"equal keys", equal}, {"empty keys", empty}, {"redacted or withheld keys", hidden}} {
			if one.count > 0 {
				why = append(why, fmt.Sprintf("%s: %d", one.name, one.count))
			}
		}
		n.run.warn(fmt.Sprintf("%s: %d of %d items are named by position (%s)", what, count, len(keys), strings.Join(why, ", ")))
	}
	if n.unnamed == nil {
		n.unnamed = map[string]bool{}
	}
	n.unnamed[l.Pointer] = true
}

// keyedLists returns the lists of a plan whose items have keys.
func keyedLists(p *plan.Plan) map[keyedList]*namedList {
	all := map[keyedList]*namedList{}
	for i := range p.Graph.Len() {
		for _, l := range plan.ListsOf(p, i) {
			id := keyedList{l.Pointer, l.Task}
			if l.Key == "" {
				continue
			}
			if all[id] == nil {
				all[id] = &namedList{}
			}
			all[id].tasks = append(all[id].tasks, int32(i))
		}
	}
	return all
}

// itemKeys returns the keys of the items of a list that the caller may see as they are, and nil for
// others. Names are in events and in the clear in the journal, and stay there: no key above
// confidential is one, and none that expires.
func (n *itemNamer) itemKeys(ctx context.Context, l *task.List, now time.Time) []any {
	e := listEnvelope(n.run.plan, n.run.inputs, n.run.queue, l)
	if e == nil || !e.ExpiresAt().IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shortTime)
	defer cancel()
	payload, err := n.deliverKeys(ctx, l, e, now)
	if err != nil {
		return nil // the instances have no names
	}
	return gate.ItemKeys(e, payload, l.Path, l.Key)
}

// deliverKeys takes the keys of all items of a list through the gate to the caller.
func (n *itemNamer) deliverKeys(ctx context.Context, l *task.List, e *envelope.Envelope, now time.Time) (payload envelope.Payload, err error) {
	offer := gate.Offer{Source: gate.Source{Kind: handoff.Dependency, Name: l.Task}, Status: task.Completed, Envelope: e, As: task.Structured}
	if l.Input != "" {
		offer = inputOffer(n.run, l.Input)
	}
	accepts, by := plan.KeyClearance(n.run.accepts), n.run.governed()
	contract, err := gate.Negotiate(gate.Request{
		Session: n.run.session, Caller: handoff.User, Run: n.run.id, Task: task.ID(offer.Source.Name), Classification: accepts, Owned: true,
		Grants: []gate.Grant{{Source: offer.Source, Paths: plan.KeyPaths(l), Terms: by.Terms(e.Producer(), handoff.User), MaxBytes: gate.MaxRedact}},
	}, &gate.Capabilities{Agent: handoff.User, Accepts: accepts, Produces: accepts})
	if err != nil {
		return payload, err
	}
	compartment := gate.Compartment{Contract: contract}
	d, err := compartment.Decide(ctx, &offer, now)
	if err != nil {
		return payload, err
	}
	if err := n.run.delivered(&d.Decision, by, contract.Session, now); err != nil || !d.IsDelivered() {
		return payload, err
	}
	payload, _, err = compartment.Payload(&offer, &d)
	return payload, err
}
