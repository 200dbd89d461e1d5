// Package screen puts rows of text on a terminal, all of it, and gives the
// terminal back as it was.
//
// It consists of a dozen control sequences that every terminal has understood for
// decades, on golang.org/x/sys, because what is shown is a page of text that changes
// once a second. Bubble Tea would be shorter here and bring some fifteen modules; but a
// program that uses it is stopped again by "bg" after Ctrl-Z, and not even SIGTERM ends
// it then, and it reads Ctrl-C and Ctrl-\ as keys. Here they stay signals, so that they
// work even where this program does not. (That is also why it is not the raw mode of
// golang.org/x/term.) What a library is needed for is the width of text.
package screen

import "os"

// A Row is one row of the screen. What does not fit is cut off. Characters that
// are not printable are replaced: nothing but text reaches the terminal.
type Row struct {
	Text    string
	Bold    bool
	Reverse bool
}

// An Input is what the user or the terminal has to say. One field is set.
type Input struct {
	Key    byte      // a character that was typed; of keys that send several, each
	Signal os.Signal // for Handle
	Lost   error     // the terminal is gone, or cannot be read any more
}

// SuspendKey asks to suspend the program. The terminal makes no
// signal of it while it is ours: Go, once it has caught SIGTSTP, cannot be made to
// obey it any more.
const SuspendKey = 'Z' - '@'
