package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
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

// TestShowHolders checks that each of several holders is shown.
func TestShowHolders(t *testing.T) {
	for limit, want := range map[int]string{
		0: "key k | shared by 3 | held by web1 | token 7 | held by web2 | token 8 | data data | held by web3 | token 9 | " +
			"waiting 1 web4, since - | waiting 2 web5, since -, as a reader | waiting 3 web6, since -, as a permit of 3",
		4: "key k | permits 3 of 4 | held by web1 | token 7 | held by web2 | token 8 | data data | held by web3 | token 9 | " +
			"waiting 1 web4, since - | waiting 2 web5, since -, as a reader | waiting 3 web6, since -, as a permit of 3",
	} {
		var out bytes.Buffer
		if err := describe(&out, shared(limit)); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		if got := strings.Join(lines, " | "); got != want {
			t.Errorf("limit %d:\n%s, want\n%s", limit, got, want)
		}
	}
	if got, want := (sight{info: shared(4)}).line(), "held key=k owner=web1 token=7 holders=3 limit=4 waiting=3 next=web4"; got != want {
		t.Errorf("the line of watch is %q, want %q", got, want)
	}
	if got, want := waitingFor(shared(0), "web4"), "waiting for k, place 1 of 3, held by web1 and 2 more (reader)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var document lockJSON
	text, err := json.Marshal(newLockJSON(shared(4)))
	if err != nil || json.Unmarshal(text, &document) != nil || len(document.Holders) != 3 || document.Limit != 4 || !document.Shared ||
		document.Holders[1].Data != "data" || !document.Queue[1].Shared || document.Queue[2].Limit != 3 {
		t.Errorf("%s, %v", text, err)
	}
	one := shared(4)
	one.Holders = one.Holders[:1]
	if got := holders(one); got != "web1 (permit of 4)" {
		t.Errorf("a single holder is %q", got)
	}
}

// TestGrantByToken checks that --token picks one of several grants, and that ask waits for those that it has asked.
func TestGrantByToken(t *testing.T) {
	one, err := withGrant(shared(0), 8)
	if err != nil || one.Owner != "web2" || one.Grant != "g8" || one.Holders != nil {
		t.Errorf("%+v, %v", one, err)
	}
	for _, info := range []holdfast.Info{shared(0), {Key: "k", Held: true, Holder: holdfast.Holder{Token: 7, Owner: "web1"}}} {
		if _, err := withGrant(info, 10); exitCode(t.Context(), err) != exitNo {
			t.Error(err)
		}
	}
	later := shared(0)
	later.Holders = slices.Clone(later.Holders[2:])
	if !anyLeft(later, shared(0)) || anyLeft(holdfast.Info{Key: "k"}, shared(0)) {
		t.Error("one that was asked is left, or nobody is")
	}
	later.Holders[0].Token, later.Holders[0].Grant = 10, "g10"
	if anyLeft(later, shared(0)) {
		t.Error("one who came later is waited for")
	}
}

// TestSeemsDead checks that show, ls and JSON tell which holders seem to be dead.
func TestSeemsDead(t *testing.T) {
	for dead, age := range []time.Duration{5 * time.Second, 26 * time.Second} {
		info := shared(0)
		for i := range info.Holders {
			info.Holders[i].Lease, info.Holders[i].LastHeard = 20*time.Second, time.Now()
		}
		info.Holders[2].LastHeard = time.Now().Add(-age)
		var out bytes.Buffer
		err := describe(&out, info)
		text, jsonErr := json.Marshal(newLockJSON(info))
		if err != nil || jsonErr != nil || strings.Count(out.String(), "s ago), seems dead\n") != dead ||
			strings.HasSuffix(heard(info, moment), ", seems dead") != (dead > 0) || strings.Count(string(text), `"seems_dead":true`) != dead {
			t.Errorf("%v ago: show prints\n%s, JSON %s", age, out.String(), text)
		}
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
