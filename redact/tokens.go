package redact

import "strings"

// A format is a token with known first bytes: a prefix and at least min bytes of a class, as its
// issuer documents it or scanners of repositories agree.
type format struct {
	prefix string
	body   class
	min    int
	flags  formatFlags
}

type formatFlags uint8

const (
	anywhere formatFlags = 1 << iota // no boundary needed on the left: no word has the prefix
	exact                            // exactly min bytes and a boundary on the right: bare hexadecimal is common
	strict                           // the prefix is short or common, so the body must look random
	isKey                            // a private key rather than a token
	awsID                            // a secret access key may be next to it
	numbered                         // the body begins with ids in digits
)

// formatTable lists formats, separated by semicolons or line ends: the prefix, the class of the
// body, the least number of its bytes, and flags. It is grouped by issuer. Prefixes of publishable
// keys (pk_live_, sitekeys) are left out on purpose.
const formatTable = `
# Code hosts and package registries.
ghp_ word 30 anywhere; gho_ word 30 anywhere; ghu_ word 30 anywhere; ghs_ word 30 anywhere; ghr_ word 30 anywhere;
github_pat_ word 22 anywhere; glpat- url 20 anywhere; gldt- url 20 anywhere; glrt- url 20 anywhere;
glrtr- url 20 anywhere; glptt- url 20 anywhere; glcbt- url 20 anywhere; glft- url 20 anywhere; glffct- url 20 anywhere;
glimt- url 20 anywhere; glagent- url 40 anywhere; gloas- url 40 anywhere; glsoat- url 20 anywhere; GR1348941 url 20;
_gitlab_session= hex 32 anywhere; ATBB alnum 24 strict; ATCTT3 url 40; ATATT3 url 60; npm_ alnum 36; pypi- url 50;
rubygems_ hex 48; oy2 alnum 43 strict; dckr_pat_ url 20 anywhere; dckr_oat_ url 20 anywhere; CLOJARS_ alnum 60;
cio alnum 32 strict exact; sgp_ word 40; AKCp alnum 60; cmVmd alnum 59 strict
# Clouds.
AKIA upper 16 aws exact; ASIA upper 16 aws exact; ABIA upper 16 aws exact; ACCA upper 16 aws exact;
A3T upper 17 aws exact; ABSK base64 100; bedrock-api-key- base64 40; IQoJb3JpZ2lu base64 100; FwoGZXIvYXdz base64 100;
AIza url 35; ya29. url 30; GOCSPX- url 24; 1//0 url 36 strict; LTAI alnum 20 strict; AQVN url 35 strict;
dop_v1_ hex 64 anywhere; doo_v1_ hex 64 anywhere; dor_v1_ hex 64 anywhere; v1.0- url 171 strict; fo1_ url 43;
fm1a_ base64 100; fm1r_ base64 100; fm2_ base64 100; HRKU- url 36; pscale_tkn_ url 32; pscale_oauth_ url 32;
pscale_pw_ url 32; sbp_ hex 40; sb_secret_ url 20; nfp_ alnum 36 strict; tk-us- url 48; sha256~ url 43;
dapi hex 32 strict; pul- hex 40; tskey- url 24; hvs. url 24; hvb. url 60; hvr. url 24; sntrys_ base64 60;
sntryu_ hex 64; glsa_ word 32; glc_ base64 32 strict; eyJrIjoi base64 60; ops_eyJ base64 100; NRAK- alnum 27;
NRII- url 32; NRJS- hex 19; dt0c01. alnum 24; dp.pt. alnum 40; dp.st. url 40; dp.ct. alnum 40; pnu_ alnum 36;
ico- alnum 32 strict; CFPAT- url 40; 4b1d alnum 38 strict exact
# Models.
sk-proj- url 20 anywhere; sk-svcacct- url 20 anywhere; sk-admin- url 20 anywhere; sk-None- url 20 anywhere;
sk-ant- url 20 anywhere; sk-or-v1- url 32 anywhere; sk-lf- url 32; sk- url 32 strict; sk_ alnum 48 strict;
gsk_ alnum 40; xai- alnum 60; pplx- alnum 40; hf_ alnum 34; api_org_ alnum 34; r8_ alnum 37; lsv2_pt_ word 32;
lsv2_sk_ word 32; pcsk_ word 40; nvapi- url 40; fw_ alnum 22 strict; tvly- url 24 strict
# Chat, mail, telephony.
xoxb- url 20 numbered; xoxp- url 20 numbered; xoxa- url 20 numbered; xoxo- url 20 numbered; xoxr- url 20 numbered;
xoxs- url 20 numbered; xoxc- url 20 numbered; xoxd- base64 20 numbered; xoxe- url 20 numbered;
xoxe.xoxb- url 20 numbered; xoxe.xoxp- url 20 numbered; xapp- url 20 numbered;
hooks.slack.com/services/ path 20 anywhere; hooks.slack.com/workflows/ path 20 anywhere;
hooks.slack.com/triggers/ path 20 anywhere; discord.com/api/webhooks/ path 40 anywhere;
discordapp.com/api/webhooks/ path 40 anywhere; SK hex 32 exact strict; key- hex 32 exact strict; xkeysib- url 64;
xsmtpsib- url 64; re_ word 30 strict; EAAM alnum 100; EAAC alnum 100; EAAB alnum 100; EAAG alnum 100
# Payments and shops.
sk_live_ alnum 10 anywhere; sk_test_ alnum 10 anywhere; sk_prod_ alnum 10 anywhere; rk_live_ alnum 10 anywhere;
rk_test_ alnum 10 anywhere; rk_prod_ alnum 10 anywhere; whsec_ base64 24; shpat_ hex 32 anywhere;
shpca_ hex 32 anywhere; shppa_ hex 32 anywhere; shpss_ hex 32 anywhere; sq0atp- url 22; sq0csp- url 40;
EZAK alnum 54 exact; EZTK alnum 54 exact; shippo_live_ hex 40; shippo_test_ hex 40; duffel_live_ url 40;
duffel_test_ url 40; FLWSECK url 12 strict; access-production- url 36; access-sandbox- url 36
# Tools of teams.
lin_api_ alnum 32; lin_oauth_ alnum 32; ntn_ alnum 40; secret_ alnum 43 strict exact; PMAK- url 50; figd_ url 36;
rdme_ alnum 60; tfp_ url 40; API- alnum 26 strict exact; squ_ hex 40; sqp_ hex 40; sqa_ hex 40; sm_aat_ alnum 16;
sm_pat_ alnum 16; sm_sat_ alnum 16; s-s4t2ud- hex 64; s-s4t2af- hex 64; fio-u- url 60; p8e- alnum 32 strict;
CCIPAT_ word 40; bkua_ hex 40; aio_ alnum 28 strict; dnkey- url 60; zpka_ word 40
# Private keys on one line.
AGE-SECRET-KEY-1 alnum 50 anywhere key
`

