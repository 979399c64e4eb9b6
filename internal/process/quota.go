package process

import "time"

// Limits bound what a confined program may use, together with everything that it starts.
type Limits struct {
	Processes int           // processes and threads at the same time
	Memory    int64         // bytes
	FileSize  int64         // bytes of one file
	Disk      int64         // bytes of all files in its folder; each file counts as at least 4 KiB
	CPU       time.Duration // of all processors
}

// maxMemory bounds the memory of a program on a large machine.
const maxMemory = 4 << 30

// defaultLimits returns the limits of a program that sets none: far more than tools need, and
// less than would make the machine unusable.
func defaultLimits() *Limits {
	return &Limits{Processes: 512, Memory: min(maxMemory, totalMemory()/2), FileSize: 512 << 20, Disk: 2 << 30, CPU: 15 * time.Minute}
}
