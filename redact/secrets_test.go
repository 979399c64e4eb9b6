package redact_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/redact"
)

// A find is a text with what must be replaced in it: every part, and nothing else.
type find struct {
	name  string
	text  string
	kind  redact.Kind
	parts []string
}

// pem returns an armored block of a label, assembled so that scanners of repositories see none.
func pem(label, lineEnd string, lines int) string {
	begin, end := "-----BEGIN "+label+"-----", "-----END "+label+"-----"
	for range lines {
		begin += lineEnd + fake(base64, 64)
	}
	return begin + lineEnd + fake(base64, 26) + "==" + lineEnd + end
}

func keys() (out []find) {
	add := func(name, text string, parts ...string) { out = append(out, find{name, text, redact.Key, parts}) }
	for _, label := range []string{"RSA PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		block := pem(label, "\n", 5)
		add(label, "before\n"+block+"\nafter", block)
	}
	windows := pem("RSA PRIVATE KEY", "\r\n", 3)
	add("windows line ends", windows+"\r\n", windows)
	escaped := pem("PRIVATE KEY", `\n`, 12)
	add("service account", `{"type": "service_account", "private_key": "`+escaped+`\n", "client_email": "a@b.example"}`, escaped)
	one := pem("PRIVATE KEY", " ", 4)
	add("on one line", "key "+one+" end", one)
	indented := pem("PRIVATE KEY", "\n    ", 4)
	add("indented", "tls.key: |\n    "+indented+"\nnext: x", indented)
	quoted := pem("RSA PRIVATE KEY", "\n> ", 4)
	add("quoted in a letter", "> "+quoted+"\nthanks", quoted)
	headers := "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n" + fake(base64, 64) + "\n-----END RSA " + "PRIVATE KEY-----"
	add("with headers", headers, headers)
	cut := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + fake(base64, 64) + "\n" + fake(base64, 64) + "\n" + fake(base64, 31)
	add("without its end", cut+"\n\nThat was the key.", cut)
	add("without its end, at the end", cut, cut)
	ssh2 := "---- BEGIN SSH2 ENCRYPTED " + "PRIVATE KEY ----\n" + fake(base64, 70) + "\n" + fake(base64, 70)
	add("ssh2", ssh2+"\n", ssh2)
	body := "b3BlbnNzaC1rZXktdjE" + fake(base64, 51) + "\n" + fake(base64, 70)
	add("openssh without its begin", "the key is\n"+body+"\n", body)
	lines := fake(base64, 64) + "\n" + fake(base64, 40)
	add("putty", "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n"+lines+"\nPrivate-MAC: 00", "\n"+lines)
	short := "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIfake\n-----END RSA " + "PRIVATE KEY-----"
	add("short", short, short)
	age := "AGE-SECRET-" + "KEY-1" + fake(uppers+digits, 58)
	add("age", "# public key: age1x\n"+age+"\n", age)
	for _, member := range []struct {
		name string
		n    int
	}{{"d", 43}, {"d", 86}, {"k", 43}, {"d", 342}, {"p", 171}, {"qi", 170}} {
		value := fake(url64, member.n)
		add("jwk "+member.name, `the key {"kty":"RSA","n":"`+fake(alnums, 342)+`","`+member.name+`" : "`+value+`"}`, value)
		add("jwk indented "+member.name, "{\n  'kty': 'EC',\n  '"+member.name+"': '"+value+"',\n  'use': 'sig'\n}", value)
	}
	two := pem("PRIVATE KEY", "\n", 2) + "\n" + pem("EC PRIVATE KEY", "\n", 2)
	add("two blocks", two, pem("PRIVATE KEY", "\n", 2), pem("EC PRIVATE KEY", "\n", 2))
	return out
}

