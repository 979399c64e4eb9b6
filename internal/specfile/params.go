package specfile

import (
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/provenance"
)

// A param is a one-line value that goals, descriptions and prompts can contain.
type param struct {
	value string
	src   *source
	key   int // the offset of its name
	used  bool
	bad   bool // reported already
	unset bool // it has no value; see [Declare]
}

// readParams collects the parameters of all files and their values in the options.
func (r *reader) readParams(layers []*layer) {
	for _, y := range layers {
		n := y.spec.own("params")
		if n == nil {
			continue
		}
		for _, value := range n.parts() {
			name := value.key
			if !isParamName(name) {
				r.badKey(value, ErrInvalid, "use letters, digits, _ and -", "params: %s is not a valid name", quote(name))
				continue
			}
			if _, twice := r.places.params[name]; twice {
				r.badKey(value, ErrInvalid, "keep one of them", "params: another file declares %s too", quote(name))
				continue
			}
			r.places.params[name] = r.param(value)
		}
	}
	for _, name := range sortedKeys(r.o.Params) {
		if _, known := r.places.params[name]; !known {
			r.badOption("Params", ErrUnknown, nearHint(name, "declare it under params", sortedKeys(r.places.params)...), " %s: no such parameter", quote(name))
		}
	}
}

// param returns a parameter with its value, from the options or from the file.
func (r *reader) param(n *node) *param {
	name, p := n.key, &param{src: n.src, key: n.keyAt, value: n.text}
	given, fromFlag := r.o.Params[name]
	if fromFlag {
		p.value = given
	}
	switch {
	case n.is == isList || n.is == isObject:
		r.bad(n, "write one line of text, a number, true or false, or nothing", "params: %s: %s where a value belongs", name, n.describe())
		p.bad = true
	case !fromFlag && n.is == isNull && r.o.unbound:
		p.value, p.unset = name, true
	case !fromFlag && n.is == isNull:
		r.bad(n, "give it with "+r.o.called("Params")+" "+name+"=VALUE, or write a default", "params: %s has no value", name)
		p.bad = true
	default:
		if err := naming.CheckLine(p.value); err != nil && fromFlag {
			r.badOption("Params", err, "give one line", " %s: %v", name, err)
			p.bad = true
		} else if err != nil {
			r.badAs(n, err, "write one line; longer texts are inputs", "params: %s: %v", name, err)
			p.bad = true
		}
	}
	return p
}

// isParamName reports whether a word may name a parameter.
func isParamName(name string) bool {
	if name == "" || len(name) > naming.MaxName {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

const (
	opening   = "${"
	paramOpen = opening + "params."
)

// fill replaces parameters in a text and returns their ranges in the result. It reports
// problems at their places.
func (r *reader) fill(key string, n *node) (string, []provenance.Param) {
	from, text := r.textOf(n)
	return r.fillText(key, text, func(offset int) (*source, int) {
		if from == nil {
			return placeInText(n, offset)
		}
		return from, offset
	})
}

// dollar is the parameter for a literal dollar sign: ${params.$}{params.x} becomes
// ${params.x}.
const dollar = "$"

// fillText is fill for a text whose bytes place locates.
func (r *reader) fillText(key, text string, place func(offset int) (*source, int)) (string, []provenance.Param) {
	if !strings.Contains(text, opening) {
		return text, nil
	}
	var b strings.Builder
	var ranges []provenance.Param
	for offset := 0; ; {
		i := strings.Index(text[offset:], opening)
		if i < 0 {
			b.WriteString(text[offset:])
			return b.String(), ranges
		}
		b.WriteString(text[offset : offset+i])
		offset += i
		src, at := place(offset)
		if !strings.HasPrefix(text[offset:], paramOpen) {
			r.warnLookalike(key, text[offset:], src, at)
			b.WriteString(opening)
			offset += len(opening)
			continue
		}
		name, _, closed := strings.Cut(text[offset+len(paramOpen):], "}")
		if closed && name == dollar {
			b.WriteString(dollar)
			offset += len(paramOpen) + len(name) + 1
			continue
		}
		if !closed || !isParamName(name) {
			r.badAt(src, at, "write ${params.NAME}", "%s: ${params. without a name and the closing }", key)
			b.WriteString(paramOpen)
			offset += len(paramOpen)
			continue
		}
		offset += len(paramOpen) + len(name) + 1
		p, known := r.places.params[name]
		if !known {
			hint := "declare it under params"
			if best := nearestOf(name, sortedKeys(r.places.params)...); best != "" {
				hint = "did you mean ${params." + best + "}?"
			}
			r.badAtAs(src, at, ErrUnknown, hint, "%s: no parameter %s", key, quote(name))
			b.WriteString(name)
			continue
		}
		p.used = true
		ranges = append(ranges, provenance.Param{Name: name, Start: b.Len(), End: b.Len() + len(p.value)})
		b.WriteString(p.value)
	}
}

// warnLookalike warns of a text such as ${year} that is probably meant as a parameter.
func (r *reader) warnLookalike(key, text string, src *source, at int) {
	word, _, closed := strings.Cut(text[len(opening):], "}")
	inner := strings.TrimSpace(word)
	group, name, dotted := strings.Cut(inner, ".")
	if !dotted {
		group, name = "", inner
	}
	if !closed || !isParamName(name) {
		return
	}
	hint := ""
	for _, known := range append(sortedKeys(r.places.params), name) { // an exact one wins
		if p := r.places.params[known]; p != nil && strings.EqualFold(known, name) {
			hint, p.used = "write ${params."+known+"}", true
		}
	}
	switch near := nearestOf(strings.ToLower(group), "params", "param", "parameters", "env"); {
	case hint != "":
	case group == "" || near == "":
		return
	case near == "env":
		hint = "the environment never enters a prompt; declare a parameter, and write ${params.NAME}"
	default:
		hint = "write ${params." + name + "}, and declare it under params"
	}
	r.warnAt(src, at, hint, "%s: %s is plain text here", key, quote(opening+word+"}"))
}

// textOf returns the text of a value that may be {file: PATH}, and the source of that file;
// nil for a text in the spec.
func (l *loader) textOf(n *node) (from *source, text string) {
	switch {
	case n == nil:
		return nil, ""
	case n.is == isObject:
		src := l.readFile(n.get("file"), maxText)
		if src == nil {
			return nil, ""
		}
		l.named[n] = src
		return src, src.text
	}
	return nil, n.text
}
