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

// secrets are the shapes of secrets, with what replaces them. None matches without one of its marks, by which most
// texts are recognized as free of secrets without a regular expression.
var secrets = []struct {
	marks   []string // in lower case
	shape   *regexp.Regexp
	replace string
	except  string // the beginning, in lower case, of what is no secret
}{
	{
		[]string{"private key-----"},
		regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`), masked, "",
	},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*){1,4}`), masked, ""},
	{
		[]string{"bearer ", "basic "},
		regexp.MustCompile(`(?i)\b(bearer|basic) +[A-Za-z0-9._~+/=-]{8,}`), "${1} " + masked, "",
	},
	{[]string{"://"}, regexp.MustCompile(`://[^\s"'<>]*@`), "://" + masked + "@", ""},
	{
		[]string{"password", "passwd", "pwd", "passphrase"},
		regexp.MustCompile(`(?i)((?:no)?(?:password|passwd|pwd|passphrase)["']?\s*[:=]\s*)` +
			`("[^"]*"|'[^']*'|[^\s,;&"']+)`),
		"${1}" + masked, "nopasswd", // of sudoers, which Machines have
	},
	{
		[]string{"token", "secret", "key"},
		regexp.MustCompile(`(?i)((?:token|secret|api[_-]?key|access[_-]?key)(?:=|["']\s*[:=]\s*))` +
			`("[^"]*"|'[^']*'|[^\s,;&"']+)`),
		"${1}" + masked, "",
	},
}

// Mask returns s without what has the shape of a secret: private keys in PEM, JSON Web Tokens, the credentials of
// Authorization headers and of URLs, and the values of passwords, tokens and keys. It cannot know secrets that look
// like other text.
func Mask(s string) string {
	lower := ""
	for _, secret := range secrets {
		if lower == "" {
			lower = strings.ToLower(s)
		}
		for _, mark := range secret.marks {
			if strings.Contains(lower, mark) {
				s = secret.shape.ReplaceAllStringFunc(s, func(match string) string {
					if secret.except != "" && strings.HasPrefix(strings.ToLower(match), secret.except) {
						return match
					}
					return secret.shape.ReplaceAllString(match, secret.replace)
				})
				break
			}
		}
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
