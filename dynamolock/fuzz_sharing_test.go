package dynamolock

import (
	"bytes"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// sharingSeeds are scripts of takeSharing.
var sharingSeeds = [][]byte{
	{8, 8, 4, 8, 4, 0, 9, 0, 9, 1, 9, 1},                                                 // the one that opened it
	{8, 8, 4, 8, 5, 8, 3, 9, 2, 1, 6, 9, 2, 1, 5, 1, 'a', 2, 4, 4, 1, 'b', 1, 'd', 9, 0}, // permits, one that joined
	{8, 8, 4, 8, 4, 0, 9, 0, 9, 1, 9, 1, 4, 0, 0, 0, 0, 9, 1, 1, 6, 8, 5, 'w'},           // somebody asks, and a writer waits
	{8, 8, 4, 8, 4, 0, 9, 0, 9, 0},                                                       // nobody
	{8, 8, 4, 8, 4, 0, 9, 0, 9, 1, 9, 12},                                                // a lease out of range
	{8, 8, 4, 8, 4, 0, 9, 0, 7, 0},                                                       // an entry of a short name
	{8, 8, 4, 8, 4, 0, 1, 0, 9, 1, 9, 1},                                                 // a text in place of a map
	{8, 8, 16, 8, 4, 0, 9, 0, 9, 1, 9, 1},                                                // -1
	{3, 1, 'x', 8, 4, 8, 4, 0, 9, 0, 9, 1, 9, 1},                                         // of another guid
	{0, 0, 0, 0, 0, 0, 0, 8, 3, 'i', 'n', 't'},
}

// aGrant is the n-th of some grants.
func aGrant(n byte) string { return strings.Repeat(string('A'+rune(n%4)), grantLen) }

// takeSharing adds what an item says of those who share it, mostly in its types.
func takeSharing(script *[]byte, attrs attributes) {
	add := func(name string, entry func() types.AttributeValue) {
		op := take(script) & 15
		switch {
		case op == 8 && name == attrShared:
			if guid, ok := attrs[attrGUID].(*types.AttributeValueMemberB); ok {
				attrs[name] = binary(string(guid.Value))
			}
		case op == 8 && name == attrIntent:
			attrs[name] = binary(takeText(script))
		case op == 9 && entry != nil:
			m := attributes{}
			for range take(script) & 3 {
				m[aGrant(take(script))] = entry()
			}
			attrs[name] = entries(m)
		default:
			*script = append([]byte{op}, *script...)
			if v := takeAttribute(script, name); v != nil {
				attrs[name] = v
			}
		}
	}
	number := func() types.AttributeValue { return &types.AttributeValueMemberN{Value: takeNumber(script)} }
	for _, name := range []string{attrShared, attrOpened, attrFreed, attrLimit} {
		add(name, nil)
	}
	add(attrTokens, number)
	add(attrHolders, func() types.AttributeValue {
		touch := strings.Repeat(string('0'+rune(take(script)%10)), numberLen)
		return binary(touch + strings.Join([]string{takeNumber(script), takeNumber(script), takeNumber(script), takeText(script), takeText(script)}, "\x00"))
	})
	add(attrAsks, number)
	add(attrIntent, nil)
}

// isLeased reports whether an item is held by who renews it.
func isLeased(attrs attributes) bool {
	if !isWhole(attrs[attrLease]) {
		return false
	}
	lease, _ := new(big.Int).SetString(attrs[attrLease].(*types.AttributeValueMemberN).Value, 10)
	return lease.Cmp(big.NewInt(releasedLease)) > 0 && lease.Cmp(big.NewInt(closedLease)) < 0
}

// isShared reports whether what an item says of those who share it counts.
func isShared(attrs attributes) bool {
	mark, ok := attrs[attrShared].(*types.AttributeValueMemberB)
	if !ok || !isLeased(attrs) {
		return false
	}
	switch guid := attrs[attrGUID].(type) {
	case *types.AttributeValueMemberB:
		return bytes.Equal(guid.Value, mark.Value)
	case *types.AttributeValueMemberS:
		return guid.Value == string(mark.Value)
	}
	return false
}

// wrongSharing are the attributes that cannot be read, of those that say who shares the key.
func wrongSharing(attrs attributes) (wrong []string) {
	rule := func(name string, ok bool) {
		if !ok {
			wrong = append(wrong, name)
		}
	}
	if attrs[attrToken] != nil || attrs[attrLease] != nil || attrs[attrTouched] != nil {
		rule(attrIntent, attrs[attrIntent] == nil || isTyped[*types.AttributeValueMemberB](attrs[attrIntent]))
	}
	if !isShared(attrs) {
		return wrong
	}
	rule(attrOpened, isWhole(attrs[attrOpened]))
	rule(attrFreed, isWhole(attrs[attrFreed]))
	rule(attrLimit, attrs[attrLimit] == nil || isWhole(attrs[attrLimit]))
	rule(attrAsks, isTyped[*types.AttributeValueMemberM](attrs[attrAsks]))
	tokens, ok := attrs[attrTokens].(*types.AttributeValueMemberM)
	rule(attrTokens, ok)
	holders, ok := attrs[attrHolders].(*types.AttributeValueMemberM)
	rule(attrHolders, ok && len(holders.Value) > 0)
	if !ok {
		return wrong
	}
	for grant, v := range holders.Value {
		b, ok := v.(*types.AttributeValueMemberB)
		rule(attrHolders, ok && len(grant) == grantLen && isHolder(b.Value))
		if tokens != nil && tokens.Value[grant] != nil {
			_, ok := hint(tokens.Value[grant])
			rule(attrTokens, ok)
		}
	}
	return wrong
}

func isHolder(entry []byte) bool {
	if len(entry) < numberLen {
		return false
	}
	parts := bytes.SplitN(entry[numberLen:], []byte{0}, 5)
	if len(parts) < 5 {
		return false
	}
	for _, part := range parts[:3] {
		n, ok := new(big.Int).SetString(string(part), 10)
		if !ok || n.Sign() < 0 || n.Cmp(big.NewInt(1<<53)) > 0 {
			return false
		}
	}
	return true
}

// checkSharing compares those who share a key with the attributes of its item.
func checkSharing(t *testing.T, attrs attributes, i *item) {
	holders := attrs[attrHolders].(*types.AttributeValueMemberM).Value
	tokens := attrs[attrTokens].(*types.AttributeValueMemberM).Value
	info := i.info("key")
	if !info.Shared || len(info.Holders) != len(holders) || info.Grant != info.Holders[0].Grant || info.Limit != i.limit() {
		t.Fatalf("%v is described as %+v", attrs, info)
	}
	last := driver.Token(0)
	for _, h := range info.Holders {
		grant, err := parseGrant(h.Grant)
		own := i.holder(grant.grant)
		if err != nil || grant.String() != h.Grant || own == nil || own.token != h.Token || !reflect.DeepEqual(grant, grantID{form: leased, shared: true, token: own.token, grant: own.grant}) {
			t.Fatalf("%v: the grant %q is read as %+v, %v", attrs, h.Grant, grant, err)
		}
		want := attrs[attrOpened]
		if tokens[own.grant] != nil {
			want = tokens[own.grant]
		}
		if n, ok := want.(*types.AttributeValueMemberN); !ok || h.Token.String() != strings.TrimLeft(n.Value, "0") && h.Token != 0 || h.Token < last {
			t.Fatalf("%v: %q has token %d, after %d", attrs, own.grant, h.Token, last)
		}
		last = h.Token
		again, ok := decodeHolder(own.grant, own.value())
		if again.token = own.token; !ok || again.touch != own.touch || again.lease != own.lease || again.owner != own.owner || !bytes.Equal(again.data, own.data) {
			t.Fatalf("%+v is written and read as %+v", own, again)
		}
	}
}
