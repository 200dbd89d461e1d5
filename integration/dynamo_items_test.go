package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
	"github.com/holdfast-go/holdfast/integration/internal/dynamoserver"
)

func digits(s string) types.AttributeValue { return keyValue(types.ScalarAttributeTypeN, s) }

func octets(s string) types.AttributeValue { return keyValue(types.ScalarAttributeTypeB, s) }

// npmItem is an item as the npm client's FailOpen writes it, with some attributes changed; nil removes one.
func npmItem(token, leaseMs string, change attributeMap) attributeMap {
	item := attributeMap{
		"fencingToken": digits(token), "leaseDurationMs": digits(leaseMs), "owner": text("node"), "guid": octets(strings.Repeat("g", 64)),
		"lockAcquiredTimeUnixMs": digits(fmt.Sprint(time.Now().UnixMilli())), // else a try looks whether the holder is dead
	}
	maps.Copy(item, change)
	maps.DeleteFunc(item, func(_ string, v types.AttributeValue) bool { return v == nil })
	return item
}

// put writes an item as another program does.
func (d *dynamo) put(t *testing.T, key string, item attributeMap) {
	t.Helper()
	item = maps.Clone(item)
	item[dynamoserver.DefaultKey] = text(key)
	must(t, errOf(d.server.PutItem(limited(t), &dynamodb.PutItemInput{TableName: &d.table, Item: item})))
}

// corrupt are items that are not a lock's, by the attribute that is wrong.
func corrupt() map[string][]attributeMap {
	null := &types.AttributeValueMemberNULL{Value: true}
	guid := strings.Repeat("g", 64)
	items := map[string][]attributeMap{
		"guid": {
			{},
			{"something": text("else")}, // rows of other programs
			{"guid": text(guid), "owner": text("o"), "email": text("e")},
			{"guid": octets("g"), "owner": text("o")},
			{"guid": octets(guid + "g"), "owner": text("o")},
			{"guid": octets(guid), "email": text("e")},
		},
		"owner": {{"guid": octets(guid), "owner": digits("1")}},
		"holdfastHolders": {npmItem("7", "20000", attributeMap{
			"holdfastShared": octets(guid), "holdfastHolders": text("none"), "holdfastAsked": &types.AttributeValueMemberM{},
		})},
		"holdfastAsked": {npmItem("7", "20000", attributeMap{"holdfastShared": octets(guid), "holdfastHolders": &types.AttributeValueMemberM{}})},
	}
	for attribute, values := range map[string][]types.AttributeValue{
		"guid":                   {nil, digits("5"), null},
		"fencingToken":           {nil, text("7"), digits("-7"), digits("18446744073709551616"), digits("4611686018427387905")},
		"leaseDurationMs":        {nil, text("20000"), digits("-1"), digits("4611686018427387905"), &types.AttributeValueMemberL{}},
		"owner":                  {digits("1"), null},
		"lockAcquiredTimeUnixMs": {text("now")},
		"holdfastData":           {text("text")},
		"holdfastSinceUnixMs":    {octets("then")},
		"holdfastIntent":         {text("text")},
	} {
		for _, v := range values {
			items[attribute] = append(items[attribute], npmItem("7", "20000", attributeMap{attribute: v}))
			if !strings.HasPrefix(attribute, "holdfast") && attribute != "leaseDurationMs" { // the same, released
				items[attribute] = append(items[attribute], npmItem("7", "1", attributeMap{attribute: v}))
			}
		}
	}
	return items
}

