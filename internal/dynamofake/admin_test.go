package dynamofake_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/internal/dynamofake"
)

func TestTableStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := dynamofake.New()
		db.CreateDelay, db.TellDelay = 10*time.Second, 5*time.Second
		c := db.Client()
		expect := func(when string, status types.TableStatus, data string) {
			t.Helper()
			out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(plainTable)})
			if status == "" {
				sameCode(t, when, err, notFound)
			} else if err != nil || out.Table.TableStatus != status {
				t.Errorf("%s: %+v, %v; want %s", when, out, err, status)
			}
			_, err = get(t.Context(), c, plainTable, item{"id": s("x")}, true)
			sameCode(t, when+", data", err, data)
		}
		expect("before", "", notFound)
		out, err := c.CreateTable(t.Context(), tableInput(plainTable, "id", "S"))
		if err != nil || out.TableDescription.TableStatus != types.TableStatusCreating {
			t.Fatalf("%+v, %v", out, err)
		}
		expect("created", "", notFound)
		time.Sleep(5 * time.Second)
		expect("told of", types.TableStatusCreating, notFound)
		_, err = c.CreateTable(t.Context(), tableInput(plainTable, "id", "S"))
		sameCode(t, "created twice", err, inUse)
		sameCode(t, "Time to Live, too early", enableTTL(t, c, plainTable, "ttl"), inUse)
		time.Sleep(5 * time.Second)
		expect("ready", types.TableStatusActive, "")
	})
}

func TestCreateTableChecks(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		change func(*dynamodb.CreateTableInput)
		want   string
	}{
		"good":              {func(*dynamodb.CreateTableInput) {}, ""},
		"short name":        {func(in *dynamodb.CreateTableInput) { in.TableName = aws.String("ab") }, validation},
		"no key":            {func(in *dynamodb.CreateTableInput) { in.KeySchema = nil }, validation},
		"three keys":        {func(in *dynamodb.CreateTableInput) { in.KeySchema = append(in.KeySchema, in.KeySchema[1]) }, validation},
		"wrong order":       {func(in *dynamodb.CreateTableInput) { in.KeySchema[0].KeyType = types.KeyTypeRange }, validation},
		"undefined":         {func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions = in.AttributeDefinitions[:1] }, validation},
		"unused definition": {func(in *dynamodb.CreateTableInput) { in.KeySchema = in.KeySchema[:1] }, validation},
		"one name twice":    {func(in *dynamodb.CreateTableInput) { in.KeySchema[1].AttributeName = in.KeySchema[0].AttributeName }, validation},
		"bad type":          {func(in *dynamodb.CreateTableInput) { in.AttributeDefinitions[0].AttributeType = "SS" }, validation},
		"capacity":          {func(in *dynamodb.CreateTableInput) { in.BillingMode = types.BillingModeProvisioned }, unsupported},
		"an index":          {func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = make([]types.LocalSecondaryIndex, 1) }, unsupported},
	} {
		in := tableInput("new", "id", "S", "seq", "B")
		test.change(in)
		_, err := dynamofake.New().Client().CreateTable(t.Context(), in)
		sameCode(t, what, err, test.want)
	}
}

func enableTTL(t *testing.T, c *dynamofake.Client, table, attribute string) error {
	t.Helper()
	_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(true)},
	})
	return err
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	expect := func(status types.TimeToLiveStatus, attribute string) {
		t.Helper()
		out, err := c.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: aws.String(plainTable)})
		if err != nil {
			t.Fatal(err)
		}
		if d := out.TimeToLiveDescription; d.TimeToLiveStatus != status || aws.ToString(d.AttributeName) != attribute {
			t.Errorf("%v of %v, want %s of %q", d.TimeToLiveStatus, aws.ToString(d.AttributeName), status, attribute)
		}
	}
	expect(types.TimeToLiveStatusDisabled, "")
	sameCode(t, "missing table", enableTTL(t, c, "missing", "expires"), notFound)
	sameCode(t, "no attribute", enableTTL(t, c, plainTable, ""), validation)
	sameCode(t, "enable", enableTTL(t, c, plainTable, "expires"), "")
	expect(types.TimeToLiveStatusEnabled, "expires")
	sameCode(t, "enabled already", enableTTL(t, c, plainTable, "other"), validation)
	_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(plainTable),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expires"), Enabled: aws.Bool(false)},
	})
	sameCode(t, "disable", err, unsupported)
}

// Items go when their time to live is over, those of years ago excepted; what is no
// number of seconds is none.
func TestTimeToLiveDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.ExpireDelay = time.Minute
		at := func(d time.Duration) types.AttributeValue { return n(strconv.FormatInt(time.Now().Add(d).Unix(), 10)) }
		for _, it := range []item{
			{"id": s("goes"), "ttl": at(time.Hour)},
			{"id": s("moved"), "ttl": at(time.Hour)},
			{"id": s("of years ago"), "ttl": at(-6 * 365 * 24 * time.Hour)},
			{"id": s("a string"), "ttl": s("1")},
			{"id": s("none")},
		} {
			db.SetItem(plainTable, it)
		}
		left := func(when string, want int) {
			t.Helper()
			if items := db.Items(plainTable); len(items) != want {
				t.Errorf("%s: %v", when, items)
			}
		}
		time.Sleep(2 * time.Hour)
		left("Time to Live is off", 5)
		db.SetItem(plainTable, item{"id": s("moved"), "ttl": at(time.Hour)})
		sameCode(t, "enable", enableTTL(t, c, plainTable, "ttl"), "")
		left("on", 4)
		time.Sleep(time.Hour + time.Minute)
		left("as long as deleting takes", 4)
		time.Sleep(time.Second)
		left("after that", 3)
	})
}
