//go:build !embedded

package cluster

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"net/rpc"
	"net/rpc/jsonrpc"
	"slices"
)

// steerable returns the library that steers the clock of a program, or says why
// there is none.
func steerable(program string) (library string, why error) {
	file, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("see how %s asks for the time: %w", program, err)
	}
	defer file.Close()
	if _, err := buildinfo.ReadFile(program); err == nil {
		return "", fmt.Errorf("%s is written in Go, whose programs ask the kernel for the time, and no library in between", program)
	}
	if !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s is linked statically, so that no library can come between it and the clock", program)
	}
	return FindFile("libfaketimeMT.so.1", "faketime",
		"/usr/lib/*/faketime", "/usr/lib64/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
}

// rpcService is a service by the library net/rpc, in JSON.
type rpcService struct{ *rpc.Client }

func newService(p Pipes) service { return rpcService{jsonrpc.NewClient(p)} }

func (s rpcService) ask(method string, args any) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		var said rpc.ServerError
		err := s.Call(FaultFSService+"."+method, args, nil)
		answers <- answer{err, errors.As(err, &said)}
	}()
	return answers
}
