package membudget

import (
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// process returns the scope of the process. It may take half of the memory that the process may use.
var process = sync.OnceValue(func() *scope { return &scope{limit: OfProcess() / 2} })

// OfProcess returns how much memory this process may use, in bytes: the least of $GOMEMLIMIT, of the limit of its
// control group, and of what the computer has, as far as they are known.
func OfProcess() int64 {
	most := debug.SetMemoryLimit(-1)
	for _, limit := range []func() (uint64, error){memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := limit(); err == nil && n > 0 && n < math.MaxInt64 {
			most = min(most, int64(n))
		}
	}
	return most
}

// LimitHeap has the garbage collector keep the process below nine tenths of the limit of its control group, if there is
// one and $GOMEMLIMIT says nothing else.
func LimitHeap() {
	if n, err := memlimit.FromCgroup(); err == nil && n < math.MaxInt64 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(n) / 10 * 9)
	}
}
