package redact

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"strconv"
	"strings"
)

// formatTable lists the formats of tokens, one in a line, with the columns that its first line
// names. The table in docs/reference/redaction.md is made of it.
//
// Before and after a prefix are runs, each an alphabet and a number of bytes (16, 15-16 or 20+), and
// literal text. Prefixes of publishable keys (pk_live_, sitekeys) are left out on purpose.
//
//go:embed tokens.tsv
var formatTable string

// A format is a token with a known prefix, as its issuer documents it or scanners of repositories
// agree.
type format struct {
	prefix string
	first  uint32 // its first bytes, at most three, as in firstBytes
	mask   uint32
	before run // belongs to the token; without it, no word byte may precede
	after  []formatPart
	probe  int  // offset of the literal after a first run of fixed length, which excludes most texts; 0 for none
	whole  bool // no word byte may follow: bare hexadecimal is common
	checks formatChecks
}

// A run is a row of bytes of one class.
type run struct {
	body        class
	least, most int // most is 0 for no bound
}

// A formatPart is a run, or a literal text.
type formatPart struct {
	run
	literal string
}

type formatChecks uint8

const (
	anywhere    formatChecks = 1 << iota // may follow a word: no word has the prefix
	random                               // the prefix is short or common, so the token must look random
	isKey                                // a private key rather than a token
	awsID                                // a secret access key may be next to it
	numbered                             // begins with ids in digits
	base58check                          // ends with the checksum of Bitcoin
)

var (
	alphabets = map[string]class{
		"word": wordChar, "url": urlChar, "hex": hexChar, "alnum": alnumChar, "base64": base64Char, "both": base64Char | urlChar, "upper": baseChar, "lower": lowerChar | digitChar,
		"path": slashChar, "digit": digitChar, "azure": azureChar, "base58": base58Char, "bech32": bech32Char,
	}
	checkNames = map[string]formatChecks{
		"anywhere": anywhere, "random": random, "key": isKey, "aws": awsID, "ids": numbered, "base58check": base58check,
	}
)

// formats has the rows of the table, one for each prefix.
var formats = func() (all []format) {
	_, rows, _ := strings.Cut(formatTable, "\n")
	for row := range strings.Lines(rows) {
		columns := strings.Split(row, "\t")
		f := format{after: formatParts(columns[3])}
		for _, b := range formatParts(columns[1]) {
			f.before = b.run
		}
		n := len(f.after) - 1
		f.whole = n < 0 || f.after[n].most > 0 && f.after[n].body&^(hexChar|digitChar) == 0
		for name := range strings.FieldsSeq(columns[4]) {
			f.checks |= checkNames[name]
		}
		for f.prefix = range strings.FieldsSeq(columns[2]) {
			f.mask = 1<<(8*min(len(f.prefix), 3)) - 1
			f.first = firstBytes(f.prefix+"\x00\x00") & f.mask
			if len(f.after) > 1 && f.after[0].most == f.after[0].least {
				f.probe = len(f.prefix) + f.after[0].least
			}
			all = append(all, f)
		}
	}
	return all
}()

// formatParts parses the runs and literals of a column.
func formatParts(column string) (all []formatPart) {
	fields := strings.Fields(column)
	for ; len(fields) > 0; fields = fields[1:] {
		body := alphabets[fields[0]]
		if body == 0 {
			all = append(all, formatPart{literal: fields[0]})
			continue
		}
		fields = fields[1:]
		least, most, isRange := strings.Cut(strings.TrimSuffix(fields[0], "+"), "-")
		r := run{body: body}
		r.least, _ = strconv.Atoi(least)
		switch {
		case isRange:
			r.most, _ = strconv.Atoi(most)
		case least == fields[0]:
			r.most = r.least
		}
		all = append(all, formatPart{run: r})
	}
	return all
}

