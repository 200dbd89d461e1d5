package dynamofake_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// everything has an attribute of each type.
var everything = item{
	"id": s("x"), "str": s("hello"), "num": n("5"), "bin": b("\xffbin"), "yes": boolean(true), "nul": null(),
	"strs": ss("a", "b"), "nums": ns("1", "2.5"), "bins": bs("a", "\xff"),
	"lst": l(s("a"), n("1"), ss("p", "q"), l()), "mp": m(item{"k": n("1")}), "twin": s("hello"), "hollow": s(""),
}

var operands = item{
	":hello": s("hello"), ":hell": s("hell"), ":z": s("z"), ":five": n("5.0"), ":six": n("6"), ":four": n("4"), ":zero": n("0"),
	":ff": b("\xff"), ":bin": b("\xffbin"), ":true": boolean(true), ":false": boolean(false), ":null": null(),
	":ab": ss("b", "a"), ":nums": ns("2.50", "1"), ":bins": bs("\xff", "a"), ":list": l(s("a"), n("1"), ss("q", "p"), l()),
	":map": m(item{"k": n("1.0")}), ":pq": ss("p", "q"), ":a": s("a"), ":one": n("1"), ":two": n("2"), ":three": n("3"), ":empty": s(""),
	":S": s("S"), ":N": s("N"), ":BOOL": s("BOOL"), ":SS": s("SS"), ":DOG": s("DOG"),
}

