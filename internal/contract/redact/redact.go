// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact removes secrets from what is recorded, reported, logged and told to others: the data of Secrets,
// values whose names say that they are secret, and texts that look like a secret, in JSON, YAML and other text, also
// where they are quoted, in base64, compressed, or escaped as in a URL. Redactor reads requests and answers, Text any
// text, and Known removes what is known to be secret.
//
// It goes by structure first (what Kubernetes, Cluster API, cloud-init and Ignition keep secrets in), then by names,
// and then by the shapes of secrets, for which it has the rules of gitleaks besides its own. It cannot know secrets
// that look like other text. The same text always gives the same result, and its length bounds the work.
//
// A Redactor and the functions are safe for concurrent use.
package redact

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Mask is in the place of a secret that was removed.
const Mask = "***"

// Text returns s without what has the shape, the name or the place of a secret.
func Text(s string) string { return newCleaner(len(s)).text(s, 0, false) }

// Bounded returns s without secrets and, if it has more than n bytes, cut: the end of the text says so.
func Bounded(s string, n int) string {
	if len(s) > n+limits.RedactMarginBytes { // of which more is read than is kept, so that a secret at the end is whole
		s = strings.ToValidUTF8(s[:n+limits.RedactMarginBytes], "")
	}
	s = Text(s)
	const mark = " … (cut)"
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

// Cut returns s without secrets, shortened to at most n bytes as text.Cut does.
func Cut(s string, n int) string {
	return text.Cut(Text(text.Cut(s, n+limits.RedactMarginBytes)), n)
}

// Value returns the value at a JSON pointer as Cut does, and nothing of a text where the pointer names a secret.
func Value(pointer, json string, n int) string {
	if json != "" && json[0] == '"' && isSecretPath(pointer) {
		return Mask
	}
	return Cut(json, n)
}

// URL returns a URL, which may be invalid, as a message may show it: without credentials.
func URL(raw string) string {
	begin := 0
	if i := strings.Index(raw, "://"); i >= 0 {
		begin = i + len("://")
	}
	if at := strings.LastIndex(raw, "@"); at >= begin {
		raw = raw[:begin] + Mask + raw[at:]
	}
	return Text(raw)
}

// LogAttr bounds the text of an attribute of the log, and removes secrets from it. It has the signature of
// slog.HandlerOptions.ReplaceAttr, so that no line is without limit, whatever a peer has sent.
func LogAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(value(a.Key, a.Value.String()))
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = slog.StringValue(value(a.Key, v.Error()))
		case fmt.Stringer:
			a.Value = slog.StringValue(value(a.Key, v.String()))
		case []string:
			a.Value = slog.StringValue(value(a.Key, fmt.Sprint(v)))
		}
	default:
	}
	return a
}

// value returns the text of an attribute, which its name may make a secret.
func value(name, s string) string {
	if s != "" && isSecretName(name) {
		return Mask
	}
	return Bounded(s, limits.LogTextBytes)
}

// cleaner removes the secrets of one text, and of the texts in it.
type cleaner struct {
	patterns Patterns
	left     int // how many bytes of texts within others may still be read
	// known are the results of texts that are not patches: a request may have a file for each of its machines.
	known map[string]string
}

// leastKept is the length of the shortest text whose result is kept.
const leastKept = 128

func newCleaner(size int) *cleaner {
	return &cleaner{left: limits.RedactLeastBytes + limits.RedactPart*size}
}

// leastText is the length of the shortest text that is looked at.
const leastText = 6

// mayHide reports whether there may be a secret in a text: most have nothing that a secret is known by.
func mayHide(s []byte) bool {
	if len(s) < leastText {
		return false
	}
	shaped, named := theMatcher().words.any(s, len(nameRoots))
	return shaped || named && (bytes.ContainsAny(s, "=:>") || bytes.Contains(s, []byte("--"))) ||
		hasEncoded(s) || len(tokens(s, true)) > 0
}

// text returns s, which is within depth others, without its secrets. patch says that it may be a patch.
func (c *cleaner) text(s string, depth int, patch bool) string {
	if !patch && !mayHide([]byte(s)) {
		return s
	}
	if depth == 0 || patch || len(s) < leastKept {
		return c.read(s, depth, patch)
	}
	clean, ok := c.known[s]
	if !ok {
		if clean = c.read(s, depth, patch); c.known == nil {
			c.known = map[string]string{}
		}
		c.known[s] = clean
	}
	return clean
}

// read does what text does for a text that may have secrets.
func (c *cleaner) read(s string, depth int, patch bool) string {
	if depth < limits.RedactDepth {
		if clean, ok := c.structured(s, depth, patch); ok {
			return clean
		}
		s = c.embedded(s, depth)
	}
	s = c.percent(s, depth, patch)
	s = replace(s, theMatcher().spans(s))
	return c.encoded(s, depth, patch)
}

// replace returns s with Mask in the place of its parts.
func replace(s string, parts []span) string {
	if len(parts) == 0 {
		return s
	}
	slices.SortFunc(parts, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	copied, masked := 0, -1
	for _, p := range parts {
		if p.to <= copied {
			continue
		}
		if p.from > copied || masked < 0 {
			b.WriteString(s[copied:max(p.from, copied)])
			b.WriteString(Mask)
		}
		copied, masked = p.to, p.to
	}
	b.WriteString(s[copied:])
	return b.String()
}

// structured returns a text in JSON or YAML without its secrets, or is false for text of other forms.
func (c *cleaner) structured(s string, depth int, patch bool) (clean string, ok bool) {
	begin := strings.TrimLeft(s, " \t\r\n")
	if begin == "" {
		return s, false
	}
	if begin[0] == '{' || begin[0] == '[' {
		c.left -= len(s)
		form := jsonForm{patch: patch, spaces: true}
		if patch {
			form.places = c.patterns.anywhere()
		}
		json, n, err := c.json(nil, []byte(s), depth, form)
		switch {
		case err == nil && n == 0:
			return s, true
		case err == nil:
			return string(json), true
		case !errors.As(err, new(*jsonscan.Error)):
			return Mask, true // its content is not known
		}
	}
	return c.yaml(s, depth, patch)
}
