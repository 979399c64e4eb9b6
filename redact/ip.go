package redact

import (
	"net/netip"
	"strings"
)

// ipDetector finds addresses at the first separator in them.
var ipDetector = detector{name: "ip", anchors: []anchor{{":.", digits + "abcdefABCDEF:", ""}}, find: findIP}

func findIP(s *scan, i int) int {
	if s.text[i] == '.' {
		return findIPv4(s, i)
	}
	return findIPv6(s, i)
}

// findIPv4 finds four octets, the first of which ends before i.
func findIPv4(s *scan, i int) int {
	start := s.runStart(i, digitChar, i-4)
	end := start
	for octet := range 4 {
		if octet > 0 {
			if !at(s.text, end, dotChar) {
				return i
			}
			end++
		}
		to := s.runEnd(end, digitChar, end+4)
		if to == end || to-end > 3 || number(s.text[end:to]) > 255 {
			return i
		}
		end = to
	}
	if !endsIPv4(s.text, end) || !startsIPv4(s.text, start) || s.version(start, end) {
		return i
	}
	end = prefixEnd(s.text, end, 32)
	s.hit(IP, start, end)
	return end
}

// startsIPv4 reports whether an address may begin at i: not in a word, a longer number with dots, or the name of a
// package before its version. Behind a colon it may, where no IPv6 address is cut so.
func startsIPv4(text string, i int) bool {
	switch {
	case i == 0:
		return true
	case insideWord(text, i):
		return false
	case text[i-1] == '.':
		return !at(text, i-2, wordChar)
	case text[i-1] == '-':
		return !at(text, i-2, letterChar)
	}
	return true
}

func endsIPv4(text string, i int) bool {
	if at(text, i, dotChar) || at(text, i, dashChar) && !at(text, i+1, digitChar) {
		return !at(text, i+1, wordChar)
	}
	return !at(text, i, wordChar)
}

// version reports four numbers that are a version, the number of a section, or an object identifier by the word before
// them, or the frozen version of a browser.
func (s *scan) version(start, end int) bool {
	if has(s.text, start-1, "/") && at(s.text, start-2, letterChar) && strings.HasSuffix(s.text[start:end], ".0.0") {
		return true
	}
	if start > 0 && !is(s.text[start-1], blankChar) && s.text[start-1] != ':' && s.text[start-1] != '=' {
		return false
	}
	word, _ := s.wordBefore(start, max(start-16, 0))
	return oneOf(word, "v", "ver", "version", "versions", "release", "build", "section", "sec", "rfc", "chapter", "clause", "table", "figure", "fig",
		"appendix", "step", "oid", "upgrade", "firmware", "fileversion", "productversion", "assemblyversion")
}

// prefixEnd returns the end of a prefix length of at most bits behind the address that ends before i, or i.
func prefixEnd(text string, i, bits int) int {
	if !has(text, i, "/") {
		return i
	}
	k := i + 1
	for k < len(text) && k < i+5 && is(text[k], digitChar) {
		k++
	}
	if k == i+1 || k > i+4 || number(text[i+1:k]) > bits || at(text, k, wordChar) {
		return i
	}
	return k
}

const maxIPv6 = 45 // 39 in full, 45 with an IPv4 address in it

// findIPv6 finds an address whose first colon is at i.
func findIPv6(s *scan, i int) int {
	if has(s.text, i-1, ":") {
		return i
	}
	start := s.runStart(i, hexChar, i-5)
	if i-start > 4 || i == start && !has(s.text, i, "::") || !startsIPv6(s.text, start) {
		return i
	}
	end := s.ipv6End(start)
	if end == start || !s.plausible(start, end) {
		return i
	}
	end = prefixEnd(s.text, s.zoneEnd(end), 128)
	s.hit(IP, start, end)
	return end
}

// startsIPv6 reports whether an address may begin at i.
func startsIPv6(text string, i int) bool {
	switch {
	case i == 0:
		return true
	case text[i-1] == ':' || text[i-1] == '.':
		return !hexGroupBefore(text, i-1)
	}
	return !insideWord(text, i)
}

// insideWord reports whether what stands before i > 0 is of a word that would go on at i. The letter of an escape such as
// \n is not.
func insideWord(text string, i int) bool {
	if is(text[i-1], letterChar) {
		return !has(text, i-2, `\`) || !escape(text[i-1])
	}
	return is(text[i-1], wordChar)
}

// ipv6End returns the end of the address that begins at start, or start.
func (s *scan) ipv6End(start int) int {
	end, colons := start, 0
	for end < len(s.text) && end-start <= maxIPv6 && (is(s.text[end], hexChar|dotChar) || s.text[end] == ':') {
		if s.text[end] == ':' {
			colons++
		}
		end++
	}
	s.work += 2 * (end - start)
	if colons < 2 || end-start > maxIPv6 || at(s.text, end, wordChar) {
		return start
	}
	for s.text[end-1] == '.' { // of a sentence
		end--
	}
	if s.text[end-1] == ':' && s.text[end-2] != ':' {
		end--
	}
	if address, err := netip.ParseAddr(s.text[start:end]); err != nil || !address.Is6() {
		return start
	}
	return end
}

// plausible reports whether what reads as an IPv6 address is meant as one. Names of code (a::b) have no digit, slices
// (x[1::2]) stand in brackets, addresses of eight bytes are no IP, and two colons alone are mostly an operator.
func (s *scan) plausible(start, end int) bool {
	address := s.text[start:end]
	switch {
	case s.says(promisesIP):
		return true
	case address == "::":
		return s.unspecified(start, end)
	case strings.HasSuffix(address, "::") && has(s.text, end, "/") && at(s.text, end+1, letterChar): // of a control group: 0::/user
		return false
	case !strings.ContainsAny(address, digits):
		return strings.Count(address, ":") > 3
	case len(address) == 8*2+7 && pairs(address):
		return false
	case has(s.text, start-1, "[") && at(s.text, start-2, wordChar) && has(s.text, end, "]") && address != "::1":
		return strings.ContainsAny(address, "abcdefABCDEF")
	}
	return true
}

// pairs reports hexadecimal digits by twos.
func pairs(address string) bool {
	for k := 2; k < len(address); k += 3 {
		if address[k] != ':' {
			return false
		}
	}
	return true
}

// unspecified reports whether :: is an address: it has a prefix length, stands in brackets before a port, or behind a
// word that says so.
func (s *scan) unspecified(start, end int) bool {
	if has(s.text, end, "/") {
		return prefixEnd(s.text, end, 128) > end
	}
	if has(s.text, start-1, "[") && has(s.text, end, "]:") && at(s.text, end+2, digitChar) {
		return true
	}
	k := start
	for k > 0 && start-k < 4 && strings.IndexByte(" \t=:([\"'", s.text[k-1]) >= 0 {
		k--
	}
	word := s.text[s.runStart(k, alnumChar, k-16):k]
	return oneOf(word, "ip", "ips", "ip6", "ipv6", "inet6", "addr", "address", "src", "dst", "host", "listen", "listening", "bind", "gateway", "route", "any")
}

// zoneEnd returns the end of the zone behind the address that ends before i, or i.
func (s *scan) zoneEnd(i int) int {
	if !has(s.text, i, "%") {
		return i
	}
	end := s.runEnd(i+1, urlChar|dotChar, i+33)
	for end > i+1 && s.text[end-1] == '.' {
		end--
	}
	if end == i+1 {
		return i
	}
	return end
}
