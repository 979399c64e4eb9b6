// Package markdown reads which blocks a text in Markdown has, such as headings, lists and tables.
//
// [Blocks] returns a tree of nodes that have plain texts, so that a page can show it without HTML:
//
//	blocks := markdown.Blocks("# Boxes\n\nIn **March**, 412 were sold.")
//
// HTML has no meaning here: it is text, and so are entities. Images are their text and where they are; nothing loads
// them. Line breaks stay, and lines may be indented, as in a letter.
package markdown

import "encoding/json"

// A Kind says what a node is.
type Kind string

// The kinds of blocks, the parts of some of them, and what lines of text consist of.
const (
	Paragraph Kind = "paragraph"
	Heading   Kind = "heading" // has a level, from 1 to 6
	Quote     Kind = "quote"
	Code      Kind = "code" // a block; has a text and maybe a language
	Rule      Kind = "rule"
	List      Kind = "list"    // of items
	Ordered   Kind = "ordered" // list of items; has the number of the first
	Item      Kind = "item"
	Table     Kind = "table" // of rows, of which the first has the titles of columns
	Row       Kind = "row"   // of cells
	Cell      Kind = "cell"

	Text     Kind = "text" // may have line breaks
	Literal  Kind = "literal"
	Emphasis Kind = "emphasis"
	Strong   Kind = "strong"
	Deleted  Kind = "deleted"
	Link     Kind = "link"  // has a target
	Image    Kind = "image" // has a target; its nodes describe it
)

// A Node is a block or a part of one. In JSON, a text is a string, since most nodes are texts.
type Node struct {
	Kind     Kind   `json:"kind"`
	Text     string `json:"text,omitempty"`
	Level    int    `json:"level,omitempty"`
	First    int    `json:"first,omitempty"`
	Language string `json:"language,omitempty"`
	Target   string `json:"target,omitempty"` // as it is written; it may be anything
	Align    string `json:"align,omitempty"`  // of a cell: "center" or "right"
	Nodes    []Node `json:"nodes,omitempty"`
}

// MarshalJSON returns a text as a string, and any other node as an object.
func (n Node) MarshalJSON() ([]byte, error) {
	if n.Kind == Text {
		return json.Marshal(n.Text)
	}
	type object Node
	return json.Marshal(object(n))
}

// How large a text may be that is read, and its tree. Beyond that, a text is better read as it is written.
const (
	maxBytes = 64 << 10
	maxNodes = 20_000
	maxDepth = 32
)

// Blocks returns the blocks of a text. It returns none if the text is JSON, if it is plain, so that all of it would be
// paragraphs of text, or if it is too large to be read or shown quickly.
func Blocks(source string) []Node {
	if IsCostly(source) || json.Valid([]byte(source)) {
		return nil
	}
	t := tree{source: []byte(source)}
	blocks := t.children(parse(t.source), 0)
	if t.failed || !t.marked {
		return nil
	}
	return blocks
}
