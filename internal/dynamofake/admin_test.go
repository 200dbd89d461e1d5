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
		db.CreateDelay, db.DeleteDelay = 10*time.Second, 5*time.Second
		c := db.Client()
		describe := &dynamodb.DescribeTableInput{TableName: aws.String(plainTable)}
		expect := func(when string, status types.TableStatus, data string) {
			t.Helper()
			out, err := c.DescribeTable(t.Context(), describe)
			if status == "" {
				sameCode(t, when, err, notFound)
			} else if err != nil || out.Table.TableStatus != status {
				t.Errorf("%s: %+v, %v; want %s", when, out, err, status)
			}
			_, err = get(t.Context(), c, plainTable, item{"id": s("x")}, true)
			sameCode(t, when+", data", err, data)
		}
		remove := &dynamodb.DeleteTableInput{TableName: aws.String(plainTable)}
		expect("before", "", notFound)
		out, err := c.CreateTable(t.Context(), tableInput(plainTable, "id", "S"))
		if err != nil || out.TableDescription.TableStatus != types.TableStatusCreating {
			t.Fatalf("%+v, %v", out, err)
		}
		expect("created", types.TableStatusCreating, notFound)
		_, err = c.CreateTable(t.Context(), tableInput(plainTable, "id", "S"))
		sameCode(t, "created twice", err, inUse)
		_, err = c.DeleteTable(t.Context(), remove)
		sameCode(t, "deleted too early", err, inUse)
		time.Sleep(10 * time.Second)
		expect("ready", types.TableStatusActive, "")
		put(t, c, plainTable, item{"id": s("x")})
		if out, err := c.DeleteTable(t.Context(), remove); err != nil || out.TableDescription.TableStatus != types.TableStatusDeleting {
			t.Fatalf("%+v, %v", out, err)
		}
		expect("being deleted", types.TableStatusDeleting, notFound)
		time.Sleep(5 * time.Second)
		expect("deleted", "", notFound)
		_, err = c.DeleteTable(t.Context(), remove)
		sameCode(t, "deleted twice", err, notFound)
		createTable(t, c, plainTable, "id", "S")
		time.Sleep(10 * time.Second)
		if items := db.Items(plainTable); len(items) != 0 {
			t.Errorf("a new table has %v", items)
		}
	})
}

func TestCreateTableChecks(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
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
		"bad mode":          {func(in *dynamodb.CreateTableInput) { in.BillingMode = "FREE" }, validation},
		"no capacity":       {func(in *dynamodb.CreateTableInput) { in.BillingMode = "" }, validation},
		"capacity": {func(in *dynamodb.CreateTableInput) {
			in.BillingMode = types.BillingModeProvisioned
			in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(2)}
		}, ""},
		"both": {func(in *dynamodb.CreateTableInput) {
			in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(2)}
		}, validation},
		"an index": {func(in *dynamodb.CreateTableInput) { in.LocalSecondaryIndexes = make([]types.LocalSecondaryIndex, 1) }, "unsupported"},
	} {
		in := tableInput("new", "id", "S", "seq", "B")
		test.change(in)
		_, err := c.CreateTable(t.Context(), in)
		sameCode(t, what, err, test.want)
		if err == nil {
			if _, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: in.TableName}); err != nil {
				t.Fatal(err)
			}
		}
	}
	in := tableInput("protected", "id", "S")
	in.DeletionProtectionEnabled = aws.Bool(true)
	if _, err := c.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err := c.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: in.TableName})
	sameCode(t, "protected", err, validation)
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	_, c := newDB(t)
	update := func(table, attribute string, enabled bool) error {
		_, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               &table,
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: &enabled},
		})
		return err
	}
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
	sameCode(t, "missing table", update("missing", "expires", true), notFound)
	sameCode(t, "no attribute", update(plainTable, "", true), validation)
	sameCode(t, "disabled already", update(plainTable, "expires", false), validation)
	sameCode(t, "enable", update(plainTable, "expires", true), "")
	expect(types.TimeToLiveStatusEnabled, "expires")
	sameCode(t, "enabled already", update(plainTable, "expires", true), validation)
	sameCode(t, "another attribute", update(plainTable, "other", false), validation)
	sameCode(t, "disable", update(plainTable, "expires", false), "")
	expect(types.TimeToLiveStatusDisabled, "")
}

// Items go when their time to live is over, those of years ago excepted; what is no
// number of seconds is none.
func TestTimeToLiveDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, c := newDB(t)
		db.ExpireDelay = time.Minute
		at := func(d time.Duration) types.AttributeValue { return n(strconv.FormatInt(time.Now().Add(d).Unix(), 10)) }
		put(t, c, plainTable, item{"id": s("goes"), "ttl": at(time.Hour)})
		put(t, c, plainTable, item{"id": s("moved"), "ttl": at(time.Hour)})
		put(t, c, plainTable, item{"id": s("of years ago"), "ttl": at(-6 * 365 * 24 * time.Hour)})
		put(t, c, plainTable, item{"id": s("a string"), "ttl": s("1")})
		put(t, c, plainTable, item{"id": s("none")})
		left := func(when string, want int) {
			t.Helper()
			if items := db.Items(plainTable); len(items) != want {
				t.Errorf("%s: %v", when, items)
			}
		}
		time.Sleep(2 * time.Hour)
		left("Time to Live is off", 5)
		put(t, c, plainTable, item{"id": s("moved"), "ttl": at(time.Hour)})
		if _, err := c.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String(plainTable),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("ttl"), Enabled: aws.Bool(true)},
		}); err != nil {
			t.Fatal(err)
		}
		left("on", 4)
		time.Sleep(time.Hour + time.Minute)
		left("as long as deleting takes", 4)
		time.Sleep(time.Second)
		left("after that", 3)
	})
}
