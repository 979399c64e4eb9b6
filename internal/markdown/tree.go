package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// A tree counts the nodes that it makes, and fails if they are too many.
type tree struct {
	source []byte
	nodes  int
	bytes  int  // of texts and targets
	marked bool // it has more than paragraphs of text
	failed bool
}

// children returns the nodes in a node of the parser.
func (t *tree) children(of ast.Node, depth int) []Node {
	if depth > maxDepth {
		t.failed = true
	}
	var nodes []Node
	for child := of.FirstChild(); child != nil && !t.failed; child = child.NextSibling() {
		if text, ok := child.(*ast.Text); ok {
			nodes = t.addText(nodes, text)
			continue
		}
		n := t.node(child, depth)
		if n.Kind == Paragraph && len(n.Nodes) == 0 { // it had definitions of targets
			continue
		}
		nodes = append(nodes, t.count(n))
	}
	return nodes
}

// count adds a node to the size of the tree.
func (t *tree) count(n Node) Node {
	t.nodes++
	t.bytes += len(n.Text) + len(n.Target) + len(n.Language)
	t.marked = t.marked || n.Kind != Paragraph && n.Kind != Text
	t.failed = t.failed || t.nodes > maxNodes || t.bytes > 2*maxBytes
	return n
}

// node returns the node of a node of the parser, which is no text.
func (t *tree) node(of ast.Node, depth int) (n Node) {
	switch of := of.(type) {
	case *ast.Heading:
		n = Node{Kind: Heading, Level: of.Level}
	case *ast.Blockquote:
		n.Kind = Quote
	case *ast.FencedCodeBlock:
		return Node{Kind: Code, Language: plain(of.Language(t.source)), Text: lines(of, t.source)}
	case *ast.ThematicBreak:
		n.Kind = Rule
	case *ast.List:
		if n.Kind = List; of.IsOrdered() {
			n = Node{Kind: Ordered, First: of.Start}
		}
	case *ast.ListItem:
		n.Kind = Item
	case *extension.Table:
		n.Kind = Table
	case *extension.TableHeader, *extension.TableRow:
		n.Kind = Row
	case *extension.TableCell:
		n = Node{Kind: Cell, Align: alignments[of.Alignment]}
	case *ast.CodeSpan:
		return Node{Kind: Literal, Text: string(bytes.ReplaceAll(literal(of, t.source), []byte("\n"), []byte(" ")))}
	case *ast.Emphasis:
		if n.Kind = Emphasis; of.Level == 2 {
			n.Kind = Strong
		}
	case *extension.Strikethrough:
		n.Kind = Deleted
	case *ast.Link:
		n = Node{Kind: Link, Target: plain(of.Destination)}
	case *ast.Image:
		n = Node{Kind: Image, Target: plain(of.Destination)}
	case *ast.AutoLink:
		return t.address(of)
	default: // a paragraph, or the only lines of an item
		n.Kind = Paragraph
	}
	n.Nodes = t.children(of, depth+1)
	return n
}

var alignments = map[extension.Alignment]string{extension.AlignCenter: "center", extension.AlignRight: "right"}

// addText adds a text to nodes, with the line break behind it. The parser cuts texts where something could have begun.
func (t *tree) addText(nodes []Node, of *ast.Text) []Node {
	text := plain(of.Segment.Value(t.source))
	if of.SoftLineBreak() || of.HardLineBreak() {
		text = strings.TrimRight(text, " ") + "\n"
	}
	if last := len(nodes) - 1; last >= 0 && nodes[last].Kind == Text {
		t.bytes += len(text)
		nodes[last].Text += text
		return nodes
	}
	return append(nodes, t.count(Node{Kind: Text, Text: text}))
}

// address returns the link that an address is.
func (t *tree) address(of *ast.AutoLink) Node {
	text, target := string(of.Label(t.source)), string(of.URL(t.source))
	if of.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	return Node{Kind: Link, Target: target, Nodes: []Node{t.count(Node{Kind: Text, Text: text})}}
}

// lines returns the lines of a block.
func lines(of ast.Node, source []byte) string {
	var text bytes.Buffer
	for i := range of.Lines().Len() {
		line := of.Lines().At(i)
		text.Write(line.Value(source))
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// literal returns the text in backticks.
func literal(of ast.Node, source []byte) (text []byte) {
	for child := of.FirstChild(); child != nil; child = child.NextSibling() {
		if part, ok := child.(*ast.Text); ok {
			text = append(text, part.Segment.Value(source)...)
		}
	}
	return text
}

// plain returns a text without the backslashes that escape its marks.
func plain(text []byte) string { return string(util.UnescapePunctuations(text)) }
