package dynamofake

import (
	"maps"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// clone makes deep copies of inputs and outputs, so that neither side sees later
// changes of the other.
func clone[T any](v T) T {
	deepen(reflect.ValueOf(&v).Elem())
	return v
}

// cloneItem is clone without reflection, for what nearly all that is cloned consists of.
func cloneItem(it item) item {
	if it == nil {
		return nil
	}
	to := make(item, len(it))
	for name, v := range it {
		to[name] = cloneValue(v)
	}
	return to
}

func cloneValue(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberS:
		return &types.AttributeValueMemberS{Value: v.Value}
	case *types.AttributeValueMemberN:
		return &types.AttributeValueMemberN{Value: v.Value}
	case *types.AttributeValueMemberM:
		return &types.AttributeValueMemberM{Value: cloneItem(v.Value)}
	}
	return deepened(reflect.ValueOf(v)).Interface().(types.AttributeValue)
}

var (
	itemType  = reflect.TypeFor[item]()
	namesType = reflect.TypeFor[map[string]string]()
)

// deepen replaces all that a copy still shares with what it was copied from.
func deepen(v reflect.Value) {
	switch v.Type() {
	case itemType:
		v.Set(reflect.ValueOf(cloneItem(v.Interface().(item))))
		return
	case namesType:
		v.Set(reflect.ValueOf(maps.Clone(v.Interface().(map[string]string))))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to := reflect.New(v.Type().Elem())
			to.Elem().Set(v.Elem())
			deepen(to.Elem())
			v.Set(to)
		}
	case reflect.Interface:
		if !v.IsNil() {
			v.Set(deepened(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(to, v)
			if v.Type().Elem().Kind() != reflect.Uint8 { // byte by byte would be most of the work of a test
				for i := range to.Len() {
					deepen(to.Index(i))
				}
			}
			v.Set(to)
		}
	case reflect.Map:
		if !v.IsNil() {
			to := reflect.MakeMapWithSize(v.Type(), v.Len())
			for entries := v.MapRange(); entries.Next(); {
				to.SetMapIndex(entries.Key(), deepened(entries.Value()))
			}
			v.Set(to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() { // it is exported
				deepen(f)
			}
		}
	}
}

func deepened(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	deepen(to)
	return to
}
