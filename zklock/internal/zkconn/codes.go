package zkconn

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// codes are the names of all error codes of a server: KeeperException.Code.
var codes = map[int32]string{
	-1: "SYSTEMERROR", -2: "RUNTIMEINCONSISTENCY", -3: "DATAINCONSISTENCY", -4: "CONNECTIONLOSS", -5: "MARSHALLINGERROR",
	-6: "UNIMPLEMENTED", -7: "OPERATIONTIMEOUT", -8: "BADARGUMENTS", -12: "UNKNOWNSESSION", -13: "NEWCONFIGNOQUORUM",
	-14: "RECONFIGINPROGRESS", -100: "APIERROR", -101: "NONODE", -102: "NOAUTH", -103: "BADVERSION", -108: "NOCHILDRENFOREPHEMERALS",
	-110: "NODEEXISTS", -111: "NOTEMPTY", -112: "SESSIONEXPIRED", -113: "INVALIDCALLBACK", -114: "INVALIDACL", -115: "AUTHFAILED",
	-118: "SESSIONMOVED", -119: "NOTREADONLY", -120: "EPHEMERALONLOCALSESSION", -121: "NOWATCHER", -122: "REQUESTTIMEOUT",
	-123: "RECONFIGDISABLED", -124: "SESSIONCLOSEDREQUIRESASLAUTH", -125: "QUOTAEXCEEDED", -127: "THROTTLEDOP",
}

// meanings are the errors of codes whose names do not say enough. Those by which a server refuses the whole connection match driver.ErrDenied.
var meanings = map[int32]error{
	codeTooLong: errTooLong,
	-115:        fmt.Errorf("%w: the server does not accept the credentials", driver.ErrDenied),
	-120: errors.New("the server gives local sessions, which have no ephemeral znodes: turn localSessionsEnabled off, " +
		"or localSessionsUpgradingEnabled on"),
	-124: fmt.Errorf("%w: the server serves only sessions that have authenticated", driver.ErrDenied),
	-127: errBusy,
}

// codeError is the error of a code that is not 0.
func codeError(code int32) error {
	if err := meanings[code]; err != nil {
		return err
	}
	return fmt.Errorf("the server answers %s (%d)", codes[code], code)
}
