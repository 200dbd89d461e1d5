// Command holdfast takes, shows and breaks distributed locks on ZooKeeper and
// DynamoDB, and runs a command while a lock is held:
//
//	holdfast run reports/nightly -- ./make-reports.sh
//
// "holdfast help" and "holdfast help run" are its manual: everything that a user
// has to know is there.
//
// # How to add a command
//
// A command is a function newXCommand(a *app) *cobra.Command in a file of its
// own, named in newRootCommand. For it to behave like the others:
//
//   - Settings are flags. One that may also come from the environment is made
//     known by fromEnv(flag), as HOLDFAST_FLAG: the flag wins, both
//     are parsed by the same code, and help shows the variable. HOLDFAST_KEY,
//     HOLDFAST_TOKEN and HOLDFAST_OWNER tell a command that is run what it holds;
//     they are never settings. Secrets come from the environment or a file.
//   - RunE gets a ctx (cmd.Context()) that ends at the first SIGINT, SIGTERM,
//     SIGHUP or SIGQUIT; a second one ends the program at once. It connects by
//     a.connect(ctx, connectOptions{}), which is bounded by --timeout, and closes by
//     a.disconnect(client). A question to the engine is bounded by
//     a.bounded(ctx); only what waits on purpose is not.
//   - Results go to a.out, and nothing else does. In JSON (a.json()) each document
//     is a line of its own, printed by a.printJSON, with lower-case keys in
//     snake_case and times in RFC 3339; a key or lock has the form of lockJSON.
//     In text, tables are made by a.table.
//   - What comes from the engine or another program is foreign: in text it passes
//     through plain (or the %q of fmt), which lets no control character reach the
//     terminal.
//   - What goes wrong is returned, and main prints it as one line, "holdfast: ...",
//     to stderr. Warnings are printed by a.warn, in the same form. Nothing is ever
//     printed of a library's own accord; with --verbose its slog records are.
//   - The exit status follows from the error: usagef for bad usage, no(...) where
//     the answer to the question is no, and otherwise what exitCode makes of
//     holdfast's own errors. A writer of a.out that fails because its reader has gone
//     away needs no care: main ends quietly.
//   - Arguments that are keys get ValidArgsFunction: a.completeKey. The manual pages
//     are made of what help says.
//
// An engine is a type in a file of its own that implements engine: its flags, how to
// connect, and what doctor looks at.
package main
