package bank

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"stroppy/internal/tier"
)

func TestKeysAreUniqueAndInvertible(t *testing.T) {
	tier.SkipUnderRace(t)
	const n = 1 << 20
	for _, seed := range []uint64{1, 2, math.MaxUint64} {
		f := newFormula(seed)
		keys := make([]uint64, n)
		for i := range uint64(n) {
			keys[i] = f.key(i)
			if keys[i] >= MaxAccounts || f.number(keys[i]) != i {
				t.Fatalf("seed %d: account %d has key %d, which stands for account %d", seed, i, keys[i], f.number(keys[i]))
			}
		}
		slices.Sort(keys)
		if len(slices.Compact(keys)) != n {
			t.Fatalf("seed %d: %d accounts have fewer keys", seed, n)
		}
	}
}

func TestAccountsSpreadOverAllBanks(t *testing.T) {
	f := newFormula(42)
	var banks [4096]float64
	const n = 4096 * 100
	for i := range uint64(n) {
		banks[f.key(i)>>banBits]++
	}
	// The permutation is no random function, so this is only far from lumps.
	for bank, count := range banks {
		if count == 0 || count > 1000 {
			t.Errorf("bank %d has %v of %d accounts, 100 would be even", bank, count, n)
		}
	}
}

func TestKeyTextRoundTripsAndSortsLikeNumber(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var before uint64
	var textBefore []byte
	keys := []uint64{0, 1, 1 << banBits, 1<<banBits - 1, MaxAccounts - 1}
	for range 10_000 {
		keys = append(keys, random.Uint64N(MaxAccounts))
	}
	slices.Sort(keys)
	for i, key := range keys {
		bic := appendBIC(nil, key)
		if back, ok := keyOf(bic, int64(ban(key))); !ok || back != key {
			t.Fatalf("key %d is %s/%d and reads as %d, %v", key, bic, ban(key), back, ok)
		}
		text := fmt.Appendf(nil, "%s/%011d", bic, ban(key))
		if back, ok := accountOf(text); !ok || back != key {
			t.Fatalf("%s reads as %d, %v, want %d", text, back, ok, key)
		}
		if i > 0 && (bytes.Compare(textBefore, text) < 0) != (before < key) {
			t.Fatalf("%s and %s are not in the order of %d and %d", textBefore, text, before, key)
		}
		if id := appendAccountText(nil, key); !bytes.Equal(id, text) {
			t.Fatalf("the id is %s, want %s", id, text)
		}
		before, textBefore = key, text
	}
}

func TestKeyOfRefusesImpossibleAccountNumbers(t *testing.T) {
	for _, c := range []struct {
		bic    string
		number int64
	}{
		{"", 0}, {"BDFGXX2", 0}, {"BDFGXX2Z9", 0}, {"ADFGXX2Z", 0}, {"BDFGDE2Z", 0}, {"bdfgXX2Z", 0},
		{"BDFGXX2Z", -1}, {"BDFGXX2Z", 1 << banBits},
	} {
		if key, ok := keyOf([]byte(c.bic), c.number); ok {
			t.Errorf("%q/%d reads as key %d", c.bic, c.number, key)
		}
	}
}

func TestBICHasTheShapeOfISO9362(t *testing.T) {
	seen := map[string]bool{}
	for bank := range uint64(4096) {
		bic := appendBIC(nil, bank<<banBits)
		for i, c := range bic {
			letter, digit := c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
			if !letter && (i < 6 || !digit) {
				t.Fatalf("%s has %q at %d", bic, c, i)
			}
		}
		if country := string(bic[4:6]); country < "XA" || country > "XZ" {
			t.Fatalf("%s is of the country %s, which is not user-assigned", bic, country)
		}
		seen[string(bic)] = true
	}
	if len(seen) != 4096 {
		t.Errorf("4096 banks have %d BICs", len(seen))
	}
}

