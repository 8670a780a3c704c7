package script

import (
	"maps"
	"slices"
	"strings"
)

// operation is the function or the operator of a node. The order matters: see Machine.apply.
type operation uint8

const (
	opConstant operation = iota
	opVariable
	opAnd
	opOr
	opCase
	opLeast
	opGreatest

	opAdd
	opSubtract
	opMultiply
	opDivide
	opModulo
	opEqual
	opUnequal
	opAtMost
	opLess

	opBitAnd
	opBitOr
	opBitXor
	opShiftLeft
	opShiftRight

	opRandom
	opRandomExponential
	opRandomGaussian
	opRandomZipfian

	opNot
	opPi
	opAbs
	opInt
	opDouble
	opSqrt
	opLn
	opExp
	opPower
	opHashFNV1a
	opHashMurmur2
	opPermute
	opIs
	opDebug
)

// maxArguments is pgbench's limit for least and greatest.
const maxArguments = 16

// function is an entry in the table of functions. A function with a seed may leave out its last argument.
type function struct {
	op          operation
	least, most int
	seeded      bool
}

var functions = map[string]function{
	"abs":                {op: opAbs, least: 1, most: 1},
	"debug":              {op: opDebug, least: 1, most: 1},
	"double":             {op: opDouble, least: 1, most: 1},
	"exp":                {op: opExp, least: 1, most: 1},
	"greatest":           {op: opGreatest, least: 1, most: maxArguments},
	"hash":               {op: opHashMurmur2, least: 1, most: 2, seeded: true},
	"hash_fnv1a":         {op: opHashFNV1a, least: 1, most: 2, seeded: true},
	"hash_murmur2":       {op: opHashMurmur2, least: 1, most: 2, seeded: true},
	"int":                {op: opInt, least: 1, most: 1},
	"least":              {op: opLeast, least: 1, most: maxArguments},
	"ln":                 {op: opLn, least: 1, most: 1},
	"mod":                {op: opModulo, least: 2, most: 2},
	"permute":            {op: opPermute, least: 2, most: 3, seeded: true},
	"pi":                 {op: opPi},
	"pow":                {op: opPower, least: 2, most: 2},
	"power":              {op: opPower, least: 2, most: 2},
	"random":             {op: opRandom, least: 2, most: 2},
	"random_exponential": {op: opRandomExponential, least: 3, most: 3},
	"random_gaussian":    {op: opRandomGaussian, least: 3, most: 3},
	"random_zipfian":     {op: opRandomZipfian, least: 3, most: 3},
	"sqrt":               {op: opSqrt, least: 1, most: 1},
}

func functionNames() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }
