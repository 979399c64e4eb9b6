package console

import (
	"cmp"
	"os/user"
	"strings"
)

// UserName returns the name of the user of this computer.
func (c *Console) UserName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	name, _ := c.LookupEnv("USER")
	return cmp.Or(strings.TrimSpace(name), "unknown")
}
