// Stroppy reports whether a transactional database can be trusted with money, and
// how fast it is while it is being hurt.
package main

import (
	"os"

	"stroppy/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
