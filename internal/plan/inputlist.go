package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/filetree"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/matcher"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An InputList is a list in an input.
type InputList struct {
	Items   int
	files   []task.Path // of a folder, the path of each item
	largest int         // bytes of the largest item
	at      int         // its index
}

// ListOf returns a list in an input, whose items the instances of a task are for.
func ListOf(p *Plan, l *task.List) *InputList { return p.lists[l.Pointer] }

// checkInputLists reports inputs that are not lists, or have more items than there may be instances.
func (c *checker) checkInputLists() {
	c.values = map[string]any{}
	for i := range c.specs {
		in := c.specs[i].Instance
		if in == nil {
			continue
		}
		for k, l := range in.Lists {
			if l.Input != "" && l.Index == 0 { // what is wrong for one item is wrong for each
				c.checkItemReveal(i, l)
			}
			if _, known := c.lists[l.Pointer]; l.Input == "" || known {
				continue
			}
			if c.lists == nil {
				c.lists = map[string]*InputList{}
			}
			c.lists[l.Pointer] = c.checkInputList(c.aboutTask(i, &c.specs[i]).at("forEach", k), l)
		}
	}
}

// checkInputList returns a list in an input, or an empty one after reporting why there is none.
func (c *checker) checkInputList(about subject, l *task.List) *InputList {
	list := &InputList{}
	k, ok := c.inputs[strings.ToLower(l.Input)]
	if !ok || c.options.Inputs[k].Name != l.Input {
		c.unknownInput(about.at("input"), l.Input)
		return list
	}
	c.used[k] = true
	input := &c.options.Inputs[k]
	hidden := input.Classification > *c.options.UserAccepts // problems say nothing of what the caller may not see
	if err := c.fillList(list, input, l); err != nil {
		if errors.Is(err, listformat.ErrInvalid) && input.ListFormat != "" {
			return list // reported at the input
		}
		key, message, hint := listKey(l), err.Error(), listHint(input, l, err)
		if hidden {
			message = fmt.Sprintf("input %q has no such list", input.Name)
		}
		if noKey, ok := errors.AsType[*noKeyError](err); ok {
			if key, hint = "key", noKey.hint; hidden {
				message, hint = fmt.Sprintf("an item of input %q has no text and no number at %s", input.Name, l.Key), keyHint
			}
		}
		is := errors.Join(task.ErrInvalid, ErrInputValue)
		if errors.Is(err, listformat.ErrInvalid) {
			is = errors.Join(is, listformat.ErrInvalid)
		}
		about.at(key).report(message, hint, is)
		return list
	}
	if list.Items > l.Most && l.Fails {
		message := fmt.Sprintf("input %q has %d items, and maxItems is %d", input.Name, list.Items, l.Most)
		if hidden {
			message = fmt.Sprintf("input %q has more items than maxItems, %d", input.Name, l.Most)
		}
		about.at("maxItems").report(message, "raise it, or write onOverflow: first", errors.Join(task.ErrInvalid, ErrInputValue))
	}
	if list.Items > l.Most && !l.Fails && !hidden {
		c.advise(about.at("maxItems"), fmt.Sprintf("input %q has %d items, and only the first %d are taken", input.Name, list.Items, l.Most), "")
	}
	if list.Items == 0 && !hidden {
		c.advise(about.at("input"), fmt.Sprintf("input %q has no items, so nothing runs for them", input.Name), "")
	}
	return list
}

// listKey returns the key that a problem with a list is about.
func listKey(l *task.List) string {
	switch {
	case l.Files != nil:
		return "files"
	case l.Path != task.Whole:
		return "path"
	}
	return "input"
}

// listHint says what to write so that an input is a list.
func listHint(in *Input, l *task.List, err error) string {
	switch {
	case in.Folder != nil:
		return "write globs such as *.md, or name another folder"
	case l.Files != nil:
		return "remove files, or name an input that is a folder"
	case errors.Is(err, listformat.ErrInvalid):
		return "correct the text, or write format: csv or format: ndjson for the input"
	case l.Path != task.Whole:
		return "write the path of an array, or no path if the input is the list itself"
	}
	return "write the path of an array in it, such as path: /items"
}