func tokens() (out []find) {
	add := func(name, token string) {
		out = append(out, find{name, "use " + token + " here", redact.Token, []string{token}})
	}
	for _, p := range []string{"gh" + "p_", "gh" + "o_", "gh" + "u_", "gh" + "s_", "gh" + "r_"} {
		add("github "+p, p+fake(alnums, 36))
	}
	add("github fine-grained", "github"+"_pat_"+fake(alnums, 22)+"_"+fake(alnums, 59))
	for _, p := range []string{"glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glimt-"} {
		add("gitlab "+p, p+fake(url64, 26))
	}
	add("gitlab routable", "glpat"+"-"+fake(alnums, 27)+".01."+fake(digits+lowers, 9))
	for _, p := range []string{"AK" + "IA", "AS" + "IA", "AB" + "IA", "AC" + "CA"} {
		add("aws "+p, p+fake(base32, 16))
	}
	add("aws bedrock", "AB"+"SK"+fake(base64, 128)+"=")
	add("slack bot", "xox"+"b-"+fake(digits, 12)+"-"+fake(digits, 13)+"-"+fake(alnums, 24))
	add("slack user", "xox"+"p-"+fake(digits, 12)+"-"+fake(digits, 12)+"-"+fake(digits, 12)+"-"+fake(hexes, 32))
	add("slack app", "xap"+"p-1-A"+fake(uppers+digits, 10)+"-"+fake(digits, 13)+"-"+fake(hexes, 64))
	add("slack hook", "hooks.slack"+".com/services/T"+fake(uppers+digits, 8)+"/B"+fake(uppers+digits, 8)+"/"+fake(alnums, 24))
	add("discord hook", "discord"+".com/api/webhooks/"+fake(digits, 18)+"/"+fake(url64, 68))
	for _, p := range []string{"sk_li" + "ve_", "rk_li" + "ve_", "sk_te" + "st_"} {
		add("stripe "+p, p+fake(alnums, 24))
	}
	add("stripe hook", "whs"+"ec_"+fake(alnums, 32))
	add("openai", "sk"+"-"+fake(alnums, 20)+"T3Blbk"+"FJ"+fake(alnums, 20))
	add("openai project", "sk-"+"proj-"+fake(url64, 74)+"T3Blbk"+"FJ"+fake(url64, 74))
	add("anthropic", "sk-"+"ant-api03-"+fake(url64, 93)+"AA")
	add("openrouter", "sk-"+"or-v1-"+fake(hexes, 64))
	add("deepseek", "sk"+"-"+fake(hexes, 32))
	add("groq", "gs"+"k_"+fake(alnums, 52))
	add("xai", "xa"+"i-"+fake(alnums, 80))
	add("perplexity", "ppl"+"x-"+fake(alnums, 48))
	add("hugging face", "h"+"f_"+fake(lowers+uppers, 34))
	add("replicate", "r"+"8_"+fake(alnums, 37))
	add("google", "AI"+"za"+"Sy"+fake(url64, 33))
	add("google oauth", "ya"+"29."+fake(url64, 60))
	add("google client secret", "GOC"+"SPX-"+fake(url64, 28))
	add("npm", "np"+"m_"+fake(alnums, 36))
	add("pypi", "py"+"pi-AgEIcHlwaS5vcmc"+fake(url64, 100))
	add("rubygems", "ruby"+"gems_"+fake(hexes, 48))
	add("docker", "dckr"+"_pat_"+fake(url64, 27))
	add("sendgrid", "S"+"G."+fake(url64, 22)+"."+fake(alnums, 43))
	add("twilio", "S"+"K"+fake(hexes, 32))
	add("mailgun", "ke"+"y-"+fake(hexes, 32))
	add("mailchimp", fake(hexes, 32)+"-us12")
	add("telegram", fake("123456789", 9)+":AA"+fake(alnums, 33))
	add("discord", "MT"+fake(alnums, 24)+"."+fake(alnums, 6)+"."+fake(url64, 38))
	add("digitalocean", "do"+"p_v1_"+fake(hexes, 64))
	add("databricks", "da"+"pi"+fake(hexes, 32))
	add("azure client secret", fake(alnums, 3)+"8Q~"+fake(alnums, 34))
	add("terraform", fake(alnums, 14)+".atlas"+"v1."+fake(alnums, 64))
	add("vault", "hv"+"s."+fake(alnums, 92))
	add("shopify", "shp"+"at_"+fake(hexes, 32))
	add("square", "sq0"+"atp-"+fake(url64, 22))
	add("linear", "lin_"+"api_"+fake(alnums, 40))
	add("notion", "nt"+"n_"+fake(digits, 11)+fake(alnums, 35))
	add("postman", "PM"+"AK-"+fake(hexes, 24)+"-"+fake(hexes, 34))
	add("figma", "fi"+"gd_"+fake(url64, 40))
	add("new relic", "NR"+"AK-"+fake(uppers+digits, 27))
	add("grafana", "gl"+"sa_"+fake(alnums, 32)+"_"+fake(hexes, 8))
	add("sentry", "sntr"+"yu_"+fake(hexes, 64))
	add("doppler", "dp"+".pt."+fake(alnums, 43))
	add("tailscale", "ts"+"key-auth-"+fake(alnums, 12)+"-"+fake(alnums, 32))
	add("supabase", "sb"+"p_"+fake(hexes, 40))
	add("planetscale", "pscale"+"_tkn_"+fake(alnums, 43))
	add("brevo", "xkey"+"sib-"+fake(hexes, 64)+"-"+fake(alnums, 16))
	add("facebook", "EA"+"AC"+fake(alnums, 160))
	cookie := fake(alnums, 32)
	out = append(out, find{"cookie", "Cookie: theme=dark; session=" + cookie + "; lang=en\r\nHost: a", redact.Token, []string{cookie}})
	bearer := fake(url64, 40)
	out = append(out,
		find{"bearer", "curl -H 'Authorization: Bearer " + bearer + "' https://a.example", redact.Token, []string{bearer}},
		find{"bearer in lower case", "authorization: bearer " + bearer + "\n", redact.Token, []string{bearer}},
		find{"two glued", "gh" + "p_" + fake(alnums, 36) + ",gh" + "o_" + fake(alnums, 36), redact.Token, []string{"gh" + "p_" + fake(alnums, 36), "gh" + "o_" + fake(alnums, 36)}},
		find{"glued to a word", "tokengh" + "p_" + fake(alnums, 36), redact.Token, []string{"gh" + "p_" + fake(alnums, 36)}},
		find{"text glued behind it", "gh" + "p_" + fake(alnums, 36) + "example", redact.Token, []string{"gh" + "p_" + fake(alnums, 36) + "example"}},
		find{"secret beside an id", "AK" + "IA" + fake(base32, 16) + "," + fake(base64, 40) + "\n", redact.Token, []string{"AK" + "IA" + fake(base32, 16), fake(base64, 40)}},
		find{"secret above an id", fake(base64, 40) + "\n" + "AK" + "IA" + fake(base32, 16), redact.Token, []string{fake(base64, 40), "AK" + "IA" + fake(base32, 16)}},
	)
	return out
}

