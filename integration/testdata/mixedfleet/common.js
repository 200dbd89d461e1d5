"use strict";

// What the Node programs of the mixed fleet have in common: their settings, the
// npm client with an SDK beneath it, and reports on stdout, one JSON object a
// line.

const fs = require("fs");
const path = require("path");

const config = JSON.parse(process.argv[2]);
const from = name => require(path.join(config.modules, name));

// now is a time that all processes of this machine share, as literal
// nanoseconds: a number of JavaScript may be too small for them.
const now = process.platform === "linux"
    ? () => process.hrtime.bigint() // CLOCK_MONOTONIC
    : () => BigInt(Date.now()) * 1000000n;

// report writes at once: what was said before a SIGKILL has been said.
function report(what, fields = {})
{
    const parts = [`"at":${fields.at || now()}`, `"what":${JSON.stringify(what)}`];
    for (const [name, value] of Object.entries(fields))
    {
        if (name !== "at")
        {
            parts.push(`${JSON.stringify(name)}:${typeof value === "bigint" ? value : JSON.stringify(value)}`);
        }
    }
    let line = Buffer.from(`{${parts.join(",")}}\n`);
    while (line.length > 0)
    {
        try
        {
            line = line.subarray(fs.writeSync(1, line));
        }
        catch (error)
        {
            if (error.code !== "EAGAIN") // the pipe is full
            {
                throw error;
            }
        }
    }
}

// acknowledged is the write that was acknowledged last: its item, and a time
// before it was sent. The npm client calls back from within, so in the callback
// of an acquisition it is the one that took the lock.
const acknowledged = {};

// onAcknowledged is called for every such write.
let onAcknowledged = () => undefined;

function documentClient()
{
    const DynamoDB = from("aws-sdk/clients/dynamodb");
    const client = new DynamoDB.DocumentClient(
        {
            endpoint: process.env.DYNAMODB_ENDPOINT,
            region: process.env.AWS_REGION
        }
    );
    const put = client.put.bind(client);
    client.put = (params, callback) =>
    {
        const before = now();
        return put(params, (error, data) =>
            {
                if (!error)
                {
                    acknowledged.item = params.Item;
                    acknowledged.sent = before;
                    onAcknowledged(params.Item, before);
                }
                return callback(error, data);
            }
        );
    };
    return client;
}

// locker makes the client of the mode that the settings say.
function locker()
{
    const {FailClosed, FailOpen} = from("dynamodb-lock-client");
    const common =
    {
        dynamodb: documentClient(),
        lockTable: config.table,
        partitionKey: config.partitionKey,
        owner: config.name,
        retryCount: config.retries
    };
    if (config.mode === "FailClosed")
    {
        return new FailClosed({...common, acquirePeriodMs: config.pollMs});
    }
    const open =
    {
        ...common,
        leaseDurationMs: config.leaseMs,
        heartbeatPeriodMs: config.heartbeatMs,
        trustLocalTime: config.trust
    };
    if (config.sortKey)
    {
        open.sortKey = config.sortKey;
    }
    return new FailOpen(open);
}

module.exports =
{
    acknowledged,
    config,
    documentClient,
    locker,
    now,
    onAcknowledged: f => { onAcknowledged = f; },
    report
};
