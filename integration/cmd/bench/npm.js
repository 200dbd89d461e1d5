"use strict";

// One process with the npm client, driven by commands on stdin:
//
//  run KEY N   N times acquire and release, one after the other, of a lock that
//              nobody else wants; says how many nanoseconds they took
//
// A lock that was held before has an item. The client reads it, waits by a timer
// for the lease in it to end, which after a release is 1 ms, and then writes: that
// is how it works. It renews nothing here.

const http = require("http");
const https = require("https");
const path = require("path");
const readline = require("readline");

const config = JSON.parse(process.argv[2]);
const from = name => require(path.join(config.modules, name));

const DynamoDB = from("aws-sdk/clients/dynamodb");
const {FailOpen} = from("dynamodb-lock-client");

const secure = process.env.DYNAMODB_ENDPOINT.startsWith("https:");

const locks = new FailOpen(
    {
        dynamodb: new DynamoDB.DocumentClient(
            {
                endpoint: process.env.DYNAMODB_ENDPOINT,
                region: process.env.AWS_REGION,
                // By default this SDK opens a connection for each request.
                httpOptions: {agent: new (secure ? https : http).Agent({keepAlive: true})}
            }
        ),
        lockTable: config.table,
        partitionKey: config.partitionKey,
        owner: config.owner,
        leaseDurationMs: config.leaseMs
    }
);

function fail(error)
{
    console.error(error);
    process.exit(1);
}

function run(key, n, done)
{
    if (n === 0)
    {
        return done();
    }
    return locks.acquireLock(key, (error, lock) =>
        {
            if (error)
            {
                return fail(error);
            }
            return lock.release(error => error ? fail(error) : run(key, n - 1, done));
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
