package integration_test

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (g *generator) scalar() types.AttributeValue {
	switch g.IntN(3) {
	case 0:
		return &types.AttributeValueMemberS{Value: pick(g, "a", "ab", "abc", "b", "B", "10", "9", " ")}
	case 1:
		return g.number()
	}
	return &types.AttributeValueMemberB{Value: []byte(pick(g, "a", "ab", "b", "x\x00y", "10"))}
}

func (g *generator) number() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: pick(g, "0", "1", "2", "10", "-1", "-1.5", "007", "1.10", "1e3", "5E-3", "0.5",
		"12345678901234567890123456789012345678", "-99999999999999999999", "1e-20")}
}

// value returns a value of any type. There are no empty strings: dynalite's
// functions take them for missing.
func (g *generator) value() types.AttributeValue {
	switch g.IntN(10) {
	case 0:
		return &types.AttributeValueMemberBOOL{Value: g.often(5)}
	case 1:
		return &types.AttributeValueMemberNULL{Value: true}
	case 2:
		return g.set(pick(g, "SS", "NS", "BS"))
	case 3:
		list := make([]types.AttributeValue, 0, 3)
		for range g.IntN(3) {
			list = append(list, g.value())
		}
		return &types.AttributeValueMemberL{Value: list}
	case 4:
		m := make(attributeMap)
		for range g.IntN(3) {
			m[pick(g, "x", "y", "z")] = g.value()
		}
		return &types.AttributeValueMemberM{Value: m}
	}
	return g.scalar()
}

func (g *generator) set(typ string) types.AttributeValue {
	members := []string{"1", "2.5", "-3", "10"}
	if typ != "NS" {
		members = []string{"a", "b", "ab", "c"}
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	members = members[:1+g.IntN(3)]
	switch typ {
	case "SS":
		return &types.AttributeValueMemberSS{Value: members}
	case "NS":
		return &types.AttributeValueMemberNS{Value: members}
	}
	var binary [][]byte
	for _, m := range members {
		binary = append(binary, []byte(m))
	}
	return &types.AttributeValueMemberBS{Value: binary}
}

func (g *generator) wide() types.AttributeValue {
	if g.often(5) {
		return &types.AttributeValueMemberB{Value: []byte(pick(g, "\xff\xfe", "\x80", "\xff\x00"))}
	}
	// Above U+FFFF, dynalite compares the halves of a pair.
	return &types.AttributeValueMemberS{Value: pick(g, "ä", "äö", "é", "日本", "ﬀ")}
}

func (g *generator) valueFor(attribute string) types.AttributeValue {
	switch {
	case attribute == "wide":
		return g.wide()
	case attribute == "n" && g.often(8):
		return g.number()
	}
	return g.value()
}

// key returns one of the few keys of a table, so that operations meet.
func (g *generator) key(t dynamoTable) attributeMap {
	key := make(attributeMap)
	for i, k := range t.keys {
		text := []string{"1", "2"}
		if i == 1 {
			text = []string{"1", "10", "100", "2", "-1", "1.5"}
		}
		key[k.Name] = keyValue(k.Type, pick(g, text...))
	}
	return key
}

func keyValue(typ types.ScalarAttributeType, text string) types.AttributeValue {
	switch typ {
	case types.ScalarAttributeTypeN:
		return &types.AttributeValueMemberN{Value: text}
	case types.ScalarAttributeTypeB:
		return &types.AttributeValueMemberB{Value: append([]byte{0xff}, text...)}
	}
	return &types.AttributeValueMemberS{Value: text}
}
