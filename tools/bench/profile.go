package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"stroppy/tools/try"
)

// releaseProfile is where the profile lies by which releases are optimized (go build -pgo).
// It is not called default.pgo, because `go build` would take it unasked then, and compile
// all packages anew for it.
const releaseProfile = "cmd/stroppy/release.pgo"

// build builds the program as releases are, or one that writes profiles.
func (s *suite) build(profiled bool) {
	args := []string{"build", "-trimpath", "-o", s.stroppy}
	if profiled {
		s.profiles = filepath.Join(s.dir, "profiles")
		try.Check(os.Mkdir(s.profiles, 0o755))
		args = append(args, "-pgo=off", "-tags=profile,"+tags)
	} else {
		args = append(args, "-pgo="+releaseProfile, "-tags="+tags)
	}
	build := exec.CommandContext(s.ctx, "go", append(args, "./cmd/stroppy")...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	run(build)
}

// mergeProfiles merges the profiles of all calls into one, weighted by processor time.
func (s *suite) mergeProfiles(into string) {
	all := try.Must(filepath.Glob(filepath.Join(s.profiles, "*.pprof")))
	if len(all) == 0 {
		try.Fail("no call wrote a profile: measure a part in which stroppy runs")
	}
	run(exec.CommandContext(s.ctx, "go", append([]string{"tool", "pprof", "-proto", "-output=" + into}, all...)...))
}