// formats has the rows of the table.
var formats = func() (all []format) {
	bodies := map[string]class{
		"word": wordChar, "url": urlChar, "hex": hexChar, "alnum": alnumChar, "base64": base64Char, "upper": baseChar, "path": slashChar,
	}
	flags := map[string]formatFlags{"anywhere": anywhere, "exact": exact, "strict": strict, "key": isKey, "aws": awsID, "numbered": numbered}
	for line := range strings.Lines(formatTable) {
		for row := range strings.SplitSeq(line, ";") {
			fields := strings.Fields(row)
			if len(fields) == 0 || fields[0] == "#" {
				continue
			}
			f := format{prefix: fields[0], body: bodies[fields[1]], min: number(fields[2])}
			for _, word := range fields[3:] {
				f.flags |= flags[word]
			}
			if f.body == 0 || f.min == 0 || len(fields) > 3 && f.flags == 0 {
				panic("redact: no format: " + row)
			}
			all = append(all, f)
		}
	}
	return all
}()

// formatDetectors groups formats by their first byte, one bit of the prefilter for each group.
func formatDetectors() []detector {
	var order []byte
	groups := map[byte][]format{}
	for _, f := range formats {
		b := f.prefix[0]
		if groups[b] == nil {
			order = append(order, b)
		}
		groups[b] = append(groups[b], f)
	}
	const room = 22  // bits of the prefilter that formats may take
	const shared = 5 // of them, for formats whose first byte is rare in prose
	buckets := make([][]format, room)
	common, rare := 0, 0
	for _, b := range order {
		k := room - shared + rare%shared
		if is(b, lowerChar) {
			k = common % (room - shared)
			common++
		} else {
			rare++
		}
		buckets[k] = append(buckets[k], groups[b]...)
	}
	out := make([]detector, len(buckets))
	for i, fs := range buckets {
		out[i] = detector{name: "format " + fs[0].prefix, anchors: formatAnchors(fs), find: func(p *pass, i int) { findFormat(p, i, fs) }, ahead: 3}
	}
	return out
}