// fillList finds the items of a list.
func (c *checker) fillList(list *InputList, in *Input, l *task.List) error {
	if in.Folder != nil && l.Key != "" {
		return &noKeyError{fmt.Sprintf("input %q is a folder, whose files have no key", in.Name), "remove key"}
	}
	if in.Folder != nil {
		return list.fillFiles(filetree.TreeOf(in.Folder), l)
	}
	if l.Files != nil {
		return fmt.Errorf("files are those of a folder, and input %q is a text", in.Name)
	}
	value, known := c.values[in.Name]
	if !known {
		v, err := listformat.Parse(in.ListFormat, in.Text)
		if err != nil {
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
		value = v.Value()
		c.values[in.Name] = value
	}
	at, _ := jsonvalue.At(value, pick.Tokens(l.Path))
	items, ok := at.([]any)
	switch {
	case !ok && l.Path == task.Whole:
		return fmt.Errorf("input %q is not a list", in.Name)
	case !ok:
		return fmt.Errorf("input %q has no list at %s", in.Name, l.Path)
	}
	list.Items = len(items)
	if l.Key != "" {
		if err := checkKeys(in, l, items[:min(len(items), l.Most)]); err != nil {
			return err
		}
	}
	for n, item := range items[:min(len(items), l.Most)] {
		if raw, err := jsonvalue.Encode(item); err == nil {
			list.measure(n, len(raw.Canonical()))
		}
	}
	return nil
}

// measure notes the size of item n.
func (list *InputList) measure(n, bytes int) {
	if bytes > list.largest {
		list.largest, list.at = bytes, n
	}
}

// fillFiles finds the files that are items, in the order of their paths.
func (list *InputList) fillFiles(tree filetree.Tree, l *task.List) error {
	globs, err := filetree.ParseGlobs(l.Files)
	if err != nil {
		return err
	}
	b := matcher.NewBudget(context.Background(), filetree.MaxSteps)
	for _, name := range tree.Paths() {
		path := fileAt(name)
		if tree[name] == nil || !strings.HasPrefix(string(path), string(l.Path)+"/") {
			continue
		}
		if found, err := globs.Match(b, name); err != nil {
			return err
		} else if !found && l.Files != nil {
			continue
		}
		list.files = append(list.files, path)
		if raw, err := json.Marshal([]string{name, *tree[name]}); err == nil && len(list.files) <= l.Most {
			list.measure(len(list.files)-1, len(raw))
		}
	}
	list.Items = len(list.files)
	return nil
}

// fileAt returns the path of a file as a path of the value that its folder is.
func fileAt(name string) task.Path {
	var tokens []any
	for part := range strings.SplitSeq(name, "/") {
		tokens = append(tokens, part)
	}
	return task.Path(naming.Pointer(tokens...))
}

// unknownInput reports a name that no input has.
func (c *checker) unknownInput(about subject, name string) {
	names := make([]string, len(c.options.Inputs))
	for n, in := range c.options.Inputs {
		names[n] = in.Name
	}
	hint := "the run has no inputs"
	if len(names) > 0 {
		hint = naming.Suggest(name, names)
	}
	about.report(fmt.Sprintf("unknown input %q", name), hint, ErrUnknownInput)
}

// listOf returns the list that a use is granted an item of; nil for a use of an input as a whole.
func listOf(t *task.Task, u *task.Use) *task.List {
	if u.Item == "" || t.Instance == nil {
		return nil
	}
	for _, l := range slices.Backward(t.Instance.Lists) {
		if usesItem(u, l) {
			return l
		}
	}
	return nil
}

// usesItem reports whether a use is of the item of a list.
func usesItem(u *task.Use, l *task.List) bool {
	return u.Name == l.Input && u.Item == l.Path+task.Path("/"+strconv.Itoa(l.Index))
}

// narrowToItem makes the grant of an input that of an item.
func narrowToItem(p *Plan, g *gate.Grant, t *task.Task, u *task.Use) {
	l := listOf(t, u)
	if l == nil {
		return
	}
	g.Item = u.Item
	list := ListOf(p, l)
	if l.Index >= len(list.files) {
		return
	}
	g.Item, g.Paths = list.files[l.Index], []task.Path{list.files[l.Index]}
	for kind, paths := range g.Reveal {
		if !isWholeItem(l, paths) {
			delete(g.Reveal, kind)
			continue
		}
		g.Reveal[kind] = g.Paths
	}
}

// isWholeItem reports whether paths of items have one that takes in all of an item.
func isWholeItem(l *task.List, paths []task.Path) bool {
	return slices.ContainsFunc(paths, func(p task.Path) bool { return slices.Contains(ItemPaths(l), p) })
}

// checkItemReveal reports parts of a file in which spec i reveals something: what is granted of a
// file is all of it.
func (c *checker) checkItemReveal(i int, l *task.List) {
	k, known := c.inputs[strings.ToLower(l.Input)]
	if !known || c.options.Inputs[k].Folder == nil {
		return
	}
	for j := range c.specs[i].Uses {
		u := &c.specs[i].Uses[j]
		if !usesItem(u, l) {
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(u.Reveal)) {
			if !isWholeItem(l, u.Reveal[kind]) {
				c.aboutTask(i, &c.specs[i]).at("uses", j, "reveal", kind).report(
					fmt.Sprintf("%s is revealed in parts of an item, and an item of the folder %q is a file", kind, l.Input), `write "", for all of the file`, task.ErrInvalid)
			}
		}
	}
}

// ItemPaths returns the paths of the items of a list and of their parts.
func ItemPaths(l *task.List) []task.Path { return []task.Path{l.Path + "/*", l.Path + "/*/**"} }

// ListGrant is the grant of a list in an input to what decides whether task i runs.
func ListGrant(p *Plan, i int, l *task.List) gate.Grant {
	g := gate.WholeOf(gate.Source{Kind: handoff.Input, Name: l.Input}, p.Line(i))
	g.Paths, g.MaxBytes = ItemPaths(l), gate.MaxRedact
	g.Terms = termsTo(p, i, handoff.User)
	return g
}

// inputListLabel returns the label of the lengths of the lists in inputs that a task has an item of:
// the label with which its agent is delivered these lists.
func inputListLabel(p *Plan, i int) label.Classification {
	t, level := p.Graph.Task(i), label.Public
	if t.Instance == nil || Joins(t) {
		return level
	}
	for _, l := range t.Instance.Lists {
		if l.Input != "" {
			of := p.Input(task.Use{Name: l.Input}).Classification
			a := deliveryOf(termsTo(p, i, handoff.User), of, of, false, &p.Roster().Capabilities[p.Members[i]])
			level = level.Join(a.Classification)
		}
	}
	return level
}

// checkInputTerms reports that nothing of a list in an input is delivered to the agent of task i.
func (c *checker) checkInputTerms(i, k int, l *task.List) {
	t, isFolder := c.plan.Graph.Task(i), c.plan.Input(task.Use{Name: l.Input}).Folder != nil
	if withholdsItems(c.team.Terms(handoff.User, t.Assignee), l, isFolder) {
		c.task(i).at("forEach", k, "input").report(fmt.Sprintf("no item of input %q is delivered to %q, by the rules for the two", l.Input, t.Assignee), "allow the items in a rule for the pair, or name another list", task.ErrInvalid)
	}
}

// withholdsItems reports whether terms deliver nothing of any item of a list. Which files of a folder
// they deliver is not known.
func withholdsItems(terms *gate.Terms, l *task.List, isFolder bool) bool {
	delivers, err := terms.Delivers(ItemPaths(l))
	return terms.Mode() == handoff.Minimal || terms.Summarizes() || err == nil && !isFolder && !delivers.MayPass(append(pick.Tokens(l.Path), "*"))
}

// checkItemSize reports an item of an input that is too large for the agent of a task.
func (c *sizeCheck) checkItemSize(i, j, limit int) {
	t := c.plan.Graph.Task(i)
	l := listOf(t, &t.Uses[j])
	k := c.inputs[strings.ToLower(l.Input)]
	in, list := &c.options.Inputs[k], ListOf(c.plan, l)
	if list.largest <= limit || in.Cut || c.reported[k] || !slices.Equal(t.Uses[j].Need, ItemPaths(l)) {
		return
	}
	if s, err := c.team.Terms(handoff.User, t.Assignee).Delivers(nil); err != nil || !s.Whole() {
		return // it depends on the parts
	}
	c.reported[k] = true
	message := fmt.Sprintf("%s of input %q has %s, and at most %s of it reach %q", itemPlace(in, list.at), in.Name, exceeding(list.largest, limit), bytesize.Text(limit), t.Assignee)
	if in.Classification > *c.options.UserAccepts {
		message = fmt.Sprintf("an item of input %q has more than the %s that reach %q", in.Name, bytesize.Text(limit), t.Assignee)
	}
	c.task(i).at("uses", j).report(message, "raise maxContextBytes, grant parts of the items with need, or let the items be cut with cut: true", errors.Join(task.ErrInvalid, ErrInputValue))
}
