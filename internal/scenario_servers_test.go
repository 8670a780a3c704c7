package internal_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stroppy/internal/cluster/clustertest"
)

var (
	// scenarioServer is the folder of a server's programs that a scenario names by its version.
	scenarioServer = regexp.MustCompile(`bin=(etcd-[0-9.]+)`)
	scenarioMySQL  = regexp.MustCompile(`(?m)^cluster: (mysql:\S+\?\S+)$`)
)

// provide fetches the server whose version a scenario names, and puts its programs where the
// scenario looks for them. It is built first, and its scenario keeps both processors busy for
// minutes, so that only `make versions` asks for it. Two of Patroni, whose cluster takes as much of
// the processors as four others, only `make seeds` runs. For a scenario of MySQL it returns the
// flag that names the MySQL that was fetched, because MariaDB has a program of that name too.
func provide(t *testing.T, sh *shell, scenario string) (flag string) {
	t.Helper()
	if strings.Contains(scenario, "\n# only: make versions\n") && os.Getenv("STROPPY_TEST_WHOLE_VERSIONS") == "" {
		t.Skip("skipped engine: cluster: make versions runs this scenario, which keeps both processors busy for minutes")
	}
	if strings.Contains(scenario, "\n# only: make seeds\n") && os.Getenv("STROPPY_TEST_FAULTS") == "" {
		t.Skip("skipped engine: cluster: make seeds runs this scenario, of whose cluster other scenarios show as much")
	}
	if mysql, fetched := scenarioMySQL.FindStringSubmatch(scenario), clustertest.Fetched("mysql"); mysql != nil && fetched != nil {
		return " --cluster '" + mysql[1] + "&" + fetched.Encode() + "'"
	}
	named := scenarioServer.FindStringSubmatch(scenario)
	if named == nil {
		return ""
	}
	if os.Getenv("STROPPY_TEST_WHOLE_VERSIONS") == "" {
		t.Skipf("skipped engine: %s: make versions runs its scenario", named[1])
	}
	cmd := exec.CommandContext(t.Context(), "../scripts/versions.sh", named[1])
	var problem strings.Builder
	cmd.Stderr = &problem
	folder, err := cmd.Output()
	if err != nil {
		t.Skipf("skipped engine: %s: it cannot be had: %s", named[1], strings.TrimSpace(problem.String()))
	}
	if err := os.Symlink(filepath.Join(strings.TrimSpace(string(folder)), named[1], "bin"), filepath.Join(sh.dir, named[1])); err != nil {
		t.Fatal(err)
	}
	return ""
}
