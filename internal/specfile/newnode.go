package specfile

import (
	"slices"
	"strconv"
	"strings"
)

// Values that are made, not read: what a spec that is written consists of.

func textNode(s string) *node { return &node{is: isText, text: s} }

func numberNode(text string) *node { return &node{is: isNumber, text: text} }

func intNode(i int) *node { return numberNode(strconv.Itoa(i)) }

func boolNode(b bool) *node { return &node{is: isBool, text: strconv.FormatBool(b)} }

func listNode(items ...node) *node { return &node{is: isList, kids: &kids{nodes: items}} }

func textsNode(words []string) *node {
	n := listNode()
	for _, w := range words {
		n.kids.nodes = append(n.kids.nodes, *textNode(w))
	}
	return n
}

func objectNode() *node { return &node{is: isObject, kids: &kids{}} }

// set adds a key to an object; a nil value adds nothing.
func (n *node) set(key string, value *node) {
	if value != nil {
		n.kids.keys, n.kids.nodes = append(n.kids.keys, key), append(n.kids.nodes, *value)
	}
}

// replace sets a key that may be there already in another letter case.
func (k *kids) replace(key string, value *node) {
	i := slices.IndexFunc(k.keys, func(known string) bool { return strings.EqualFold(known, key) })
	if i < 0 {
		k.keys, k.nodes = append(k.keys, key), append(k.nodes, *value)
		return
	}
	k.keys[i], k.nodes[i] = key, *value
}

// same reports whether two values say the same in the same words.
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
	for i := range a.len() {
		if a.is == isObject && a.kids.keys[i] != b.kids.keys[i] || !same(&a.kids.nodes[i], &b.kids.nodes[i]) {
			return false
		}
	}
	return true
}
