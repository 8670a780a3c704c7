package script

import (
	"math"
	"math/bits"
)

func onDoubles(op operation, args *[3]Value) (Value, error) {
	l, err := args[0].double()
	if err != nil {
		return Value{}, err
	}
	r, err := args[1].double()
	if err != nil {
		return Value{}, err
	}
	switch op {
	case opAdd:
		return double(l + r), nil
	case opSubtract:
		return double(l - r), nil
	case opMultiply:
		return double(l * r), nil
	case opDivide:
		return double(l / r), nil
	case opEqual:
		return boolean(l == r), nil
	case opUnequal:
		return boolean(l != r), nil
	case opAtMost:
		return boolean(l <= r), nil
	}
	return boolean(l < r), nil
}

func onIntegers(op operation, args *[3]Value) (Value, error) {
	l, err := args[0].integer()
	if err != nil {
		return Value{}, err
	}
	r, err := args[1].integer()
	if err != nil {
		return Value{}, err
	}
	switch op {
	case opAdd, opSubtract, opMultiply, opDivide, opModulo:
		return calculate(op, l, r)
	case opEqual:
		return boolean(l == r), nil
	case opUnequal:
		return boolean(l != r), nil
	case opAtMost:
		return boolean(l <= r), nil
	case opLess:
		return boolean(l < r), nil
	case opBitAnd:
		return integer(l & r), nil
	case opBitOr:
		return integer(l | r), nil
	case opBitXor:
		return integer(l ^ r), nil
	case opShiftLeft:
		return integer(l << (r & 63)), nil // as x86 does, and so pgbench
	}
	return integer(l >> (r & 63)), nil
}

// calculate refuses a result beyond 64 bits.
func calculate(op operation, l, r int64) (Value, error) {
	switch op {
	case opAdd:
		sum := l + r
		if (l^sum)&(r^sum) < 0 {
			return Value{}, outOfRange("+")
		}
		return integer(sum), nil
	case opSubtract:
		difference := l - r
		if (l^r)&(l^difference) < 0 {
			return Value{}, outOfRange("-")
		}
		return integer(difference), nil
	case opMultiply:
		high, low := bits.Mul64(magnitude(l), magnitude(r))
		negative := l < 0 != (r < 0)
		if high != 0 || low > 1<<63 || low == 1<<63 && !negative {
			return Value{}, outOfRange("*")
		}
		return integer(l * r), nil
	}
	switch {
	case r == 0:
		return Value{}, errDivision
	case op == opModulo:
		return integer(l % r), nil
	case l == math.MinInt64 && r == -1:
		return Value{}, outOfRange("/")
	}
	return integer(l / r), nil
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

func onRealNumbers(op operation, args *[3]Value) (Value, error) {
	x, err := args[0].double()
	if err != nil {
		return Value{}, err
	}
	switch op {
	case opAbs:
		if x < 0 {
			x = -x
		}
		return double(x), nil
	case opSqrt:
		return double(math.Sqrt(x)), nil
	case opLn:
		return double(math.Log(x)), nil
	case opExp:
		return double(math.Exp(x)), nil
	case opPower:
		y, err := args[1].double()
		return double(math.Pow(x, y)), err
	}
	return double(x), nil
}

// onKeys computes the hashes and the permutation.
func onKeys(op operation, args *[3]Value) (Value, error) {
	var keys [3]int64
	for i, v := range args {
		if i == 2 && op != opPermute {
			break
		}
		key, err := v.integer()
		if err != nil {
			return Value{}, err
		}
		keys[i] = key
	}
	switch {
	case op == opHashFNV1a:
		return integer(hashFNV1a(keys[0], keys[1])), nil
	case op == opHashMurmur2:
		return integer(hashMurmur2(keys[0], keys[1])), nil
	case keys[1] <= 0:
		return Value{}, errSize
	}
	return integer(permute(keys[0], keys[1], keys[2])), nil
}
