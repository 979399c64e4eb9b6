//go:build linux && (amd64 || arm64)

package process

import (
	"maps"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// filter returns the program of a seccomp filter with these tables. Calls of another architecture
// are refused.
var filter = sync.OnceValue(func() []unix.SockFilter {
	const (
		load, mask  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal, give = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		atLeast     = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K

		offsetOfCall, offsetOfArch, offsetOfArguments = 0, 4, 16   // in struct seccomp_data
		otherABI                                      = 0x40000000 // numbers of the x32 ABI of amd64 begin here
	)
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	program := []unix.SockFilter{
		{Code: load, K: offsetOfArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: give, K: uint32(refuse)},
		{Code: load, K: offsetOfCall},
		{Code: atLeast, K: otherABI, Jf: 1},
		{Code: give, K: uint32(refuse)},
	}
	for _, table := range []struct {
		groups []callGroup
		answer answer
	}{{permitted, permit}, {oldPermitted, permit}, {pretended, pretend}, {oldPretended, pretend}} {
		for _, group := range table.groups {
			for _, name := range slices.Sorted(maps.Keys(group.calls)) {
				program = append(program, unix.SockFilter{Code: equal, K: group.calls[name], Jf: 1}, unix.SockFilter{Code: give, K: uint32(table.answer)})
			}
		}
	}
	for _, call := range checked {
		var rule []unix.SockFilter
		for _, test := range call.tests {
			rule = append(rule, unix.SockFilter{Code: load, K: offsetOfArguments + 8*uint32(test.argument)}, unix.SockFilter{Code: mask, K: test.mask})
			for _, value := range test.values {
				rule = append(rule, unix.SockFilter{Code: equal, K: value, Jf: 1}, unix.SockFilter{Code: give, K: uint32(test.answer)})
			}
		}
		rule = append(rule, unix.SockFilter{Code: give, K: uint32(call.otherwise)})
		program = append(program, unix.SockFilter{Code: equal, K: call.number, Jf: uint8(len(rule))})
		program = append(program, rule...)
	}
	return append(program, unix.SockFilter{Code: give, K: uint32(noCall)})
})