// A client neither takes nor changes corrupt items and items of other programs; the error names the attribute.
func TestDynamoCorruptItems(t *testing.T) {
	start(t)
	d := newDynamo(t)
	client := d.client(t)
	for attribute, items := range corrupt() {
		for i, item := range items {
			key := fmt.Sprint(attribute, i)
			d.put(t, key, item)
			before := d.item(t, key)
			_, errAcquire := client.Acquire(limited(t), key)
			_, errTry := client.TryAcquire(limited(t), key)
			_, errInspect := client.Inspect(limited(t), key)
			errs := map[string]error{"Acquire": errAcquire, "TryAcquire": errTry, "Inspect": errInspect}
			if !strings.HasPrefix(attribute, "holdfast") { // lost at the end of a hold
				_, errs["WithReclaim"] = client.TryAcquire(limited(t), key, holdfast.WithOwner("node"), holdfast.WithReclaim())
			}
			for call, err := range errs {
				var wrong *dynamolock.ItemError
				if !errors.As(err, &wrong) || !errors.Is(err, dynamolock.ErrItem) || wrong.Attribute != attribute {
					t.Errorf("%v: %s: %v; want an ItemError for %s", item, call, err, attribute)
				}
			}
			if after := d.item(t, key); !reflect.DeepEqual(after, before) {
				t.Errorf("%v was changed to %v", before, after)
			}
		}
	}
	lock := take(t, client, newKey(t))
	d.put(t, lock.Key(), attributeMap{"guid": digits("1")})
	if err := lock.Release(limited(t)); !errors.Is(err, holdfast.ErrBroken) {
		t.Errorf("Release of an item that is not a lock's any more: %v", err)
	}
}

// Keys with items of other programs are read, refused, reclaimed and broken as documented.
func TestDynamoForeignItems(t *testing.T) {
	start(t)
	d := newDynamo(t)
	tokenless := attributeMap{"owner": text("node"), "guid": octets(strings.Repeat("g", 64))}
	ballast := octets(strings.Repeat("x", 390<<10))
	guid := strings.Repeat("h", 64)
	for name, test := range map[string]struct {
		mode  dynamolock.Mode
		item  attributeMap
		held  bool
		token holdfast.Token // of a try; 0: it is refused
		err   error          // of a try that reclaims
	}{
		"held":               {item: npmItem("41", "3600000", nil), held: true},
		"released":           {item: npmItem("41", "1", nil), token: 42},
		"a lease of 0 ms":    {item: npmItem("41", "0", nil), token: 42},
		"without a token":    {item: tokenless, held: true, err: dynamolock.ErrItem},
		"the same, fenced":   {mode: dynamolock.FailClosedFenced, item: tokenless, held: true, err: dynamolock.ErrItem},
		"the greatest token": {item: npmItem("4611686018427387904", "3600000", nil), held: true, err: dynamolock.ErrItem},
		"asks":               {item: npmItem("41", "1", attributeMap{"holdfastAskedToken": octets("x")}), token: 42},
		"asks of a fraction": {item: npmItem("41", "1", attributeMap{"holdfastAskedToken": digits("0.5")}), token: 42},
		"a short intent":     {item: npmItem("41", "1", attributeMap{"holdfastIntent": octets("x")}), token: 42},
		"an intent of a later form": {
			item: npmItem("41", "1", attributeMap{"holdfastIntent": octets(strings.Repeat("A", 64) + "20000 1000 -1 7")}), token: 42,
		},
		"huge": {item: npmItem("41", "1", attributeMap{"ballast": ballast}), token: 42},
		"taken from sharers": { // by a program that does not know of sharing
			held: true,
			item: npmItem("41", "3600000", attributeMap{"holdfastShared": octets(guid), "holdfastHolders": &types.AttributeValueMemberM{}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, key := d.client(t, func(o *dynamolock.Options) { o.Mode = test.mode }), newKey(t)
			d.put(t, key, test.item)
			info, err := client.Inspect(limited(t), key)
			if err != nil || info.Held != test.held || test.held && (info.Owner != "node" || info.Shared) {
				t.Errorf("%+v, %v", info, err)
			}
			lock, err := client.TryAcquire(limited(t), key)
			switch {
			case test.token != 0 && (err != nil || lock.Token() != test.token):
				t.Errorf("%v, %v", lock, err)
			case test.token == 0 && !errors.Is(err, holdfast.ErrHeld):
				t.Errorf("%v, want %v", err, holdfast.ErrHeld)
			}
			if !test.held {
				return
			}
			if lock, err = client.TryAcquire(limited(t), key, holdfast.WithOwner("node"), holdfast.WithReclaim()); !errors.Is(err, test.err) {
				t.Errorf("WithReclaim: %v, want %v", err, test.err)
			} else if err == nil {
				release(t, lock)
			}
			again := newKey(t)
			d.put(t, again, test.item)
			info, err = client.Inspect(limited(t), again)
			must(t, err)
			other := maps.Clone(test.item)
			other["guid"] = octets(strings.Repeat("i", 64))
			if test.item["fencingToken"] != nil { // the grant of another program has the token for a name
				other["fencingToken"] = digits("40")
			}
			d.put(t, again, other)
			if err := client.BreakNow(limited(t), info); !errors.Is(err, holdfast.ErrChanged) {
				t.Errorf("BreakNow of a grant that is over: %v", err)
			}
			d.put(t, again, test.item)
			must(t, client.BreakNow(limited(t), info))
			if info, err = client.Inspect(limited(t), again); err != nil || info.Held {
				t.Errorf("after BreakNow: %+v, %v", info, err)
			}
		})
	}
}

// Other programs change the item of a holder. The holder notices at the next heartbeat, and changes nothing.
func TestDynamoItemChangedUnderAHolder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts []holdfast.Option
		item func(own attributeMap) attributeMap
		want error
	}{
		"deleted":   {nil, func(attributeMap) attributeMap { return nil }, holdfast.ErrBroken},
		"ill-typed": {nil, func(attributeMap) attributeMap { return attributeMap{"guid": digits("1")} }, holdfast.ErrBroken},
		"another's": {nil, func(attributeMap) attributeMap { return npmItem("9999999999999", "20000", nil) }, holdfast.ErrTakenOver},
		"anew":      {nil, func(attributeMap) attributeMap { return npmItem("1", "20000", nil) }, holdfast.ErrTakenOver},
		"released":  {nil, func(own attributeMap) attributeMap { own["leaseDurationMs"] = digits("1"); return own }, holdfast.ErrBroken},
		"without a token": {nil, func(attributeMap) attributeMap {
			return attributeMap{"guid": octets(strings.Repeat("g", 64)), "owner": text("node")}
		}, holdfast.ErrTakenOver},
		"sharing ignored": {[]holdfast.Option{holdfast.WithShared()}, func(own attributeMap) attributeMap {
			own["guid"], own["owner"] = octets(strings.Repeat("x", 64)), text("node")
			own["fencingToken"] = digits(fmt.Sprint(wholeNumber(own["fencingToken"]) + 1))
			return own
		}, holdfast.ErrTakenOver},
	} {
		t.Run(name, func(t *testing.T) {
			start(t)
			d := newDynamo(t)
			client, key := d.client(t, quickBeats), newKey(t)
			lock := take(t, client, key, test.opts...)
			if item := test.item(d.item(t, key)); item != nil {
				d.put(t, key, item)
			} else {
				must(t, errOf(d.server.DeleteItem(limited(t), &dynamodb.DeleteItemInput{
					TableName: &d.table, Key: attributeMap{dynamoserver.DefaultKey: text(key)},
				})))
			}
			changed := d.item(t, key)
			receive(t, "the lock ends", lock.Done())
			if !errors.Is(lock.Err(), test.want) {
				t.Errorf("%v, want %v", lock.Err(), test.want)
			}
			finish(t, client)
			if after := d.item(t, key); !reflect.DeepEqual(after, changed) {
				t.Errorf("%v was changed to %v", changed, after)
			}
		})
	}
}

