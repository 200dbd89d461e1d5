package dynamofake

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of a number, from the data types page of the API.
const (
	maxDigits   = 38
	maxExponent = 125  // of the first digit
	minExponent = -130 // of the first digit
)

// A decimal is coef * 10^exp. It is exact, and its coefficient ends in no zero,
// so that each number has one form.
type decimal struct {
	coef *big.Int
	exp  int
}

// parseDecimal reads a number as the API takes it.
func parseDecimal(s string) (decimal, error) {
	text, negative := s, false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	exp := 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		var err error
		// The few digits that are needed: the rest can only be out of range.
		if exp, err = strconv.Atoi(text[at+1:]); err != nil || exp > 1_000_000 || exp < -1_000_000 {
			return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", s)
		}
		text = text[:at]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, invalid("The parameter cannot be converted to a numeric value: %s", s)
	}
	exp -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	if trimmed == "" {
		return decimal{coef: new(big.Int)}, nil
	}
	if err := checkRange(len(trimmed), exp); err != nil {
		return decimal{}, err
	}
	coef, _ := new(big.Int).SetString(trimmed, 10)
	if negative {
		coef.Neg(coef)
	}
	return decimal{coef: coef, exp: exp}, nil
}

func checkRange(digits, exp int) error {
	switch first := exp + digits - 1; {
	case first > maxExponent:
		return invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case first < minExponent:
		return invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case digits > maxDigits:
		return invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return nil
}

// digits returns the significant digits, without sign.
func (d decimal) digits() string { return new(big.Int).Abs(d.coef).String() }

// String is the canonical form: no exponent, no leading or trailing zeros.
func (d decimal) String() string {
	if d.coef.Sign() == 0 {
		return "0"
	}
	digits := d.digits()
	switch {
	case d.exp >= 0:
		digits += strings.Repeat("0", d.exp)
	case len(digits) > -d.exp:
		point := len(digits) + d.exp
		digits = digits[:point] + "." + digits[point:]
	default:
		digits = "0." + strings.Repeat("0", -d.exp-len(digits)) + digits
	}
	if d.coef.Sign() < 0 {
		return "-" + digits
	}
	return digits
}

// scaled returns both coefficients at the smaller of both exponents.
func scaled(a, b decimal) (x, y *big.Int, exp int) {
	exp = min(a.exp, b.exp)
	scale := func(d decimal) *big.Int {
		power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exp-exp)), nil)
		return power.Mul(power, d.coef)
	}
	return scale(a), scale(b), exp
}

func (d decimal) compare(other decimal) int {
	x, y, _ := scaled(d, other)
	return x.Cmp(y)
}

// add fails where the sum cannot be stored: the API does not round.
func (d decimal) add(other decimal) (decimal, error) {
	x, y, exp := scaled(d, other)
	sum := x.Add(x, y)
	if sum.Sign() == 0 {
		return decimal{coef: sum}, nil
	}
	digits := new(big.Int).Abs(sum).String()
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	if err := checkRange(len(trimmed), exp); err != nil {
		return decimal{}, err
	}
	coef, _ := new(big.Int).SetString(trimmed, 10)
	if sum.Sign() < 0 {
		coef.Neg(coef)
	}
	return decimal{coef: coef, exp: exp}, nil
}

func (d decimal) negate() decimal {
	return decimal{coef: new(big.Int).Neg(d.coef), exp: d.exp}
}

// mustDecimal reads a number that was made canonical before.
func mustDecimal(s string) decimal {
	d, err := parseDecimal(s)
	if err != nil {
		panic("dynamofake: a stored number is not one: " + s)
	}
	return d
}
