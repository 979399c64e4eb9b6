package specfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxYAML bounds a YAML file, in bytes.
const maxYAML = 1 << 20

// maxBlockKeys bounds the keys of one mapping in block style, since the parser takes time
// quadratic in their number.
const maxBlockKeys = 1000

// parseYAML reads the text of a source. It rejects tokens of anchors, aliases, merges, tags,
// directives, complex keys and further documents before parsing, so that the parser cannot
// expand values, recurse without bound or take quadratic time. A * alone is reported and
// then read as a text.
func parseYAML(s *source) (*node, []fault, error) {
	tokens := lexer.Tokenize(s.text)
	c := &yamlConverter{src: s, line: 1, column: 1}
	stars := c.stars(tokens)
	if bad := append(c.inspect(tokens), stars...); len(bad) > len(stars) {
		return nil, bad, bad[0].err()
	}
	file, err := parseTokens(tokens)
	if err != nil {
		f := c.syntax(err)
		return nil, append(stars, *f), f
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && body == nil {
			body = doc.Body
		}
	}
	n := &node{src: s}
	if body != nil {
		c.convert(body, n)
	}
	if c.fault != nil {
		return nil, append(stars, *c.fault), c.fault
	}
	return n, append(stars, c.twice...), nil
}

func (f fault) err() error { return &f }

// parseTokens calls the parser. It returns a panic as a syntax error.
func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("cannot be read as YAML")
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// A yamlConverter makes nodes from a syntax tree. It caches the last place that it looked
// up, since the tree is walked in the order of the text.
type yamlConverter struct {
	src          *source
	line, column int // of offset
	offset       int
	twice        []fault
	fault        *fault
}

// stars reports each * alone, which YAML reads as an alias without a name, and changes it
// to a text, up to maxProblems times.
func (c *yamlConverter) stars(tokens token.Tokens) (found []fault) {
	for _, t := range tokens {
		if t.Type != token.AliasType || len(found) == maxProblems {
			continue
		}
		at := c.at(t.Position)
		rest := strings.TrimPrefix(c.src.text[at:], "*")
		if rest != "" && !strings.ContainsRune(" \t\r\n,}]", rune(rest[0])) {
			continue
		}
		found = append(found, fault{at: at, message: "a * without quotes begins an alias, which is not supported", hint: `put it in quotes: "*"`, refused: true})
		t.Type, t.CharacterType, t.Indicator = token.StringType, token.CharacterTypeMiscellaneous, token.NotIndicator
	}
	return found
}

// unsupported are the tokens of YAML that are rejected: the message, and the hint in three parts, of which the
// second is for specs alone.
var unsupported = map[token.Type][4]string{
	token.AnchorType:     {"anchors and aliases are not supported", "write the value out where it is needed", ", or use agentDefaults, taskDefaults or schemas", "; put a text that begins with & or * in quotes"},
	token.AliasType:      {"anchors and aliases are not supported", "write the value out where it is needed", ", or use agentDefaults, taskDefaults or schemas", "; put a text that begins with & or * in quotes"},
	token.MergeKeyType:   {"merge keys (<<) are not supported", "write the keys out", ", or use agentDefaults or taskDefaults"},
	token.TagType:        {"tags (!) are not supported", "write the value alone; put a text that begins with ! in quotes"},
	token.DirectiveType:  {"directives (%) are not supported", "remove the line; put a text that begins with % in quotes"},
	token.MappingKeyType: {"keys of the form \"? key\" are not supported", "write key: value"},
}

