package kubetest

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// library matches the path of a library in the output of ldd(1).
var library = regexp.MustCompile(`(?m)(?:=> |^\t)(/\S+) \(0x`)

// WithLibraries returns the files of an image for these programs of this machine: the programs and their libraries,
// each at its own path.
func WithLibraries(t testing.TB, programs ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, program := range programs {
		out, err := exec.Command("ldd", program).Output()
		if err != nil {
			t.Fatalf("ldd %s: %v", program, err)
		}
		files[program] = program
		for _, found := range library.FindAllStringSubmatch(string(out), -1) {
			files[found[1]] = found[1]
		}
	}
	return files
}

// PostgreSQL returns an image with the newest PostgreSQL that Debian has installed on this machine. Its programs are
// on PATH, with a shell, for the user 65532. The test is skipped if there is none.
func PostgreSQL(t testing.TB, name string) Image {
	t.Helper()
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	must(t, err)
	if len(all) == 0 {
		t.Skip("skipped engine: postgres: install the Debian package postgresql")
	}
	bin := filepath.Dir(slices.Max(all))
	programs := []string{"/bin/sh", "/bin/cat", "/bin/mkdir", "/bin/rm"}
	for _, program := range []string{"postgres", "initdb", "pg_ctl", "psql", "pg_basebackup", "pg_isready"} {
		// psql is a script in Debian's /usr/bin, and a program in this folder.
		programs = append(programs, filepath.Join(bin, program))
	}
	version := filepath.Base(filepath.Dir(bin))
	return imageOf(t, name, "postgres", bin+":/bin", programs,
		[]string{filepath.Join("/usr/lib/postgresql", version, "lib"), filepath.Join("/usr/share/postgresql", version), "/usr/share/zoneinfo"})
}

// imageOf returns an image with programs of this machine and their libraries, and with files and folders, each at its
// own path. It runs as a user with the number 65532.
func imageOf(t testing.TB, name, user, path string, programs, files []string) Image {
	t.Helper()
	user += ":x:65532:"
	i := Image{
		Name: name, Files: WithLibraries(t, programs...), User: "65532:65532", Env: []string{"PATH=" + path},
		Texts: map[string]string{"/etc/passwd": "root:x:0:0::/:/bin/sh\n" + user + "65532::/tmp:/bin/sh\n", "/etc/group": user + "\n"},
	}
	for _, file := range files {
		i.Files[file] = file
	}
	return i
}
