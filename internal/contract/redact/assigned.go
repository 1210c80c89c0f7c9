// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"
)

// span is a part of a text.
type span struct{ from, to int }

// nameRoots are in each name of a secret.
var nameRoots = []string{
	"pass", "pwd", "token", "secret", "key", "psk", "credential", "auth", "cookie", "certificate", "connection", "dockerc",
	"signature", "pw",
}

// assigned returns the value of the secret whose name a text has around i, if it has one: behind =, : or =>, behind a
// flag, or in an element of XML. next is the index behind the name.
func assigned(s string, i int) (value []span, next int) {
	from, to := i, i
	for from > 0 && isNamePart(s[from-1]) && i-from < longestName {
		from--
	}
	for to < len(s) && isNamePart(s[to]) && to-i < longestName {
		to++
	}
	name := s[from:to]
	if from > 0 && s[from-1] == '\\' && len(name) > 1 { // the letter is of \n
		name = name[1:]
	}
	if strings.EqualFold(name, "key") && from > 0 && s[from-1] == ' ' { // of two words
		before := strings.TrimRight(s[:from], " ")
		name = before[strings.LastIndexAny(before, " \t\r\n\"'(,:")+1:] + name
	}
	auth := isAuth(name)
	if !auth && !isSecretName(name) {
		return nil, to
	}
	a := assignment{
		text: s, auth: auth, name: from, at: to, flag: strings.HasPrefix(name, "--"),
		header: strings.HasSuffix(strings.ToLower(name), "authorization"),
	}
	a.afterName()
	return a.value(), to
}

func isNamePart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// assignment is a name of a secret with what follows it.
type assignment struct {
	text string
	name int // where it begins
	at   int // how far it has been read
	flag bool
	auth bool // the value is a secret if it is a name and a password in base64
	// header means that the name is that of the header Authorization, whose value has a scheme.
	header bool

	separator string
	spaced    bool // whether there is a space behind the separator
}

// skip skips bytes of a set.
func (a *assignment) skip(set string) {
	for a.at < len(a.text) && strings.IndexByte(set, a.text[a.at]) >= 0 {
		a.at++
	}
}

// afterName reads from the name to the value.
func (a *assignment) afterName() {
	named := a.at
	a.skip("\\")
	if a.at < len(a.text) && strings.IndexByte("\"'`", a.text[a.at]) >= 0 {
		a.at++
	} else {
		a.at = named
	}
	if a.at < len(a.text) && a.text[a.at] == ']' { // config["password"], variables[password].value
		for a.at++; a.at < len(a.text) && isNamePart(a.text[a.at]); {
			a.at++
		}
	}
	space := a.at
	a.skip(" \t")
	rest := a.text[a.at:]
	for _, s := range []string{"==", "=~"} {
		if strings.HasPrefix(rest, s) { // a comparison
			return
		}
	}
	for _, s := range []string{"=>", ":=", "=", ":"} {
		if strings.HasPrefix(rest, s) {
			a.separator = s
			a.at += len(s)
			break
		}
	}
	switch {
	case a.separator != "":
	case a.flag && a.at > space:
		a.separator = " "
		return
	case rest != "" && rest[0] == '>' && a.name > 0 && a.text[a.name-1] == '<':
		a.separator = ">"
		a.at++
	default:
		return
	}
	space = a.at
	a.skip(" \t")
	a.spaced = a.at > space
}

// value returns where the value is.
func (a *assignment) value() []span {
	rest := a.text[a.at:]
	if a.separator == "" || rest == "" {
		return nil
	}
	switch {
	case a.separator == ":" && (rest[0] == '\n' || rest[0] == '\r' || rest[0] == '|' || rest[0] == '>'):
		return a.block()
	case a.separator == ">":
		return a.judge(a.at, a.at+indexOr(rest, "<"))
	case rest[0] == '{' && !strings.HasPrefix(rest, "{{"):
		return nil // with names of its own
	case rest[0] == '[':
		return a.list()
	}
	quote := 0
	for quote < len(rest) && rest[quote] == '\\' {
		quote++
	}
	if quote < len(rest) && (rest[quote] == '"' || rest[quote] == '\'' || rest[quote] == '`') {
		return a.quoted(rest[:quote+1])
	}
	return a.bare()
}

func indexOr(s, set string) int {
	if i := strings.IndexAny(s, set); i >= 0 {
		return i
	}
	return len(s)
}

