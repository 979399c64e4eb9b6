package endpoint

import (
	"crypto/rand"
	"os"
	"strings"
	"sync"
)

// Machine returns the ID of this machine, which stays when it starts again: that of systemd or D-Bus, else the
// name of the host. If there is neither, each process has another one, so that no answer of this machine is
// taken for one of another.
var Machine = sync.OnceValue(func() string {
	for _, file := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(id))) == 32 {
			return strings.TrimSpace(string(id))
		}
	}
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return rand.Text()
})
