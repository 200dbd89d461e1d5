package dynamofake

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// numberForm is a number as the API's documentation describes it.
var numberForm = regexp.MustCompile(`^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?$`)

// referenceNumber reads a number with math/big. It fails for one that is not
// known because it would take too long to write out.
func referenceNumber(s string) (r *big.Rat, form, known bool) {
	m := numberForm.FindStringSubmatch(s)
	if m == nil {
		return nil, false, true
	}
	if exp, err := strconv.Atoi("0" + strings.TrimLeft(m[1], "+-")); err != nil || exp > 1000 || len(s) > 1000 {
		return nil, true, false
	}
	r, ok := new(big.Rat).SetString(s)
	return r, ok, true
}

// storable returns the canonical form of a number, or false if it has too many
// digits or is out of range.
func storable(r *big.Rat) (string, bool) {
	const places = 3000
	if r.Sign() == 0 {
		return "0", true
	}
	text := strings.TrimRight(strings.TrimRight(r.FloatString(places), "0"), ".")
	digits := strings.Trim(strings.ReplaceAll(strings.TrimPrefix(text, "-"), ".", ""), "0")
	abs := new(big.Rat).Abs(r)
	ten := big.NewInt(10)
	least := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(ten, big.NewInt(130), nil))
	past := new(big.Rat).SetInt(new(big.Int).Exp(ten, big.NewInt(126), nil))
	return text, len(digits) <= 38 && abs.Cmp(least) >= 0 && abs.Cmp(past) < 0
}

// FuzzNumber guards the fake's arithmetic against math/big: a number is taken
// if, and only if, it is one, of at most 38 digits and in range; its form is the
// one canonical; sums and comparisons are exact, and a sum that cannot be stored
// is refused and not rounded.
func FuzzNumber(f *testing.F) {
	nines := strings.Repeat("9", 38)
	for _, seed := range [][2]string{
		{"0.1", "0.2"},
		{"-0", "1E+3"},
		{"9e125", "9e125"},
		{"1e125", "1e-130"},
		{"1e-131", "1e126"},
		{nines, "1"},
		{nines + "9", "-1"},
		{"-" + nines + "e87", nines + "e-130"},
		{"00.500", ".5"},
		{"5.", "-5e0"},
		{"0e500", "1e500"},
		{"1e", "e1"},
		{"1_0", "0x1"},
		{"", "-"},
		{"95", "5"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		var parsed [2]decimal
		var want [2]*big.Rat
		for i, s := range []string{x, y} {
			d, err := parseDecimal(s)
			r, form, known := referenceNumber(s)
			if !known {
				return
			}
			text, fits := "", false
			if form {
				text, fits = storable(r)
			}
			if fits != (err == nil) {
				t.Fatalf("%q: %v, %v; want %q", s, d, err, text)
			}
			if err != nil {
				return
			}
			if d.String() != text {
				t.Fatalf("%q is written as %q, want %q", s, d, text)
			}
			if again := mustDecimal(text); again.compare(d) != 0 || again.exp != d.exp {
				t.Fatalf("%q is read back as %+v, not %+v", text, again, d)
			}
			parsed[i], want[i] = d, r
		}
		if got, want := parsed[0].compare(parsed[1]), want[0].Cmp(want[1]); got != want {
			t.Fatalf("%q against %q: %d, want %d", x, y, got, want)
		}
		for _, op := range []string{"+", "-"} {
			other, exact := parsed[1], new(big.Rat).Add(want[0], want[1])
			if op == "-" {
				other, exact = other.negate(), new(big.Rat).Sub(want[0], want[1])
			}
			sum, err := parsed[0].add(other)
			text, fits := storable(exact)
			if fits != (err == nil) || err == nil && sum.String() != text {
				t.Fatalf("%q %s %q = %v, %v; want %q, %v", x, op, y, sum, err, text, fits)
			}
		}
	})
}
