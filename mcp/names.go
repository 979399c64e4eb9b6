package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// separator is between the name of a server and the name of a tool.
const separator = "__"

// Bounds on names of tools, in bytes.
const (
	maxName    = 64 // of a tool.Tool
	digestSize = 4  // of what follows a name, before it is written in hexadecimal
)

var (
	notInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	isPlain   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString
	readable  = regexp.MustCompile(`[A-Za-z0-9]`).MatchString
)

// namesOf returns the names that the tools of a server have, for different names that the server
// gives them. It depends on the order of the names in nothing but the order of the result.
func namesOf(server string, given []string) []string {
	room := maxName - len(server) - len(separator)
	uses := map[string]int{}
	for _, name := range given {
		uses[cleaned(name)]++
	}
	names := make([]string, len(given))
	for i, name := range given {
		short := cleaned(name)
		if !isPlain(name) && uses[short] > 1 || !isASCII(name) || !readable(name) && !isPlain(name) || len(short) > room {
			short = withDigest(name, room)
		}
		names[i] = server + separator + short
	}
	return names
}

// cleaned returns a server's name of a tool with _ for each character that names may not have.
func cleaned(name string) string { return notInName.ReplaceAllString(name, "_") }

// isASCII reports whether a name has no characters beyond ASCII.
func isASCII(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }) < 0
}

// withDigest returns what of a server's name of a tool can be read, and a digest of the name.
func withDigest(name string, room int) string {
	sum := sha256.Sum256([]byte(name))
	end := "_" + hex.EncodeToString(sum[:digestSize])
	start := cleaned(strings.Map(func(r rune) rune {
		if r >= 0x80 {
			return -1
		}
		return r
	}, name))
	if start = strings.TrimRight(start[:min(len(start), room-len(end))], "_"); !readable(start) {
		start = "tool"
	}
	return start + end
}

// mayMean reports whether an entry of Allow that is no tool's own name can mean a tool.
func mayMean(entry, server, name string) bool {
	return entry == cleaned(name) || entry == withDigest(name, maxName-len(server)-len(separator))
}
