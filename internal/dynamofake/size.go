package dynamofake

import (
	"math"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	kilobyte    = 1 << 10
	maxItemSize = 400 * kilobyte
	maxPageSize = 1 << 20
	maxHashKey  = 2048
	maxRangeKey = 1024
)

// sizeOf returns the size of an item by the rules of the developer guide, "Item
// sizes and formats": names count too.
func sizeOf(it item) int {
	size := 0
	for name, v := range it {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		size := 3
		for _, e := range v.Value {
			size += 1 + valueSize(e)
		}
		return size
	case *types.AttributeValueMemberM:
		return 3 + len(v.Value) + sizeOf(v.Value)
	case *types.AttributeValueMemberNS:
		size := 0
		for _, n := range v.Value {
			size += numberSize(n)
		}
		return size
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberBS:
		size := 0
		for _, m := range setMembers(v) {
			size += len(m)
		}
		return size
	}
	return 1 // BOOL, NULL
}

// writeUnits is what a write costs: by the larger of the item before and after,
// whether the condition holds or not.
func writeUnits(before, after item) float64 {
	return units(max(sizeOf(before), sizeOf(after)), kilobyte)
}

// readUnits is what a read of so many bytes costs.
func readUnits(size int, consistent *bool) float64 {
	if u := units(size, 4*kilobyte); isTrue(consistent) {
		return u
	} else {
		return u / 2
	}
}

func units(size, block int) float64 {
	return max(1, math.Ceil(float64(size)/float64(block)))
}

func isTrue(b *bool) bool { return b != nil && *b }

// checkLevel refuses a level of detail that the fake does not know.
func checkLevel(level types.ReturnConsumedCapacity) error {
	return oneOf(level, types.ReturnConsumedCapacityNone, types.ReturnConsumedCapacityTotal)
}

// consumed fills the output field of the same name.
func consumed(level types.ReturnConsumedCapacity, table string, units float64) *types.ConsumedCapacity {
	if level != types.ReturnConsumedCapacityTotal {
		return nil
	}
	return &types.ConsumedCapacity{TableName: &table, CapacityUnits: &units}
}
