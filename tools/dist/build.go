package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"stroppy/tools/try"
)

// allTargets are the systems and processors that a release is for.
var allTargets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// target is a system and a processor by their names in Go.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// base is the beginning of the name of every file that is for this target.
func (t target) base() string { return "stroppy-" + t.os + "-" + t.arch }

// program is the name of the binary.
func (t target) program() string {
	if t.os == "windows" {
		return "stroppy.exe"
	}
	return "stroppy"
}

// parseTargets reads targets with commas between them, each of which a release can be for.
func parseTargets(names string) (list []target) {
	for name := range strings.SplitSeq(names, ",") {
		if !slices.Contains(allTargets, name) {
			try.Fail("%q is no target: take some of %s", name, strings.Join(allTargets, ","))
		}
		system, arch, _ := strings.Cut(name, "/")
		one := target{system, arch}
		if slices.Contains(list, one) {
			try.Fail("the target %s stands twice in -targets", name)
		}
		list = append(list, one)
	}
	return list
}

// binary is stroppy as it was built for a target.
type binary struct {
	target target
	path   string
	info   *debug.BuildInfo
}

// builder builds binaries of the project at root. An empty profile is none.
type builder struct{ root, scratch, profile string }

// profileOf returns the profile that guides the compiler, by its path in the project. It is
// not called default.pgo, so that only a release takes the time to compile everything by it.
func profileOf(root string) string {
	const profile = "cmd/stroppy/release.pgo"
	if _, err := os.Stat(filepath.Join(root, profile)); err != nil {
		return ""
	}
	return profile
}

// buildAll builds for the targets one after the other, because one build takes all processors.
func (b *builder) buildAll(targets []target, log io.Writer) (list []binary) {
	for _, t := range targets {
		began := time.Now()
		var built binary
		doing("build stroppy for "+t.String(), func() { built = b.build(t) })
		fmt.Fprintf(log, "%s built in %.0f s\n", t, time.Since(began).Seconds())
		list = append(list, built)
	}
	return list
}

func (b *builder) build(t target) binary {
	path := filepath.Join(b.scratch, t.base(), t.program())
	command := exec.Command("go", b.arguments(path)...)
	command.Dir, command.Env = b.root, environment(os.Environ(), t)
	try.Output(command)
	info := try.Must(buildinfo.ReadFile(path))
	return binary{t, path, info}
}

// arguments returns the arguments of the go command. The binary gets no symbols, no paths and no identity of the
// build.
func (b *builder) arguments(path string) []string {
	arguments := []string{"build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", path}
	if b.profile != "" {
		arguments = append(arguments, "-pgo="+b.profile)
	}
	return append(arguments, "./cmd/stroppy")
}

// environment takes from the environment what would change the binary.
func environment(environ []string, t target) []string {
	list := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"CGO_ENABLED", "GOARCH", "GOARM64", "GOAMD64", "GOEXPERIMENT", "GOFIPS140", "GOFLAGS", "GOOS", "GOWORK"}, name)
	})
	return append(list, "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-trimpath", "GOWORK=off")
}

// release holds the common properties of all files of a release.
type release struct {
	version string    // as in 1.2.0, without a v
	commit  string    // empty where the sources have none
	time    time.Time // of the commit, and of every file
	shared  []file    // what stands beside each binary
	// chartFiles are the files of the Helm chart.
	chartFiles []file
	scratch    string
}

// release reads from the binaries what they were built from, and makes what stands beside them.
func (b *builder) release(binaries []binary) *release {
	r := &release{scratch: b.scratch}
	info := binaries[0].info
	r.time = sourceTime(info, os.Getenv("SOURCE_DATE_EPOCH"))
	r.version, r.commit = versionOf(info), settingOf(info, "vcs.revision")
	r.shared = b.documents(r, binaries)
	r.chartFiles = chartFiles(b.root, r.version)
	return r
}

// versionOf returns the version that stroppy prints: the tag of the commit, or Go's pseudo-version. Sources without a
// git repository have no version.
func versionOf(info *debug.BuildInfo) string {
	version := strings.TrimPrefix(info.Main.Version, "v")
	if version == "" || version == "(devel)" {
		return "0.0.0-devel"
	}
	return version
}

func settingOf(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// sourceTime is SOURCE_DATE_EPOCH, in seconds since 1970, or else the time of the commit.
func sourceTime(info *debug.BuildInfo, epoch string) time.Time {
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			try.Fail("SOURCE_DATE_EPOCH is %q: it must be a number of seconds since 1970", epoch)
		}
		return time.Unix(seconds, 0).UTC()
	}
	committed := settingOf(info, "vcs.time")
	if committed == "" {
		try.Fail("the sources are not in a git repository, so that the time of the commit is not known: build from a clone, or set SOURCE_DATE_EPOCH")
	}
	return try.Must(time.Parse(time.RFC3339, committed))
}

// host is the target of the machine that builds.
func host() target {
	return target{runtime.GOOS, runtime.GOARCH}
}
