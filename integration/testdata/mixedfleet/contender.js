"use strict";

// One Node process of the mixed fleet: takes each of its keys again and again,
// by the npm client, and reports what it believes to hold, until it is killed.

const {acknowledged, config, endWithParent, locker, now, onAcknowledged, report} = require("./common.js");

const stampMs = 25;

// random is the generator mulberry32, so that a seed repeats a run.
let state = config.seed >>> 0;
function random()
{
    state = (state + 0x6D2B79F5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

const between = ([least, most]) => least + random() * (most - least);
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// acquire resolves to a hold, however many tries it takes.
function acquire(locks, key)
{
    const asked = now();
    report("waiting", {at: asked, key});
    return new Promise((resolve, reject) =>
        {
            const attempt = () => locks.acquireLock(key, (error, lock) =>
                {
                    if (error && error.code === "FailedToAcquireLock")
                    {
                        return setImmediate(attempt);
                    }
                    if (error)
                    {
                        return reject(error);
                    }
                    return resolve(hold(key, lock, asked));
                }
            );
            attempt();
        }
    );
}

const held = new Map(); // by key

// hold begins in the callback of an acquisition.
function hold(key, lock, asked)
{
    const token = lock.fencingToken || 0;
    const tell = (what, fields = {}) => report(what, {key, token, ...fields});
    tell("acquired", {asked, sent: acknowledged.sent});
    const h = {token, tell};
    held.set(key, h);
    h.stamps = setInterval(() => tell("holding"), stampMs);
    h.end = what =>
    {
        clearInterval(h.stamps);
        held.delete(key);
        tell("holding");
        tell(what);
    };
    h.over = new Promise(resolve =>
        {
            // The client does not try again: whoever has the lock has to take it for lost.
            lock.on("error", error =>
                {
                    if (held.get(key) === h)
                    {
                        h.end("lost");
                    }
                    report("note", {note: `heartbeat: ${error.code}`});
                    resolve();
                }
            );
        }
    );
    h.release = () => new Promise((resolve, reject) =>
        {
            h.end("released");
            lock.release(error => error ? reject(error) : resolve());
        }
    );
    h.isHeld = () => held.get(key) === h;
    return h;
}

onAcknowledged((item, sent) =>
    {
        const h = held.get(item[config.partitionKey]);
        if (h && h.token === item.fencingToken)
        {
            h.tell("renewed", {sent});
        }
    }
);

async function contend(locks, key)
{
    for (;;)
    {
        await sleep(between(config.pauseMs));
        const h = await acquire(locks, key);
        const long = random() < config.longShare;
        await Promise.race([h.over, sleep(between(long ? config.longMs : config.holdMs))]);
        if (h.isHeld())
        {
            await h.release();
        }
    }
}

endWithParent();
report("ready");
const locks = locker();
for (const key of config.keys)
{
    contend(locks, key).catch(error =>
        {
            console.error(error);
            process.exit(1);
        }
    );
}