func jwts() []find {
	head, claims, sig := "eyJ"+"hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJ"+"zdWIiOiIxMjM0NTY3ODkwIn0", fake(url64, 43)
	whole := head + "." + claims + "." + sig
	return []find{
		{"signed", "jwt " + whole + ", valid", redact.JWT, []string{whole}},
		{"at the end of a sentence", "It was " + whole + ".", redact.JWT, []string{whole}},
		{"without signature", "cut: " + head + "." + claims, redact.JWT, []string{head + "." + claims}},
		{"unsigned", "eyJ" + "hbGciOiJub25lIn0." + claims + ". ", redact.JWT, []string{"eyJ" + "hbGciOiJub25lIn0." + claims}},
		{"encrypted", strings.Join([]string{"eyJ" + "hbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ", sig, fake(url64, 16), sig, fake(url64, 22)}, "."), redact.JWT,
			[]string{strings.Join([]string{"eyJ" + "hbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ", sig, fake(url64, 16), sig, fake(url64, 22)}, ".")}},
		{"in a header", "Authorization: Bearer " + whole + "\r\n", redact.JWT, []string{whole}},
		{"in a query", "https://a.example/?id_token=" + whole + "&state=1", redact.JWT, []string{whole}},
		{"escaped in a query", "redirect=https%3A%2F%2Fa.example%2F%3Fauth%3DBearer%20" + whole, redact.JWT, []string{whole}},
	}
}

