// Package dqlite starts real dqlite clusters on this machine.
//
// dqlite is a library: a node is a process of this program, which links it where
// Stroppy was built with the tag dqlite. Without the tag Start says what to install
// and how to build.
package dqlite

// NodeCommand is the argument with which this program is started to be a node. It
// has to call Serve then; so has the test program of a package that starts clusters
// of dqlite.
const NodeCommand = "dqlite-node"

// Database is the database that the cluster's URL names.
const Database = "stroppy"
