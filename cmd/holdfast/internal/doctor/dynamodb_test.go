package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dynamolock"
)

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

// TestJudgeClock tests offsets of either sign.
func TestJudgeClock(t *testing.T) {
	for ahead, status := range map[time.Duration]Status{0: OK, 299 * time.Second: OK, -299 * time.Second: OK, time.Hour: Problem, -6 * time.Minute: Problem} {
		want := map[bool]string{true: "behind this machine's", false: "ahead of this machine's"}[ahead < 0]
		if status == Problem {
			want = "signatures are refused"
		}
		is(t, judgeClock(ahead), status, want, map[bool]string{true: "NTP"}[status == Problem])
	}
}

// TestStuck tests what is said of a holder that seems to be dead, and of a lock that never expires.
func TestStuck(t *testing.T) {
	x := &table{DynamoDB: DynamoDB{Options: dynamolock.Options{Table: "locks"}}}
	info := holdfast.Info{Key: "k", Held: true, Holder: holdfast.Holder{Owner: "gone", Token: 7}}
	is(t, x.stuck(info), Warning, `"k" is held by "gone" since an unknown time, and never expires`, "break k --table locks --token 7")
	info.Lease, info.LastHeard = 20*time.Second, time.Unix(0, 0)
	is(t, x.stuck(info), Warning, "seems dead: it was last heard of at 1970-01-01T00:00:00Z by its own clock, and its lease is 20s", "--token 7 --now")
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
		if !strings.HasPrefix(key, test.want) || key == other || item["p"] == nil || (item["s"] != nil) != (test.sort != "") {
			t.Errorf("%+v has the key %q, and its item %v", test, key, item)
		}
	}
}
