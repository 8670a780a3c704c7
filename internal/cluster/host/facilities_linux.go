//go:build !embedded

package host

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"net/rpc/jsonrpc"
	"slices"
)

// steerable returns the library that changes the clock of a program, or the reason why none can.
func steerable(program string) (library string, why error) {
	file, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("find out how %s reads the clock: %w", program, err)
	}
	defer file.Close()
	if _, err := buildinfo.ReadFile(program); err == nil {
		return "", fmt.Errorf("%s is written in Go and reads the clock without the C library", program)
	}
	if !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s is linked statically, so no library can change its clock", program)
	}
	return FindFile("libfaketimeMT.so.1", "faketime",
		"/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
}

func newService(p Pipes) service { return jsonrpc.NewClient(p) }
