// Stroppy reports whether a transactional database can be trusted with money, and
// how fast it is while it is being hurt.
package main

import (
	"os"

	"stroppy/internal/cli"
)

// profiled runs the program, and writes a profile of it where it was built for that.
var profiled = func(run func() int) int { return run() }

func main() {
	os.Exit(profiled(func() int { return cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr) }))
}
