package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// Collect collects the documents of a run that the API of the inspector serves; level is the label of the run, which
// is at most confidential. Personal data, secrets and the patterns of each policy that the run has had are redacted. The documents have neither the length nor the digest of a
// text that is withheld or redacted, or of a policy in which something is.
func Collect(ctx context.Context, con *console.Console, g *journals.Flags, j *journal.Journal, found journal.Summary, level label.Classification) (*page.ExportDocument, error) {
	k, err := journals.Load(ctx, con, j, found, "")
	if err != nil {
		return nil, err
	}
	p, err := restored.PlanFor(ctx, con, g, &k.Info, &k.Whole)
	if _, none := errors.AsType[*restored.NoPlanError](err); err != nil && !none { // without a plan, the graph shows what was recorded
		return nil, err
	}
	c := &collector{run: k, into: &page.ExportDocument{Run: k.Run, Name: k.Name, Time: con.Now().UTC(), Accepts: level, Documents: map[string]json.RawMessage{}}}
	if c.events, err = eventsOf(ctx, j, k.Run); err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	if c.policies, err = journal.PoliciesOf(ctx, j, k.Run); err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	own, err := patternsOf(c.policies, p)
	if err != nil {
		return nil, err
	}
	if c.clean, err = newCleaner(ctx, own, level); err != nil {
		return nil, err
	}
	if err := c.clean.hideDigests(c.policies); err != nil {
		return nil, err
	}
	c.into.Name = c.clean.text(c.into.Name)
	if err := c.collect(p); err != nil {
		return nil, err
	}
	return c.into, nil
}

// eventsOf returns the events of a run without decisions.
func eventsOf(ctx context.Context, j *journal.Journal, run string) ([]event.Event, error) {
	tail, err := j.Tail(ctx, run)
	list := []event.Event{}
	for state := journal.TailReads; err == nil && state == journal.TailReads; {
		var events []event.Event
		if events, state, err = tail.Next(ctx); err == nil {
			list = append(list, events...)
		}
	}
	return slices.DeleteFunc(list, func(e event.Event) bool { return e.Type == event.Handed }), err
}

// A collector adds documents to a run.
type collector struct {
	run      *journals.StoredRun
	events   []event.Event    // without decisions, which the receipts have
	policies []*record.Policy // that the run has had, the newest last
	into     *page.ExportDocument
	clean    *cleaner
}

// collect adds all documents of the run.
func (c *collector) collect(p *engine.Plan) error {
	k := c.run
	receipts, err := explain.NewDocument(k.Trace, explain.Query{})
	if err != nil {
		return err
	}
	type eventsDocument struct {
		Events []event.Event `json:"events"`
	}
	base, r := "/runs/"+escape(k.Run), view.Of(k)
	documents := []struct {
		path string
		of   any
	}{
		{base, r},
		{base + "/usage", r.Usages()},
		{base + "/receipts", receipts},
		{base + "/events", eventsDocument{c.events}},
		{base + "/graph", rungraph.New(k, p)},
		{base + "/artifacts", history.Artifacts(k, "")},
		{base + "/blocks", view.AnswerOf(r, c.clean.text)},
		{base + "/questions", []any{}}, // a file cannot take answers
	}
	for _, d := range documents {
		if err := c.add(d.path, d.of); err != nil {
			return err
		}
	}
	if err := c.policy(base); err != nil {
		return err
	}
	if p != nil {
		flow, err := plan.FlowWithWays(p)
		if err == nil {
			err = c.add(base+"/flow", flow)
		}
		if err != nil {
			return err
		}
	}
	return c.tasks(base)
}

// policy adds the newest policy of the run, which is internal.
func (c *collector) policy(base string) error {
	if c.into.Accepts < label.Internal {
		return nil
	}
	d, err := history.NewPolicyDocument(c.run.Run, c.policies[len(c.policies)-1], c.policies)
	if err != nil {
		return fmt.Errorf("the policy of the run cannot be read: %w", err)
	}
	return c.add(base+"/governance/handoff-rules", d)
}

// tasks adds the documents of each task.
func (c *collector) tasks(base string) error {
	decisions := explain.HandoffsByTask(c.run)
	for _, t := range c.run.Tasks {
		one, err := view.TaskOf(c.run, string(t.ID), false)
		if err != nil {
			return err
		}
		handoffs := decisions[t.ID]
		if handoffs == nil {
			handoffs = &explain.HandoffsDocument{Handoffs: []explain.HandoffDocument{}}
		}
		if err := c.add(base+"/tasks/"+escape(string(t.ID)), one); err != nil {
			return err
		}
		if blocks := view.BlocksOf(one, c.clean.text(one.Result)); len(blocks.Blocks) > 0 {
			if err := c.add(base+"/tasks/"+escape(string(t.ID))+"/blocks", blocks); err != nil {
				return err
			}
		}
		if err := c.add(base+"/handoffs?task="+escape(string(t.ID)), handoffs); err != nil {
			return err
		}
	}
	return nil
}

// add adds a document in its clean form.
func (c *collector) add(path string, document any) error {
	v, err := decoded(document)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	clean, err := json.Marshal(c.clean.value(v))
	if err == nil {
		err = c.clean.err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.into.Documents[path] = clean
	return nil
}

// decoded returns a document as its JSON says it, with numbers as they are written.
func decoded(document any) (v any, err error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// escape escapes a part of a path as encodeURIComponent of a browser does for the names in paths.
func escape(part string) string { return unescaped.Replace(url.QueryEscape(part)) }

var unescaped = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
