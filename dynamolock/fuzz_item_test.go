package dynamolock

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
)

// take takes the first byte of a script; 0 at its end.
func take(script *[]byte) byte {
	if len(*script) == 0 {
		return 0
	}
	first := (*script)[0]
	*script = (*script)[1:]
	return first
}

// takeText takes a text of up to 63 bytes.
func takeText(script *[]byte) string {
	n := min(int(take(script)&127), len(*script))
	text := string((*script)[:n])
	*script = (*script)[n:]
	return text
}

// someNumbers are the bounds of a lock's attributes, and other numbers.
var someNumbers = []string{
	"0", "1", "2", "7", "20000", "2147483646", "2147483647", "2147483648", "9007199254740992", "9007199254740993",
	"4611686018427387903", "4611686018427387904", "4611686018427387905", "9223372036854775808", "18446744073709551615",
	"18446744073709551616", "-1", "-7", "1.5", "0.5", "99999999999999999999999999999999999999", "1760000000000",
}

func takeNumber(script *[]byte) string { return someNumbers[int(take(script))%len(someNumbers)] }

// takeAttributes makes the attributes of an item: those of the npm client, mostly in its types, and another.
func takeAttributes(script *[]byte) attributes {
	attrs := make(attributes)
	for _, name := range []string{attrGUID, attrToken, attrLease, attrOwner, attrTouched, attrData, attrSince, "something", attrBroken, attrAsked} {
		if v := takeAttribute(script, name); v != nil {
			attrs[name] = v
		}
	}
	return attrs
}

func takeAttribute(script *[]byte, name string) types.AttributeValue {
	usual := map[string]byte{attrGUID: 3, attrOwner: 1, attrData: 3}
	op := take(script) & 15
	if op >= 8 {
		if op = usual[name]; op == 0 {
			op = 2
		}
	}
	switch op {
	case 1:
		return text(takeText(script))
	case 2:
		return &types.AttributeValueMemberN{Value: takeNumber(script)}
	case 3:
		return binary(takeText(script))
	case 4:
		return &types.AttributeValueMemberNULL{Value: true}
	case 5:
		return &types.AttributeValueMemberBOOL{Value: true}
	case 6:
		return &types.AttributeValueMemberL{Value: []types.AttributeValue{number(1)}}
	case 7:
		return &types.AttributeValueMemberM{Value: attributes{"N": number(1)}}
	}
	return nil
}

var (
	wholeForm = regexp.MustCompile(`^[0-9]+$`)
	mostWhole = new(big.Int).Lsh(big.NewInt(1), 62)
)

// isWhole is an attribute that is a number from 0 to 2^62.
func isWhole(v types.AttributeValue) bool {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok || !wholeForm.MatchString(n.Value) {
		return false
	}
	value, _ := new(big.Int).SetString(n.Value, 10)
	return value.Cmp(mostWhole) <= 0
}

func isTyped[T types.AttributeValue](v types.AttributeValue) bool { _, ok := v.(T); return ok }

// wrongAttributes are those that disqualify an item as a lock, by the npm client's table.
func wrongAttributes(attrs attributes) []string {
	var wrong []string
	rule := func(name string, ok bool) {
		if !ok {
			wrong = append(wrong, name)
		}
	}
	optional := func(name string, ok bool) { rule(name, ok || attrs[name] == nil) }
	guid := attrs[attrGUID]
	rule(attrGUID, isTyped[*types.AttributeValueMemberB](guid) || isTyped[*types.AttributeValueMemberS](guid))
	optional(attrOwner, isTyped[*types.AttributeValueMemberS](attrs[attrOwner]))
	optional(attrTouched, isWhole(attrs[attrTouched]))
	optional(attrSince, isWhole(attrs[attrSince]))
	optional(attrData, isTyped[*types.AttributeValueMemberB](attrs[attrData]))
	if attrs[attrToken] != nil || attrs[attrLease] != nil || attrs[attrTouched] != nil {
		rule(attrToken, isWhole(attrs[attrToken]))
		rule(attrLease, isWhole(attrs[attrLease]))
	} else {
		bytes, _ := guid.(*types.AttributeValueMemberB)
		rule(attrGUID, bytes != nil && len(bytes.Value) == 64 && isTyped[*types.AttributeValueMemberS](attrs[attrOwner]))
	}
	return wrong
}

