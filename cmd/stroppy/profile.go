//go:build profile

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
)

// A program built with the tag profile writes a CPU profile of each of its processes into
// the folder that CPU_PROFILES names, for `go -C tools/bench run . -profile`.
func init() {
	folder := os.Getenv("CPU_PROFILES")
	if folder == "" {
		return
	}
	profiled = func(run func() int) int {
		file, err := os.Create(filepath.Join(folder, strconv.Itoa(os.Getpid())+".pprof"))
		if err == nil {
			err = pprof.StartCPUProfile(file)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "write a CPU profile:", err)
			return 3
		}
		code := run()
		pprof.StopCPUProfile()
		if err := file.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "write a CPU profile:", err)
			return 3
		}
		return code
	}
}