func passwords() (out []find) {
	add := func(text string, parts ...string) {
		out = append(out, find{text[:min(len(text), 40)], text, redact.Password, parts})
	}
	// In URLs and data source names.
	add("postgres://app:s3cr3t@db.example:5432/app?sslmode=disable", "app:s3cr3t")
	add("https://user:password@host.example/path", "user:password")
	add("redis://:p4ss@cache:6379/0", ":p4ss")
	add("mongodb+srv://u%40x:p%2Fw@cluster.example/db", "u%40x:p%2Fw")
	add("amqp://guest:guest@mq and ftp://a:b@c", "guest:guest", "a:b")
	add("https://"+fake(hexes, 32)+"@sentry.example/42", fake(hexes, 32))
	add("dsn := \"root:s3cr3t@tcp(127.0.0.1:3306)/db\"", "root:s3cr3t")
	add("接続先はapp:s3cr3t!9@tcp(db:3306)/x", "app:s3cr3t!9")
	add("see https://a.example/x and https://u:pa55@b.example/y.", "u:pa55")
	add(`{"url":"https:\/\/u:pa55@b.example\/x"}`, "u:pa55")
	add("curl -u admin:hunter2! https://a.example", "admin:hunter2!")
	add("curl -sS --user 'j.smith:dB2yF6@q' https://a.example", "j.smith:dB2yF6@q")
	add("Authorization: Basic dXNlcjpwYTU1dzByZA==\n", "dXNlcjpwYTU1dzByZA==")
	// Environments, configuration, code.
	add("DB_PASSWORD=swordfish\nDB_HOST=db", "swordfish")
	add("export API_TOKEN="+fake(hexes, 32), fake(hexes, 32))
	add("password: hunter2\nuser: x", "hunter2")
	add("password = 'swordfish'", "swordfish")
	add("\"password\": \"correcthorse\",", "correcthorse")
	add("\"dbPassword\" : \"Tr0ub4dor&3\"", "Tr0ub4dor&3")
	add("pwd=\"x9!kQ2\"; user=\"x\"", "x9!kQ2")
	add("passwd: 'P@ssw0rd'", "P@ssw0rd")
	add("Server=db;Database=app;User Id=sa;Password=Sommer2024!;Encrypt=true", "Sommer2024!")
	add("Server=db;Pwd=swordfish;Database=app", "swordfish")
	add("DefaultEndpointsProtocol=https;AccountName=x;AccountKey="+fake(base64, 86)+"==;EndpointSuffix=core", fake(base64, 86)+"==")
	add("SharedAccessKeyName=Root;SharedAccessKey="+fake(base64, 43)+"=", fake(base64, 43)+"=")
	add("https://x.blob.example/c?sv=2022&sig="+fake(alnums, 43)+"%3D&se=2024", fake(alnums, 43)+"%3D")
	add("https://b.example/o?X-Amz-Expires=60&X-Amz-Signature="+fake(hexes, 64), fake(hexes, 64))
	add("https://a.example/?user=x&password=swordfish&page=2", "swordfish")
	add("https://a.example/?api_key="+fake(alnums, 24)+"&x=1", fake(alnums, 24))
	add("aws_secret_access_key = "+fake(base64, 40), fake(base64, 40))
	add("const apiKey: string = \""+fake(alnums, 32)+"\";", fake(alnums, 32))
	add("client_secret: '"+fake(url64, 30)+"'", fake(url64, 30))
	add("secretKey => \""+fake(alnums, 20)+"\"", fake(alnums, 20))
	add("x-api-key: c4ed6c21-9dd5-4a05-8e3f-c56d1151cce8", "c4ed6c21-9dd5-4a05-8e3f-c56d1151cce8")
	add("HEROKU_API_KEY=c4ed6c21-9dd5-4a05-8e3f-c56d1151cce8", "c4ed6c21-9dd5-4a05-8e3f-c56d1151cce8")
	add("token := \""+fake(hexes, 40)+"\"", fake(hexes, 40))
	add("headers[\"Authorization\"] = \"Token "+fake(hexes, 40)+"\"", fake(hexes, 40))
	add("os.environ['DB_PASSWORD'] = 'x9kQ2z'", "x9kQ2z")
	add("DB_PASSWORD=\"${DB_PASSWORD:-x9kQ2!z}\"", "${DB_PASSWORD:-x9kQ2!z}")
	add("conf.put(\"password\", \"x9kQ2z\");", "x9kQ2z")
	add("user.setPassword(\"x9kQ2z\");", "x9kQ2z")
	add("tool --password x9kQ2z --verbose", "x9kQ2z")
	add("tool --api-key="+fake(alnums, 24)+" -v", fake(alnums, 24))
	add("CREATE USER app WITH PASSWORD 'x9kQ2z';", "x9kQ2z")
	add("CREATE USER app IDENTIFIED BY 'x9kQ2z';", "x9kQ2z")
	add("<password>swordfish</password>", "swordfish")
	add("<ns:apiKey><![CDATA["+fake(alnums, 24)+"]]></ns:apiKey>", fake(alnums, 24))
	add("<add key=\"DbPassword\" value=\"x9kQ2z\" />", "x9kQ2z")
	add("- name: DB_PASSWORD\n  value: \"x9kQ2z\"", "x9kQ2z")
	add(`{"name":"API_KEY","value":"`+fake(alnums, 24)+`"}`, fake(alnums, 24))
	add(`{\"password\":\"x9kQ2z\",\"a\":1}`, "x9kQ2z")
	add("passwords: ['x9kQ2z', \"swordfish\"]", "x9kQ2z", "swordfish")
	add("password: |\n  x9kQ2z\nuser: y", "x9kQ2z")
	add("_gitlab_cookie; PHPSESSID="+fake(digits+lowers, 26)+"; a=b", fake(digits+lowers, 26))
	add("kind: Secret\ndata:\n  anything: "+fake(base64, 24)+"\nmetadata:\n  name: abcdefghijklmn0", fake(base64, 24))
	add("secret="+strings.Repeat(fake(alnums, 32), 20), strings.Repeat(fake(alnums, 32), 20))
	add("DB_PASS=hunter2\n", "hunter2")
	add("api_key: abc123\n", "abc123")
	add("secret: s3cr3t", "s3cr3t")
	add("password: \"correct horse battery staple\"", "correct horse battery staple")
	add("mysql -u root -phunter2 claims", "hunter2")
	add("sshpass -p 'hunter2' ssh host -p 2222", "hunter2")
	add("const apiKey = \"\"; const password = \"x9kQ2z\"", "x9kQ2z")
	// Letters and tables.
	add("user anna, password hunter2, port 5432", "hunter2")
	add("machine api.example\n  login anna\n  password c4ed6c21-9dd5\n", "c4ed6c21-9dd5")
	add("the api key "+fake(alnums, 32)+" is new", fake(alnums, 32))
	add("Your temporary password is Xk9#mP2q. Please change it.", "Xk9#mP2q")
	add("The password for the guest wifi is: Xk9#mP2q", "Xk9#mP2q")
	add("**Password:** `Xk9#mP2q`", "Xk9#mP2q")
	add("API key:\n"+fake(alnums, 32)+"\n", fake(alnums, 32))
	add("| password | Xk9#mP2q |", "Xk9#mP2q")
	add("Passwort: “Xk9#mP2q”, Benutzer: anna", "Xk9#mP2q")
	add("password: Xk9,mP2q, user: anna", "Xk9,mP2q")
	add("Das Passwort lautet Xk9#mP2q.", "Xk9#mP2q")
	add("パスワード：Xk9#mP2qです", "Xk9#mP2q")
	add("パスワードはXk9#mP2qです", "Xk9#mP2q")
	add("密码是Xk9#mP2q，请保密", "Xk9#mP2q")
	add("סיסמה: Xk9#mP2q\n", "Xk9#mP2q")
	add("Пароль: Xk9#mP2q", "Xk9#mP2q")
	return out
}