// FuzzItem tests the parsing of other programs' items: an item is a lock if, and only if,
// all relevant attributes have the right type and range; otherwise the error names one
// that does not. Values are read unchanged, and the name of a grant leads back to it.
func FuzzItem(f *testing.F) {
	for _, seed := range [][]byte{
		{},
		{8, 4, 'g', 'u', 'i', 'd', 8, 3, 8, 4, 8, 1, 'o'},        // npm's FailOpen
		{1, 4, 't', 'e', 'x', 't', 8, 3, 8, 1, 8, 1, 'o', 8, 21}, // released, guid as text
		{8, 1, 'g', 0, 0, 8, 1, 'o'},                             // nearly npm's FailClosed: its guid is longer
		slices.Concat([]byte{8, 64}, make([]byte, 64), []byte{0, 0, 8, 1, 'o'}),
		slices.Concat([]byte{1, 64}, make([]byte, 64), []byte{0, 0, 8, 1, 'o'}),
		slices.Concat([]byte{8, 64}, make([]byte, 64), []byte{0, 0, 8, 1, 'o', 0, 0, 0, 0, 0, 8, 0}), // asked for
		{8, 1, 'g', 8, 10, 8, 6, 8, 1, 'o', 8, 8, 8, 2, 'd', 0, 8, 9, 7},                             // never expires
		{8, 1, 'g', 8, 12, 8, 11},
		{1, 1, 'g'}, // the same, with a text for a guid
		{8, 1, 'g', 8, 11, 8, 12},
		{8, 1, 'g', 8, 15, 8, 16}, // out of range
		{8, 1, 'g', 8, 18, 8, 1},
		{0, 8, 3, 8, 4},
		{4, 8, 3, 8, 4},
		{8, 0, 1, 1, '7', 8, 1},
		{8, 0, 0, 0, 0, 2, 1},
		{8, 1, 'g', 8, 3, 8, 4, 6},
		{8, 1, 'g', 8, 3, 8, 4, 0, 1, 3, 'n', 'o', 'w'},
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 7},
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 0, 5, 0},
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 0, 0, 0, 0, 8, 3},      // somebody asks for token 7
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 0, 0, 0, 8, 3, 8, 2},   // asked for token 2, broken token 7
		{8, 1, 'g', 0, 0, 8, 1, 'o', 0, 0, 0, 0, 0, 8, 0},    // asked for a grant without a token
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 0, 0, 0, 0, 1, 1, '7'}, // as text
		{8, 1, 'g', 8, 3, 8, 4, 0, 0, 0, 0, 0, 0, 2, 15},     // out of range
	} {
		f.Add(seed, []byte(nil), []byte(nil))
	}
	f.Add([]byte{8, 1, 'g', 8, 3, 8, 4}, []byte("007 +1 1e3 "), []byte(nil))
	for _, sharing := range sharingSeeds {
		f.Add([]byte{8, 1, 'g', 8, 5, 8, 4, 8, 1, 'o'}, []byte(nil), sharing)
		f.Add([]byte{8, 1, 'g', 8, 5, 8, 1, 8, 1, 'o'}, []byte(nil), sharing) // released
	}
	f.Fuzz(func(t *testing.T, script, token, sharing []byte) {
		attrs := takeAttributes(&script)
		takeSharing(&sharing, attrs)
		if len(token) > 0 { // as a server would not send it
			attrs[attrToken] = &types.AttributeValueMemberN{Value: string(token)}
		}
		i, err := decode("table", attrs)
		wrong := append(wrongAttributes(attrs), wrongSharing(attrs)...)
		if len(attrs) == 0 {
			wrong = nil
		}
		if err != nil {
			var foreign *ItemError
			if !errors.Is(err, ErrItem) || !errors.As(err, &foreign) || foreign.Table != "table" || foreign.Reason == "" {
				t.Fatalf("%v: %v", attrs, err)
			}
			if !slices.Contains(wrong, foreign.Attribute) {
				t.Fatalf("%v: %v; wrong are %q", attrs, err, wrong)
			}
			return
		}
		if len(wrong) > 0 {
			t.Fatalf("%v is taken for %+v; wrong are %q", attrs, i, wrong)
		}
		checkItem(t, attrs, i)
	})
}