// formatDetectors groups formats by their first byte, one bit of the prefilter for each group.
func formatDetectors() []detector {
	var order []byte
	groups := map[byte][]format{}
	var out []detector
	for _, f := range formats {
		b := f.prefix[0]
		if len(f.prefix) == 1 { // its anchor is met too often to share a bit
			out = append(out, formatDetector([]format{f}, findProbed))
			continue
		}
		if groups[b] == nil {
			order = append(order, b)
		}
		groups[b] = append(groups[b], f)
	}
	const room = 26  // bits of the prefilter that groups may take
	const shared = 6 // of them, for formats whose first byte is rare in prose
	buckets := make([][]format, room)
	for _, b := range order {
		all := buckets[room-shared:]
		if is(b, lowerChar) {
			all = buckets[:room-shared]
		}
		least := &all[0]
		for k := range all {
			if len(all[k]) < len(*least) {
				least = &all[k]
			}
		}
		*least = append(*least, groups[b]...)
	}
	for _, fs := range buckets {
		if len(fs) > 0 {
			out = append(out, formatDetector(fs, findStarted))
		}
	}
	return out
}

func formatDetector(fs []format, find func(p *pass, i int, fs []format)) detector {
	return detector{name: "format " + fs[0].prefix, anchors: formatAnchors(fs), find: func(p *pass, i int) { find(p, i, fs) }, ahead: 3}
}

func formatAnchors(fs []format) (anchors []anchor) {
	for _, f := range fs {
		a, body := anchor{}, alnumChar
		if len(f.after) > 0 {
			body = f.after[0].body
		}
		for k := range a {
			if k < len(f.prefix) {
				a[k] = f.prefix[k : k+1]
			} else {
				a[k] = body.bytes()
			}
		}
		anchors = append(anchors, a)
	}
	return anchors
}

// starts has a bit for each anchor of a format, by its hash, and glued those of the formats that may
// follow a word byte. The combined anchors of a group also admit other bytes.
var starts, glued = func() (starts, glued [4096 / 64]uint64) {
	for _, f := range formats {
		if len(f.prefix) == 1 {
			continue
		}
		a := formatAnchors([]format{f})[0]
		for k := range len(a[2]) {
			h := startHash(a[0] + a[1] + a[2][k:k+1])
			starts[h>>6] |= 1 << (h & 63)
			if f.checks&anywhere != 0 || f.before.least > 0 {
				glued[h>>6] |= 1 << (h & 63)
			}
		}
	}
	return starts, glued
}()

// startHash returns twelve bits of the first three bytes of t.
func startHash(t string) uint32 { return firstBytes(t) * 0x9e3779b1 >> 20 }

// firstBytes returns the first three bytes of t.
func firstBytes(t string) uint32 { return uint32(t[0]) | uint32(t[1])<<8 | uint32(t[2])<<16 }

// findStarted is findFormat where a format may begin by its first three bytes.
func findStarted(p *pass, i int, fs []format) {
	table := &starts
	if at(p.text, i-1, wordChar) {
		table = &glued
	}
	if h := startHash(p.text[i:]); table[h>>6]&(1<<(h&63)) != 0 {
		findFormat(p, i, fs)
	}
}

// findProbed is findFormat for one format whose probe does not exclude the text.
func findProbed(p *pass, i int, fs []format) {
	f := &fs[0]
	if k := i + f.probe; f.probe > 0 && k < len(p.text) && p.text[k] != f.after[1].literal[0] {
		return
	}
	findFormat(p, i, fs)
}

// findFormat finds a token of one of fs whose prefix is at i.
func findFormat(p *pass, i int, fs []format) {
	first := firstBytes(p.text[i:])
	for k := range fs {
		f := &fs[k]
		if first&f.mask != f.first || !p.has(i, f.prefix) {
			continue
		}
		from, end := f.span(p, i)
		if end == from {
			continue
		}
		kind := kindToken
		if f.checks&isKey != 0 {
			kind = kindKey
		}
		p.consume(kind, from, end)
		if f.checks&awsID != 0 {
			secretBeside(p, from, end)
		}
		return
	}
}

// span returns where the token begins and ends whose prefix is at i; they are equal if it is none.
func (f *format) span(p *pass, i int) (from, end int) {
	if f.before.least == 0 && f.checks&anywhere == 0 && at(p.text, i-1, wordChar) {
		return i, i
	}
	value := i + len(f.prefix)
	end, settled := f.afterEnd(p, value)
	if end < value {
		return i, i
	}
	from = i
	if b := f.before; b.least > 0 {
		from = p.runStart(i, b.body, i-b.most-min(b.most-b.least, 1))
		if n := i - from; n < b.least || n > b.most {
			return i, i
		}
		value = from
	}
	if !f.accepts(p, p.text[value:settled]) || f.checks&base58check != 0 && !hasBase58Checksum(p.text[from:end]) {
		return i, i
	}
	if n := len(f.after); n > 0 && f.after[n-1].most == 0 {
		return from, tokenEnd(p, end, f.after[n-1].body)
	}
	for p.text[end-1] == '.' { // of a sentence
		end--
	}
	return from, end
}

