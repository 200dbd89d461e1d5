package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// shared is a key that three share, one of them with data, and for which three wait.
func shared(limit int) holdfast.Info {
	all := []holdfast.Holder{
		{Owner: "web1", Token: 7, Grant: "g7"},
		{Owner: "web2", Token: 8, Grant: "g8", Data: []byte("data")},
		{Owner: "web3", Token: 9, Grant: "g9"},
	}
	return holdfast.Info{
		Key: "k", Held: true, Holder: all[0], Shared: true, Limit: limit, Holders: all,
		Queue: []holdfast.Waiter{{Owner: "web4"}, {Owner: "web5", Shared: true}, {Owner: "web6", Shared: true, Limit: 3}},
	}
}

// TestShow_EveryField_IsShown changes each field of Info, Holder and Waiter: the text and the JSON of show must change too.
func TestShow_EveryField_IsShown(t *testing.T) {
	unshown := []string{"Holder", "Grant", "Stale", "Unfenced"} // a part, an engine's name, and facts for observers
	show := func(info *holdfast.Info) (text, document string) {
		var out bytes.Buffer
		encoded, err := json.Marshal(newLockJSON(*info))
		if err := errors.Join(err, describe(&out, *info)); err != nil {
			t.Fatal(err)
		}
		return out.String(), string(encoded)
	}
	for _, part := range []func(*holdfast.Info) any{
		func(info *holdfast.Info) any { return info },
		func(info *holdfast.Info) any { return &info.Holders[1] },
		func(info *holdfast.Info) any { return &info.Queue[2] },
	} {
		whole := shared(4)
		text, document := show(&whole)
		for i := range reflect.ValueOf(part(&whole)).Elem().NumField() {
			changed := shared(4)
			of := reflect.ValueOf(part(&changed)).Elem()
			field, name := of.Field(i), of.Type().Field(i).Name
			switch is := field.Interface().(type) {
			case bool:
				field.SetBool(!is)
			case int, time.Duration:
				field.SetInt(77e9)
			case holdfast.Token:
				field.SetUint(77)
			case string:
				field.SetString("other")
			case []byte:
				field.SetBytes([]byte("other"))
			case time.Time:
				field.Set(reflect.ValueOf(time.Unix(1, 0)))
			default:
				field.SetZero()
			}
			newText, newDocument := show(&changed)
			if !slices.Contains(unshown, name) && (newText == text || newDocument == document) {
				t.Errorf("%v.%s is not shown: in text %v, in JSON %v", of.Type(), name, newText != text, newDocument != document)
			}
		}
	}
}
