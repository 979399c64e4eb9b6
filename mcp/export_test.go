package mcp

import "time"

// SetPing changes when a session is idle, and how long a ping may take.
func SetPing(idle, answer time.Duration) { idleTime, pingTime = idle, answer }

// NamesOf returns the names of the tools of a server.
var NamesOf = namesOf