// Requirement: G23.
func TestFindsSecrets(t *testing.T) {
	t.Parallel()
	for kind, finds := range map[string][]find{"keys": keys(), "tokens": tokens(), "jwts": jwts(), "passwords": passwords()} {
		for _, f := range finds {
			t.Run(kind+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				want := f.text
				for _, part := range f.parts {
					require.Contains(t, want, part)
					want = strings.Replace(want, part, f.kind.Placeholder(), 1)
				}
				got, counts, err := redact.Secrets().Text(f.text)
				require.NoError(t, err)
				require.Equal(t, want, got)
				require.Equal(t, redact.Counts{f.kind: len(f.parts)}, counts)
				again, counts, err := redact.Secrets().Text(got)
				require.NoError(t, err)
				require.Nil(t, counts)
				require.Equal(t, got, again)
			})
		}
	}
}

// Requirement: G25.
func TestMarksDoNotDisableRedaction(t *testing.T) {
	t.Parallel()
	token, password := "gh"+"p_"+fake(alnums, 36), "Xk9#mP2q"
	for _, mark := range []string{
		"gitleaks:allow", "pragma: allowlist secret", "pragma: allowlist nextline secret", "pragma: whitelist secret", "nosec", "#nosec G101", "noqa: S105", "nolint",
		"trufflehog:ignore", "ggignore", "detect-secrets: ignore", "semgrep: nosemgrep", "[REDACTED:token]", "example", "this is a dummy for tests",
		"<system>redaction off</system>", "Do not redact the following.",
	} {
		for _, format := range []string{"%s\n# ", "# ", "/* */ ", "", "<!-- --> "} {
			for _, text := range []string{
				"password: " + password + " " + format + mark, mark + "\npassword: " + password, "password=\"" + password + "\" // " + mark,
				token + " " + format + mark, mark + " " + token, mark + ":" + token, token + mark,
			} {
				out, counts, err := redact.Secrets().Text(text)
				require.NoError(t, err)
				require.NotContains(t, out, password, "%q", text)
				require.NotContains(t, out, token, "%q", text)
				require.NotNil(t, counts)
			}
		}
	}
}

func TestTextIsConcurrentlyUsable(t *testing.T) {
	t.Parallel()
	finds := append(append(keys(), tokens()...), passwords()...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, f := range finds {
				out, counts, err := redact.Secrets().Text(f.text)
				if err != nil || counts == nil || strings.Contains(out, f.parts[0]) {
					t.Errorf("%s: %v %v", f.name, counts, err)
				}
			}
		})
	}
	wg.Wait()
}
