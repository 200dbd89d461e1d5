package dynamofake

import "strings"

// kind is the kind of a token. Operators and punctuation are their own kind.
type kind string

const (
	kindEnd   kind = "end"
	kindWord  kind = "word"  // a keyword, a function, or the name of an attribute
	kindName  kind = "name"  // #placeholder
	kindValue kind = "value" // :placeholder
)

type token struct {
	kind kind
	text string
}

// is reports whether a token is a keyword; keywords have no case.
func (t token) is(keyword string) bool {
	return t.kind == kindWord && strings.EqualFold(t.text, keyword)
}

// maxExpression is how long an expression may be, in bytes.
const maxExpression = 4096

// lex splits an expression into tokens; the last one is of kindEnd.
func lex(s string) ([]token, error) {
	if s == "" {
		return nil, invalid("The expression can not be empty;")
	}
	if len(s) > maxExpression {
		return nil, invalid("Expression size has exceeded the maximum allowed size;")
	}
	tokens := make([]token, 0, len(s)/4)
	for s != "" {
		k, n := kind(s[:1]), 1
		switch c := s[0]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			s = s[1:]
			continue
		case c == '#':
			k, n = kindName, 1+wordLen(s[1:])
		case c == ':':
			k, n = kindValue, 1+wordLen(s[1:])
		case wordLen(s) > 0:
			k, n = kindWord, wordLen(s)
		case strings.HasPrefix(s, "<>") || strings.HasPrefix(s, "<=") || strings.HasPrefix(s, ">="):
			k, n = kind(s[:2]), 2
		case c == '[':
			return nil, unsupported("an element of a list")
		case strings.IndexByte("=<>()+-,.", c) < 0:
			return nil, syntaxError(s)
		}
		if n == 1 && (k == kindName || k == kindValue) {
			return nil, syntaxError(s)
		}
		tokens = append(tokens, token{k, s[:n]})
		s = s[n:]
	}
	return append(tokens, token{kind: kindEnd, text: "<EOF>"}), nil
}

// wordLen returns how many bytes of letters, digits and underscores s starts
// with.
func wordLen(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(s)
}

func syntaxError(near string) error {
	return invalid("Syntax error; token: %q", near)
}
