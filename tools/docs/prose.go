package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// longest is how many words a sentence of a page may have.
const longest = 40

// subjects matches subjects that hide the thing, for example in "what was sent is lost". See CONTRIBUTING.md, "Style".
var subjects = regexp.MustCompile(`(?i)\b(?:whoever|nobody|those whom?)\b|^(?:what|who)(?:ever)?\b.*\.$|[:;] (?:what|who)(?:ever)?\b.*[^?]$`)

// checkProse checks the sentences of pages and comments.
func checkProse() {
	for _, page := range files(".md") {
		for _, s := range pageSentences(read(page)) {
			checkSentence(page, s, longest)
		}
	}
	for _, name := range files(".go") {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			fault("%v", err)
			continue
		}
		code := regexp.MustCompile(`(?m)^[\t ].*$`) // in a comment
		for _, comment := range parsed.Comments {
			for paragraph := range strings.SplitSeq(code.ReplaceAllString(comment.Text(), ""), "\n\n") {
				for _, s := range sentences(paragraph) {
					checkSentence(name, s, len(s)) // of any length
				}
			}
		}
	}
	for sentence, bad := range map[string]bool{
		"Nobody waits.": true, "What was sent is lost.": true, "It ends: what was sent is lost.": true, "What is a lock?": false,
		"A page says what a lock is.": false, "A page has sentences of more than seven words.": true,
	} {
		if faulty(sentence, 7) != bad {
			fault("the check of prose is wrong about: %s", sentence)
		}
	}
}

func checkSentence(file, sentence string, words int) {
	if faulty(sentence, words) {
		fault("%s: name the subject, or shorten the sentence: %s", file, sentence)
	}
}

func faulty(sentence string, words int) bool {
	return len(strings.Fields(sentence)) > words || subjects.MatchString(sentence)
}

// pageSentences returns the sentences of a page in Markdown, without code and the addresses of links.
func pageSentences(text string) (all []string) {
	for _, cut := range []struct{ what, with string }{
		{"(?ms)^ *```.*?^ *```$|(?s)<!--.*?-->", "\n\n"},
		{"(?s)`[^`]*`", "X"},
		{`!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)`, ""},
		{`\*\*|[\[\]]`, ""},
		{`(?m)^ *(?:[-*#>]+|\d+\.|\|) `, "\n\n"},
		{` \| | \|$|<br>`, "\n\n"},
	} {
		text = regexp.MustCompile(cut.what).ReplaceAllString(text, cut.with)
	}
	for _, paragraph := range regexp.MustCompile(`\n\s*\n`).Split(text, -1) {
		all = append(all, sentences(paragraph)...)
	}
	return all
}

// sentences splits a paragraph.
func sentences(paragraph string) []string {
	text := strings.Join(strings.Fields(paragraph), " ")
	return strings.Split(regexp.MustCompile(`([.?!]["”)]*) (["“(]*\p{Lu})`).ReplaceAllString(text, "$1\n$2"), "\n")
}