// quoted returns what is between a quote, which may be escaped, and the next one that is escaped likewise.
func (a *assignment) quoted(quote string) []span {
	from := a.at + len(quote)
	rest := a.text[from:]
	for i := 0; i < len(rest); i++ {
		if rest[i] != '\\' && rest[i] != quote[len(quote)-1] {
			continue
		}
		slashes := i
		for i < len(rest) && rest[i] == '\\' {
			i++
		}
		if i < len(rest) && rest[i] == quote[len(quote)-1] && i-slashes <= len(quote)-1 {
			return a.judge(from, from+slashes)
		}
	}
	return a.judge(from, from+indexOr(rest, "\n"))
}

// list returns the texts of a list in one line.
func (a *assignment) list() (all []span) {
	end := a.at + indexOr(a.text[a.at:min(len(a.text), a.at+longestList)], "]\n")
	for i := a.at + 1; i < end; {
		i += len(a.text[i:end]) - len(strings.TrimLeft(a.text[i:end], " \t,\"'\\"))
		to := i + indexOr(a.text[i:end], ",\"'\\")
		if to > i && !strings.ContainsAny(a.text[i:to], "{}:") {
			all = append(all, a.judge(i, to)...)
		}
		i = to + 1
	}
	return all
}

// What is read at most before a name on its line, of a list in a line, and of a text behind a name to tell whether it
// is about the secret: every text is read in a time that its length bounds.
const (
	longestIndent = 256
	longestList   = 4 << 10
	longestLine   = 512
)

// lineBegin returns where the line of the name begins, and whether nothing but indentation and marks of a list are
// before it.
func (a *assignment) lineBegin() (begin int, alone bool) {
	lookBack := max(a.name-longestIndent, 0)
	begin = lookBack + strings.LastIndexByte(a.text[lookBack:a.name], '\n') + 1
	return begin, (begin == 0 || a.text[begin-1] == '\n') && strings.Trim(a.text[begin:a.name], " \t-\"'#") == ""
}

// nested is the first line of a mapping, or of a list, in YAML.
var nested = regexp.MustCompile(`^- |: |:$`)

// block returns the lines below a name in YAML that are indented deeper, if its value is a text.
func (a *assignment) block() []span {
	rest := a.text[a.at:]
	header, lines, more := strings.Cut(rest, "\n")
	begin, alone := a.lineBegin()
	if !more || !alone || strings.Trim(header, "|>+-0123456789 \t\r") != "" {
		if rest[0] == '|' || rest[0] == '>' {
			return a.bare()
		}
		return nil
	}
	indent := len(a.text[begin:a.name]) - len(strings.TrimLeft(a.text[begin:a.name], " "))
	scalar := strings.ContainsAny(header, "|>")
	from := a.at + len(header) + 1
	to, first := from, true
	for line := range strings.Lines(lines) {
		text := strings.TrimRight(strings.TrimLeft(line, " "), "\r\n")
		deeper := len(line)-len(strings.TrimLeft(line, " ")) > indent
		if text != "" && !deeper {
			break
		}
		if first && !scalar && nested.MatchString(text) {
			return nil
		}
		if first = first && text == ""; first {
			from += len(line)
		}
		to += len(line)
	}
	return trimmed(a.text, from, to)
}

// trimmed returns a part of a text without the white space around it.
func trimmed(s string, from, to int) []span {
	part := s[from:max(to, from)]
	from += len(part) - len(strings.TrimLeft(part, " \t\r\n"))
	part = strings.TrimSpace(part)
	if part == "" {
		return nil
	}
	return []span{{from, from + len(part)}}
}

// schemes are those of the header Authorization.
var schemes = regexp.MustCompile(`^(?i:bearer|basic|digest|negotiate|ntlm|token|apikey|api-key|hawk|oauth|dpop|` +
	`splunk|genie-?key|aws4-hmac-sha256|sharedkey|signature|scram-sha-[0-9]+) +`)

// parameters are what some schemes have in place of a token.
var parameters = regexp.MustCompile(`^[A-Za-z]+="|, ?[A-Za-z]+=`)

