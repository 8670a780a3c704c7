package clustertest

import (
	"net/url"
	"os"
	"path/filepath"
)

// VersionsVariable names the environment variable for the folder that scripts/versions.sh has filled.
const VersionsVariable = "STROPPY_TEST_VERSIONS"

// Fetched returns the parameters for a product's programs in that folder. It takes the last version by name. It
// returns nil if there is none; then the installed programs are used.
func Fetched(product string) url.Values {
	folder := os.Getenv(VersionsVariable)
	if folder == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(folder, product+"-*", "bin"))
	if err != nil || len(found) == 0 {
		return nil
	}
	return url.Values{"bin": {found[len(found)-1]}}
}
