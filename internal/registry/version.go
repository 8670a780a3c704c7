package registry

import (
	"cmp"
	"runtime/debug"

	"stroppy/internal/report"
)

// Version returns the version that the build recorded: a tag, or a revision.
func Version() string {
	b := Build()
	if b.Version == "" || b.Version == "(devel)" {
		return cmp.Or(b.Commit, b.Version, "unknown")
	}
	return b.Version
}

// Build returns what the build recorded of this program. Without version control there is no
// commit.
func Build() (b report.Build) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = cmp.Or(info.Main.Version, "(devel)"), info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Committed = s.Value
		case "vcs.modified":
			b.Dirty = new(s.Value == "true")
		}
	}
	return b
}
