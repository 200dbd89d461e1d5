package dynamolock

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
)

// grantID identifies one grant of a key, however often its guid has changed
// since: what [driver.Info.Grant] has.
type grantID struct {
	form  form
	token uint64
	grant string // the part of holdfast's guids that stays; "" for another program's
	guid  types.AttributeValue
}

// grant names the grant that the item is of, which is held.
func (i *item) grant() grantID {
	id := grantID{form: i.form, token: i.token}
	if i.form == tokenless {
		id.guid = i.guidVal
		return id
	}
	id.grant, _ = grantOf(i.guid)
	return id
}

// String writes the identity down:
//
//	leased:TOKEN:GRANT   closed:TOKEN:GRANT   guid:B:BASE64   guid:S:BASE64
func (g grantID) String() string {
	switch g.form {
	case leased:
		return fmt.Sprintf("leased:%d:%s", g.token, g.grant)
	case closed:
		return fmt.Sprintf("closed:%d:%s", g.token, g.grant)
	}
	switch v := g.guid.(type) {
	case *types.AttributeValueMemberB:
		return "guid:B:" + base64.StdEncoding.EncodeToString(v.Value)
	case *types.AttributeValueMemberS:
		return "guid:S:" + base64.StdEncoding.EncodeToString([]byte(v.Value))
	}
	return ""
}

// parseGrant reads what String wrote.
func parseGrant(text string) (grantID, error) {
	parts := strings.Split(text, ":")
	bad := driver.Invalid("info.Grant", "%q is not one of dynamolock", text)
	if len(parts) != 3 {
		return grantID{}, bad
	}
	id := grantID{form: tokenless}
	switch parts[0] {
	case "leased":
		id.form = leased
	case "closed":
		id.form = closed
	case "guid":
		guid, err := base64.StdEncoding.DecodeString(parts[2])
		switch {
		case err != nil:
			return grantID{}, bad
		case parts[1] == "B":
			id.guid = &types.AttributeValueMemberB{Value: guid}
		case parts[1] == "S":
			id.guid = &types.AttributeValueMemberS{Value: string(guid)}
		default:
			return grantID{}, bad
		}
		return id, nil
	default:
		return grantID{}, bad
	}
	token, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil || (parts[2] != "" && len(parts[2]) != grantLen) {
		return grantID{}, bad
	}
	id.token, id.grant = uint64(token), parts[2]
	return id, nil
}
