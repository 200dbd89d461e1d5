package dynamofake_test

import (
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestUpdate(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	before := item{"id": s("x"), "a": s("A"), "num": n("5"), "tags": ss("p", "q"), "lst": l(s("1")), "mp": m(item{"k": n("5")})}
	with := func(changes item) item {
		after := make(item)
		maps.Copy(after, before)
		for name, v := range changes {
			if after[name] = v; v == nil {
				delete(after, name)
			}
		}
		return after
	}
	values := item{
		":s": s("new"), ":one": n("1"), ":half": n("0.5"), ":q": ss("q", "r"), ":ns": ns("1"), ":l": l(s("2")),
		":big": n("99999999999999999999999999999999999999"), ":map": m(item{"deep": l(n("007"))}),
	}
	for _, test := range []struct {
		update string
		want   item   // nil: nothing is written
		code   string // of the error then
	}{
		{"SET #b = :s", with(item{"b": s("new")}), ""},
		{"set #b = :s remove #a", with(item{"b": s("new"), "a": nil}), ""},
		{"SET #a = :s, #b = #a", with(item{"a": s("new"), "b": s("A")}), ""},
		{"REMOVE #a SET #b = #a", with(item{"a": nil, "b": s("A")}), ""},
		{"SET #b = :map", with(item{"b": m(item{"deep": l(n("7"))})}), ""},
		{"SET #num = #num + :one", with(item{"num": n("6")}), ""},
		{"SET #num = :one - #num", with(item{"num": n("-4")}), ""},
		{"SET #num = #num - :half", with(item{"num": n("4.5")}), ""},
		{"SET #b = if_not_exists(#b, :one)", with(item{"b": n("1")}), ""},
		{"SET #b = if_not_exists(#a, :one)", with(item{"b": s("A")}), ""},
		{"SET #b = if_not_exists(#b, :one) + :half", with(item{"b": n("1.5")}), ""},
		{"SET #b = if_not_exists(#b, if_not_exists(#c, :s))", with(item{"b": s("new")}), ""},
		{"ADD #num :half", with(item{"num": n("5.5")}), ""},
		{"ADD #b :one", with(item{"b": n("1")}), ""},
		{"ADD #tags :q", with(item{"tags": ss("p", "q", "r")}), ""},
		{"ADD #b :q", with(item{"b": ss("q", "r")}), ""},
		{"REMOVE #b", before, ""},
		{"SET #c = :s REMOVE #a ADD #num :one", with(item{"c": s("new"), "a": nil, "num": n("6")}), ""},
		// What depends on the item.
		{"SET #b = #c", nil, validation},
		{"SET #b = #a + :one", nil, validation},
		{"SET #b = #c + :one", nil, validation},
		{"SET #num = :big + :half", nil, validation},
		{"ADD #a :one", nil, validation},
		{"ADD #tags :ns", nil, validation},
		// What does not.
		{"", nil, validation},
		{"SET", nil, validation},
		{"SET #b = :s SET #c = :s", nil, validation},
		{"SET #b = :s, #b = :one", nil, validation},
		{"SET #b = :s REMOVE #b", nil, validation},
		{"SET #id = :s", nil, validation},
		{"REMOVE #id", nil, validation},
		{"SET #b = :s + :one", nil, validation},
		{"SET #b = :one + :one + :one", nil, validation},
		{"SET #b = size(#a)", nil, validation},
		{"SET #b = if_not_exists(:s, :one)", nil, validation},
		{"SET #b = if_not_exists(#a)", nil, validation},
		{"SET #b :s", nil, validation},
		{"ADD #b :s", nil, validation},
		{"ADD #b = :one", nil, validation},
		{"ADD #b #a", nil, validation},
		{"#b = :s", nil, validation},
		{"SET b = :s", nil, unsupported},
		{"SET #b = (:s)", nil, validation},
		{"SET #b = woof(#a)", nil, unsupported},
		{"SET #lst = list_append(#lst, :l)", nil, unsupported},
		{"DELETE #tags :q", nil, unsupported},
		// Entries of maps.
		{"SET #mp.#a = :s", with(item{"mp": m(item{"k": n("5"), "a": s("new")})}), ""},
		{"SET #mp.#a = #mp.#k + :one, #mp.#k = :s", with(item{"mp": m(item{"k": s("new"), "a": n("6")})}), ""},
		{"SET #mp.#a = #num REMOVE #mp.#k", with(item{"mp": m(item{"a": n("5")})}), ""},
		{"REMOVE #mp.#k, #mp.#ghost", with(item{"mp": m(item{})}), ""},
		{"SET #mp.#a = if_not_exists(#mp.#a, :one) ADD #mp.#k :half", with(item{"mp": m(item{"k": n("5.5"), "a": n("1")})}), ""},
		{"SET #b = #mp.#k", with(item{"b": n("5")}), ""},
		{"SET #b = #mp.#ghost", nil, validation},
		{"SET #ghost.#k = :s", nil, validation},
		{"SET #a.#k = :s", nil, validation},
		{"REMOVE #ghost.#k", nil, validation},
		{"SET #mp.#a = :s, #mp.#a = :one", nil, validation},
		{"SET #mp.#a = :s, #mp = :map", nil, validation},
		{"SET #mp = :map REMOVE #mp.#a", nil, validation},
		{"SET #id.#a = :s", nil, validation},
		{"SET #mp. = :s", nil, validation},
		{"SET .#mp = :s", nil, validation},
		{"SET #mp.a = :s", nil, unsupported},
		{"SET #mp.#k.#z = :s", nil, unsupported},
		{"REMOVE #lst[0]", nil, unsupported},
	} {
		db.SetItem(plainTable, before)
		_, err := change(t.Context(), c, "x", test.update, values)
		sameCode(t, test.update, err, test.code)
		want := test.want
		if want == nil {
			want = before
		}
		sameItem(t, test.update, db.Item(plainTable, item{"id": s("x")}), want)
	}
}

// TestUpdateCreates shows which updates create an item.
func TestUpdateCreates(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	for update, want := range map[string]item{
		"SET #a = :v":         {"a": ss("v")},
		"ADD #a :v":           {"a": ss("v")},
		"ADD #a :v REMOVE #b": {"a": ss("v")},
		"REMOVE #a":           nil,
	} {
		id := "created by " + update
		got, err := change(t.Context(), c, id, update, item{":v": ss("v")})
		sameCode(t, update, err, "")
		if want != nil {
			want["id"] = s(id)
		}
		sameItem(t, update, db.Item(plainTable, item{"id": s(id)}), want)
		sameItem(t, update+", returned", got, want)
	}
}

func TestUpdateReturnValues(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	for which, want := range map[types.ReturnValue]item{
		"":                          nil,
		types.ReturnValueNone:       nil,
		types.ReturnValueAllNew:     {"id": s("x"), "a": s("new"), "c": s("C"), "d": s("new"), "m": m(item{"k": s("K"), "e": s("new")})},
		types.ReturnValueUpdatedNew: {"a": s("new"), "d": s("new"), "m": m(item{"e": s("new")})},
	} {
		db.SetItem(plainTable, item{"id": s("x"), "a": s("A"), "b": s("B"), "c": s("C"), "m": m(item{"k": s("K")})})
		const update = "SET #a = :v, #d = :v, #m.#e = :v REMOVE #b"
		out, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")}, UpdateExpression: aws.String(update), ReturnValues: which,
			ExpressionAttributeNames: names(update), ExpressionAttributeValues: item{":v": s("new")},
		})
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, string(which), out.Attributes, want)
	}
}
