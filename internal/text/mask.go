// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"github.com/hookgate/hookgate/internal/limits"
)

// masked replaces what Mask finds.
const masked = "***"

// secret is a shape of secrets, with what replaces them.
type secret struct {
	marks   []mark // of which one is in each text that the shape matches
	shape   *regexp.Regexp
	replace string
	except  string // the beginning, in lower case, of what is no secret
}

// mark is a text in lower case, behind which there is one of the bytes of then, if it has any. A search looks for the
// byte at the index at, which is one of its rarer ones.
type mark struct {
	text, then string
	at         int
}

// secrets are all shapes of secrets.
var secrets = []secret{
	{
		[]mark{{"private key-----", "", 8}},
		regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), masked, "",
	},
	{[]mark{{"eyj", "", 2}}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}`), masked, ""},
	{
		[]mark{{"bearer ", "", 0}, {"basic ", "", 0}},
		regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}`), "${1} " + masked, "",
	},
	{[]mark{{"@", "", 0}}, regexp.MustCompile(`://[^\s"'<>]*@`), "://" + masked + "@", ""},
	{
		[]mark{
			{"password", assigned, 0}, {"passwd", assigned, 0}, {"pwd", assigned, 0}, {"passphrase", assigned, 0},
		},
		regexp.MustCompile(`(?i)((?:no)?(?:password|passwd|pwd|passphrase)["']?\s*[:=]\s*)` +
			`("[^"]*"|'[^']*'|[^\s,;&"']+)`),
		"${1}" + masked, "nopasswd", // of sudoers, which Machines have
	},
	{
		[]mark{{"token", `="'`, 2}, {"secret", `="'`, 2}, {"key", `="'`, 0}},
		regexp.MustCompile(`(?i)((?:token|secret|api[_-]?key|access[_-]?key)(?:=|["']\s*[:=]\s*))` +
			`("[^"]*"|'[^']*'|[^\s,;&"']+)`),
		"${1}" + masked, "",
	},
}

// assigned are the bytes behind the name of a password that has a value.
const assigned = "\"':= \t\n\f\r"

// marks are the marks of all secrets, by the byte that a search looks for, in both cases.
var marks = func() (by [256][]struct {
	mark

	secret int
}) {
	for i, secret := range secrets {
		for _, m := range secret.marks {
			c := m.text[m.at]
			by[c] = append(by[c], struct {
				mark

				secret int
			}{m, i})
			by[c&^0x20] = by[c]
		}
	}
	return by
}()

// marked returns the secrets whose marks are in s, as one bit for each. Most texts have none, and need no regular
// expression.
func marked[T string | []byte](s T) (found uint) {
	for i := range len(s) {
		for _, m := range marks[s[i]] {
			if begin := i - m.at; begin >= 0 && hasMark(s[begin:], m.mark) {
				found |= 1 << m.secret
			}
		}
	}
	return found
}

// hasMark reports whether s begins with m, in any case.
func hasMark[T string | []byte](s T, m mark) bool {
	n := len(m.text)
	if len(s) < n {
		return false
	}
	for i := range n {
		if s[i] != m.text[i] && s[i]|0x20 != m.text[i] {
			return false
		}
	}
	return m.then == "" || len(s) > n && strings.IndexByte(m.then, s[n]) >= 0
}

// MayMask reports whether Mask may change s.
func MayMask(s []byte) bool { return marked(s) != 0 }

// Mask returns s without what has the shape of a secret: private keys in PEM, JSON Web Tokens, the credentials of
// Authorization headers and of URLs, and the values of passwords, tokens and keys. It cannot know secrets that look
// like other text.
func Mask(s string) string {
	found := marked(s)
	for i, secret := range secrets {
		if found>>i&1 == 0 {
			continue
		}
		s = secret.shape.ReplaceAllStringFunc(s, func(match string) string {
			if secret.except != "" && strings.HasPrefix(strings.ToLower(match), secret.except) {
				return match
			}
			return secret.shape.ReplaceAllString(match, secret.replace)
		})
	}
	return s
}

// maskMargin is how much more of a text is masked than is kept, so that a secret at its end is seen whole.
const maskMargin = 8 << 10

// Bounded returns s without secrets and, if it has more than n bytes, cut: the end of the text says so.
func Bounded(s string, n int) string {
	if len(s) > n+maskMargin {
		s = strings.ToValidUTF8(s[:n+maskMargin], "")
	}
	s = Mask(s)
	const mark = " … (cut)"
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

// LogAttr bounds the text of an attribute of the log, and masks secrets in it. It has the signature of
// slog.HandlerOptions.ReplaceAttr, so that no line is without limit, whatever a peer has sent.
func LogAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Bounded(a.Value.String(), limits.LogTextBytes))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(Bounded(v.Error(), limits.LogTextBytes))
		case fmt.Stringer:
			a.Value = slog.StringValue(Bounded(v.String(), limits.LogTextBytes))
		case []string:
			a.Value = slog.StringValue(Bounded(fmt.Sprint(v), limits.LogTextBytes))
		}
	default:
	}
	return a
}
