package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/explain"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/plan"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/rungraph"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/inspector/page"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
)

// Collect collects the documents of a run that the API of the inspector serves, for a viewer with a clearance, which is at most confidential: secret
// values never leave the journal. Personal data and secrets are redacted, and so are the patterns of each
// policy that the run has had. Nothing says how long a text is that is withheld or redacted, and no digest is of one.
func Collect(ctx context.Context, con *console.Console, g *journals.Flags, j *journal.Journal, found journal.Summary, accepts label.Classification) (*page.ExportDocument, error) {
	accepts = min(accepts, label.Confidential)
	k, err := journals.LoadFor(ctx, con, j, found, "", accepts)
	if err != nil {
		return nil, err
	}
	caller, err := j.Clearance(ctx, k.Run)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	accepts = min(accepts, caller)
	p, err := planOf(ctx, con, g, j, k.Run, accepts)
	if err != nil {
		return nil, err
	}
	c := &collector{run: k, into: &page.ExportDocument{Run: k.Run, Name: k.Name, Time: con.Now().UTC(), Accepts: accepts, Documents: map[string]json.RawMessage{}}}
	own, err := patternsOf(ctx, j, k.Run, p)
	if err != nil {
		return nil, err
	}
	if c.clean, err = newCleaner(ctx, own, accepts); err != nil {
		return nil, err
	}
	c.into.Name = c.clean.text(c.into.Name)
	if err := c.collect(p); err != nil {
		return nil, err
	}
	return c.into, nil
}

// planOf makes the plan of a run again. It is nil if there is none, or if the viewer may not see the spec, which
// is internal.
func planOf(ctx context.Context, con *console.Console, g *journals.Flags, j *journal.Journal, run string, accepts label.Classification) (*engine.Plan, error) {
	if accepts < label.Internal {
		return nil, nil
	}
	info, err := j.LoadInfo(ctx, run) // whole, since the plan needs the inputs
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	p, err := restored.Plan(ctx, con, g, info)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return p, nil // without it, the graph is that of what was recorded
}

// A collector adds documents to a run.
type collector struct {
	run   *journals.StoredRun
	into  *page.ExportDocument
	clean *cleaner
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
	base := "/runs/" + escape(k.Run)
	documents := []struct {
		path string
		of   any
	}{
		{base, history.NewRunDocument(k)},
		{base + "/usage", history.NewUsageDocument(k)},
		{base + "/receipts", receipts},
		{base + "/events", eventsDocument{append([]event.Event{}, k.Trace.Events...)}},
		{base + "/graph", rungraph.NewCleaned(k, p, nil, c.clean.text)},
		{base + "/artifacts", history.Artifacts(k, "")},
		{base + "/questions", []any{}}, // nobody can answer in a file
	}
	for _, d := range documents {
		if err := c.add(d.path, d.of); err != nil {
			return err
		}
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

// tasks adds the documents of each task.
func (c *collector) tasks(base string) error {
	decisions := explain.HandoffsByTask(c.run.Trace)
	for _, t := range c.run.Tasks {
		one, err := history.NewTaskDocument(c.run, string(t.ID), false)
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
		if err := c.add(base+"/handoffs?task="+escape(string(t.ID)), handoffs); err != nil {
			return err
		}
	}
	return nil
}

// add adds a document in its clean form.
func (c *collector) add(path string, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
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

// escape escapes a part of a path as encodeURIComponent of a browser does for the names in paths.
func escape(part string) string { return unescaped.Replace(url.QueryEscape(part)) }

var unescaped = strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*")
