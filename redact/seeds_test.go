package redact_test

import "strings"

// fake returns n bytes of body that look random and are the same each time; what it makes is no
// credential of anyone.
func fake(set string, n int) string {
	var b strings.Builder
	for i, x := 0, uint32(len(set))*2654435761; i < n; i++ {
		x = x*1664525 + 1013904223
		b.WriteByte(set[int(x>>16)%len(set)])
	}
	return b.String()
}

const (
	digits = "0123456789"
	hexes  = digits + "abcdef"
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	base32 = uppers + "234567"
	alnums = digits + lowers + uppers
	base64 = alnums + "+/"
	url64  = alnums + "-_"
)

// seeds are small texts with something to find in each, or nearly.
func seeds() []string {
	pem := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + fake(base64, 64) + "\n" + fake(base64, 30) + "==\n-----END RSA " + "PRIVATE KEY-----"
	jwt := "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0." + fake(url64, 43)
	gh := "gh" + "p_" + fake(alnums, 36)
	return []string{
		"", "a", "plain prose, with a comma.", pem, jwt, gh, "x" + gh + "y", gh + gh, gh + "." + gh,
		"AK" + "IA" + fake(base32, 16) + "," + fake(base64, 40),
		"password=" + gh + "&x=1", `{"password": "` + gh + `", "a": 1}`, "password: hunter2", "password: [REDACTED:token]tail9tail",
		"https://user:pa55@host/p?token=" + fake(hexes, 32), "https://u:p@h@i:j@k", "Authorization: Bearer " + jwt, "Basic dXNlcjpwYTU1dzByZA==",
		"PASSWORD 'x1y2z3'", "--token " + fake(alnums, 20), "<password>s3cr3t!</password>", "| password | s3cr3t!9 |",
		"the password is s3cr3t!9.", "パスワード：s3cr3t!9です", "密码是s3cr3t!9", "סיסמה: s3cr3t!9", "passwords = ['a1b2c3d4', \"e5f6g7h8\"]",
		"kind: Secret\ndata:\n  a: " + fake(base64, 24) + "\n  b: |\n    " + fake(base64, 24) + "\n",
		"123456789:AA" + fake(url64, 33), "curl -u me:s3cr3t! https://h", "me:s3cr3t@tcp(h:1)/d", "abc1Q~" + fake(url64, 34),
		"-----BEGIN PRIVATE KEY-----\\n" + fake(base64, 200) + "\\n-----END PRIVATE KEY-----\\n", "[REDACTED:password]", "[REDACTED:", "password=\xff\xfe",
		"\"password\\\": \\\"a1b2c3\\\"", "key=\"DB_PASSWORD\" value=\"a1b2c3d4\"", "password:\n  a1b2c3d4!", "password=“a1b2c3”",
		"anna@claims.example", "an\u200bna@claims.example", "YW5uYUBjbGFpbXMuZXhhbXBsZQ==", "anna%40claims.example", `anna\u0040claims.example`, "card 4111 1111 1111 1111.",
		"４１１１１１１１１１１１１１１１", "DE89 3704 0044 0532 0130 00", "+1 202-555-0143", "123-45-6789", "10.1.2.3 fe80::1 00:1a:2b:3c:4d:5e", "C-1234", "note: all", "key 12349",
	}
}