func TestOpeningBalancesAreInRangeAndRepeatable(t *testing.T) {
	f := newFormula(9)
	var sum float64
	const n = 100_000
	for i := range uint64(n) {
		low, high := int64(100_00), int64(10_000_00)
		if corporate(i) {
			low, high = low*100, high*100
		}
		opening := f.opening(i)
		if opening < low || opening > high {
			t.Fatalf("account %d opens with %d cents", i, opening)
		}
		if !corporate(i) {
			sum += float64(opening)
		}
		if g := newFormula(9); g.opening(i) != opening {
			t.Fatal("the same seed gives another opening balance")
		}
	}
	if mean := sum / (n * 0.99); math.Abs(mean-505_000) > 5000 {
		t.Errorf("the mean of personal accounts is %.0f cents, want about 505,000", mean)
	}
}

func TestTotalEqualsSumOfOpeningBalances(t *testing.T) {
	f := newFormula(5)
	var want int64
	for n := range uint64(1234) {
		want += f.opening(n)
	}
	got, err := f.total(t.Context(), 1234)
	if err != nil || got != want {
		t.Errorf("the total is %d, %v, want %d", got, err, want)
	}
}

func TestAccountNameContainsItsNumber(t *testing.T) {
	f := newFormula(1)
	name := f.Name(17)
	if !strings.HasSuffix(name, " (account 17)") || name[8] != '/' || strings.IndexByte(name, ' ') != 20 {
		t.Errorf("account 17 is called %q", name)
	}
	if name := f.Name(math.MaxUint64); !strings.Contains(name, "no formula") {
		t.Errorf("an impossible account is called %q", name)
	}
}

// TestAccountIsFoundByAnySpelling checks that an account is found by each form in which a report or a person
// writes the account.
func TestAccountIsFoundByAnySpelling(t *testing.T) {
	bank := &names{newFormula(1), 1000}
	whole := bank.Name(647)
	key, _, _ := strings.Cut(whole, " ")
	for _, name := range []string{whole, key, "647", "account 647", "(account 647)", " 647 "} {
		if n, err := bank.Number(name); n != 647 || err != nil {
			t.Errorf("%q is account %d, %v", name, n, err)
		}
	}
	if n, err := bank.Number(bank.Name(firstOpened)); n != firstOpened || err != nil {
		t.Errorf("an opened account is %d, %v", n, err)
	}
	for name, says := range map[string]string{
		"1000": "numbers 0 to 999", "account 1000": "numbers 0 to 999", "-1": "BIC/BAN", "": "BIC/BAN", "account": "BIC/BAN",
		"record 3": "BIC/BAN", "18446744073709551616": "BIC/BAN", bank.Name(1000): "none of the 1,000 accounts",
	} {
		if n, err := bank.Number(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is account %d, %v", name, n, err)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	f := newFormula(1)
	var sink uint64
	for i := range b.N {
		sink += f.key(uint64(i))
	}
	_ = sink
}

// TestLoadOrderVisitsEachAccountOnce checks that every account is loaded once with its own key, and that the keys
// of each window ascend.
func TestLoadOrderVisitsEachAccountOnce(t *testing.T) {
	tier.SkipUnderRace(t)
	f := newFormula(7)
	for _, accounts := range []uint64{0, 1, 1000, keyWindow, 2*keyWindow + 17} {
		o := keyOrder{formula: &f, accounts: accounts}
		seen := make([]bool, accounts)
		last, count := uint64(0), uint64(0)
		for n, key, ok := o.take(); ok; n, key, ok = o.take() {
			if n >= accounts || seen[n] || f.key(n) != key {
				t.Fatalf("of %d accounts, account %d came with key %d", accounts, n, key)
			}
			if turned := ban(key)<<12 | key>>36; count%keyWindow != 0 && turned <= last {
				t.Fatalf("of %d accounts, key %d came after %d", accounts, key, last)
			}
			seen[n], last = true, ban(key)<<12|key>>36
			count++
		}
		if count != accounts {
			t.Errorf("%d of %d accounts came", count, accounts)
		}
	}
}

func BenchmarkKeyOrder(b *testing.B) {
	f := newFormula(7)
	o := keyOrder{formula: &f, accounts: 1 << 40}
	for b.Loop() {
		if _, _, ok := o.take(); !ok {
			b.Fatal("no key")
		}
	}
}

// TestCancelledContextEndsTheSum checks that summing a great many accounts ends with the context.
func TestCancelledContextEndsTheSum(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	f := newFormula(1)
	if _, err := f.total(ctx, 1<<37); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}
