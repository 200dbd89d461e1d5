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
	before := item{"id": s("x"), "a": s("A"), "num": n("5"), "tags": ss("p", "q"), "lst": l(s("1"))}
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
		":s": s("new"), ":one": n("1"), ":half": n("0.5"), ":q": ss("q", "r"), ":pq": ss("p", "q"), ":ns": ns("1"), ":l": l(s("2")),
		":big": n("99999999999999999999999999999999999999"), ":map": m(item{"deep": l(n("007"))}),
	}
	for _, test := range []struct {
		update string
		want   item   // nil: nothing is written
		code   string // of the error then
	}{
		{"SET b = :s", with(item{"b": s("new")}), ""},
		{"set b = :s remove a", with(item{"b": s("new"), "a": nil}), ""},
		{"SET a = :s, b = a", with(item{"a": s("new"), "b": s("A")}), ""},
		{"REMOVE a SET b = a", with(item{"a": nil, "b": s("A")}), ""},
		{"SET b = :map", with(item{"b": m(item{"deep": l(n("7"))})}), ""},
		{"SET num = num + :one", with(item{"num": n("6")}), ""},
		{"SET num = :one - num", with(item{"num": n("-4")}), ""},
		{"SET num = num - :half", with(item{"num": n("4.5")}), ""},
		{"SET num = (num + :one)", with(item{"num": n("6")}), ""},
		{"SET b = if_not_exists(b, :one)", with(item{"b": n("1")}), ""},
		{"SET b = if_not_exists(a, :one)", with(item{"b": s("A")}), ""},
		{"SET b = if_not_exists(b, :one) + :half", with(item{"b": n("1.5")}), ""},
		{"SET b = if_not_exists(b, if_not_exists(c, :s))", with(item{"b": s("new")}), ""},
		{"SET lst = list_append(lst, :l)", with(item{"lst": l(s("1"), s("2"))}), ""},
		{"ADD num :half", with(item{"num": n("5.5")}), ""},
		{"ADD b :one", with(item{"b": n("1")}), ""},
		{"ADD tags :q", with(item{"tags": ss("p", "q", "r")}), ""},
		{"ADD b :q", with(item{"b": ss("q", "r")}), ""},
		{"DELETE tags :q", with(item{"tags": ss("p")}), ""},
		{"DELETE tags :pq", with(item{"tags": nil}), ""},
		{"DELETE b :q", before, ""},
		{"REMOVE b", before, ""},
		{"SET c = :s REMOVE a ADD num :one DELETE tags :q", with(item{"c": s("new"), "a": nil, "num": n("6"), "tags": ss("p")}), ""},
		// What depends on the item.
		{"SET b = c", nil, validation},
		{"SET b = a + :one", nil, validation},
		{"SET b = c + :one", nil, validation},
		{"SET b = list_append(a, :l)", nil, validation},
		{"SET num = :big + :half", nil, validation},
		{"ADD a :one", nil, validation},
		{"ADD tags :ns", nil, validation},
		{"DELETE tags :ns", nil, validation},
		{"DELETE a :q", nil, validation},
		// What does not.
		{"", nil, validation},
		{"SET", nil, validation},
		{"SET b = :s SET c = :s", nil, validation},
		{"SET b = :s, b = :one", nil, validation},
		{"SET b = :s REMOVE b", nil, validation},
		{"SET id = :s", nil, validation},
		{"REMOVE id", nil, validation},
		{"SET b = :s + :one", nil, validation},
		{"SET b = :one + :one + :one", nil, validation},
		{"SET b = size(a)", nil, validation},
		{"SET b = woof(a)", nil, validation},
		{"SET b = if_not_exists(:s, :one)", nil, validation},
		{"SET b = if_not_exists(a)", nil, validation},
		{"SET b = list_append(:s, :l)", nil, validation},
		{"SET b = (:s", nil, validation},
		{"SET b :s", nil, validation},
		{"ADD b :s", nil, validation},
		{"ADD b = :one", nil, validation},
		{"ADD b a", nil, validation},
		{"DELETE tags :one", nil, validation},
		{"b = :s", nil, validation},
		{"SET name = :s", nil, validation},
		{"SET mp.k = :s", nil, "unsupported"},
		{"REMOVE lst[0]", nil, "unsupported"},
	} {
		db.SetItem(plainTable, before)
		_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")}, UpdateExpression: &test.update,
			ExpressionAttributeValues: usedIn(test.update, values),
		})
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
		"":                     {},
		"SET a = :v":           {"a": ss("v")},
		"ADD a :v":             {"a": ss("v")},
		"ADD a :v REMOVE b":    {"a": ss("v")},
		"REMOVE a":             nil,
		"DELETE a :v":          nil,
		"DELETE a :v REMOVE b": nil,
	} {
		key := item{"id": s("created by " + update)}
		in := &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: key,
			ReturnValues: types.ReturnValueAllNew, ExpressionAttributeValues: usedIn(update, item{":v": ss("v")}),
		}
		if update != "" {
			in.UpdateExpression = &update
		}
		out, err := c.UpdateItem(t.Context(), in)
		if err != nil {
			t.Errorf("%q: %v", update, err)
			continue
		}
		if want != nil {
			want["id"] = key["id"]
		}
		sameItem(t, update, db.Item(plainTable, key), want)
		sameItem(t, update+", returned", out.Attributes, want)
	}
}

func TestUpdateReturnValues(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	before := item{"id": s("x"), "a": s("A"), "b": s("B"), "c": s("C")}
	for which, want := range map[types.ReturnValue]item{
		"":                           nil,
		types.ReturnValueNone:        nil,
		types.ReturnValueAllOld:      before,
		types.ReturnValueAllNew:      {"id": s("x"), "a": s("new"), "c": s("C"), "d": s("new")},
		types.ReturnValueUpdatedOld:  {"a": s("A"), "b": s("B")},
		types.ReturnValueUpdatedNew:  {"a": s("new"), "d": s("new")},
		types.ReturnValue("UPDATED"): nil,
	} {
		db.SetItem(plainTable, before)
		out, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")}, UpdateExpression: aws.String("SET a = :v, d = :v REMOVE b"),
			ExpressionAttributeValues: item{":v": s("new")}, ReturnValues: which,
		})
		if which == "UPDATED" {
			sameCode(t, "an unknown ReturnValues", err, validation)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		sameItem(t, string(which), out.Attributes, want)
	}
}
