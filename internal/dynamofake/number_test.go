package dynamofake

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestNumberCanonical(t *testing.T) {
	nines := strings.Repeat("9", 38)
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "+5": "5", "007": "7", "1.10": "1.1", ".5": "0.5", "5.": "5", "-0.0": "0", "0e500": "0",
		"1e3": "1000", "1E+3": "1000", "12e-3": "0.012", "-1.5e1": "-15", "100": "100", "1e-130": "0." + strings.Repeat("0", 129) + "1",
		"9.9e125": "99" + strings.Repeat("0", 124), nines: nines, nines + "000": nines + "000",
		"0.000" + nines: "0.000" + nines, "1000000000000000000000000000000000000000000": "1" + strings.Repeat("0", 42),
	} {
		got, err := canonicalNumber(in)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "-", "+", ".", "e5", "1e", "1e1.5", "1 ", " 1", "1,0", "0x1", "NaN", "Infinity", "1e126", "-1e126", "1e-131",
		nines + "9", "1e99999999999999999999", "1e1000001", "--1", "1.2.3", "１",
	} {
		if got, err := canonicalNumber(in); err == nil {
			t.Errorf("%q was taken for %v", in, got)
		}
	}
}

func TestNumberArithmetic(t *testing.T) {
	number := func(s string) types.AttributeValue {
		v, err := canonical(&types.AttributeValueMemberN{Value: s}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ a, b, sum string }{
		{"1", "1", "2"},
		{"1", "-1", "0"},
		{"0.1", "0.2", "0.3"},
		{"1e20", "1e-10", "100000000000000000000.0000000001"},
		{"-5", "0", "-5"},
		{"95", "5", "100"},
		{"1e125", "1e-130", ""}, // more digits than there are
		{"9e125", "9e125", ""},  // too large
	} {
		sum, err := sum("+", number(c.a), number(c.b))
		if err == nil && !equal(sum, &types.AttributeValueMemberN{Value: c.sum}) || (err != nil) != (c.sum == "") {
			t.Errorf("%s + %s = %v, %v; want %q", c.a, c.b, sum, err, c.sum)
		}
	}
	ascending := []string{"-1e125", "-10", "-9.5", "-1e-130", "0", "1e-130", "0.5", "9", "10", "1e20", "1e125"}
	for i, a := range ascending {
		for j, b := range ascending {
			want := min(1, max(-1, i-j))
			if got, ok := order(number(a), number(b)); got != want || !ok {
				t.Errorf("%s against %s: %d, want %d", a, b, got, want)
			}
		}
	}
}
