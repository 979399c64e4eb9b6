package gate

import (
	"context"
	"fmt"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// AsFiles is the form of an offer whose text is a folder, as [filetree.Tree.JSON] writes it.
// Paths of grants and rules are then paths of files. The reader gets the files in its
// workspace, see [Sealed.Files], and a list of them as the payload.
const AsFiles task.Payload = "files"

// FilesBefore returns what output files were before the task, which the structured part of
// their envelope has, as a folder to offer. It is nil if all of them are new.
func FilesBefore(outputs *envelope.Envelope) (*envelope.Envelope, error) {
	tree, structured := outputs.Open().JSON()
	if !structured || tree == (filetree.Tree{}).JSON() {
		return nil, nil
	}
	h := outputs.Header()
	h.ID, h.DerivedFrom = h.ID+"/before", []envelope.ID{h.ID}
	return envelope.New(h, envelope.Text(tree))
}

// NamesOfFiles returns the paths of output files, in order; nil if there are none.
func NamesOfFiles(outputs *envelope.Envelope) []string {
	if outputs == nil {
		return nil
	}
	tree, err := filetree.Parse(outputs.Open().Text())
	if err != nil {
		return nil
	}
	return tree.Paths()
}

// RuleFiles lets the files of a task through.
const RuleFiles handoff.Rule = "files"

// files rules on a folder: it picks the files that are granted, and redacts each of them by
// itself. Control tokens are broken in the list of the files alone: a tool that returns a part of
// a file breaks those in the part.
func (c *Compartment) files(ctx context.Context, o *Offer, g *Grant, s pick.Selection, d *Ruling) error {
	if t := g.Terms; t != nil && (t.translation.byModel || t.translation.active) {
		d.Rule, d.Line = g.deciding(d)
		d.withhold(d.Rule, ReasonRule, "files cannot be translated")
		return nil
	}
	tree, err := o.Cache.read(o.Source.Name, o.Envelope.Open().Text())
	if err != nil {
		d.withhold(RulePayload, ReasonRule, "it is not a folder")
		return nil
	}
	switch {
	case s.Whole():
	case o.Source.Kind == handoff.Folder && !s.Apply(tree.Value()).Any:
		tree = filetree.Tree{} // a layer of a folder may have none of the granted files
	default:
		var ok bool
		if tree, ok = c.pickFiles(g, s, d, tree); !ok {
			return nil
		}
	}
	if tree.Bytes() > filetree.MaxBytes {
		d.withholdValue(RuleSize, fmt.Sprintf("its files have more than %d bytes, the most that can be checked", filetree.MaxBytes))
		return nil
	}
	clean, err := c.redactFiles(ctx, o, g, d, tree)
	if err != nil {
		d.withholdValue(RuleRedact, "it could not be checked for secrets and personal data")
		return fmt.Errorf("redact %s %q: %w", d.Source.Kind, d.Source.Name, err)
	}
	if len(clean) < len(tree) || clean.Conflict() != "" {
		d.withholdValue(RuleRedact, "the names of its files cannot be told apart once they are redacted")
		return nil
	}
	if g.Item != "" {
		c.fileItem(g, d, clean, o.As)
		return nil
	}
	list, broken := breakTokens(clean.List(o.Folder))
	d.tree, d.delivered, d.Broken = clean, envelope.Text(list), broken
	d.Verdict, d.BytesAfter = Passed, clean.Bytes()
	d.Rule, d.Line = g.deciding(d)
	return nil
}

// IsEmptyLayer reports whether nothing of a folder is granted, or an offer is a layer of a folder that has none of the
// granted files. It adds nothing to what its reader gets, so it does not count for the label of that either.
func (g *Grant) IsEmptyLayer(o *Offer) bool {
	if o.As == AsFiles && len(g.Paths) == 0 {
		return true
	}
	if o.Source.Kind != handoff.Folder || o.As != AsFiles {
		return false
	}
	s, err := g.selects()
	tree, bad := o.Cache.read(o.Source.Name, o.Envelope.Open().Text())
	if err != nil || bad != nil {
		return false
	}
	folder, isFolder := s.Apply(tree.Value()).Value.(map[string]any)
	left, err := filetree.Of(folder)
	return !isFolder || err == nil && len(left) == 0
}

// fileItem delivers a file as an item of a list: its name and its text.
func (c *Compartment) fileItem(g *Grant, d *Ruling, files filetree.Tree, as task.Payload) {
	names := files.Paths()
	if len(names) != 1 || files[names[0]] == nil {
		d.withholdValue(RuleGrant, "the folder has no such file")
		return
	}
	item, err := jsonvalue.Encode(map[string]any{"name": names[0], "text": *files[names[0]]})
	p, broken, ok := envelope.Payload{}, 0, false
	if err == nil {
		p, broken, ok = breakPayloadTokens(envelope.Payload{}.WithStructured(item))
	}
	if !ok {
		d.withholdValue(RuleTokens, "it has no form in which its control tokens are broken")
		return
	}
	if limit := g.limit(as); p.Size() > limit {
		d.withholdValue(RuleStructuredSize, fmt.Sprintf("with its name it has more than %d bytes, the most that is delivered", limit))
		return
	}
	d.Broken, d.delivered, d.BytesAfter = broken, p, p.Size()
	d.Verdict = Passed
	d.Rule, d.Line = g.deciding(d)
}

// pickFiles returns the files that are granted. It is not ok if there are none: the folder
// is withheld.
func (c *Compartment) pickFiles(g *Grant, s pick.Selection, d *Ruling, tree filetree.Tree) (_ filetree.Tree, ok bool) {
	picked := s.Apply(tree.Value())
	by, line := g.narrowing(d)
	named := names{g, s}
	d.Narrowing = &Narrowing{InPart: true, Dropped: named.shown(picked.Dropped), Kept: named.shown(picked.Kept), Unmatched: picked.Unmatched, Narrowed: len(picked.Dropped) > 0}
	folder, isFolder := picked.Value.(map[string]any)
	left, err := filetree.Of(folder)
	if !picked.Any || !isFolder || err != nil {
		d.withholdValue(by, "none of the granted files is in it: "+s.String())
		d.Line = line
		return nil, false
	}
	if by != RuleGrant { // what the task itself did not ask for is explained by its rule
		d.Rule, d.Line = by, line
	}
	return left, true
}

// redactFiles takes secrets and personal data out of the names and the texts of files, but
// for what the grant reveals.
func (c *Compartment) redactFiles(ctx context.Context, o *Offer, g *Grant, d *Ruling, tree filetree.Tree) (filetree.Tree, error) {
	r := standardRedactor(c.Contract.Callee)
	if g.Terms != nil {
		r = g.Terms.redactor
	}
	reveal := g.reveals(c.Contract.toAgent())
	clean := make(filetree.Tree, len(tree))
	for _, path := range tree.Paths() {
		f, err := o.Cache.redact(ctx, r, o.Source.Name, path, tree[path], reveal)
		if err != nil {
			return nil, err
		}
		if f.name != path {
			if d.renamed == nil {
				d.renamed = map[string]string{}
			}
			d.renamed[f.name] = path
		}
		clean[f.name] = f.text
		d.Redacted, d.Revealed = sum(d.Redacted, f.redacted), sum(d.Revealed, f.revealed)
	}
	return clean, nil
}

// revealIn returns what the redactor asks about personal data in one file.
func revealIn(path string, reveal func(redact.Kind, []string) bool) func(redact.Kind, []string) bool {
	if reveal == nil {
		return nil
	}
	segments := strings.Split(path, "/")
	return func(kind redact.Kind, below []string) bool {
		return reveal(kind, append(segments[:len(segments):len(segments)], below...))
	}
}
