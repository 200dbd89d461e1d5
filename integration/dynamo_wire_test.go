package integration_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// wire converts inputs and outputs of the SDK to values that encoding/json prints in the
// API's wire format. Sets are sorted, because they have no order.
func wire(v any) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": v.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": v.Value}
	case *types.AttributeValueMemberB:
		return map[string]any{"B": v.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": v.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": v.Value}
	case *types.AttributeValueMemberSS:
		return map[string]any{"SS": sorted(v.Value)}
	case *types.AttributeValueMemberNS:
		return map[string]any{"NS": sorted(v.Value)}
	case *types.AttributeValueMemberBS:
		return map[string]any{"BS": sorted(v.Value)}
	case *types.AttributeValueMemberL:
		return map[string]any{"L": wire(v.Value)}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": wire(v.Value)}
	}
	return wireReflected(reflect.ValueOf(v))
}

func wireReflected(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return wire(v.Elem().Interface())
	case reflect.Struct:
		fields := make(map[string]any)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				fields[f.Name] = wire(v.Field(i).Interface())
			}
		}
		return fields
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Interface()
		}
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, wire(v.Index(i).Interface()))
		}
		return list
	case reflect.Map:
		// An empty map and no map are the same reply.
		if v.Len() == 0 {
			return nil
		}
		entries := make(map[string]any)
		for _, k := range v.MapKeys() {
			entries[k.String()] = wire(v.MapIndex(k).Interface())
		}
		return entries
	case reflect.Invalid:
		return nil
	}
	return v.Interface()
}

// sorted returns the elements of a list in the order of their JSON.
func sorted(list any) []string {
	var out []string
	v := reflect.ValueOf(list)
	for i := range v.Len() {
		text, err := json.Marshal(v.Index(i).Interface())
		if err != nil {
			text = fmt.Append(nil, err)
		}
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}
