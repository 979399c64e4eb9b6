package redact

// A pass is one reading of a text by all detectors: the text, what they remember on the way, and
// what they find. Results that detectors share are remembered here, so that the work stays linear
// in the text.
type pass struct {
	text     string
	location location // where the text is
	hits     []span   // what was found, in any order, overlapping
	next     int      // where the pass continues
	read     int      // the decision on this anchor depends on the text before this offset; see [pass.readTo]
	work     int      // bytes read beyond the pass itself; tests bound it by a multiple of the text

	escapes   bool  // the text has percent-encoding, backslash escapes or character references
	controls  bool  // the text has control characters
	lastShape shape // the last result of [pass.shape]

	values  valueMemory
	tokens  tokenMemory
	numbers numberMemory
}

// A valueMemory is what detectors of values next to names have read.
type valueMemory struct {
	end   int // assignments before this offset have been decided
	hints hintMark
	open  openRun
}

// A tokenMemory is what detectors of keys and tokens have read.
type tokenMemory struct {
	headers  int // bytes before this offset belong to the run of base64url that was searched for headers of a JWT
	armorEnd endMark
	beside   int // the text before this offset was searched for AWS secrets
	manifest int // the Kubernetes document that ends here has been decided
}

// A numberMemory is what detectors of numbers have read.
type numberMemory struct {
	loose     int              // numbers in groups before this offset have been decided
	groups    [maxGroups]group // the first grouped are the last result of [pass.numberGroups]
	grouped   int
	near      []byte // a number in another form, with what is next to it
	rewritten *pass  // reads near
}

func (p *pass) reset(text string) {
	p.text, p.hits, p.work, p.escapes, p.controls = text, p.hits[:0], 0, false, false
	p.values, p.tokens = valueMemory{hints: hintMark{last: -1, barrier: -1}}, tokenMemory{}
	p.lastShape.text, p.numbers.loose, p.numbers.grouped = "", 0, 0
}

// readTo notes that the decision on this anchor depends on the text before offset k, or on its end
// if that comes first. Detectors note where their loops end, because a text that still arrives goes
// on. What they look at next to an anchor or to the end of a loop has a bound instead:
// detector.ahead, and farLook.
func (p *pass) readTo(k int) { p.read = max(p.read, k) }

// hit records a span. It panics for an empty or inverted span, which is a bug of a detector.
func (p *pass) hit(kind Kind, start, end int) {
	if start < 0 || end <= start || end > len(p.text) {
		panic("redact: span out of bounds")
	}
	p.hits = append(p.hits, span{start, end, kind})
}

// consume records a span and lets the pass continue after it. Whether a text has escapes or control
// characters must not depend on what is found in it.
func (p *pass) consume(kind Kind, start, end int) {
	p.hit(kind, start, end)
	p.next = max(p.next, end)
	escapes, controls := disguises(p.text[start:end])
	p.escapes, p.controls = p.escapes || escapes, p.controls || controls
}

// disguises reports whether a text may have escapes, and whether it has control characters.
func disguises(text string) (escapes, controls bool) {
	var all class
	for i := range len(text) {
		all |= classes[text[i]]
	}
	return all&escapeChar != 0, all&controlChar != 0
}