// inspect reports unsupported tokens, and values that are nested too deep or have too many keys.
func (c *yamlConverter) inspect(tokens token.Tokens) (bad []fault) {
	line := 0 // of the last problem, so that each line is reported once
	add := func(t *token.Token, message, hint string) {
		if n := len(bad); n == 0 || bad[n-1].message != message || line != t.Position.Line {
			bad = append(bad, fault{at: c.at(t.Position), message: message, hint: hint})
		}
		line = t.Position.Line
	}
	var in nesting
	content, closed := false, false
	for i, t := range tokens {
		if len(bad) >= maxProblems {
			return bad
		}
		if says, refused := unsupported[t.Type]; refused {
			if c.src.other {
				says[2] = ""
			}
			add(t, says[0], says[1]+says[2]+says[3])
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.DocumentHeaderType, token.DocumentEndType:
			closed = content
			continue
		}
		if content = true; closed {
			add(t, "a second document (after --- or ...): a file holds one", "put it into a file of its own")
			return bad
		}
		first := t
		if t.Type == token.MappingValueType && i > 0 {
			first = tokens[i-1]
		}
		if in.enter(t.Type, first.Position.Column); in.keys() > maxBlockKeys {
			add(first, fmt.Sprintf("more than %d keys in one mapping", maxBlockKeys), "write the file as JSON")
			return bad
		}
		if len(in.blocks)+in.flow > maxDepth {
			add(t, fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
			return bad
		}
	}
	return bad
}

// nesting is the depth of a token, in block style and in brackets.
type nesting struct {
	blocks []struct{ column, keys int }
	flow   int
}

// enter counts a token; column is that of its key or dash.
func (n *nesting) enter(t token.Type, column int) {
	switch t {
	case token.MappingStartType, token.SequenceStartType:
		n.flow++
	case token.MappingEndType, token.SequenceEndType:
		n.flow--
	}
	if n.flow != 0 || t != token.MappingValueType && t != token.SequenceEntryType {
		return
	}
	for len(n.blocks) > 0 && n.blocks[len(n.blocks)-1].column > column {
		n.blocks = n.blocks[:len(n.blocks)-1]
	}
	if len(n.blocks) == 0 || n.blocks[len(n.blocks)-1].column < column {
		n.blocks = append(n.blocks, struct{ column, keys int }{column, 0})
	}
	if t == token.MappingValueType {
		n.blocks[len(n.blocks)-1].keys++
	}
}

// keys returns how many keys the innermost mapping in block style has so far.
func (n *nesting) keys() int {
	if len(n.blocks) == 0 {
		return 0
	}
	return n.blocks[len(n.blocks)-1].keys
}

// syntax returns an error of the parser with its place.
func (c *yamlConverter) syntax(err error) *fault {
	type located interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if at, ok := errors.AsType[located](err); ok && at.GetToken() != nil && at.GetToken().Position != nil {
		f := &fault{at: c.at(at.GetToken().Position), message: strings.Map(printable, at.GetMessage())}
		if strings.HasPrefix(c.src.text[f.at:], "\t") || strings.HasPrefix(f.message, "tab character") {
			f.message, f.hint = "tab used for indentation", "use spaces"
			return f
		}
		start, end := c.src.extent(f.at)
		f.hint = syntaxHint(f.message, c.src.text[start:end])
		return f
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &fault{message: first}
}

// syntaxHint returns a hint for a message of the parser about a line.
func syntaxHint(message, line string) string {
	switch {
	case strings.ContainsAny(line, "{[") && (strings.Contains(line, "://") || strings.Contains(line, "${")):
		return "between braces and brackets, put URLs and ${…} in quotes"
	case strings.HasPrefix(message, "',' or '"):
		return "close what the line before opens; between braces and brackets, put texts that hold , : { } [ ] in quotes"
	case strings.HasPrefix(message, "mapping value is not allowed"):
		return `put a text that holds ": " in quotes, or write it after |; keys of one mapping begin in one column`
	case strings.HasPrefix(message, "value is not allowed"):
		return "align this key with its siblings; put a text that begins with a quote wholly in quotes"
	case strings.HasPrefix(message, "non-map value"):
		return "write key: value, in the column of the keys around it; put - before each entry of a list"
	}
	return ""
}

// at returns the offset of a position, which counts lines and characters.
func (c *yamlConverter) at(p *token.Position) int {
	if p.Line < c.line || p.Line == c.line && p.Column < c.column {
		c.line, c.column, c.offset = p.Line, 1, c.src.lineStart(p.Line)
	}
	for c.offset < len(c.src.text) && (c.line < p.Line || c.line == p.Line && c.column < p.Column) {
		r, size := utf8.DecodeRuneInString(c.src.text[c.offset:])
		crlf := r == '\r' && strings.HasPrefix(c.src.text[c.offset+size:], "\n")
		if r == '\n' || r == '\r' && !crlf {
			if c.line == p.Line {
				break // the column is after the end of its line
			}
			c.line, c.column = c.line+1, 1
		} else {
			c.column++
		}
		c.offset += size
	}
	return c.offset
}

// fail records the first value that cannot be converted.
func (c *yamlConverter) fail(n ast.Node, message string) {
	if c.fault == nil {
		c.fault = &fault{at: c.at(n.GetToken().Position), message: message}
	}
}

// convert writes the value of a syntax node to n.
func (c *yamlConverter) convert(from ast.Node, n *node) {
	n.src = c.src
	switch v := from.(type) {
	case *ast.MappingNode:
		c.mapping(v, v.Values, n)
	case *ast.MappingValueNode:
		c.mapping(v, []*ast.MappingValueNode{v}, n)
	case *ast.SequenceNode:
		n.is, n.at = isList, c.at(v.GetToken().Position)
		n.kids = make([]node, len(v.Values))
		for i, value := range v.Values {
			c.convert(value, &n.kids[i])
		}
		n.close(c.shut(v.IsFlowStyle, v.End))
	case *ast.LiteralNode:
		n.is, n.at, n.text = isText, c.at(v.Start.Position), v.Value.Value
		if v.Start.Type == token.LiteralType {
			n.form = literal
		}
	case *ast.StringNode:
		n.is, n.at, n.text = isText, c.at(v.Token.Position), v.Value
	case *ast.NullNode:
		n.at = c.at(v.GetToken().Position)
	case *ast.BoolNode:
		n.is, n.at, n.text = isBool, c.at(v.GetToken().Position), fmt.Sprint(v.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.is, n.at, n.text = isNumber, c.at(from.GetToken().Position), from.GetToken().Value
	default:
		c.fail(from, "a kind of value that is not supported")
	}
}

func (c *yamlConverter) mapping(from ast.Node, values []*ast.MappingValueNode, n *node) {
	n.is = isObject
	n.kids = make([]node, len(values))
	m, ok := from.(*ast.MappingNode)
	if ok && m.IsFlowStyle {
		n.at = c.at(m.Start.Position)
	} else if len(values) > 0 {
		n.at = c.at(values[0].Key.GetToken().Position)
	}
	for i, pair := range values {
		key := pair.Key.GetToken()
		member := &n.kids[i]
		member.key, member.keyAt = key.Value, c.at(key.Position)
		if _, list := pair.Key.(*ast.StringNode); !list && !isScalar(pair.Key) {
			c.fail(pair.Key, "a key that is not one word")
			return
		}
		c.convert(pair.Value, member)
	}
	end := c.offset
	if ok {
		end = c.shut(m.IsFlowStyle, m.End)
	}
	n.close(end)
	c.twice = append(c.twice, n.duplicates()...)
}

// shut returns the end of a list or a mapping: its closing bracket, or else a place in its
// last part.
func (c *yamlConverter) shut(flow bool, end *token.Token) int {
	if flow && end != nil {
		return c.at(end.Position)
	}
	return c.offset
}

func isScalar(n ast.Node) bool {
	_, ok := n.(ast.ScalarNode)
	return ok
}
