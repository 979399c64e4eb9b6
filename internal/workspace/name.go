package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"sync"
)

// plainName matches IDs that name a file on every system.
var plainName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
})

// FileName returns the name of a file for an ID, such as that of a run. Different IDs have
// different names.
func FileName(id string) string {
	if plainName().MatchString(id) {
		return id
	}
	of := sha256.Sum256([]byte(id))
	return "%" + hex.EncodeToString(of[:16])
}
