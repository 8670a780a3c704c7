package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestConnectionsComeFromLocalAddresses checks with a server that accepts no other addresses.
func TestConnectionsComeFromLocalAddresses(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	execute(t, server.URL(), "CREATE ROLE payer LOGIN SUPERUSER")
	hba := filepath.Join(filepath.Dir(server.Dir()), "pg_hba.conf")
	rules := read(t, hba)
	if err := os.WriteFile(hba, []byte("host all payer 127.0.0.2/31 trust\nhost all payer all reject\n"+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server.PIDs()[0], syscall.SIGHUP); err != nil { // it reads its rules again
		t.Fatal(err)
	}
	url := server.URLFor("payer", "", "postgres")
	try := func(args ...string) (int, string) {
		args = append([]string{"run", "bank", "--db", url, "--accounts", "100"}, args...)
		code, _, stderr := call(t, few(t, 4, args...)...)
		return code, stderr
	}
	code, stderr := try()
	for deadline := time.Now().Add(waitLimit); code == 0 && time.Now().Before(deadline); {
		code, stderr = try() // the server takes its rules anew when it comes to it
	}
	refused(t, code, 3, stderr, "pg_hba.conf")
	if code, stderr := try("--local-address", "127.0.0.2,127.0.0.3"); code != 0 {
		t.Errorf("from the addresses that the server takes connections from it ended with %d: %s", code, stderr)
	}
	code, stderr = try("--local-address", "127.0.0.2,127.0.0.4")
	refused(t, code, 3, stderr, "pg_hba.conf")
	code, stderr = try("--local-address", "192.0.2.1")
	refused(t, code, 2, stderr, "local-address: 192.0.2.1 is no address of this machine")
}

// TestUnusableLocalAddressIsRefused checks databases whose driver cannot choose a local address.
func TestUnusableLocalAddressIsRefused(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run bank --db sqlite:x.db --local-address 127.0.0.2":           "a connection to sqlite: has no choice of the local address",
		"run bank --db sqlite:x.db --local-address 127.0.0.2 --dry-run": "a connection to sqlite: has no choice of the local address",
		"run bank --local-address 127.0.0.2":                            "name it with db, or leave local-address out",
		"run bank --db sqlite:x.db --local-address one":                 `local-address has "one", which is no IP address`,
	} {
		code, _, stderr := call(t, strings.Fields(args)...)
		refused(t, code, 2, stderr, want)
	}
}
