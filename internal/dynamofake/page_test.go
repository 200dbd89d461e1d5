package dynamofake_test

import (
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
		switch v := it["seq"].(type) {
		case *types.AttributeValueMemberN:
			keys = append(keys, v.Value)
		case *types.AttributeValueMemberS:
			keys = append(keys, v.Value)
		}
	}
	return strings.Join(keys, " ")
}

func TestQueryKeys(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	const textTable = "texts"
	createTable(t, c, textTable, "id", "S", "seq", "S")
	fill(db, 12, func(int) item { return item{} })
	db.SetItem(sortedTable, item{"id": s("y"), "seq": n("3")})
	for _, seq := range []string{"3", "30", "4"} {
		db.SetItem(textTable, item{"id": s("x"), "seq": s(seq)})
	}
	values := item{":x": s("x"), ":n": n("3"), ":s": s("3"), ":none": s("")}
	for _, test := range []struct{ table, condition, want string }{
		{sortedTable, "#id = :x", "0 1 2 3 4 5 6 7 8 9 10 11"},
		{sortedTable, "#id = :x AND #seq = :n", "3"},
		{sortedTable, "(#seq = :n) and (#id = :x)", "3"},
		{textTable, "#id = :x AND begins_with(#seq, :s)", "3 30"},
		{sortedTable, "#seq = :n", validation},
		{sortedTable, "#id = :n", validation},
		{sortedTable, "#id = :none", validation},
		{sortedTable, "#id = :x AND #seq = :s", validation},
		{sortedTable, "#id = :x AND begins_with(#seq, :s)", validation},
		{textTable, "begins_with(#id, :x)", validation},
		{sortedTable, "#id = :x AND attribute_exists(#seq)", validation},
		{sortedTable, "#id = :x AND #id = :s", validation},
		{sortedTable, "#id = :x AND #more = :n", validation},
		{sortedTable, "", validation},
		{sortedTable, ":x = #id", unsupported},
		{sortedTable, "#id = #seq", unsupported},
		{sortedTable, "#id = :x AND #seq > :n", unsupported},
		{sortedTable, "#id = :x OR #id = :s", unsupported},
		{sortedTable, "NOT #id = :x", unsupported},
	} {
		out, err := c.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &test.table, KeyConditionExpression: &test.condition,
			ExpressionAttributeNames: names(test.condition), ExpressionAttributeValues: usedIn(test.condition, values),
		})
		if test.want == validation || test.want == unsupported {
			sameCode(t, test.condition, err, test.want)
		} else if err != nil || sortKeys(out.Items) != test.want {
			t.Errorf("%s: %v, %v; want %s", test.condition, out, err, test.want)
		}
	}
	_, err := c.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String(sortedTable)})
	sameCode(t, "without a condition", err, validation)
}

// TestPages reads a partition, and the whole table, with every limit.
func TestPages(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	const count = 7
	fill(db, count, func(i int) item { return item{"odd": boolean(i%2 == 1)} })
	filter, yes := aws.String("#odd = :yes"), boolean(true)
	type result struct {
		items   []item
		scanned int32
		last    item
	}
	for limit := int32(1); limit <= count+1; limit++ {
		for what, read := range map[string]func(start item) (result, error){
			"Query": func(start item) (result, error) {
				out, err := c.Query(t.Context(), &dynamodb.QueryInput{
					TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("#id = :x"), FilterExpression: filter, Limit: &limit, ExclusiveStartKey: start,
					ExpressionAttributeNames: names("#id #odd"), ExpressionAttributeValues: item{":x": s("x"), ":yes": yes},
				})
				if err != nil {
					return result{}, err
				}
				return result{out.Items, out.ScannedCount, out.LastEvaluatedKey}, nil
			},
			"Scan": func(start item) (result, error) {
				out, err := c.Scan(t.Context(), &dynamodb.ScanInput{
					TableName: aws.String(sortedTable), FilterExpression: filter, Limit: &limit, ExclusiveStartKey: start,
					ExpressionAttributeNames: names("#odd"), ExpressionAttributeValues: item{":yes": yes},
				})
				if err != nil {
					return result{}, err
				}
				return result{out.Items, out.ScannedCount, out.LastEvaluatedKey}, nil
			},
		} {
			var pages, scanned, empty int
			var got []item
			for start := item(nil); pages == 0 || start != nil; pages++ {
				page, err := read(start)
				if err != nil {
					t.Fatal(err)
				}
				scanned += int(page.scanned)
				got = append(got, page.items...)
				if len(page.items) == 0 {
					empty++
				}
				start = page.last
			}
			// A page that ends with the last item does not know that it does.
			if wantPages := count/int(limit) + 1; sortKeys(got) != "1 3 5" || scanned != count || pages != wantPages {
				t.Errorf("%s, limit %d: %s of %d items on %d pages; want %d pages", what, limit, sortKeys(got), scanned, pages, wantPages)
			}
			if limit == 1 && empty == 0 {
				t.Errorf("%s: the filter comes after the page is cut", what)
			}
		}
	}
}

func TestPageOfOneMegabyte(t *testing.T) {
	t.Parallel()
	db, c := newDB(t)
	fill(db, 5, func(int) item { return item{"a": s(strings.Repeat("x", 300<<10))} })
	out, err := c.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("#id = :x"),
		ExpressionAttributeNames: names("#id"), ExpressionAttributeValues: item{":x": s("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if read, _ := c.Consumed(); out.Count != 4 || len(out.LastEvaluatedKey) != 2 || read != 150.5 {
		t.Errorf("%d items, then %v; %v units", out.Count, out.LastEvaluatedKey, read)
	}
}

func TestPageChecks(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	for what, test := range map[string]struct {
		change func(*dynamodb.QueryInput)
		want   string
	}{
		"good":                       {func(*dynamodb.QueryInput) {}, ""},
		"limit 0":                    {func(in *dynamodb.QueryInput) { in.Limit = aws.Int32(0) }, validation},
		"start in another partition": {func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"id": s("y"), "seq": n("1")} }, validation},
		"start without sort key":     {func(in *dynamodb.QueryInput) { in.ExclusiveStartKey = item{"id": s("x")} }, validation},
		"filter on the key":          {func(in *dynamodb.QueryInput) { in.FilterExpression = aws.String("attribute_exists(#id)") }, validation},
		"an index":                   {func(in *dynamodb.QueryInput) { in.IndexName = aws.String("index") }, unsupported},
		"backward":                   {func(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }, unsupported},
		"a projection":               {func(in *dynamodb.QueryInput) { in.ProjectionExpression = aws.String("#id") }, unsupported},
	} {
		in := &dynamodb.QueryInput{
			TableName: aws.String(sortedTable), KeyConditionExpression: aws.String("#id = :x"),
			ExpressionAttributeNames: names("#id"), ExpressionAttributeValues: item{":x": s("x")},
		}
		test.change(in)
		_, err := c.Query(t.Context(), in)
		sameCode(t, what, err, test.want)
	}
	_, err := c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(plainTable), ExclusiveStartKey: item{"id": n("1")}})
	sameCode(t, "start of a scan", err, validation)
	_, err = c.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String(plainTable), Segment: aws.Int32(0)})
	sameCode(t, "a segment", err, unsupported)
}
