package dynamofake

import "reflect"

// clone copies inputs and outputs to the last byte, so that neither side sees
// what the other does to them later.
func clone[T any](v T) T {
	from := reflect.ValueOf(&v).Elem()
	to := reflect.New(from.Type()).Elem()
	deepCopy(to, from)
	return to.Interface().(T)
}

func deepCopy(to, from reflect.Value) {
	// Fields that are not exported come along with their struct.
	to.Set(from)
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			deepCopy(to.Elem(), from.Elem())
		}
	case reflect.Interface:
		if !from.IsNil() {
			value := reflect.New(from.Elem().Type()).Elem()
			deepCopy(value, from.Elem())
			to.Set(value)
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			if from.Type().Elem().Kind() == reflect.Uint8 {
				reflect.Copy(to, from) // byte by byte would be most of the work of a test
				return
			}
			for i := range from.Len() {
				deepCopy(to.Index(i), from.Index(i))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
			for entries := from.MapRange(); entries.Next(); {
				value := reflect.New(from.Type().Elem()).Elem()
				deepCopy(value, entries.Value())
				to.SetMapIndex(entries.Key(), value)
			}
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				deepCopy(to.Field(i), from.Field(i))
			}
		}
	}
}
