package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/tools/try"
)

// TestProfileGuidesTheBuild checks that a profile guides the build where there is one.
func TestProfileGuidesTheBuild(t *testing.T) {
	root := t.TempDir()
	if got := profileOf(root); got != "" {
		t.Errorf("without a profile it is %q", got)
	}
	without := builder{root: root}
	if got := without.arguments("x"); slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "-pgo") }) {
		t.Errorf("without a profile: %v", got)
	}
	if err := os.MkdirAll(filepath.Join(root, "cmd", "stroppy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "cmd", "stroppy", "release.pgo"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	with := builder{root: root, profile: profileOf(root)}
	want := []string{"build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", "x", "-pgo=cmd/stroppy/release.pgo", "./cmd/stroppy"}
	if got := with.arguments("x"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBuildIgnoresGoSettings(t *testing.T) {
	got := environment([]string{"PATH=/bin", "GOFLAGS=-race", "GOOS=plan9", "CGO_ENABLED=1", "GOPROXY=off"}, target{"darwin", "arm64"})
	want := []string{"PATH=/bin", "GOPROXY=off", "CGO_ENABLED=0", "GOOS=darwin", "GOARCH=arm64", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-trimpath", "GOWORK=off"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVersionFollowsTheTag(t *testing.T) {
	for given, want := range map[string]string{"": "0.0.0-devel", "(devel)": "0.0.0-devel", "v1.2.0": "1.2.0", "v0.0.0-20260102030405-0123456789ab+dirty": "0.0.0-20260102030405-0123456789ab+dirty"} {
		info := &debug.BuildInfo{}
		info.Main.Version = given
		if got := versionOf(info); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
	for given, want := range map[string][3]string{
		"1.2.0":      {"1.2.0", "", ""},
		"1.2.0-rc.1": {"1.2.0", "rc.1", ""},
		"0.0.0-20260102030405-0123456789ab+dirty": {"0.0.0", "20260102030405.0123456789ab", "dirty"},
		"1.0.0+a-b": {"1.0.0", "", "a.b"},
	} {
		version, prerelease, metadata := parts(given)
		if got := [3]string{version, prerelease, metadata}; got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}

func TestArchiveTimeIsTheCommits(t *testing.T) {
	stamped := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}}
	bare := &debug.BuildInfo{}
	for _, c := range []struct {
		info  *debug.BuildInfo
		epoch string
		want  time.Time // zero: refused
	}{
		{stamped, "", commitTime}, {stamped, "86400", time.Unix(86400, 0)}, {bare, "86400", time.Unix(86400, 0)},
		{bare, "", time.Time{}}, {stamped, "yesterday", time.Time{}}, {stamped, "-1", time.Time{}},
	} {
		var got time.Time
		err := try.Attempt(func() { got = sourceTime(c.info, c.epoch) })
		if (err != nil) != c.want.IsZero() || err == nil && !got.Equal(c.want) {
			t.Errorf("%v, %q: %v, %v; want %v", c.info.Settings, c.epoch, got, err, c.want)
		}
	}
}
