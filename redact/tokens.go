package redact

import "strings"

// A format is a token that tells itself by its first bytes, as its issuer documents it or scanners of repositories
// agree on it: a prefix and at least min bytes of a class.
type format struct {
	prefix string
	body   class
	min    int
	flags  formatFlags
}

type formatFlags uint8

const (
	anywhere formatFlags = 1 << iota // no boundary needed on the left: the prefix is a word in no language
	exact                            // exactly min bytes and a boundary on the right: bare hexadecimal is common
	strict                           // the prefix is short or common, so the body must look random
	isKey                            // a private key rather than a token
	awsID                            // a secret access key may stand beside it
	numbered                         // the body begins with ids in digits
)

// formats is grouped by issuer. Prefixes of publishable keys (pk_live_, sitekeys) are left out on purpose.
var formats = []format{
	// Code hosts and package registries.
	{"ghp_", wordChar, 30, anywhere}, {"gho_", wordChar, 30, anywhere}, {"ghu_", wordChar, 30, anywhere}, {"ghs_", wordChar, 30, anywhere},
	{"ghr_", wordChar, 30, anywhere}, {"github_pat_", wordChar, 22, anywhere},
	{"glpat-", urlChar, 20, anywhere}, {"gldt-", urlChar, 20, anywhere}, {"glrt-", urlChar, 20, anywhere}, {"glrtr-", urlChar, 20, anywhere},
	{"glptt-", urlChar, 20, anywhere}, {"glcbt-", urlChar, 20, anywhere}, {"glft-", urlChar, 20, anywhere}, {"glffct-", urlChar, 20, anywhere},
	{"glimt-", urlChar, 20, anywhere}, {"glagent-", urlChar, 40, anywhere}, {"gloas-", urlChar, 40, anywhere}, {"glsoat-", urlChar, 20, anywhere},
	{"GR1348941", urlChar, 20, 0}, {"_gitlab_session=", hexChar, 32, anywhere}, {"ATBB", alnumChar, 24, strict}, {"ATCTT3", urlChar, 40, 0},
	{"ATATT3", urlChar, 60, 0}, {"npm_", alnumChar, 36, 0}, {"pypi-", urlChar, 50, 0}, {"rubygems_", hexChar, 48, 0}, {"oy2", alnumChar, 43, strict},
	{"dckr_pat_", urlChar, 20, anywhere}, {"dckr_oat_", urlChar, 20, anywhere}, {"CLOJARS_", alnumChar, 60, 0}, {"cio", alnumChar, 32, strict | exact},
	{"sgp_", wordChar, 40, 0}, {"AKCp", alnumChar, 60, 0}, {"cmVmd", alnumChar, 59, strict},
	// Clouds.
	{"AKIA", baseChar, 16, awsID | exact}, {"ASIA", baseChar, 16, awsID | exact}, {"ABIA", baseChar, 16, awsID | exact}, {"ACCA", baseChar, 16, awsID | exact},
	{"A3T", baseChar, 17, awsID | exact}, {"ABSK", base64Char, 100, 0}, {"bedrock-api-key-", base64Char, 40, 0},
	{"IQoJb3JpZ2lu", base64Char, 100, 0}, {"FwoGZXIvYXdz", base64Char, 100, 0},
	{"AIza", urlChar, 35, 0}, {"ya29.", urlChar, 30, 0}, {"GOCSPX-", urlChar, 24, 0}, {"1//0", urlChar, 36, strict},
	{"LTAI", alnumChar, 20, strict}, {"AQVN", urlChar, 35, strict}, {"dop_v1_", hexChar, 64, anywhere}, {"doo_v1_", hexChar, 64, anywhere},
	{"dor_v1_", hexChar, 64, anywhere}, {"v1.0-", urlChar, 171, strict}, {"fo1_", urlChar, 43, 0}, {"fm1a_", base64Char, 100, 0},
	{"fm1r_", base64Char, 100, 0}, {"fm2_", base64Char, 100, 0}, {"HRKU-", urlChar, 36, 0}, {"pscale_tkn_", urlChar, 32, 0},
	{"pscale_oauth_", urlChar, 32, 0}, {"pscale_pw_", urlChar, 32, 0}, {"sbp_", hexChar, 40, 0}, {"sb_secret_", urlChar, 20, 0},
	{"nfp_", alnumChar, 36, strict}, {"tk-us-", urlChar, 48, 0}, {"sha256~", urlChar, 43, 0}, {"dapi", hexChar, 32, strict},
	{"pul-", hexChar, 40, 0}, {"tskey-", urlChar, 24, 0}, {"hvs.", urlChar, 24, 0}, {"hvb.", urlChar, 60, 0}, {"hvr.", urlChar, 24, 0},
	{"sntrys_", base64Char, 60, 0}, {"sntryu_", hexChar, 64, 0}, {"glsa_", wordChar, 32, 0}, {"glc_", base64Char, 32, strict},
	{"eyJrIjoi", base64Char, 60, 0}, {"ops_eyJ", base64Char, 100, 0}, {"NRAK-", alnumChar, 27, 0}, {"NRII-", urlChar, 32, 0},
	{"NRJS-", hexChar, 19, 0}, {"dt0c01.", alnumChar, 24, 0}, {"dp.pt.", alnumChar, 40, 0}, {"dp.st.", urlChar, 40, 0}, {"dp.ct.", alnumChar, 40, 0},
	{"pnu_", alnumChar, 36, 0}, {"ico-", alnumChar, 32, strict}, {"CFPAT-", urlChar, 40, 0}, {"4b1d", alnumChar, 38, strict | exact},
	// Models.
	{"sk-proj-", urlChar, 20, anywhere}, {"sk-svcacct-", urlChar, 20, anywhere}, {"sk-admin-", urlChar, 20, anywhere}, {"sk-None-", urlChar, 20, anywhere},
	{"sk-ant-", urlChar, 20, anywhere}, {"sk-or-v1-", urlChar, 32, anywhere}, {"sk-lf-", urlChar, 32, 0}, {"sk-", urlChar, 32, strict},
	{"sk_", alnumChar, 48, strict}, {"gsk_", alnumChar, 40, 0}, {"xai-", alnumChar, 60, 0}, {"pplx-", alnumChar, 40, 0}, {"hf_", alnumChar, 34, 0},
	{"api_org_", alnumChar, 34, 0}, {"r8_", alnumChar, 37, 0}, {"lsv2_pt_", wordChar, 32, 0}, {"lsv2_sk_", wordChar, 32, 0}, {"pcsk_", wordChar, 40, 0},
	{"nvapi-", urlChar, 40, 0}, {"fw_", alnumChar, 22, strict}, {"tvly-", urlChar, 24, strict},
	// Chat, mail, telephony.
	{"xoxb-", urlChar, 20, numbered}, {"xoxp-", urlChar, 20, numbered}, {"xoxa-", urlChar, 20, numbered}, {"xoxo-", urlChar, 20, numbered},
	{"xoxr-", urlChar, 20, numbered}, {"xoxs-", urlChar, 20, numbered}, {"xoxc-", urlChar, 20, numbered}, {"xoxd-", base64Char, 20, numbered},
	{"xoxe-", urlChar, 20, numbered}, {"xoxe.xoxb-", urlChar, 20, numbered}, {"xoxe.xoxp-", urlChar, 20, numbered}, {"xapp-", urlChar, 20, numbered},
	{"hooks.slack.com/services/", slashChar, 20, anywhere}, {"hooks.slack.com/workflows/", slashChar, 20, anywhere},
	{"hooks.slack.com/triggers/", slashChar, 20, anywhere},
	{"discord.com/api/webhooks/", slashChar, 40, anywhere}, {"discordapp.com/api/webhooks/", slashChar, 40, anywhere},
	{"SK", hexChar, 32, exact | strict}, {"key-", hexChar, 32, exact | strict}, {"xkeysib-", urlChar, 64, 0}, {"xsmtpsib-", urlChar, 64, 0},
	{"re_", wordChar, 30, strict}, {"EAAM", alnumChar, 100, 0}, {"EAAC", alnumChar, 100, 0}, {"EAAB", alnumChar, 100, 0}, {"EAAG", alnumChar, 100, 0},
	// Payments and shops.
	{"sk_live_", alnumChar, 10, anywhere}, {"sk_test_", alnumChar, 10, anywhere}, {"sk_prod_", alnumChar, 10, anywhere},
	{"rk_live_", alnumChar, 10, anywhere}, {"rk_test_", alnumChar, 10, anywhere}, {"rk_prod_", alnumChar, 10, anywhere},
	{"whsec_", base64Char, 24, 0}, {"shpat_", hexChar, 32, anywhere}, {"shpca_", hexChar, 32, anywhere}, {"shppa_", hexChar, 32, anywhere},
	{"shpss_", hexChar, 32, anywhere}, {"sq0atp-", urlChar, 22, 0}, {"sq0csp-", urlChar, 40, 0},
	{"EZAK", alnumChar, 54, exact}, {"EZTK", alnumChar, 54, exact}, {"shippo_live_", hexChar, 40, 0}, {"shippo_test_", hexChar, 40, 0},
	{"duffel_live_", urlChar, 40, 0}, {"duffel_test_", urlChar, 40, 0}, {"FLWSECK", urlChar, 12, strict}, {"access-production-", urlChar, 36, 0},
	{"access-sandbox-", urlChar, 36, 0},
	// Tools of teams.
	{"lin_api_", alnumChar, 32, 0}, {"lin_oauth_", alnumChar, 32, 0}, {"ntn_", alnumChar, 40, 0}, {"secret_", alnumChar, 43, strict | exact},
	{"PMAK-", urlChar, 50, 0}, {"figd_", urlChar, 36, 0}, {"rdme_", alnumChar, 60, 0}, {"tfp_", urlChar, 40, 0}, {"API-", alnumChar, 26, strict | exact},
	{"squ_", hexChar, 40, 0}, {"sqp_", hexChar, 40, 0}, {"sqa_", hexChar, 40, 0}, {"sm_aat_", alnumChar, 16, 0}, {"sm_pat_", alnumChar, 16, 0},
	{"sm_sat_", alnumChar, 16, 0}, {"s-s4t2ud-", hexChar, 64, 0}, {"s-s4t2af-", hexChar, 64, 0}, {"fio-u-", urlChar, 60, 0}, {"p8e-", alnumChar, 32, strict},
	{"CCIPAT_", wordChar, 40, 0}, {"bkua_", hexChar, 40, 0}, {"aio_", alnumChar, 28, strict}, {"dnkey-", urlChar, 60, 0}, {"zpka_", wordChar, 40, 0},
	// Private keys on one line.
	{"AGE-SECRET-KEY-1", alnumChar, 50, anywhere | isKey},
}

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
	const shared = 5 // of them, for what begins with a byte that is rare in prose
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
		out[i] = detector{name: "format " + fs[0].prefix, anchors: formatAnchors(fs), find: func(p *pass, i int) int { return findFormat(p, i, fs) }}
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