// checkItem compares an item with its attributes.
func checkItem(t *testing.T, attrs attributes, i *item) {
	num := func(name string) *big.Int {
		v, _ := attrs[name].(*types.AttributeValueMemberN)
		if v == nil {
			return new(big.Int)
		}
		n, _ := new(big.Int).SetString(v.Value, 10)
		return n
	}
	lease := num(attrLease)
	var want form
	switch {
	case len(attrs) == 0:
		want = absent
	case attrs[attrToken] == nil:
		want = tokenless
	case lease.Cmp(big.NewInt(1)) <= 0:
		want = released
	case lease.Cmp(big.NewInt(1<<31-1)) >= 0:
		want = closed
	default:
		want = leased
	}
	if i.form != want || i.token.String() != num(attrToken).String() {
		t.Fatalf("%v is read as %+v, want form %v", attrs, i, want)
	}
	if want == leased && (i.lease < 0 || i.lease.Milliseconds() != lease.Int64()) {
		t.Fatalf("%v: the lease is %v", attrs, i.lease)
	}
	for name, at := range map[string]time.Time{attrTouched: i.touched, attrSince: i.since} {
		if most := big.NewInt(1 << 53); (attrs[name] == nil) != at.IsZero() || attrs[name] != nil && num(name).Cmp(most) <= 0 && at.UnixMilli() != num(name).Int64() {
			t.Fatalf("%v: %s is read as %v", attrs, name, at)
		}
	}
	if owner, _ := attrs[attrOwner].(*types.AttributeValueMemberS); owner != nil && i.owner != owner.Value || owner == nil && i.owner != "" {
		t.Fatalf("%v: the owner is %q", attrs, i.owner)
	}
	if data, _ := attrs[attrData].(*types.AttributeValueMemberB); data != nil && !bytes.Equal(i.data, data.Value) || data == nil && i.data != nil {
		t.Fatalf("%v: the data is %q", attrs, i.data)
	}
	if !i.same(i) || len(attrs) > 0 && i.guidVal != attrs[attrGUID] {
		t.Fatalf("%v: the guid is %q, or the item another one", attrs, i.guid)
	}
	// Somebody asks for the grant with this token, or for the one without; another's token is no wish for it.
	asked, _ := attrs[attrAsked].(*types.AttributeValueMemberN)
	if wish := asked != nil && wholeForm.MatchString(asked.Value) && num(attrAsked).Cmp(num(attrToken)) == 0; i.asked != wish {
		t.Fatalf("%v: asked is %v", attrs, i.asked)
	}
	info := i.info("key")
	if info.Held != (want >= leased) || info.Held != (info.Grant != "") {
		t.Fatalf("%v is described as %+v", attrs, info)
	}
	if !info.Held {
		return
	}
	if i.sharing != nil {
		checkSharing(t, attrs, i)
		return
	}
	grant, err := parseGrant(info.Grant)
	if err != nil || grant.String() != info.Grant || !reflect.DeepEqual(grant, i.grant()) {
		t.Fatalf("%v: the grant %q is read as %+v, %v", attrs, info.Grant, grant, err)
	}
}

// FuzzGrant tests the names of grants: a valid one survives a round trip, any other is ErrInvalid.
func FuzzGrant(f *testing.F) {
	for _, seed := range []string{
		"leased:7:" + strings.Repeat("A", grantLen), "leased:7:", "closed:0:", "closed:18446744073709551615:", "guid:B:Z3VpZA==", "guid:S:", "guid:N:", "tokenless::" + strings.Repeat("A", grantLen), "tokenless::", "tokenless:0:" + strings.Repeat("A", grantLen),
		"", ":", "::", "leased::", "leased:-1:", "leased:18446744073709551616:", "guid:B:Z3VpZA", "guid:B:Z3Vp\nZA==", "leased:007:", "closed:1:short", "guid:B:Z3VpZB==",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		id, err := parseGrant(name)
		if err != nil {
			if !errors.Is(err, holdfast.ErrInvalid) {
				t.Fatalf("%q: %v", name, err)
			}
			return
		}
		again, err := parseGrant(id.String())
		if err != nil || !reflect.DeepEqual(id, again) || again.String() != id.String() {
			t.Fatalf("%q is %+v, which is written as %q and read as %+v, %v", name, id, id, again, err)
		}
		given, written := strings.Split(name, ":"), strings.Split(id.String(), ":")
		content := func(parts []string) string { // of a guid in base64, or of a token
			if parts[0] == "guid" {
				guid, _ := base64.StdEncoding.DecodeString(parts[2])
				return parts[1] + string(guid)
			}
			return strings.TrimLeft(parts[1], "0") + ":" + parts[2]
		}
		if given[0] != written[0] || content(given) != content(written) {
			t.Fatalf("%q is written as %q", name, id)
		}
	})
}