// The item of each mode while it is held, after the release, and while holders share it; with a time to live that is far ahead unless
// the lock never expires.
func TestDynamoItem(t *testing.T) {
	start(t)
	d := newDynamo(t)
	ours := []string{"holdfastData", "holdfastSinceUnixMs"}
	npms := []string{"id", "guid", "owner", "fencingToken", "leaseDurationMs"}
	for _, test := range []struct {
		mode           dynamolock.Mode
		held, released []string
		lease          int64
	}{
		{
			dynamolock.FailOpen, append(append(ours, npms...), "lockAcquiredTimeUnixMs", "ttl"),
			append(npms, "lockAcquiredTimeUnixMs", "ttl"), longLease.Milliseconds(),
		},
		{dynamolock.FailClosed, []string{"id", "guid", "owner"}, nil, 0},
		{
			dynamolock.FailClosedFenced, append(append(ours, npms...), "lockAcquiredTimeUnixMs"),
			append(npms, "lockAcquiredTimeUnixMs", "ttl"), 1<<31 - 1,
		},
	} {
		t.Run(test.mode.String(), func(t *testing.T) {
			client, key := d.client(t, func(o *dynamolock.Options) { o.Mode, o.TTLAttribute = test.mode, "ttl" }), newKey(t)
			has := func(when string, item attributeMap, want []string, lease int64) {
				t.Helper()
				for _, name := range want {
					if item[name] == nil {
						t.Errorf("%s: %q is missing in %v", when, name, item)
					}
				}
				left := time.Until(time.Unix(wholeNumber(item["ttl"]), 0))
				if len(item) != len(want) || wholeNumber(item["leaseDurationMs"]) != lease ||
					item["ttl"] != nil && (left > dynamolock.DefaultTTL || left < dynamolock.DefaultTTL-time.Hour) {
					t.Errorf("%s: %v, with %v to live", when, item, left)
				}
			}
			opts := []holdfast.Option{holdfast.WithOwner("o")}
			if test.mode != dynamolock.FailClosed {
				opts = append(opts, holdfast.WithData([]byte("d")))
			}
			began := time.Now()
			lock := take(t, client, key, opts...)
			item := d.item(t, key)
			has("held", item, test.held, test.lease)
			guid, _ := item["guid"].(*types.AttributeValueMemberB)
			if guid == nil || len(guid.Value) != 64 || !reflect.DeepEqual(item["owner"], text("o")) {
				t.Errorf("%v", item)
			}
			since := time.UnixMilli(int64(lock.Token())).Sub(began) // the first token is the time
			if wholeNumber(item["fencingToken"]) != int64(lock.Token()) || (lock.Token() == 0) != (test.mode == dynamolock.FailClosed) ||
				lock.Token() != 0 && since.Abs() > time.Minute {
				t.Errorf("token %v of %v", lock.Token(), item)
			}
			release(t, lock)
			var released int64
			if test.released != nil {
				released = 1
			}
			has("released", d.item(t, key), test.released, released)
			if again := take(t, client, key); test.mode != dynamolock.FailClosed && again.Token() != lock.Token()+1 {
				t.Errorf("token %v after %v", again.Token(), lock.Token())
			} else {
				release(t, again)
			}
			if test.mode != dynamolock.FailOpen {
				return
			}
			one, two := take(t, client, key, holdfast.WithShared()), take(t, client, key, holdfast.WithShared())
			if all, _ := d.item(t, key)["holdfastHolders"].(*types.AttributeValueMemberM); all == nil || len(all.Value) != 2 {
				t.Errorf("the shared item: %v", d.item(t, key))
			}
			release(t, one)
			release(t, two)
			has("released by sharers", d.item(t, key), test.released, 1)
			release(t, take(t, client, key))
			has("released again", d.item(t, key), test.released, 1)
		})
	}
}