func formatAnchors(fs []format) (anchors []anchor) {
	for _, f := range fs {
		a := anchor{f.prefix[:1], f.prefix[1:2], hexes}
		if len(f.prefix) > 2 {
			a[2] = f.prefix[2:3]
		}
		anchors = append(anchors, a)
	}
	return anchors
}

// starts has a bit for each anchor of a format, by its hash. The combined anchors of a group also
// admit other bytes.
var starts = func() (t [4096 / 64]uint64) {
	for _, a := range formatAnchors(formats) {
		for k := range len(a[2]) {
			h := startHash(a[0] + a[1] + a[2][k:k+1])
			t[h>>6] |= 1 << (h & 63)
		}
	}
	return t
}()

// startHash returns twelve bits of the first three bytes of t.
func startHash(t string) uint32 {
	return (uint32(t[0]) | uint32(t[1])<<8 | uint32(t[2])<<16) * 0x9e3779b1 >> 20
}

// findFormat finds a token of one of fs at i.
func findFormat(p *pass, i int, fs []format) {
	if h := startHash(p.text[i:]); starts[h>>6]&(1<<(h&63)) == 0 {
		return
	}
	for k := range fs {
		f := &fs[k]
		if f.prefix[0] != p.text[i] || f.prefix[1] != p.text[i+1] || !p.has(i, f.prefix) || f.flags&anywhere == 0 && at(p.text, i-1, wordChar) {
			continue
		}
		from := i + len(f.prefix)
		limit := p.runEnd(from, f.body, from+f.min+1)
		if limit-from < f.min || !f.accepts(p, p.text[from:from+f.min]) {
			continue
		}
		if f.flags&exact != 0 && (limit-from > f.min || f.body == hexChar && at(p.text, limit, wordChar)) {
			continue
		}
		kind := kindToken
		if f.flags&isKey != 0 {
			kind = kindKey
		}
		end := limit
		if f.flags&exact == 0 {
			end = tokenEnd(p, limit, f.body)
		}
		p.consume(kind, i, end)
		if f.flags&awsID != 0 {
			secretBeside(p, i, end)
		}
		return
	}
}

// accepts decides on the first bytes of a body only, so that text that follows a token directly
// does not hide it.
func (f *format) accepts(p *pass, body string) bool {
	if p.specimen(body) {
		return false
	}
	switch h := p.shape(body); {
	case f.flags&awsID != 0:
		return h.digits > 0 || !h.wordy()
	case f.flags&numbered != 0:
		return h.digits >= 8 || h.random(20) && h.digits > 0
	case f.flags&strict != 0:
		return h.random(16) && h.digits > 1
	}
	return true
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
