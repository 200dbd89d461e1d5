package dynamofake

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// Limits of a number, from the data types page of the API.
const (
	maxDigits = 38
	maxPlaces = 130 + maxDigits - 1 // after the point: all digits of the smallest number
)

var (
	numberForm = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?0*[0-9]{1,4})?$`)
	least      = rational("1e-130")
	tooLarge   = rational("1e126")
)

// canonicalNumber returns the one form of a number: no exponent, no leading or
// trailing zeros.
func canonicalNumber(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil && strconv.FormatUint(n, 10) == s {
		return s, nil // it would be most of the work of a test otherwise
	}
	if !numberForm.MatchString(s) {
		return "", invalid("The parameter cannot be converted to a numeric value: %s", s)
	}
	return formatNumber(rational(s))
}

// rational reads a number that has the form of one.
func rational(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("dynamofake: a stored number is not one: " + s)
	}
	return r
}

// formatNumber fails where a number cannot be stored: the API does not round.
func formatNumber(r *big.Rat) (string, error) {
	abs := new(big.Rat).Abs(r)
	switch {
	case r.Sign() == 0:
		return "0", nil
	case abs.Cmp(tooLarge) >= 0:
		return "", invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case abs.Cmp(least) < 0:
		return "", invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	}
	text := strings.TrimRight(strings.TrimRight(r.FloatString(maxPlaces), "0"), ".")
	if len(significant(text)) > maxDigits || rational(text).Cmp(r) != 0 {
		return "", invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return text, nil
}

// significant returns the digits of a canonical number without the zeros around them.
func significant(n string) string {
	return strings.Trim(strings.ReplaceAll(strings.TrimPrefix(n, "-"), ".", ""), "0")
}

// numberSize is about one byte for two digits, one byte for the exponent, and
// one for the sign of a negative number.
func numberSize(n string) int {
	size := 1 + (max(1, len(significant(n)))+1)/2
	if n[0] == '-' {
		size++
	}
	return size
}
