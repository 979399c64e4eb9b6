package specfile

import (
	"slices"
	"strconv"
	"strings"
)

// Nodes for writing a spec.

func textNode(s string) *node { return &node{is: isText, text: s} }

func numberNode(text string) *node { return &node{is: isNumber, text: text} }

func intNode(i int) *node { return numberNode(strconv.Itoa(i)) }

func boolNode(b bool) *node { return &node{is: isBool, text: strconv.FormatBool(b)} }

func listNode() *node { return &node{is: isList} }

func textsNode(words []string) *node {
	n := listNode()
	for _, w := range words {
		n.add(textNode(w))
	}
	return n
}

func objectNode() *node { return &node{is: isObject} }

// add adds a value to a list.
func (n *node) add(value *node) { n.kids = append(n.kids, *value) }

// set adds a key to an object; a nil value adds nothing.
func (n *node) set(key string, value *node) {
	if value != nil {
		n.add(value)
		n.kids[len(n.kids)-1].key = key
	}
}

// orNil returns a list or an object, or nil if it has no parts.
func (n *node) orNil() *node {
	if n.len() == 0 {
		return nil
	}
	return n
}

// replace sets a key and removes the same key in another letter case.
func (n *node) replace(key string, value *node) {
	n.kids = slices.DeleteFunc(n.kids, func(known node) bool { return strings.EqualFold(known.key, key) })
	n.set(key, value)
}

// same reports whether two values are equal, with keys in the same order.
func same(a, b *node) bool {
	if a.is != b.is || a.len() != b.len() {
		return false
	}
	switch a.is {
	case isText, isBool:
		return a.text == b.text
	case isNumber:
		one, _ := a.appendJSON(nil)
		two, _ := b.appendJSON(nil)
		return string(one) == string(two)
	}
	for i, part := range a.parts() {
		if part.key != b.kids[i].key || !same(part, &b.kids[i]) {
			return false
		}
	}
	return true
}