// starts has a bit for each anchor of a format, by its hash: anchors of one group admit what none of them means.
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
func findFormat(p *pass, i int, fs []format) int {
	if h := startHash(p.text[i:]); starts[h>>6]&(1<<(h&63)) == 0 {
		return i
	}
	for k := range fs {
		f := &fs[k]
		if f.prefix[0] != p.text[i] || f.prefix[1] != p.text[i+1] || !strings.HasPrefix(p.text[i:], f.prefix) || f.flags&anywhere == 0 && at(p.text, i-1, wordChar) {
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
		p.hit(kind, i, end)
		if f.flags&awsID != 0 {
			secretBeside(p, i, end)
		}
		return end
	}
	return i
}

// accepts rules on the first bytes of a body. What follows them has no say: text glued to a token does not hide it.
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

// tokenEnd returns the end of the token whose body is known to reach to i: the rest of the run, and further runs that
// hang on it by single dots (tokens of several parts; a part of two digits tells the length of another).
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

// secretBeside finds the 40 characters of an AWS secret access key near its key id, whatever stands between.
func secretBeside(p *pass, from, to int) {
	const length, reach = 40, 240
	lo, hi := max(from-reach, p.tokens.beside), min(to+reach, len(p.text))
	p.work += max(hi-lo, 0)
	p.tokens.beside = hi
	for k := lo; k < hi; k++ {
		if !is(p.text[k], awsChar) || at(p.text, k-1, awsChar) {
			continue
		}
		end := p.runEnd(k, awsChar, k+length+1)
		if end-k == length && !p.specimen(p.text[k:end]) {
			if h := p.shape(p.text[k:end]); h.random(length) && h.uppers > 2 && h.lowers > 2 && h.digits > 0 {
				p.hit(kindToken, k, end)
			}
		}
		k = end
	}
}
