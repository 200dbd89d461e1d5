package dynamofake

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

// takeText takes a short text.
func takeText(script *[]byte) string {
	n := min(int(take(script)&7), len(*script))
	text := string((*script)[:n])
	*script = (*script)[n:]
	return text
}

var someNumbers = []string{"0", "1", "-1", "1.0", "01", "1e2", "100", "-0.5", "9e125", "1e-130", "1e126", "x", ""}

func takeNumber(script *[]byte) string { return someNumbers[int(take(script))%len(someNumbers)] }

// takeValue makes a value of a script, of any type and shape, allowed or not.
func takeValue(script *[]byte) types.AttributeValue {
	switch op := take(script); op % 13 {
	case 0:
		return &types.AttributeValueMemberS{Value: takeText(script)}
	case 1:
		return &types.AttributeValueMemberN{Value: takeNumber(script)}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(takeText(script))}
	case 3:
		return &types.AttributeValueMemberBOOL{Value: op&0x80 != 0}
	case 4:
		return &types.AttributeValueMemberNULL{Value: op&0x80 == 0}
	case 5:
		return &types.AttributeValueMemberSS{Value: takeList(script, takeText)}
	case 6:
		return &types.AttributeValueMemberNS{Value: takeList(script, takeNumber)}
	case 7:
		return &types.AttributeValueMemberBS{Value: takeList(script, func(script *[]byte) []byte { return []byte(takeText(script)) })}
	case 8, 9:
		return &types.AttributeValueMemberL{Value: takeList(script, takeValue)}
	case 10:
		return &types.AttributeValueMemberM{Value: takeItem(script)}
	case 11: // deep
		v := types.AttributeValue(&types.AttributeValueMemberS{Value: takeText(script)})
		for range take(script) & 63 {
			v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
		}
		return v
	}
	return nil
}

func takeList[T any](script *[]byte, one func(*[]byte) T) []T {
	var list []T
	for range take(script) & 3 {
		list = append(list, one(script))
	}
	return list
}

func takeItem(script *[]byte) item {
	it := make(item)
	for range take(script) & 3 {
		name := takeText(script)
		it[name] = takeValue(script)
	}
	return it
}

// storableValue reports whether the API takes a value, by the page on data types.
func storableValue(v types.AttributeValue, depth int) bool {
	distinct := func(members []string) bool {
		return len(members) > 0 && len(slices.Compact(slices.Sorted(slices.Values(members)))) == len(members)
	}
	switch v := v.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberB, *types.AttributeValueMemberBOOL:
		return depth <= 32
	case *types.AttributeValueMemberN:
		_, err := parseDecimal(v.Value) // see FuzzNumber
		return err == nil && depth <= 32
	case *types.AttributeValueMemberNULL:
		return v.Value && depth <= 32
	case *types.AttributeValueMemberSS:
		return distinct(v.Value) && !slices.Contains(v.Value, "") && depth <= 32
	case *types.AttributeValueMemberBS:
		members := setMembers(v)
		return distinct(members) && !slices.Contains(members, "") && depth <= 32
	case *types.AttributeValueMemberNS:
		var canonical []string
		for _, n := range v.Value {
			d, err := parseDecimal(n)
			if err != nil {
				return false
			}
			canonical = append(canonical, d.String())
		}
		return distinct(canonical) && depth <= 32
	case *types.AttributeValueMemberL:
		return depth <= 32 && !slices.ContainsFunc(v.Value, func(e types.AttributeValue) bool { return !storableValue(e, depth+1) })
	case *types.AttributeValueMemberM:
		for _, e := range v.Value {
			if !storableValue(e, depth+1) {
				return false
			}
		}
		return depth <= 32
	}
	return false
}

// FuzzValue guards what the fake stores: it takes what the API takes; what is
// stored has one form, in which equal values are equal, and shares no memory
// with what was sent; and order and equality agree.
func FuzzValue(f *testing.F) {
	for _, seed := range [][]byte{
		{3, 1, 'a', 0, 2, 'x', 'y', 1, 'b', 1, 5, 1, 'c', 2, 1, 0},
		{2, 1, 'a', 5, 2, 1, 'x', 1, 'y', 1, 'b', 6, 2, 1, 3},        // sets, one with 1 and 1.0
		{2, 1, 'a', 7, 2, 1, 'x', 0, 1, 'b', 6, 0},                   // an empty member, an empty set
		{2, 1, 'a', 11, 1, 'x', 32, 1, 'b', 11, 1, 'x', 33},          // deep, too deep
		{2, 1, 'a', 4, 1, 'b', 4 + 13*10},                            // null, not null
		{1, 1, 'a', 10, 2, 1, 'k', 8, 2, 1, 6, 3, 0, 12, 0, 0, 0, 1}, // a map, a list, nothing
		{1, 0, 0, 1, 'x'}, // no name
		{3, 1, 'a', 1, 8, 1, 'b', 1, 9, 1, 'c', 1, 10, 0, 0, 1, 11, 12}, // the ends of what a number can be
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		sent := takeItem(&script)
		storable := true
		for name, v := range sent {
			storable = storable && name != "" && storableValue(v, 0)
		}
		stored, err := canonicalItem(sent)
		if storable != (err == nil) {
			t.Fatalf("%#v: %v, want %v", sent, err, storable)
		}
		if err != nil {
			return
		}
		again, err := canonicalItem(stored)
		if err != nil || !reflect.DeepEqual(again, stored) || !equalItems(again, stored) {
			t.Fatalf("%#v is stored as %#v, and that as %#v, %v", sent, stored, again, err)
		}
		kept := clone(stored)
		scribble(sent)
		scribble(again)
		if !reflect.DeepEqual(kept, stored) {
			t.Fatal("what is stored shares memory with what was sent, or with a copy of it")
		}
		if size := sizeOf(stored); size < len(stored) || size != sizeOf(clone(stored)) {
			t.Fatalf("%#v: %d bytes", stored, size)
		}
		values := slices.Collect(maps.Values(stored))
		for _, v := range values {
			for _, w := range values {
				forth, ok := order(v, w)
				back, alsoOK := order(w, v)
				if ok != alsoOK || forth != -back || equal(v, w) != equal(w, v) {
					t.Fatalf("%#v and %#v: order %d and %d", v, w, forth, back)
				}
				if ok != (typeOf(v) == typeOf(w) && ordered(typeOf(v))) || ok && (forth == 0) != equal(v, w) {
					t.Fatalf("%#v and %#v: order %d, %v, equal %v", v, w, forth, ok, equal(v, w))
				}
				if equal(v, w) != reflect.DeepEqual(v, w) {
					t.Fatalf("%#v and %#v: equal %v", v, w, equal(v, w))
				}
			}
		}
	})
}

// scribble overwrites the bytes, members and entries of an item.
func scribble(it item) {
	for name, v := range it {
		scribbleValue(v)
		it[name] = nil
	}
}

func scribbleValue(v types.AttributeValue) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		v.Value += "!"
	case *types.AttributeValueMemberN:
		v.Value += "!"
	case *types.AttributeValueMemberB:
		for i := range v.Value {
			v.Value[i]++
		}
	case *types.AttributeValueMemberSS:
		clear(v.Value)
	case *types.AttributeValueMemberNS:
		clear(v.Value)
	case *types.AttributeValueMemberBS:
		for _, b := range v.Value {
			for i := range b {
				b[i]++
			}
		}
	case *types.AttributeValueMemberL:
		for i, e := range v.Value {
			scribbleValue(e)
			v.Value[i] = nil
		}
	case *types.AttributeValueMemberM:
		scribble(v.Value)
	}
}