// bare returns a value without quotes.
func (a *assignment) bare() []span {
	rest := a.text[a.at:]
	_, alone := a.lineBegin()
	line := rest
	if !alone {
		line = rest[:min(len(rest), longestLine)]
	}
	line = line[:indexOr(line, "\r\n")]
	if scheme := schemes.FindString(line); a.header && scheme != "" {
		a.at += len(scheme)
		end := indexOr(line[len(scheme):], " \t\"'\\`,;")
		if parameters.MatchString(line[len(scheme):]) {
			end = len(line) - len(scheme)
		}
		return a.judge(a.at, a.at+end)
	}
	if alone && a.separator == ":" && a.spaced { // a line of YAML, or a header
		if i := strings.Index(line, " #"); i >= 0 {
			line = line[:i]
		}
		if isProse(line, true) {
			return a.quotedIn(line)
		}
		if a.plural() && strings.Trim(line, "0123456789 ") == "" {
			return nil // a number of them
		}
		return a.judge(a.at, a.at+len(strings.TrimRight(line, " \t")))
	}
	if a.separator == ":" && isProse(line, true) {
		return a.quotedIn(line)
	}
	if (a.flag && a.separator == " ") && (strings.HasPrefix(line, "-") || isProse(line, true)) {
		return nil
	}
	end := indexOr(rest, " \t\r\n,;&\"'<>\\|`")
	value := rest[:end]
	for value != "" && strings.IndexByte(")]}.:!?", value[len(value)-1]) >= 0 && !opens(value) {
		value = value[:len(value)-1]
	}
	if a.separator == ":" && a.spaced && a.plural() {
		return nil // of things, one of which has this name
	}
	if strings.Contains(value, "%") && hasEscape(value) {
		return nil // it has been read without the escapes
	}
	if a.separator == ":" && !a.spaced && isReference(a.text, a.name, value) {
		return nil
	}
	if a.separator == ":" && a.spaced && end < len(line) && isWord(value) { // perhaps one of several words
		if to := indexOr(line, ",;:\"'`()"); isWords(line[:to]) {
			return a.judge(a.at, a.at+len(strings.TrimRight(line[:to], " ")))
		}
	}
	return a.judge(a.at, a.at+len(value))
}

// opens reports whether the last byte of a value closes what the value opens.
func opens(value string) bool {
	switch value[len(value)-1] {
	case ')':
		return strings.Count(value, "(") >= strings.Count(value, ")")
	case ']':
		return strings.Count(value, "[") >= strings.Count(value, "]")
	case '}':
		return strings.Count(value, "{") >= strings.Count(value, "}")
	}
	return false
}

// plural reports whether the name is that of several.
func (a *assignment) plural() bool {
	return strings.HasSuffix(strings.TrimRight(a.text[a.name:a.at], ": \t"), "s")
}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

func isWords(s string) bool {
	for w := range strings.FieldsSeq(s) {
		if !isWord(w) {
			return false
		}
	}
	return true
}

// isReference reports whether name:value, without a space, is the tag of an image, a part of a path or of a URL.
func isReference(s string, name int, value string) bool {
	if name > 0 && (s[name-1] == '/' || s[name-1] == '@') || strings.HasPrefix(value, "/") {
		return true
	}
	return value == "latest" || strings.Trim(strings.TrimPrefix(value, "v"), "0123456789.") == ""
}

// quotedIn returns what a verdict of Kubernetes quotes: spec.password: Invalid value: "x": must be longer.
func (a *assignment) quotedIn(line string) []span {
	for _, verdict := range []string{"Invalid value: ", "Unsupported value: ", "Duplicate value: ", "Not found: "} {
		value, ok := strings.CutPrefix(line, verdict)
		if !ok || value == "" || value[0] == '{' || value[0] == '[' {
			continue
		}
		a.at += len(verdict)
		if quote := len(value) - len(strings.TrimLeft(value, `\`)); quote < len(value) && value[quote] == '"' {
			return a.quoted(value[:quote+1])
		}
		value, _, _ = strings.Cut(value, ": ")
		return a.judge(a.at, a.at+len(value))
	}
	return nil
}

// judge returns a value unless it is none.
func (a *assignment) judge(from, to int) []span {
	value := a.text[from:to]
	switch {
	case value == "", placeholder.MatchString(value), a.auth && !isBasic(value):
		return nil
	case a.separator == ":" && isProse(value, false):
		return nil
	}
	if a.separator == ":" && a.name > 0 && a.text[a.name-1] == '/' && isProse(value, true) {
		return nil
	}
	return []span{{from, to}}
}