// If clients use two modes on one key, neither form counts as free for the other.
func TestDynamoMixedModes(t *testing.T) {
	start(t)
	d := newDynamo(t)
	clients := make(map[dynamolock.Mode]*dynamolock.Client)
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		clients[mode] = d.client(t, func(o *dynamolock.Options) { o.Mode = mode })
	}
	for mode, holder := range clients {
		key := newKey(t)
		lock := take(t, holder, key)
		for other, client := range clients {
			want := holdfast.ErrHeld
			if other == dynamolock.FailClosed && mode != other {
				want = dynamolock.ErrItem
			}
			if _, err := client.TryAcquire(limited(t), key); !errors.Is(err, want) {
				t.Errorf("%v, held in %v: %v, want %v", other, mode, err, want)
			}
		}
		must(t, lock.Verify(limited(t)))
	}
}

// A key has a name in every type of key, and List finds it by its beginning. Items without a name here belong to other programs.
func TestDynamoKeys(t *testing.T) {
	start(t)
	const n, b = types.ScalarAttributeTypeN, types.ScalarAttributeTypeB
	key := func(name string, typ types.ScalarAttributeType) dynamoserver.Key {
		return dynamoserver.Key{Name: name, Type: typ}
	}
	long := func(part string, n int) string { return strings.Repeat(part, n) }
	for name, test := range map[string]struct {
		keys      []dynamoserver.Key // their names are reserved words
		separator string
		good      []string
		prefixes  map[string]int // of good, how many
	}{
		"N": {[]dynamoserver.Key{key("name", n)}, "", []string{"0", "7", "-7", "0.5", "-12.25", long("9", 38)}, map[string]int{"": 6}},
		"S": { // the keys of the npm client, cirello's and Amazon's
			[]dynamoserver.Key{key("key", "")},
			"",
			[]string{"https://x/y", "a//b", "/a", "a/", "/", ".", "a/../b", "a\x00b", "line\n", long("k", 2048), long("\u00e4", 1024)},
			map[string]int{"": 11, "a": 4, "a/": 3, "a//": 1, "/": 2, "https://": 1},
		},
		"B": {
			[]dynamoserver.Key{key("value", b)},
			"",
			[]string{"\xff\x00\xfe", "\xff", "a//b", long("\xff", 2048)},
			map[string]int{"": 4, "\xff": 3, "\xff\x00": 1},
		},
		"S and B": {
			[]dynamoserver.Key{key("hash", ""), key("bytes", b)},
			"/",
			[]string{"a//", "a//b", "https://x/y", "a/\xff", "b/" + long("\xff", 1024)},
			map[string]int{"": 5, "a/": 3, "a//": 2, "a/\xff": 1},
		},
		"S and S": {
			[]dynamoserver.Key{key("hash", ""), key("range", "")},
			"",
			[]string{"a/1", "a/1/2", "a/2", "ab/1"},
			map[string]int{"": 4, "a": 4, "a/": 3, "a/1": 2, "ab": 1, "x/": 0},
		},
		"S and N": {
			[]dynamoserver.Key{key("hash", ""), key("number", n)},
			"#",
			[]string{"a/b#1", "a/b#-2", "c#3.5"},
			map[string]int{"": 3, "a/": 2, "a/b#": 2},
		},
		"N and B": {
			[]dynamoserver.Key{key("number", n), key("bytes", b)},
			"::",
			[]string{"1::a", "1::ab", "2::a::b"},
			map[string]int{"": 3, "1::": 2, "1::ab": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDynamo(t, test.keys...)
			set := func(o *dynamolock.Options) {
				o.Keys.Partition = dynamolock.KeyAttr{Name: test.keys[0].Name, Type: test.keys[0].Type}
				if len(test.keys) > 1 {
					o.Keys.Separator = test.separator
					o.Keys.Sort = dynamolock.KeyAttr{Name: test.keys[1].Name, Type: test.keys[1].Type}
				}
			}
			client, other := d.client(t, set), d.client(t, set)
			for _, key := range test.good {
				lock := take(t, client, key)
				if _, err := other.TryAcquire(limited(t), key); !errors.Is(err, holdfast.ErrHeld) {
					t.Errorf("%q: %v", key, err)
				}
				must(t, lock.Verify(limited(t)))
			}
			for prefix, want := range test.prefixes {
				seen := make(map[string]bool)
				for info, err := range other.List(limited(t), prefix) {
					must(t, err)
					seen[info.Key] = strings.HasPrefix(info.Key, prefix)
				}
				if maps.DeleteFunc(seen, func(_ string, ok bool) bool { return !ok }); len(seen) != want {
					t.Errorf("List(%q) yields %v, want %d", prefix, seen, want)
				}
			}
		})
	}
}

