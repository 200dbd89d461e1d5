package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/dynamolock"
)

// is fails the test unless a finding has a status, and texts in what was found and in the
// cure. Only an ok finding has no cure.
func is(t *testing.T, f Finding, status Status, found, cure string) {
	t.Helper()
	if f.Status != status || !strings.Contains(f.Found, found) || !strings.Contains(f.Cure, cure) || (f.Cure == "") != (status == OK) {
		t.Errorf("found %+v, want %s with %q and the cure %q", f, status, found, cure)
	}
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

// TestJudgeCalls tests from when on calls take too long for a lease.
func TestJudgeCalls(t *testing.T) {
	for worst, status := range map[time.Duration]Status{time.Millisecond: OK, 499 * time.Millisecond: OK, 500 * time.Millisecond: Warning, time.Second: Problem} {
		cure := map[bool]string{true: "--lease"}[status != OK]
		is(t, judgeCalls(latencies{worst, 0, 0}, 2*time.Second, time.Second), status, "0s in the median", cure)
	}
}

// TestProbeKey checks that a probe's key is unique, of the table's types, and below the
// prefix, which policies may depend on.
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
		var o dynamolock.Options
		if test.sort != "" {
			o.Keys.Sort = dynamolock.KeyAttr{Name: "s", Type: test.sort}
		}
		o.Keys.Partition = dynamolock.KeyAttr{Name: "p", Type: test.partition}
		key, item := newProbeKey(o.Keys, test.prefix)
		other, _ := newProbeKey(o.Keys, test.prefix)
		name := (&table{DynamoDB: DynamoDB{Options: o}, partition: "p"}).name(item)
		if !strings.HasPrefix(key, test.want) || key == other || name != key {
			t.Errorf("%+v has the key %q, and its item %q", test, key, name)
		}
	}
}
