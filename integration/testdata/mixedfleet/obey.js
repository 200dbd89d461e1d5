"use strict";

// A Node process that does with the npm client what it is told on stdin, one
// order a line, and reports what came of it. While it has a lock, it reports
// that again and again. An id is a key, or an object in JSON.
//
//  acquire ID   one call of acquireLock
//  release      the lock that it has
//  read ID      of an item: the names of its attributes, each with its type, or
//               the length of a Buffer

const readline = require("readline");

const {acknowledged, config, documentClient, locker, onAcknowledged, report} = require("./common.js");

const stampMs = 25;

const locks = locker();
const client = documentClient();
let lock;
let held; // the token and the timer of its stamps, while it believes in its lock

const failed = error => report("failed", {note: error.code || error.message});

// stop ends the stamps, with a last one.
function stop()
{
    if (held)
    {
        clearInterval(held.stamps);
        report("holding", {token: held.token});
        held = undefined;
    }
}

onAcknowledged((item, sent) =>
    {
        if (held && item.fencingToken === held.token)
        {
            report("renewed", {token: held.token, sent});
        }
    }
);

const commands =
{
    acquire: id => locks.acquireLock(id, (error, taken) =>
        {
            if (error)
            {
                return failed(error);
            }
            lock = taken;
            const token = lock.fencingToken || 0;
            held = {token, stamps: setInterval(() => report("holding", {token}), stampMs)};
            // The client does not try again: whoever has the lock has to take it for lost.
            taken.on("error", e =>
                {
                    if (lock === taken)
                    {
                        stop();
                        report("lost", {token, note: e.code});
                    }
                }
            );
            return report("acquired", {token, sent: acknowledged.sent});
        }
    ),
    read: id => client.get(
        {
            TableName: config.table,
            Key: typeof id === "object" ? id : {[config.partitionKey]: id},
            ConsistentRead: true
        },
        (error, data) =>
        {
            if (error)
            {
                return failed(error);
            }
            const kind = value => Buffer.isBuffer(value) ? `Buffer ${value.length}` : typeof value;
            const attributes = Object.entries(data.Item || {}).map(([name, value]) => `${name}: ${kind(value)}`);
            return report("read", {note: attributes.sort().join(", ")});
        }
    ),
    release: () =>
    {
        const token = lock.fencingToken || 0;
        stop();
        lock.release(error => error ? failed(error) : report("released", {token}));
    }
};

const lines = readline.createInterface({input: process.stdin});
lines.on("line", line =>
    {
        const [, what, id] = /^(\S+) ?(.*)$/.exec(line);
        commands[what](id.startsWith("{") ? JSON.parse(id) : id);
    }
);
lines.on("close", () => process.exit(0));
report("ready", {note: config.name});
