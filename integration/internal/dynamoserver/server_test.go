package dynamoserver

import (
	"errors"
	"net"
	"net/url"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func TestTableHasTheKeysAskedForAndGoesWithTheTest(t *testing.T) {
	t.Parallel()
	target := Find(t)
	c := target.Client()
	var table string
	t.Run("table", func(t *testing.T) {
		table = target.Table(t, Key{Name: "name"}, Key{Name: "at", Type: types.ScalarAttributeTypeN})
		_, err := c.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: map[string]types.AttributeValue{
			"name": text("x"), "at": &types.AttributeValueMemberN{Value: "1"},
		}})
		if err != nil {
			t.Error(err)
		}
		if another := target.Table(t); another == table {
			t.Errorf("two tables called %s", table)
		}
	})
	out, err := c.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(table)})
	var gone *types.ResourceNotFoundException
	if !errors.As(err, &gone) && (err != nil || out.Table.TableStatus != types.TableStatusDeleting) {
		t.Errorf("after the test the table is %+v, %v; want it deleted", out, err)
	}
}

func TestFindShares(t *testing.T) {
	t.Parallel()
	shared, again := Find(t), Find(t)
	if shared.Endpoint() != again.Endpoint() {
		t.Errorf("Find = %s, then %s; want one server for all", shared.Endpoint(), again.Endpoint())
	}
	again.Close()
	if err := serves(t.Context(), shared.Client()); err != nil {
		t.Errorf("Close has stopped the shared server: %v", err)
	}
}

// A client that ends in the middle of a request must not stop the server that the others share.
func TestDynaliteSurvivesAHangUp(t *testing.T) {
	t.Parallel()
	target := Find(t)
	if target.Source() != Dynalite {
		t.Logf("the server is not dynalite but %s", target.Source())
		return
	}
	u, err := url.Parse(target.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	const head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 10\r\n"
	if _, err := conn.Write([]byte(head + "Expect: 100-continue\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	// The answer shows that the server has seen the request.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	for range 20 {
		if err := serves(t.Context(), target.Client(noRetry)); err != nil {
			t.Fatal(err)
		}
	}
}
