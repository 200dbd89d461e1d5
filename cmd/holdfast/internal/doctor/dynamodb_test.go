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
