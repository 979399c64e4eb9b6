package redact

import "strings"

// keyDetectors find private keys, but no public keys and certificates.
var keyDetectors = []detector{
	{name: "pem", anchors: []anchor{{"-", "-", "-"}}, find: findArmor, ahead: 8},
	{name: "putty", anchors: []anchor{{"P", "r", "i"}}, find: findPuTTY},
	{name: "openssh body", anchors: []anchor{{"b", "3", "B"}}, find: findOpenSSHBody},
}

const (
	armorBegin = "BEGIN "
	armorEnd   = "-----END "
	maxLabel   = 80  // bytes between BEGIN and the dashes after it
	maxLine    = 512 // bytes of one line that are looked at together
	solid      = 16  // a line of base64 at least this long is key material
)

// An endMark records where the next "-----END " is, so that many BEGINs without an END cost one
// search.
type endMark struct {
	known    bool
	from, at int // the first at or after from is at; -1 for none
}

func nextArmorEnd(p *pass, i int) int {
	m := &p.tokens.armorEnd
	if !m.known || i < m.from || m.at >= 0 && i > m.at {
		*m = findArmorEnd(p, i)
	}
	if m.at < 0 {
		p.readTo(len(p.text))
	} else {
		p.readTo(m.at + len(armorEnd))
	}
	return m.at
}

func findArmorEnd(p *pass, i int) endMark {
	p.work += len(p.text) - i
	at := strings.Index(p.text[i:], armorEnd)
	if at >= 0 {
		p.work -= len(p.text) - i - at
		at += i
	}
	return endMark{true, i, at}
}

// findArmor finds -----BEGIN … PRIVATE KEY----- with what follows, to the END line if there is one
// (RFC 7468, RFC 4880 6.2; "---- BEGIN" as SSH2 writes it). Line breaks may be real, written as \n,
// or lost; lines may be quoted or indented.
func findArmor(p *pass, i int) {
	if at(p.text, i-1, dashChar) { // within a line of dashes
		return
	}
	k := p.runEnd(i, dashChar, i+maxLabel)
	if has(p.text, k, " ") {
		k++
	}
	if !has(p.text, k, armorBegin) {
		return
	}
	k += len(armorBegin)
	label := p.text[k:min(k+maxLabel, len(p.text))]
	p.work += len(label)
	p.readTo(k + maxLabel)
	dashes := strings.Index(label, "----")
	if dashes < 0 || !strings.Contains(label[:dashes], "PRIVATE KEY") {
		return
	}
	body := p.runEnd(k+dashes, dashChar, len(p.text))
	end, ok := armored(p, body)
	if !ok {
		return
	}
	p.consume(kindKey, i, end)
}

// armored returns the end of the key material that begins at body, and whether there is any.
func armored(p *pass, body int) (end int, ok bool) {
	stop := nextArmorEnd(p, body)
	if stop >= 0 {
		again := strings.Index(p.text[body:stop], "-----"+armorBegin)
		if again < 0 && (hasMaterial(p, body, stop) || isBlock(p, body, stop)) {
			line := stop + len(armorEnd)
			label := p.text[line:min(line+maxLabel, len(p.text))]
			p.readTo(line + maxLabel)
			if dashes := strings.Index(label, "-----"); dashes >= 0 && !strings.ContainsAny(label[:dashes], "\r\n") {
				return line + dashes + len("-----"), true
			}
			return line, true
		}
		p.work += max(again, 0)
	}
	return linesEnd(p, body)
}

// hasMaterial reports whether text[from:to] has a long run of base64.
func hasMaterial(p *pass, from, to int) bool {
	for k := from; k < to; k++ {
		end := p.runEnd(k, base64Char, to)
		if end-k >= solid && keyLike(p.text[k:min(end, k+64)]) {
			return true
		}
		k = end
	}
	return false
}

// isBlock reports whether a short body has lines of its own, each of them one run of base64. It is
// too short for a key, but where a key belongs.
func isBlock(p *pass, from, to int) bool {
	if to-from > 16*solid || !has(p.text, from, "\n") && !has(p.text, from, "\r") && !has(p.text, from, `\n`) {
		return false
	}
	found := false
	for k := from; k < to; {
		start, end, next := armorLine(p, k)
		start, end = min(start, to), min(end, to)
		if start < end && p.runEnd(start, base64Char, end) != end {
			return false
		}
		if h := p.shape(p.text[start:end]); start < end && h.uppers+h.digits > 0 && !filler(h) {
			found = true
		}
		k = next
	}
	return found
}

// keyLike reports whether a run of base64 is neither a word nor a mask.
func keyLike(run string) bool {
	h := shapeOf(run)
	return h.distinct >= 6 && !h.wordy() && !h.masked()
}

// linesEnd returns the end of the lines of base64 that begin at body, for an armor without an END
// line.
func linesEnd(p *pass, body int) (end int, ok bool) {
	end = body
	for k := body; k < len(p.text); {
		from, to, next := armorLine(p, k)
		content := p.text[from:to]
		p.work += next - k
		p.readTo(next)
		switch run := p.runEnd(from, base64Char, to); {
		case run == to && to-from >= solid:
			ok = ok || keyLike(content[:min(len(content), 64)])
			end = to
		case run == to && to > from && ok: // the last line, unless it is a word of prose
			if !shapeOf(content).wordy() {
				end = to
			}
			return end, true
		case !ok && to-from < solid*8 && (content == "" || strings.Contains(content, ": ")): // empty line or header before the body
		case !ok && run-from >= solid && keyLike(p.text[from:min(run, from+64)]): // the whole body on one line, more after it
			return p.runEnd(run, base64Char, len(p.text)), true
		default:
			return end, ok
		}
		if !ok && next-body > 2048 {
			return end, false
		}
		k = next
	}
	return end, ok
}

// armorLine returns the content of the line at k without its indentation, quotes and comment marks,
// and where the next line begins. A longer line is returned in pieces.
func armorLine(p *pass, k int) (from, to, next int) {
	limit := min(k+maxLine, len(p.text))
	to, next = limit, limit
	for i := k; i < limit; i++ {
		if p.text[i] == '\n' {
			to, next = i, i+1
			break
		}
		if p.text[i] == '\\' && i+1 < limit && (p.text[i+1] == 'n' || p.text[i+1] == 'r') {
			to, next = i, i+2
			break
		}
	}
	const margin = " \t\r\"'`>#*+,;\\"
	for from = k; from < to && strings.IndexByte(margin, p.text[from]) >= 0; from++ {
	}
	for to > from && strings.IndexByte(" \t\r\"'`,;\\", p.text[to-1]) >= 0 {
		to--
	}
	return from, to, next
}

// findPuTTY finds the private lines of a PuTTY key file.
func findPuTTY(p *pass, i int) {
	const mark = "Private-Lines:"
	if !has(p.text, i, mark) {
		return
	}
	k := p.runEnd(i+len(mark), blankChar, i+len(mark)+8)
	k = p.runEnd(k, digitChar, k+8)
	end, ok := linesEnd(p, k)
	if !ok {
		return
	}
	p.consume(kindKey, k, end)
}

// findOpenSSHBody finds the base64 of "openssh-key-v1\0", the body of an OpenSSH key that lost its
// BEGIN line.
func findOpenSSHBody(p *pass, i int) {
	if !p.has(i, "b3BlbnNzaC1rZXktdjE") {
		return
	}
	end, ok := linesEnd(p, i)
	if !ok {
		return
	}
	p.consume(kindKey, i, end)
}
