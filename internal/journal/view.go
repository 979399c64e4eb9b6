package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/label"
)

// A View says which runs somebody may see: those that have all of what it says.
type View struct {
	Accepts label.Classification // the label of the run is this one or lower
	Specs   []string             // its [Info.Spec] is one of these; nil means that of any run
	Starter string               // its [Info.Starter] is this one; empty means that of any run
}

// whole is the view of a journal that nothing limits.
var whole = []View{{Accepts: label.Secret}}

// errPartOfJournal reports that a journal does not have all runs, and was to work on all.
var errPartOfJournal = errors.New("this works on all runs, and some are not there for the views of this journal: use the journal without For")

// For returns the journal as somebody with these views sees it: a run is there if one of them has it. Methods that list runs leave
// out the others, and methods that read or change one return the [*UnknownRunError] of a run that does not exist. Without a
// view there are no runs. Runs of earlier versions have no Spec and no Starter, so that a view which asks for one has none of
// them. Claim, Remove and CopyTo return an error unless a view has all runs. Both are one journal, so closing one closes both.
func (j *Journal) For(views ...View) *Journal {
	of, c := *j, *j.catalog
	c.views = slices.Clone(views)
	of.archive = &archive{catalog: &c, vault: j.vault}
	return &of
}

// isWhole reports whether all runs are there.
func (c *catalog) isWhole() bool {
	return slices.ContainsFunc(c.views, func(v View) bool { return v.Accepts == label.Secret && v.Specs == nil && v.Starter == "" })
}

// checkWhole returns an error if some runs may not be there.
func (c *catalog) checkWhole() error {
	if c.isWhole() {
		return nil
	}
	return errPartOfJournal
}

// visible returns the rows of the runs that are there. It changes the list.
func (c *catalog) visible(ctx context.Context, list []row) ([]row, error) {
	if c.isWhole() {
		return list, nil
	}
	seen := list[:0]
	for i := range list {
		is, err := c.isVisible(ctx, &list[i])
		if err != nil {
			return nil, err
		}
		if is {
			seen = append(seen, list[i])
		}
	}
	return seen, nil
}

// isVisible reports whether a run is there.
func (c *catalog) isVisible(ctx context.Context, r *row) (bool, error) {
	for _, v := range c.views {
		if v.Specs != nil && (r.spec == "" || !slices.Contains(v.Specs, r.spec)) || v.Starter != "" && v.Starter != r.starter {
			continue
		}
		if level, err := c.labelOf(ctx, r); err != nil || level <= v.Accepts {
			return err == nil, err
		}
	}
	return false, nil
}

// condition returns the condition of the runs that one of the views has, or may have if the label of the run is not stored
// with it, and the arguments with its own behind them.
func (s *store) condition(views []View, args []any) (string, []any) {
	parameter := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	one := []string{"1 = 0"}
	for _, v := range views {
		accepts := parameter(int64(v.Accepts))
		all := []string{"coalesce(" + s.column("label", "null", withLabels) + ", " + accepts + ") <= " + accepts}
		if v.Starter != "" {
			all = append(all, s.column("starter", "''", withQueue)+" = "+parameter(v.Starter))
		}
		if v.Specs != nil {
			named := []string{"null"}
			for _, name := range v.Specs {
				named = append(named, parameter(name))
			}
			all = append(all, s.column("spec", "''", withQueue)+" in ("+strings.Join(named, ", ")+")")
		}
		one = append(one, "("+strings.Join(all, " and ")+")")
	}
	return "(" + strings.Join(one, " or ") + ")", args
}

// column returns the column of runs with a name, or what files have in its place that are older than a version.
func (s *store) column(name, before string, since int) string {
	if s.commands.has(since) {
		return "r." + name
	}
	return before
}
