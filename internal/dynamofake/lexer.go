package dynamofake

import "strings"

// kind is the kind of a token. Operators and punctuation are their own kind.
type kind string

const (
	kindEnd   kind = "end"
	kindWord  kind = "word"  // an identifier or a keyword
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
	var tokens []token
	for s != "" {
		switch c := s[0]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s = s[1:]
		case c == '#' || c == ':':
			n := wordLen(s[1:])
			if n == 0 {
				return nil, syntaxError(s)
			}
			placeholder := kindName
			if c == ':' {
				placeholder = kindValue
			}
			tokens = append(tokens, token{placeholder, s[:1+n]})
			s = s[1+n:]
		case wordLen(s) > 0:
			n := wordLen(s)
			// A digit ends in a token of its own: only a path has room for it.
			if isDigit(c) {
				tokens = append(tokens, token{"number", s[:n]})
			} else {
				tokens = append(tokens, token{kindWord, s[:n]})
			}
			s = s[n:]
		case strings.HasPrefix(s, "<>") || strings.HasPrefix(s, "<=") || strings.HasPrefix(s, ">="):
			tokens = append(tokens, token{kind(s[:2]), s[:2]})
			s = s[2:]
		case strings.IndexByte("=<>()+-,.[]", c) >= 0:
			tokens = append(tokens, token{kind(s[:1]), s[:1]})
			s = s[1:]
		default:
			return nil, syntaxError(s)
		}
	}
	return append(tokens, token{kind: kindEnd, text: "<EOF>"}), nil
}

// wordLen returns how many bytes of letters, digits and underscores s starts
// with.
func wordLen(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(s)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func syntaxError(near string) error {
	return invalid("Syntax error; token: %q", near)
}
