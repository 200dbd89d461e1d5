package zkfake

// The requests that a member carries out: ZooDefs.OpCode.
const (
	opCreate          = 1
	opDelete          = 2
	opExists          = 3
	opGetData         = 4
	opSetData         = 5
	opGetACL          = 6
	opSetACL          = 7
	opGetChildren     = 8
	opSync            = 9
	opPing            = 11
	opGetChildren2    = 12
	opCheck           = 13
	opMulti           = 14
	opCreate2         = 15
	opCreateContainer = 19
	opSetAuth         = 100
	opSetWatches      = 101
	opCloseSession    = -11
)

// A code is the error of a reply: KeeperException.Code. 0 means success.
type code int32

const (
	codeInconsistent   code = -2 // an operation of a transaction after the one that failed
	codeUnimplemented  code = -6
	codeBadArguments   code = -8
	codeNoNode         code = -101
	codeNoAuth         code = -102
	codeBadVersion     code = -103
	codeNoChildren     code = -108 // for ephemeral znodes
	codeNodeExists     code = -110
	codeNotEmpty       code = -111
	codeSessionExpired code = -112
	codeSessionMoved   code = -118
	codeAuthRequired   code = -124
	codeThrottled      code = -127
)

// The types of events: Watcher.Event.EventType.
type eventType int32

const (
	eventCreated  eventType = 1
	eventDeleted  eventType = 2
	eventData     eventType = 3
	eventChildren eventType = 4
)

// An event is what happened to a znode.
type event struct {
	what eventType
	path string
}

// stateConnected is the state of the client in every event: SyncConnected. xidEvent is the xid of its frame.
const stateConnected, xidEvent = 3, -1

// The permissions on a znode: ZooDefs.Perms.
const (
	permRead   = 1
	permWrite  = 2
	permCreate = 4 // of children
	permDelete = 8 // of children
	permAdmin  = 16
)

// The flags of a create: CreateMode.
const (
	flagEphemeral  = 1
	flagSequential = 2
	flagContainer  = 4
)