// List reads all pages, leaves out items whose keys have no name, and reports the corrupt ones at the end.
func TestDynamoList(t *testing.T) {
	start(t)
	d := newDynamo(t, dynamoserver.Key{Name: "p"}, dynamoserver.Key{Name: "s"})
	client := d.client(t, func(o *dynamolock.Options) { o.Keys.Partition.Name, o.Keys.Sort.Name = "p", "s" })
	put := func(p, s string, item attributeMap) {
		item["p"], item["s"] = text(p), text(s)
		must(t, errOf(d.server.PutItem(limited(t), &dynamodb.PutItemInput{TableName: &d.table, Item: item})))
	}
	for i := range 5 {
		put("huge", fmt.Sprint(i), attributeMap{"ballast": octets(strings.Repeat("x", 390<<10))})
	}
	for _, key := range [][2]string{{"a/b", "c"}, {"a/", "\x01"}, {"/x", "."}} {
		put(key[0], key[1], npmItem("7", "20000", nil))
	}
	put("bad", "1", npmItem("7", "20000", attributeMap{"fencingToken": text("x")}))
	take(t, client, "a/b/c")
	var keys []string
	var failed error
	for info, err := range client.List(limited(t), "") {
		if failed = err; err == nil {
			keys = append(keys, info.Key)
		}
	}
	var corrupt *dynamolock.ItemError
	if !reflect.DeepEqual(keys, []string{"a/b/c"}) || !errors.As(failed, &corrupt) || !strings.Contains(failed.Error(), "bad/1") {
		t.Errorf("%q, %v", keys, failed)
	}
	if pages := d.net.Count("Scan"); pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

// A check for a transaction holds for one grant, for as long as the table says that it is held. The caller may change a check.
func TestDynamoConditionCheck(t *testing.T) {
	start(t)
	d := newDynamo(t)
	for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
		for name, end := range map[string]func(t *testing.T, lock *holdfast.Lock, other *dynamolock.Client) *holdfast.Lock{
			"released": func(t *testing.T, lock *holdfast.Lock, _ *dynamolock.Client) *holdfast.Lock {
				release(t, lock)
				return nil
			},
			"broken": func(t *testing.T, lock *holdfast.Lock, other *dynamolock.Client) *holdfast.Lock {
				info, err := other.Inspect(limited(t), lock.Key())
				must(t, err)
				must(t, other.BreakNow(limited(t), info))
				return take(t, other, lock.Key(), holdfast.WithOwner("worker")) // FailClosed has no other token
			},
			"reclaimed": func(t *testing.T, lock *holdfast.Lock, other *dynamolock.Client) *holdfast.Lock {
				return take(t, other, lock.Key(), holdfast.WithOwner("worker"), holdfast.WithReclaim())
			},
		} {
			for _, shared := range []bool{false, mode == dynamolock.FailOpen && name != "reclaimed"} {
				t.Run(fmt.Sprintf("%v/%s/%v", mode, name, shared), func(t *testing.T) {
					set := func(o *dynamolock.Options) { o.Mode = mode; quickBeats(o) }
					client, other, key := d.client(t, set), d.client(t, set), newKey(t)
					opts := []holdfast.Option{holdfast.WithOwner("worker")}
					if shared {
						opts = append(opts, holdfast.WithShared())
						defer release(t, take(t, other, key+"/other", opts...))
					}
					lock := take(t, client, key, opts...)
					check, err := client.ConditionCheck(lock)
					must(t, err)
					spoilt, err := client.ConditionCheck(lock)
					must(t, err)
					*spoilt.TableName = "another"
					for _, v := range spoilt.ExpressionAttributeValues {
						if v, ok := v.(*types.AttributeValueMemberB); ok {
							clear(v.Value)
						}
					}
					clear(spoilt.ExpressionAttributeNames)
					must(t, d.commit(t, check))
					if mode == dynamolock.FailOpen { // a heartbeat does not end it
						renews(t, lock)
						must(t, d.commit(t, check))
					}
					next := end(t, lock, other)
					var refused *types.ConditionalCheckFailedException
					if err := d.commit(t, check); !errors.As(err, &refused) {
						t.Errorf("%s: %v", name, err)
					}
					receive(t, "the lock ends", lock.Done())
					if _, err := client.ConditionCheck(lock); !errors.Is(err, lock.Err()) {
						t.Errorf("%v, want %v", err, lock.Err())
					}
					if next != nil {
						again, err := other.ConditionCheck(next)
						must(t, err)
						must(t, d.commit(t, again))
						if _, err := client.ConditionCheck(next); !errors.Is(err, holdfast.ErrInvalid) {
							t.Errorf("of another client's lock: %v", err)
						}
						release(t, next)
					}
				})
			}
		}
	}
}

// commit evaluates a check. Where the server has transactions, it is a part of one; else of an update that changes nothing.
func (d *dynamo) commit(t *testing.T, check *types.ConditionCheck) error {
	t.Helper()
	if !d.target.Transactions() {
		return errOf(d.server.UpdateItem(limited(t), &dynamodb.UpdateItemInput{
			TableName: check.TableName, Key: check.Key, ConditionExpression: check.ConditionExpression,
			ExpressionAttributeNames: check.ExpressionAttributeNames, ExpressionAttributeValues: check.ExpressionAttributeValues,
		}))
	}
	put := &types.Put{TableName: &d.table, Item: attributeMap{dynamoserver.DefaultKey: text("data")}}
	_, err := d.server.TransactWriteItems(limited(t), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{ConditionCheck: check}, {Put: put}},
	})
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && *canceled.CancellationReasons[0].Code == "ConditionalCheckFailed" {
		return &types.ConditionalCheckFailedException{}
	}
	return err
}
