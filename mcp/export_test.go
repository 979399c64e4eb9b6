package mcp

import "time"

// SetPing changes when a session is idle, and how long a ping may take.
func SetPing(idle, answer time.Duration) { idleTime, pingTime = idle, answer }

// SetDiscover changes how long a server that refused the first request may take to answer the other.
func SetDiscover(answer time.Duration) { discoverTime = answer }

// NamesOf returns the names of the tools of a server.
var NamesOf = namesOf
