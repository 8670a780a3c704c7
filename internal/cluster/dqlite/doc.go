// Package dqlite starts real dqlite clusters on this machine.
//
// dqlite is a library. A node is a process of this program, which must be built with the tag dqlite. Without the tag,
// Start returns an error that describes the installation and the build.
package dqlite

// NodeCommand is the argument that makes this program a node. The program must then call Serve. So must the test
// program of a package that starts clusters of dqlite.
const NodeCommand = "dqlite-node"

// Database is the database in the cluster's URL.
const Database = "stroppy"
