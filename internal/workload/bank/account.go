package bank

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"stroppy/internal/check"
	"stroppy/internal/workload"
	"stroppy/internal/workload/sampling"
)

// An account's key is a number of 48 bits: the upper 12 name one of 4,096
// banks, the lower 36 are the account's number there. Keys compare as their
// numbers do, because BICs are spelled so that their order as text is the order
// of the numbers.
const (
	keyBits = 48
	banBits = 36
	// MaxAccounts is the number of accounts that the formula can distinguish.
	MaxAccounts = 1 << keyBits
	// corporateEvery: each hundredth account belongs to a company.
	corporateEvery  = 100
	corporateFactor = 100
	openingLowest   = 100_00    // cents of a personal account
	openingHighest  = 10_000_00 // cents of a personal account
)

// formula makes accounts. It is a value of a few words whatever their number.
type formula struct {
	seed uint64
	keys sampling.Permutation
}

func newFormula(seed uint64) formula {
	return formula{seed: seed, keys: sampling.NewPermutation(keyBits, sampling.Mix(seed))}
}

// key returns the key of account n, which must be below MaxAccounts.
func (f *formula) key(n uint64) uint64 { return f.keys.Forward(n) }

// number is the inverse of key.
func (f *formula) number(key uint64) uint64 { return f.keys.Backward(key) }

// corporate reports whether account n belongs to a company: it opens with a hundred times more and pays payrolls.
func corporate(n uint64) bool { return n%corporateEvery == 0 }

// personal returns what account n opens with if it is personal, and the
// hundredth of what it opens with if it is corporate, in cents.
func (f *formula) personal(n uint64) int64 {
	hash := sampling.Mix(f.seed ^ sampling.Mix(n+1))
	above, _ := bits.Mul64(hash, openingHighest-openingLowest+1)
	return openingLowest + int64(above)
}

// opening returns the opening balance of account n in cents.
func (f *formula) opening(n uint64) int64 {
	if corporate(n) {
		return f.personal(n) * corporateFactor
	}
	return f.personal(n)
}

// sibling returns the other account of the owner of n: 2k and 2k+1 are a pair.
func sibling(n uint64) uint64 { return n ^ 1 }

// floor returns what the owner of n must keep in both accounts together after a
// joint transfer, in cents: a tenth of what they opened with.
func (f *formula) floor(n uint64) int64 {
	return (f.opening(n) + f.opening(sibling(n))) / 10
}

// total returns the exact sum of the opening balances in cents, or why ctx has ended:
// a thousand million accounts take some seconds.
func (f *formula) total(ctx context.Context, accounts uint64) (int64, error) {
	var sum int64
	for n := range accounts {
		if n%(1<<20) == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		sum += f.opening(n)
		if sum < 0 {
			return 0, fmt.Errorf("add up the opening balances: %d accounts hold more than 64 bits of cents: take fewer", accounts)
		}
	}
	return sum, nil
}

// Name returns account n as reports show it.
func (f *formula) Name(n uint64) string {
	if n >= MaxAccounts {
		return fmt.Sprintf("account %d, which no formula makes", n)
	}
	key := f.key(n)
	if n >= firstOpened {
		return fmt.Sprintf("%s/%011d (opened in run %d)", appendBIC(nil, key), ban(key), runOf(n))
	}
	return fmt.Sprintf("%s/%011d (account %d)", appendBIC(nil, key), ban(key), n)
}

// bicLength is the length of a BIC without branch, ISO 9362: four letters of
// the institution, two of the country, two of the place.
const bicLength = 8

// bicLetters spell the 12 bits of a bank, three bits a letter. They are in
// order, so that BICs sort as their numbers do.
const bicLetters = "BDFGKLMN"

// bicPlace follows the four letters: XX is user-assigned in ISO 3166-1, so that
// none of these banks exists.
const bicPlace = "XX2Z"

// appendBIC appends the BIC of a key.
func appendBIC(dst []byte, key uint64) []byte {
	bank := key >> banBits
	dst = append(dst, bicLetters[bank>>9&7], bicLetters[bank>>6&7], bicLetters[bank>>3&7], bicLetters[bank&7])
	return append(dst, bicPlace...)
}

// ban returns the account number within its bank, below 68,719,476,736.
func ban(key uint64) uint64 { return key & (1<<banBits - 1) }

// keyOf puts a key together from what a database holds; false if no account of
// any bank has it.
func keyOf(bic []byte, number int64) (uint64, bool) {
	if len(bic) != bicLength || string(bic[4:]) != bicPlace || number < 0 || number >= 1<<banBits {
		return 0, false
	}
	var bank uint64
	for _, letter := range bic[:4] {
		digit := strings.IndexByte(bicLetters, letter)
		if digit < 0 {
			return 0, false
		}
		bank = bank<<3 | uint64(digit)
	}
	return bank<<banBits | uint64(number), true
}

// names converts between the accounts of a recorded bank and their names.
type names struct {
	formula
	accounts uint64
}

// Number is the inverse of Name. The text behind the BAN and the BAN's leading zeros are optional. An account of the
// load needs its number alone, with or without the word.
func (a *names) Number(name string) (uint64, error) {
	if n, ok := workload.ParseNumber(name, "account"); ok {
		if n >= a.accounts {
			return 0, fmt.Errorf("%q is none of the %s accounts of this bank, which have the numbers 0 to %d", name, check.Group(a.accounts), a.accounts-1)
		}
		return n, nil
	}
	text, _, _ := strings.Cut(name, " ")
	bic, digits, ok := strings.Cut(text, "/")
	number, err := strconv.ParseInt(digits, 10, 64)
	key, known := keyOf([]byte(bic), number)
	if !ok || err != nil || !known {
		return 0, fmt.Errorf("%q is no account: one is written as its number or as BIC/BAN, such as 0 or %s", name, strings.Fields(a.Name(0))[0])
	}
	n := a.number(key)
	if n >= a.accounts && n < firstOpened {
		return 0, fmt.Errorf("%s is none of the %s accounts of this bank", text, check.Group(a.accounts))
	}
	return n, nil
}
