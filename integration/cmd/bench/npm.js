"use strict";

// One process with the npm client. Each line of stdin is "run KEY N"; the answer is the nanoseconds that N acquisitions and
// releases took.
//
// A lock that was held before has an item. The client reads it, waits by a timer for the lease in it to end, which after a
// release is 1 ms, and then writes. It renews nothing here.

const http = require("http");
const https = require("https");
const path = require("path");
const readline = require("readline");

const [modules, lockTable, partitionKey, owner, lease] = process.argv.slice(2);
const from = name => require(path.join(modules, name));
const DynamoDB = from("aws-sdk/clients/dynamodb");
const {FailOpen} = from("dynamodb-lock-client");

const endpoint = process.env.DYNAMODB_ENDPOINT;
// By default this SDK opens a connection for each request.
const agent = new (endpoint.startsWith("https:") ? https : http).Agent({keepAlive: true});
const dynamodb = new DynamoDB.DocumentClient({endpoint, region: process.env.AWS_REGION, httpOptions: {agent}});
const locks = new FailOpen({dynamodb, lockTable, partitionKey, owner, leaseDurationMs: Number(lease)});

function check(error)
{
    if (error)
    {
        console.error(error);
        process.exit(1);
    }
}

function run(key, n, done)
{
    if (n === 0)
    {
        return done();
    }
    return locks.acquireLock(key, (error, lock) =>
        {
            check(error);
            return lock.release(error =>
                {
                    check(error);
                    run(key, n - 1, done);
                }
            );
        }
    );
}

const lines = readline.createInterface({input: process.stdin});
lines.on("line", line =>
    {
        const [, key, n] = line.split(" ");
        global.gc(); // as before a block of the other side
        const began = process.hrtime.bigint();
        run(key, Number(n), () => console.log(String(process.hrtime.bigint() - began)));
    }
);
lines.on("close", () => process.exit(0));
