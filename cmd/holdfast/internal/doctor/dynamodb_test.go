package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// TestJudgeTable guards in which states a table can be used, and that nothing is
// looked at in one that cannot.
func TestJudgeTable(t *testing.T) {
	for state, want := range map[types.TableStatus]Status{
		types.TableStatusActive: OK, types.TableStatusUpdating: OK, types.TableStatusCreating: Problem,
		types.TableStatusDeleting: Problem, types.TableStatusArchived: Problem, types.TableStatusInaccessibleEncryptionCredentials: Problem,
	} {
		found, err := judgeTable(&types.TableDescription{TableName: aws.String("t"), TableStatus: state}, time.Millisecond)
		cure := map[bool]string{true: "", false: "wait"}[state != types.TableStatusCreating]
		is(t, found[0], want, "t is "+string(state), cure)
		if (want == Problem) != errors.Is(err, errEnough) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

// TestJudgeReplicas tests the warning of global tables; DynamoDB lists the
// region itself among the replicas.
func TestJudgeReplicas(t *testing.T) {
	in := func(regions ...string) *types.TableDescription {
		d := &types.TableDescription{}
		for _, r := range regions {
			d.Replicas = append(d.Replicas, types.ReplicaDescription{RegionName: aws.String(r)})
		}
		return d
	}
	is(t, judgeReplicas(in(), "here"), OK, "this region alone", "")
	is(t, judgeReplicas(in("here"), "here"), OK, "this region alone", "")
	is(t, judgeReplicas(in("here", "there"), "here"), Warning, "replicas in there", "use here")
}

// TestJudgeTTL tests the comparison of Time to Live with the setting.
func TestJudgeTTL(t *testing.T) {
	const create = "run: holdfast table create"
	for _, test := range []struct {
		set, have   string
		status      Status
		found, cure string
	}{
		{"", "", OK, "is off", ""},
		{"expires", "expires", OK, "goes by expires", ""},
		{"expires", "", Warning, "is off", create + " --ttl-attribute expires"},
		{"", "expires", Warning, "which clients with these settings remove", "--ttl-attribute expires"},
		{"expires", "other", Warning, "clients write expires, and Time to Live goes by other", "--ttl-attribute other"},
	} {
		is(t, judgeTTL(test.set, test.have, create), test.status, test.found, test.cure)
	}
}

// TestJudgeCalls guards from when on calls take too long for a lease.
func TestJudgeCalls(t *testing.T) {
	for worst, status := range map[time.Duration]Status{time.Millisecond: OK, 499 * time.Millisecond: OK, 500 * time.Millisecond: Warning, time.Second: Problem} {
		cure := ""
		if status != OK {
			cure = "--lease"
		}
		is(t, judgeCalls(latencies{worst, 0, 0}, 2*time.Second, time.Second), status, "0s in the median", cure)
	}
}

// TestMissing guards without which permissions locks do not work, by mode.
func TestMissing(t *testing.T) {
	for _, p := range permissions {
		for _, mode := range []dynamolock.Mode{dynamolock.FailOpen, dynamolock.FailClosed, dynamolock.FailClosedFenced} {
			want := Warning
			if p.action == "GetItem" || p.action == "UpdateItem" || p.action == "DeleteItem" && mode == dynamolock.FailClosed {
				want = Problem
			}
			is(t, p.missing(mode), want, "dynamodb:"+p.action+" is denied", "allow dynamodb:"+p.action)
		}
	}
}

// TestProbeKey checks that the key of a probe is one that a client could have,
// of the types of the table, and below the prefix, as policies may go by that.
func TestProbeKey(t *testing.T) {
	s, n, b := types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB
	for _, test := range []struct {
		partition, sort types.ScalarAttributeType
		prefix, want    string
	}{
		{"", "", "", probePrefix},
		{s, "", "team/", "team/" + probePrefix},
		{b, "", "x", "x" + probePrefix},
		{n, "", "", "1"},
		{s, s, "", probePrefix},
		{s, s, "team", "team" + probePrefix},
		{s, s, "team/", "team/" + probePrefix},
		{s, s, "team/x", "team/x" + probePrefix},
		{n, b, "7/", "7/" + probePrefix},
	} {
		keys := dynamolock.Keys{}
		if test.partition != "" {
			keys.Partition = dynamolock.KeyAttr{Name: "p", Type: test.partition}
		}
		if test.sort != "" {
			keys.Sort = dynamolock.KeyAttr{Name: "s", Type: test.sort}
		}
		k := newProbeKey(keys, test.prefix)
		if !strings.HasPrefix(k.key, test.want) || k.key == newProbeKey(keys, test.prefix).key {
			t.Errorf("%+v has the key %q", test, k.key)
		}
		partition, sort, _ := strings.Cut(k.key, "/")
		if test.sort == "" {
			partition = k.key
		}
		name := map[bool]string{true: "id", false: "p"}[test.partition == ""]
		if got := valueText(k.item[name]); got != partition {
			t.Errorf("%+v: the partition key of %q is %q", test, k.key, got)
		}
		if test.sort != "" && valueText(k.item["s"]) != sort {
			t.Errorf("%+v: the sort key of %q is %q", test, k.key, valueText(k.item["s"]))
		}
	}
}

// valueText is the text of a key attribute, whatever its type.
func valueText(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return fmt.Sprintf("%T", v)
}

// TestCommand checks that a command that is told names the table as it was
// named.
func TestCommand(t *testing.T) {
	for want, o := range map[string]dynamolock.Options{
		"run: holdfast ls --table locks": {Table: "locks", Keys: dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "id"}}},
		"run: holdfast ls --table locks --partition-key p:N --sort-key s": {
			Table: "locks",
			Keys:  dynamolock.Keys{Partition: dynamolock.KeyAttr{Name: "p", Type: "N"}, Sort: dynamolock.KeyAttr{Name: "s"}},
		},
	} {
		if got := (&table{DynamoDB: DynamoDB{Options: o}}).command("ls"); got != want {
			t.Errorf("the command is %q, want %q", got, want)
		}
	}
}

// TestRefusedByDynamoDB guards which errors leave an examination going on, and
// which of them tell of a policy.
func TestRefusedByDynamoDB(t *testing.T) {
	for _, test := range []struct {
		err             error
		refused, denied bool
	}{
		{&smithy.GenericAPIError{Code: "AccessDeniedException"}, true, true},
		{&smithy.GenericAPIError{Code: "ThrottlingException"}, true, false},
		{errors.New("connection refused"), false, false},
	} {
		err := fmt.Errorf("GetItem: %w", test.err)
		if refusedByDynamoDB(err) != test.refused || deniedCall(err) != test.denied {
			t.Errorf("%v: refused %v, denied %v", err, refusedByDynamoDB(err), deniedCall(err))
		}
	}
}
