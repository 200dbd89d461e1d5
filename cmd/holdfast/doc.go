// Command holdfast takes, shows and breaks distributed locks, and runs a command while it holds a lock:
//
//	holdfast run reports/nightly -- ./make-reports.sh
//
// "holdfast help" and "holdfast help run" are its complete manual.
//
// # How to add a command
//
// A command is a function newXCommand(a *app) *cobra.Command in its own file, named in newRootCommand. If its argument is a key, it calls
// a.keyCommand. To behave like the others:
//
//   - Settings are flags. fromEnv(flag) lets a flag take its value from HOLDFAST_FLAG: the flag wins, the same code parses both, and help
//     shows the variable. HOLDFAST_KEY, HOLDFAST_TOKEN and HOLDFAST_OWNER, which "run" sets for its command, are never settings. Secrets
//     come from the environment or a file.
//   - cmd.Context() ends at the first SIGINT, SIGTERM, SIGHUP or SIGQUIT; a second one ends the program at once. a.bounded(ctx) limits
//     each request to --timeout, unless it waits on purpose.
//   - Only results go to a.out. In JSON (a.json()) each document is one line, printed with a.printJSON, with keys in snake_case and times
//     in RFC 3339; a key or lock has the form of lockJSON. Tables of text use columns.
//   - Text from the engine or another program is foreign. It passes through plain (or %q), which lets no control character reach the
//     terminal.
//   - Errors are returned; main prints them in one line, "holdfast: ...", to stderr. a.warn prints warnings in the same form. Libraries
//     print nothing, except for slog records with --verbose.
//   - The exit status follows from the error: usagef for invalid usage, no(...) for a negative answer, otherwise by exitCode. If the
//     reader of a.out is gone, main ends quietly.
//   - The manual pages are generated from the help.
//
// An engine is a type in its own file that implements engine (engine.go). The list engines names it.
package main
