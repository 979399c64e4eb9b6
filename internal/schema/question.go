package schema

import (
	"fmt"
	"math"
)

// A question asks what can be at a path below a schema. The answer is never too narrow:
// what is unknown counts as possible.
type question struct {
	path   []string
	strict bool     // open names and numbers of members count as free text
	deep   bool     // containers at the end of the path count by their contents
	by     spelling // how names of the path are compared
	known  map[asked]reach
}

type asked struct {
	n *node
	i int
}

// at returns what can be at the path from its i-th token on, below a value to which the
// schema applies.
func (q *question) at(n *node, i int) reach {
	if n == nil {
		return everything
	}
	if r, ok := q.known[asked{n, i}]; ok {
		return r
	}
	q.known[asked{n, i}] = freely(fmt.Sprintf("%s contains itself, to any depth", place(n.at)))
	r := q.own(n, i)
	for _, e := range n.every {
		r = r.and(q.at(e, i))
	}
	for _, list := range n.some {
		var one reach
		for _, s := range list {
			one = one.or(q.at(s, i))
		}
		r = r.and(one)
	}
	q.known[asked{n, i}] = r
	return r
}

// own does what at does for the keywords of the node itself.
func (q *question) own(n *node, i int) reach {
	if n.fixed != nil {
		return listed(n.fixed, q.path[i:], q.by)
	}
	if i == len(q.path) {
		return q.whole(n)
	}
	var r reach
	if n.types.has(anObject) {
		r = r.or(q.member(n, i))
	}
	if n.types.has(anArray) {
		r = r.or(q.element(n, i))
	}
	return r
}

// listed returns what is at a path in one of the values.
func listed(values []any, path []string, by spelling) reach {
	choices := len(values)
	for _, token := range path {
		values = parts(values, token, by)
	}
	var found [kindCount]int
	for _, v := range values {
		found[kindOf(v)]++
	}
	var r reach
	for k, n := range found {
		if n > 0 {
			r[k] = cell{level: bounded, load: load{chars: 1, bits: max(1, math.Log2(float64(min(len(values), choices))))}}
		}
		if n > 0 && kind(k) >= aString {
			r[k].load.words = math.Log2(float64(min(n, choices)))
		}
	}
	return r
}

// parts returns the parts of the values that a token selects.
func parts(values []any, token string, by spelling) []any {
	var out []any
	for _, v := range values {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if by.names(name, token) {
					out = append(out, member)
				}
			}
		case []any:
			at, isIndex := by.index(token)
			for k, item := range v {
				if token == "*" || isIndex && k == at {
					out = append(out, item)
				}
			}
		}
	}
	return out
}

// member returns what can be in the member of an object that the i-th token names.
func (q *question) member(n *node, i int) reach {
	token := q.path[i]
	if token == "*" {
		return q.members(n, i+1, anyName)
	}
	if q.by == asBlocks || respelt(token) {
		return q.members(n, i+1, func(name string) bool { return q.by.names(name, token) })
	}
	p, named := n.props[token]
	r := everything
	if named {
		r = q.at(p, i+1)
	}
	for _, p := range n.patterns {
		switch {
		case p.name.limit != nil:
			named = true // it is not known which members it is about
		case p.name.mayMatch(token):
			r, named = r.and(q.at(p.node, i+1)), true
		}
	}
	if !named {
		return q.at(n.rest, i+1)
	}
	return r
}

// members returns what can be in members of such a name, and in all members whose names
// the schema does not list.
func (q *question) members(n *node, i int, such func(name string) bool) reach {
	var r reach
	for name, p := range n.props {
		if such(name) {
			r = r.plus(q.at(p, i))
		}
	}
	for _, p := range n.patterns {
		r = r.plus(q.unnamed(n, p.node, i))
	}
	return r.plus(q.unnamed(n, n.rest, i))
}

// unnamed returns what can be in members whose names the reply chooses.
func (q *question) unnamed(n, of *node, i int) reach {
	r := q.at(of, i)
	if c, _ := r.most(); q.strict && c.level != absent {
		return freely(fmt.Sprintf(`%s leaves the names of members to the reply: write "properties" and "additionalProperties": false`, place(n.at)))
	}
	return r
}

// element returns what can be in the items of an array that the i-th token names.
func (q *question) element(n *node, i int) reach {
	k, isIndex := q.by.index(q.path[i])
	if isIndex {
		if n.maxItems >= 0 && k >= n.maxItems {
			return reach{}
		}
		if k < len(n.prefix) {
			return q.at(n.prefix[k], i+1)
		}
		return q.at(n.items, i+1)
	}
	if q.path[i] != "*" {
		return reach{}
	}
	return q.anyElement(n, i+1)
}

// maxBoundedItems is how many items a list may have that counts as bounded.
const maxBoundedItems = 64

func (q *question) anyElement(n *node, i int) reach {
	var r reach
	for k, p := range n.prefix {
		if n.maxItems < 0 || k < n.maxItems {
			r = r.plus(q.at(p, i))
		}
	}
	if n.maxItems >= 0 && n.maxItems <= len(n.prefix) {
		return r
	}
	rest := q.at(n.items, i)
	if n.maxItems >= 0 && n.maxItems <= maxBoundedItems {
		return r.plus(rest.times(n.maxItems - len(n.prefix)))
	}
	if c, _ := rest.most(); q.strict && c.level == bounded {
		rest = freely(fmt.Sprintf(`%s leaves open how many items there are: write "maxItems" of at most %d`, place(n.at), maxBoundedItems))
	}
	return r.plus(rest)
}

// whole returns what can be at the end of the path.
func (q *question) whole(n *node) reach {
	var r reach
	for k := range kindCount {
		if !n.types.has(k) {
			continue
		}
		switch k {
		case aString:
			r[k] = n.text()
		case anObject:
			r[k] = q.object(n)
		case anArray:
			r[k] = q.array(n)
		default:
			r[k] = n.scalar(k)
		}
	}
	return r.withBits(r.sum())
}

// object and array return what containers of these kinds can be at the end of a path.
func (q *question) object(n *node) cell {
	if !q.deep {
		return cell{level: free, why: container(n, "an object")}
	}
	return contained(q.members(n, len(q.path), anyName))
}

func (q *question) array(n *node) cell {
	if !q.deep {
		return cell{level: free, why: container(n, "an array")}
	}
	return contained(q.anyElement(n, len(q.path)))
}

func container(n *node, what string) string {
	if n.types == allKinds {
		return "" // no keyword restricts it
	}
	return fmt.Sprintf("%s allows %s there, which only a path that ends in /** selects", place(n.at), what)
}

// contained returns what a container of the parts can be. Whether it is there carries
// something even if it has no parts: a list of empty objects shows how many there are.
func contained(parts reach) cell {
	c, _ := parts.most()
	l := parts.load()
	l.chars, l.bits = max(l.chars, 1), max(l.bits, 1)
	return cell{max(c.level, bounded), c.why, l}
}
