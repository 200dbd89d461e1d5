"use strict";

// A Node process that does with the npm client what it is told on stdin, one JSON
// object a line, and reports what came of it:
//
//  {"do":"acquire","id":...}   one call of acquireLock
//  {"do":"release"}            the lock that it has
//  {"do":"read","id":...}      of an item: the names of its attributes, each
//                              with its type, or the length of a Buffer

const readline = require("readline");

const {config, documentClient, locker, report} = require("./common.js");

const locks = locker();
const client = documentClient();
let lock;

const failed = error => report("failed", {note: error.code || error.message});

const commands =
{
    acquire: ({id}) => locks.acquireLock(id, (error, taken) =>
        {
            if (error)
            {
                return failed(error);
            }
            lock = taken;
            lock.on("error", e => report("lost", {note: e.code}));
            return report("acquired", {token: lock.fencingToken || 0});
        }
    ),
    read: ({id}) => client.get(
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
    release: () => lock.release(error => error ? failed(error) : report("released"))
};

const lines = readline.createInterface({input: process.stdin});
lines.on("line", line =>
    {
        const command = JSON.parse(line);
        commands[command.do](command);
    }
);
lines.on("close", () => process.exit(0));
report("ready", {note: config.name});
