//go:build !fdb

package main

import (
	"fmt"
	"os"
)

// tags and cgo are the build settings of the measured stroppy.
const tags, cgo = "", "0"

func (*suite) foundationdb() {
	fmt.Fprintln(os.Stderr, "bench: skipped engine: foundationdb: it is measured by CGO_ENABLED=1 go -C tools/bench run -tags fdb .")
}
