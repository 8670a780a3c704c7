// Package kv is the key-value workload: records of a key and a value, of which a
// transaction reads one, writes one, inserts one, reads and writes one, or reads
// several in their order. The mixes are those of YCSB (Cooper et al., Benchmarking
// Cloud Serving Systems with YCSB, SoCC 2010) and that of a public profile of nine
// reads to one write.
//
// Every value says who wrote it. So each read that a client was answered can be held
// against everything that was written.
package kv
