package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// credentials says where they come from, but not what they are.
func (t *table) credentials(ctx context.Context) ([]Finding, error) {
	found, err := t.Client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return last(problem("set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role",
			"there are none: %v", cmp.Or(context.Cause(ctx), err)))
	}
	told := "from " + cmp.Or(found.Source, "an unknown source")
	if found.CanExpire {
		told += fmt.Sprintf(", good for %v", time.Until(found.Expires).Round(time.Second))
	}
	return only(ok("%s", told))
}

// describe looks at the table itself.
func (t *table) describe(ctx context.Context) ([]Finding, error) {
	o, name := t.Client.Options(), t.Options.Table
	where := "region " + o.Region
	if o.BaseEndpoint != nil {
		where += ", " + *o.BaseEndpoint
	}
	out, err := t.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	var missing *types.ResourceNotFoundException
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		t.readClock(response.Response)
	}
	switch api, answered := answer(err); {
	case err == nil:
	case errors.As(err, &missing):
		return last(problem(t.command("table create"), "there is no table %s in this region", name))
	case deniedCall(err):
		return last(problem("allow dynamodb:DescribeTable on the table to these credentials: every client needs it",
			"dynamodb:DescribeTable on %s is denied: %s", name, api.ErrorMessage()))
	case answered: // not by a policy, but for example because of a signature with a wrong time
		cure, why := "see to the credentials: they may be wrong, or have expired", ""
		if t.ahead != nil {
			if f := judgeClock(*t.ahead); f.Status != OK {
				cure, why = f.Cure, "; "+f.Found
			}
		}
		return last(problem(cure, "DescribeTable on %s is refused: %s: %s%s", name, api.ErrorCode(), api.ErrorMessage(), why))
	default:
		if sent := (*url.Error)(nil); errors.As(err, &sent) { // the SDK's own message is long
			err = sent
		}
		return last(problem("see to the region, the endpoint and the network; or give a longer --timeout",
			"%s: DynamoDB cannot be reached: %v", where, cmp.Or(context.Cause(ctx), err)))
	}
	t.description, name = out.Table, aws.ToString(out.Table.TableName)
	raw, _ := awsmiddleware.GetRawResponse(out.ResultMetadata).(*smithyhttp.Response)
	t.readClock(raw)
	switch out.Table.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
		return only(ok("%s in %s is %s, with about %s", name, where, out.Table.TableStatus, count(int(aws.ToInt64(out.Table.ItemCount)), "item")))
	case types.TableStatusCreating:
		return last(problem("wait until it is ACTIVE", "%s is %s", name, out.Table.TableStatus))
	}
	return last(problem("use another table, or have this one restored", "%s is %s", name, out.Table.TableStatus))
}

// readClock notes the time in an answer.
func (t *table) readClock(answer *smithyhttp.Response) {
	if answer == nil {
		return
	}
	if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		ahead := time.Until(date.Add(time.Second / 2)) // the header has whole seconds
		t.ahead = &ahead
	}
}

// clock compares the wall clocks, because signatures contain the time.
func (t *table) clock(context.Context) ([]Finding, error) {
	if t.ahead == nil {
		return only(skipped("see whether this machine's clock is set (NTP): signatures contain the time", "the answers do not tell the time"))
	}
	return only(judgeClock(*t.ahead))
}

// judgeClock compares the offset of the clocks with the one from which on signatures are refused.
func judgeClock(ahead time.Duration) Finding {
	const farApart = 5 * time.Minute
	if ahead.Abs() >= farApart {
		return problem("set the clock of this machine (NTP)",
			"the clock of DynamoDB differs from this machine's by %v: signatures are refused from %v on", figure(ahead.Abs()), farApart)
	}
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	return ok("the clock of DynamoDB is about %v %s this machine's; locks do not depend on that", figure(ahead.Abs()), way)
}

// command is a command of the tool with the flags that name the table.
func (t *table) command(words string) string {
	var text strings.Builder
	text.WriteString("run: holdfast " + words + " --table " + shell(t.Options.Table))
	for _, key := range []struct {
		flag, standard string
		attr           dynamolock.KeyAttr
	}{{"--partition-key", "id", t.Options.Keys.Partition}, {"--sort-key", "", t.Options.Keys.Sort}} {
		value := key.attr.Name
		if key.attr.Type != "" {
			value += ":" + string(key.attr.Type)
		}
		if value != "" && value != key.standard {
			text.WriteString(" " + key.flag + " " + shell(value))
		}
	}
	return text.String()
}

// schema lets the library judge the keys.
func (t *table) schema(ctx context.Context) ([]Finding, error) {
	options := t.Options
	client, err := dynamolock.New(ctx, t.Client, &options)
	if errors.Is(err, dynamolock.ErrTable) {
		_, reason, _ := strings.Cut(err.Error(), dynamolock.ErrTable.Error()+": ")
		return last(problem("give --partition-key and --sort-key as the table has them, or use a table of its own for locks",
			"the keys of the table do not fit: %s", reason))
	}
	if err != nil {
		return nil, err
	}
	t.locker = client
	var keys []string
	for _, k := range t.description.KeySchema {
		keys = append(keys, fmt.Sprintf("%s %s", k.KeyType, aws.ToString(k.AttributeName)))
	}
	return only(ok("the keys of the table fit: %s", strings.Join(keys, ", ")))
}

// replicas checks whether the table has copies in other regions.
func (t *table) replicas(context.Context) ([]Finding, error) {
	region := t.Client.Options().Region
	var others []string
	for _, r := range t.description.Replicas {
		if name := aws.ToString(r.RegionName); name != region { // the list has this region too
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return only(ok("the table is in this region alone"))
	}
	return only(warning(fmt.Sprintf("have all clients use %s, or a table without replicas", region),
		"a global table, with replicas in %s: a lock that is taken in one region does not exclude in another", some(others)))
}

// timeToLive compares the table's Time to Live with the setting.
func (t *table) timeToLive(ctx context.Context) ([]Finding, error) {
	out, err := t.Client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.Options.Table})
	if api, answered := answer(err); answered {
		if api.ErrorCode() == "UnknownOperationException" {
			return only(ok("the server has no Time to Live"))
		}
		if !deniedCall(err) { // such as a throttled one: DynamoDB allows ten of these a second, for an account
			return only(skipped("look again later", "not told: %v", api))
		}
		return only(warning("allow dynamodb:DescribeTimeToLive, or give --ttl-attribute to all clients if Time to Live is on",
			"not told: if it is on, clients that do not know its attribute leave it as it is, and DynamoDB may delete the items of held locks"))
	}
	if err != nil {
		return nil, err
	}
	attribute := ""
	if d := out.TimeToLiveDescription; d != nil &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		attribute = aws.ToString(d.AttributeName)
	}
	return only(judgeTTL(t.Options.TTLAttribute, attribute, t.command("table create")))
}

// judgeTTL compares the attribute of the settings with that of the table.
func judgeTTL(set, have, create string) Finding {
	cure := "give --ttl-attribute " + shell(have) + ", to all clients"
	switch {
	case set == have && set == "":
		return ok("Time to Live is off: items stay when they are released, for the sake of their tokens")
	case set == have:
		return ok("Time to Live goes by %s, which clients write", have)
	case have == "":
		return warning(create+" --ttl-attribute "+shell(set), "clients write %s, and Time to Live of the table is off: items stay for ever", set)
	case set == "":
		return warning(cure, "Time to Live goes by %s, which clients with these settings remove: items that they wrote last stay for ever", have)
	}
	return warning(cure, "clients write %s, and Time to Live goes by %s, which they remove: items that they wrote last stay for ever", set, have)
}