// TestCondition evaluates conditions by way of a write that they guard.
func TestCondition(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	for _, test := range []struct {
		condition string
		want      string // the error code
	}{
		// Equality, of all types.
		{"#str = :hello", ""},
		{"#str = :hell", failed},
		{"#num = :five", ""},
		{"#bin = :bin", ""},
		{"#yes = :true", ""},
		{"#yes = :false", failed},
		{"#nul = :null", ""},
		{"#strs = :ab", ""},
		{"#nums = :nums", ""},
		{"#bins = :bins", ""},
		{"#lst = :list", ""},
		{"#mp = :map", ""},
		{"#mp = :list", failed},
		// Entries of maps.
		{"#mp.#k = :one", ""},
		{"#mp.#k < :two AND attribute_exists(#mp.#k)", ""},
		{"attribute_not_exists(#mp.#ghost)", ""},
		{"attribute_not_exists(#ghost.#k) AND attribute_not_exists(#str.#k)", ""},
		{"attribute_exists(#ghost.#k)", failed},
		{"#mp.#ghost < :two", failed},
		{"attribute_type(#mp.#k, :N)", ""},
		{"#mp.#k = #mp.#k", validation},
		{"#mp.#k <> #mp.#ghost", ""},
		{"#str = #twin", ""},
		{":hello = #str", ""},
		{"(#str) = (:hello)", ""},
		{"#str <> :hell", ""},
		{"#str <> :hello", failed},
		{"#str <> :five", ""},
		// A missing attribute equals nothing, and has no order.
		{"#ghost = :hello", failed},
		{"#ghost <> :hello", ""},
		{"#ghost = #phantom", failed},
		{"#ghost <> #phantom", ""},
		{"#ghost <= #phantom", failed},
		{"NOT #ghost = :hello", ""},
		// Order.
		{"#num < :six", ""},
		{"#num > :four", ""},
		{"#num >= :five", ""},
		{"#num <= :four", failed},
		{"#str < :z", ""},
		{"#bin > :ff", ""},
		{"#str < :six", failed},
		{"#lst < :six", failed},
		{"#str < :list", validation},
		{":true < #yes", validation},
		{"#num BETWEEN :four AND :six", ""},
		{"#num between :four and :five", ""},
		{"#num BETWEEN :six AND :four", validation},
		{"#num BETWEEN :four AND :z", validation},
		{"#num BETWEEN :ab AND :ab", validation},
		{"#num BETWEEN :ab AND #ghost", validation},
		{":ab BETWEEN #num AND #ghost", validation},
		{"#num BETWEEN :four AND #ghost", failed},
		// Functions.
		{"attribute_exists(#str)", ""},
		{"attribute_exists(#ghost)", failed},
		{"attribute_not_exists(#ghost)", ""},
		{"attribute_exists(:hello)", validation},
		{"attribute_exists(#str, #num)", validation},
		{"attribute_exists #str", unsupported},
		{"attribute_type(#str, :S)", ""},
		{"attribute_type(:hello, :S)", ""},
		{"attribute_type(#num, :S)", failed},
		{"attribute_type(#ghost, :S)", failed},
		{"attribute_type(#yes, :BOOL)", ""},
		{"attribute_type(#strs, :SS)", ""},
		{"attribute_type(#str, :DOG)", validation},
		{"attribute_type(#str, #twin)", validation},
		{"attribute_type(#str, :five)", validation},
		{"begins_with(#str, :hell)", ""},
		{"begins_with(:hello, #str)", ""},
		{"begins_with(#bin, :ff)", ""},
		{"begins_with(#str, :z)", failed},
		{"begins_with(#num, :z)", failed},
		{"begins_with(#str, :five)", validation},
		{"begins_with(#str, :empty)", ""},
		{"size(#str) = :five", ""},
		{"size(#bin) = :four", ""},
		{"size(#strs) = :two", ""},
		{"size(#lst) = :four", ""},
		{"size(#mp) < size(#strs)", ""},
		{"size(#hollow) = :zero", ""},
		{"size(#num) = :one", failed},
		{"size(#ghost) < :one", failed},
		{"size(:five) = :one", validation},
		{"size(#str)", validation},
		{"size(#str, #num) = :five", validation},
		{"begins_with(#str, :z) = :true", validation},
		// Logic and its precedence.
		{"#str = :z AND #num = :five OR #yes = :true", ""},
		{"#str = :z AND (#num = :five OR #yes = :true)", failed},
		{"NOT #str = :z AND #num = :five", ""},
		{"NOT (#str = :z OR #num = :five)", failed},
		{"NOT NOT NOT NOT #num < :six", ""},
		{"(#num < :six) aNd (#str = :hello)", ""},
		{"((#num < :six))", validation},
		{"((#num < :six) AND #str = :hello)", ""},
		{"(#num < :six) = :true", validation},
		{"#num = (#str = :hello)", validation},
		// Syntax.
		{"", validation},
		{"#str", validation},
		{"(#str)", validation},
		{"#str = ", validation},
		{"#str = :hello AND", validation},
		{"#str = :hello)", validation},
		{"(#str = :hello", validation},
		{"#str == :hello", validation},
		{"#str = 'hello'", validation},
		{"#str != :hello", validation},
		{"#str = :hello #str = :hello", validation},
		{"#str = :hello!", validation},
		{": = #str", validation},
		{"#str = #str", validation},
		{"#str = :undefined", validation},
		{"if_not_exists(#str, :z) = :z", validation},
		// What the fake does not know, it says so.
		{"str = :hello", unsupported},
		{"5str = :hello", unsupported},
		{"ATTRIBUTE_EXISTS(#str)", unsupported},
		{"contains(#str, :hell)", unsupported},
		{"#num IN (:four, :five)", unsupported},
		{"#mp.#k.#z = :one", unsupported},
		{"#lst[0] = :a", unsupported},
	} {
		db.SetItem(plainTable, everything)
		_, err := c.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(plainTable), Key: item{"id": s("x")},
			UpdateExpression: aws.String("SET #done = :done"), ConditionExpression: &test.condition,
			ExpressionAttributeNames:  names(test.condition + " #done"),
			ExpressionAttributeValues: usedIn(test.condition+" :done", item{":done": s("y")}, operands),
		})
		sameCode(t, test.condition, err, test.want)
		if done := db.Item(plainTable, item{"id": s("x")})["done"] != nil; done != (test.want == "") {
			t.Errorf("%s: written: %v", test.condition, done)
		}
	}
}
