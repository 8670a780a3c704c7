package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// releaseProfile is where the profile lies by which releases are optimized (go build -pgo).
// It is not called default.pgo, because `go build` would take it unasked then, and compile
// all packages anew for it.
const releaseProfile = "cmd/stroppy/release.pgo"

// build builds the program as releases are, or one that writes profiles.
func (s *suite) build(profiled bool) error {
	args := []string{"build", "-trimpath", "-o", s.stroppy}
	if profiled {
		s.profiles = filepath.Join(s.dir, "profiles")
		if err := os.Mkdir(s.profiles, 0o755); err != nil {
			return err
		}
		args = append(args, "-pgo=off", "-tags=profile,"+tags)
	} else {
		args = append(args, "-pgo="+releaseProfile, "-tags="+tags)
	}
	build := exec.CommandContext(s.ctx, "go", append(args, "./cmd/stroppy")...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	_, err := run(build)
	return err
}

// mergeProfiles merges the profiles of all calls into one, weighted by processor time.
func (s *suite) mergeProfiles(into string) error {
	all, err := filepath.Glob(filepath.Join(s.profiles, "*.pprof"))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no call wrote a profile: measure a part in which stroppy runs")
	}
	_, err = run(exec.CommandContext(s.ctx, "go", append([]string{"tool", "pprof", "-proto", "-output=" + into}, all...)...))
	return err
}