// afterEnd returns the end of what follows the prefix before i, -1 if that does not fit, and the end
// of the bytes that decide: text that follows a token directly must not hide it.
func (f *format) afterEnd(p *pass, i int) (end, settled int) {
	end, settled = i, i
	for k := range f.after {
		part := &f.after[k]
		if part.literal != "" {
			if !p.has(end, part.literal) {
				return -1, 0
			}
			end += len(part.literal)
			continue
		}
		start := end
		end = p.runEnd(start, part.body, start+max(part.least, part.most)+1)
		if n := end - start; n < part.least || part.most > 0 && n > part.most {
			return -1, 0
		}
		settled = end
		if part.most == 0 {
			settled = start + part.least
		}
	}
	if f.whole && at(p.text, end, wordChar) {
		return -1, 0
	}
	return end, settled
}

// accepts decides on the bytes of a token that its format fixes.
func (f *format) accepts(p *pass, value string) bool {
	if p.specimen(value) {
		return false
	}
	switch h := p.shape(value); {
	case f.checks&awsID != 0:
		return h.digits > 0 || !h.wordy()
	case f.checks&numbered != 0:
		return h.digits >= 8 || h.random(20) && h.digits > 0
	case f.checks&random != 0:
		return h.random(16) && h.digits > 1
	}
	return true
}

// hasBase58Checksum reports whether the last four of the bytes that a text in base58 represents are
// the first of the double SHA-256 of the bytes before, which begin with no zero.
func hasBase58Checksum(text string) bool {
	var raw [40]byte // big-endian
	for i := range len(text) {
		carry := strings.IndexByte(base58, text[i])
		for k := len(raw) - 1; k >= 0; k-- {
			carry += int(raw[k]) * len(base58)
			raw[k], carry = byte(carry), carry>>8
		}
		if carry > 0 {
			return false
		}
	}
	payload, sum := raw[:len(raw)-4], raw[len(raw)-4:]
	once := sha256.Sum256(bytes.TrimLeft(payload, "\x00"))
	twice := sha256.Sum256(once[:])
	return bytes.HasPrefix(twice[:], sum)
}

// tokenEnd returns the end of the token whose body is known to reach to i: the rest of the run, and
// further runs that joined to it by single dots (tokens of several parts; a part of two digits is
// the length of another).
func tokenEnd(p *pass, i int, body class) int {
	end := p.runEnd(i, body|alnumChar, len(p.text))
	for k := end; at(p.text, k, dotChar) && at(p.text, k+1, alnumChar); {
		part := p.runEnd(k+1, body|wordChar, len(p.text))
		switch {
		case part-k > 8 && !p.shape(p.text[k+1:min(part, k+65)]).wordy():
			end = part
		case part-k != 3 || !is(p.text[k+1], digitChar):
			return end
		}
		k = part
	}
	return end
}

// secretBeside finds the 40 characters of an AWS secret access key near its key id, whatever is
// between.
func secretBeside(p *pass, from, to int) {
	const length, reach = 40, 240
	lo, hi := max(from-reach, p.tokens.beside), min(to+reach, len(p.text))
	p.work += max(hi-lo, 0)
	p.tokens.beside = hi
	p.readTo(to + reach)
	for k := lo; k < hi; k++ {
		if !is(p.text[k], awsChar) || at(p.text, k-1, awsChar) {
			continue
		}
		end := p.runEnd(k, awsChar, k+length+1)
		if end-k == length && !p.specimen(p.text[k:end]) {
			if awsSecret(p.shape(p.text[k:end])) {
				p.hit(kindToken, k, end)
			}
		}
		k = end
	}
}

// awsSecret reports whether 40 characters next to an AWS key ID are the secret of it.
func awsSecret(h shape) bool { return h.random(40) && h.uppers > 2 && h.lowers > 2 && h.digits > 0 }
