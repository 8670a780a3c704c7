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
	scenarioTier   = regexp.MustCompile(`(?m)^# only: make (\w+)$`)
	scenarioMySQL  = regexp.MustCompile(`(?m)^cluster: (mysql:\S+\?\S+)$`)
)

// skipOtherTier skips a scenario that the current tier does not run. The tier is the value of
// STROPPY_TEST_DOCUMENTS: on, seeds, versions, or all, which is on and seeds. A scenario that keeps
// both processors busy for minutes names its tier in its head.
func skipOtherTier(t *testing.T, scenario string) {
	t.Helper()
	tier, only := os.Getenv(documentsVariable), ""
	if head := scenarioTier.FindStringSubmatch(scenario); head != nil {
		only = head[1]
	}
	switch {
	case only == tier, only == "" && (tier == "on" || tier == "all"), only == "seeds" && tier == "all":
	case only == "":
		t.Skip("the run of all tests has this scenario")
	default:
		t.Skipf("skipped engine: cluster: make %s runs this scenario, which keeps both processors busy for minutes", only)
	}
}

// provide fetches the server whose version a scenario names, and links its programs where the
// scenario looks for them. For a scenario of MySQL it returns the flag that names the fetched
// MySQL, because MariaDB has a program of that name too.
func provide(t *testing.T, sh *shell, scenario string) (flag string) {
	t.Helper()
	if mysql, fetched := scenarioMySQL.FindStringSubmatch(scenario), clustertest.Fetched("mysql"); mysql != nil && fetched != nil {
		return " --cluster '" + mysql[1] + "&" + fetched.Encode() + "'"
	}
	named := scenarioServer.FindStringSubmatch(scenario)
	if named == nil {
		return ""
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
