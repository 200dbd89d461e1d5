package dynamofake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sortKeys returns the sort keys of items.
func sortKeys(items []item) string {
	var keys []string
	for _, it := range items {
		keys = append(keys, it["seq"].(*types.AttributeValueMemberN).Value)
	}
	return strings.Join(keys, " ")
}

func TestQueryKeys(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	fill(t, c, 12, func(int) item { return item{} })
	put(t, c, sortedTable, item{"id": s("y"), "seq": n("3")})
	values := item{":x": s("x"), ":n": n("3"), ":m": n("10"), ":s": s("3"), ":none": s("")}
	for _, test := range []struct{ condition, want string }{
		{"id = :x", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{":x = id", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{"id = :x AND seq = :n", "3"},
		{"seq < :n AND id = :x", "0 1 2"},
		{"id = :x AND seq <= :n", "0 1 2 3"},
		{"id = :x AND :n > seq", "0 1 2"},
		{"(id = :x) AND (seq > :m)", "11"},
		{"id = :x AND seq >= :m", "10 11"},
		{"id = :x AND seq BETWEEN :n AND :m", "3 4 5 6 7 8 9 10"},
		{"seq = :n", validation},
		{"id > :x", validation},
		{"id = :n", validation},
		{"id = :none", validation},
		{"id = :x AND seq = :s", validation},
		{"id = :x AND begins_with(seq, :s)", validation},
		{"id = :x AND seq <> :n", validation},
		{"id = :x AND seq IN (:n)", validation},
		{"id = :x AND attribute_exists(seq)", validation},
		{"id = :x OR id = :s", validation},
		{"NOT id = :x", validation},
		{"id = :x AND seq > :n AND seq < :m", validation},
		{"id = :x AND more = :n", validation},
		{"id = seq", validation},
		{"id = :x AND size(seq) = :n", validation},
		{"", validation},
	} {
		out, err := c.Query(t.Context(), &dynamodb.QueryInput{
			TableName: aws.String(sortedTable), KeyConditionExpression: &test.condition, ExpressionAttributeValues: usedIn(test.condition, values),
		})
		if test.want == validation {
			sameCode(t, test.condition, err, validation)
		} else if err != nil || sortKeys(out.Items) != test.want {
			t.Errorf("%s: %v, %v; want %s", test.condition, out, err, test.want)
		}
	}
	_, err := c.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(sortedTable)})
	sameCode(t, "without a condition", err, validation)
}

// TestPages reads a partition and a table with every limit, in both directions.
func TestPages(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	const count = 7
	fill(t, c, count, func(i int) item { return item{"odd": boolean(i%2 == 1)} })
	for limit := int32(1); limit <= count+1; limit++ {
		for _, forward := range []bool{true, false} {
			var pages, items, empty int
			var got []item
			in := &dynamodb.QueryInput{
				TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("id = :x"), Limit: &limit,
				FilterExpression: aws.String("odd = :yes"), ScanIndexForward: &forward, ProjectionExpression: aws.String("seq"),
				ExpressionAttributeValues: item{":x": s("x"), ":yes": boolean(true)},
			}
			for pages == 0 || in.ExclusiveStartKey != nil {
				out, err := c.Query(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				items += int(out.ScannedCount)
				got = append(got, out.Items...)
				if len(out.Items) == 0 {
					empty++
				}
				in.ExclusiveStartKey = out.LastEvaluatedKey
			}
			want := "1 3 5"
			if !forward {
				want = "5 3 1"
			}
			// A page that ends with the last item does not know that it does.
			if wantPages := count/int(limit) + 1; sortKeys(got) != want || items != count || pages != wantPages {
				t.Errorf("limit %d, forward %v: %s of %d items on %d pages; want %s, %d pages",
					limit, forward, sortKeys(got), items, pages, want, wantPages)
			}
			if limit == 1 && empty == 0 {
				t.Error("the filter comes after the page is cut")
			}
		}
	}
}

func TestPageOfOneMegabyte(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	fill(t, c, 5, func(int) item { return item{"a": s(strings.Repeat("x", 300<<10))} })
	out, err := c.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("id = :x"), Select: types.SelectCount,
		ExpressionAttributeValues: item{":x": s("x")}, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Count != 4 || out.Items != nil || len(out.LastEvaluatedKey) != 2 || *out.ConsumedCapacity.CapacityUnits != 150.5 {
		t.Errorf("%+v, %v units", out, *out.ConsumedCapacity.CapacityUnits)
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	const count = 50
	for i := range count {
		put(t, c, plainTable, item{"id": s(fmt.Sprint(i)), "even": boolean(i%2 == 0)})
	}
	seen := make(map[string]bool)
	for segment := range int32(3) {
		in := &dynamodb.ScanInput{
			TableName: aws.String(plainTable), Segment: &segment, TotalSegments: aws.Int32(3), Limit: aws.Int32(4),
			FilterExpression: aws.String("even = :yes"), ExpressionAttributeValues: item{":yes": boolean(true)},
		}
		for {
			out, err := c.Scan(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range out.Items {
				id := it["id"].(*types.AttributeValueMemberS).Value
				if seen[id] {
					t.Errorf("%s was there before", id)
				}
				seen[id] = true
			}
			if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
				break
			}
		}
	}
	if len(seen) != count/2 {
		t.Errorf("%d items, want %d", len(seen), count/2)
	}
	for what, change := range map[string]func(*dynamodb.ScanInput){
		"limit 0":           func(in *dynamodb.ScanInput) { in.Limit = aws.Int32(0) },
		"segment alone":     func(in *dynamodb.ScanInput) { in.Segment = aws.Int32(0) },
		"segment too large": func(in *dynamodb.ScanInput) { in.Segment, in.TotalSegments = aws.Int32(2), aws.Int32(2) },
		"start key":         func(in *dynamodb.ScanInput) { in.ExclusiveStartKey = item{"id": n("1")} },
		"selection":         func(in *dynamodb.ScanInput) { in.Select = "SOME" },
		"selection of none": func(in *dynamodb.ScanInput) { in.Select = types.SelectSpecificAttributes },
		"selection of all": func(in *dynamodb.ScanInput) {
			in.Select, in.ProjectionExpression = types.SelectAllAttributes, aws.String("id")
		},
	} {
		in := &dynamodb.ScanInput{TableName: aws.String(plainTable)}
		change(in)
		_, err := c.Scan(t.Context(), in)
		sameCode(t, what, err, validation)
	}
}

func TestQueryLimits(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	for what, change := range map[string]func(*dynamodb.QueryInput){
		"start in another partition": func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"id": s("y"), "seq": n("1")} },
		"start without sort key":     func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"id": s("x")} },
		"filter on the key":          func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("attribute_exists(id)") },
	} {
		in := &dynamodb.QueryInput{
			TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("id = :x"), ExpressionAttributeValues: item{":x": s("x")},
		}
		change(in)
		_, err := c.Query(t.Context(), in)
		sameCode(t, what, err, validation)
	}
}
