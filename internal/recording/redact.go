// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/bulk"
	"github.com/hookgate/hookgate/internal/jsonscan"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

const (
	// masked is in the place of a text that is removed, and maskedData of one in base64.
	masked     = "***"
	maskedData = "Kioq"
	// maxNested is how many texts within one another are searched: JSON in a string, or in base64 in it.
	maxNested = 3
	// workPart is how often the bytes of a text may be read. It is more than once for those beside a name of a secret.
	workPart = 16
)

// errTooMuchWork means that a text has so many secrets within one another that redacting it would take too long.
var errTooMuchWork = errors.New("the text has too many secrets within one another")

var errTooDeep = fmt.Errorf("the text has more than %d values within one another", limits.JSONDepth)

// infrastructure are the secrets of the hooks of infrastructure, by their contract.
var infrastructure = []string{"/**/credentials/**", "/**/bootstrap/data"}

// Redactor removes secrets from JSON: what patterns name, the data of Secrets, the values of members, variables and
// patches with names such as password and token, and what has the shape of a secret, also within JSON and base64 in a
// string. It keeps the types of values, so that a request can be sent again. A Redactor is immutable and safe for
// concurrent use.
type Redactor struct{ patterns, infrastructure Patterns }

// NewRedactor returns a Redactor that removes, besides all that has the look of a secret, the values at JSON pointers.
// A pointer begins at the top of a request or an answer, and * stands for any one of its tokens, ** for any number. In
// a patch, the end of a pointer is enough, because the path of a patch begins at the object.
func NewRedactor(pointers []string) (*Redactor, error) {
	patterns, err := ParsePatterns(pointers)
	if err != nil {
		return nil, err
	}
	more, err := ParsePatterns(infrastructure)
	return &Redactor{patterns, slices.Concat(patterns, more)}, err
}

// Append appends a JSON text without its secrets and without white space between its values, and returns how many
// values have changed.
func (r *Redactor) Append(dst, json []byte, h hook.GroupHook) (_ []byte, redacted int, err error) {
	patterns := r.patterns
	if h.Group == hook.InfrastructureGroup {
		patterns = r.infrastructure
	}
	return appendRedacted(dst, json, patterns, patterns.start(), 0, false)
}

func appendRedacted(
	dst, json []byte, patterns Patterns, at places, nested int, patch bool,
) (_ []byte, redacted int, err error) {
	w := walker{
		Scanner: jsonscan.Scanner{Text: json}, patterns: patterns, out: dst, nested: nested, patch: patch,
		work: workPart * (len(json) + 1),
	}
	w.copied = jsonscan.Space(json, 0)
	end, err := w.value(w.copied, valueAt{places: at, patch: patch})
	if err == nil {
		w.copy(end)
		err = w.End(end)
	}
	return w.out, w.redacted, err
}

// walker checks a JSON text and writes it without its secrets. What does not change is copied in pieces as long as
// possible: most texts have no secret and no white space, and copying each value costs more than a third of the time.
type walker struct {
	jsonscan.Scanner

	patterns Patterns
	out      []byte
	copied   int // where what is not in out yet begins in the text
	redacted int
	nested   int  // how many texts are around this one
	patch    bool // whether the text is a patch
	work     int  // how many bytes may still be read
	depth    int  // how many objects and arrays are around a value
}

// valueAt is what is known of a value before it is read.
type valueAt struct {
	places

	secret bool // a text is a secret because of the name of its member
	inner  bool // of a text that is base64 in a member named patch
	masked bool // all texts are secrets because of where they are
	data   bool // which are base64
	patch  bool // it may be a list of operations
	step   bool // it is an operation
}

// copy copies the text up to i.
func (w *walker) copy(i int) {
	from := w.Text[w.copied:i]
	n := len(w.out)
	w.out = slices.Grow(w.out, len(from))[:n+len(from)]
	bulk.Copy(w.out[n:], from)
	w.copied = i
}

// replace writes a text in the place of that from i to end.
func (w *walker) replace(i, end int, with string) {
	w.copy(i)
	w.out, w.copied = append(w.out, with...), end
}

// place returns where in out the text at i will be, if nothing before it changes.
func (w *walker) place(i int) int { return len(w.out) + i - w.copied }

// next does what Next does, and leaves out the white space around the punctuation that Next skips.
func (w *walker) next(i int, first bool, end byte) (next int, more bool, err error) {
	next, more, err = w.Next(i, first, end)
	switch punctuation := w.Text[i:min(next, len(w.Text))]; {
	case err != nil || len(punctuation) == 1 || first && !more && len(punctuation) == 2: // no white space
	case first && !more:
		w.replace(i+1, next-1, "")
	case first:
		w.replace(i+1, next, "")
	case more:
		w.replace(i, next, ",")
	default:
		w.replace(i, next-1, "")
	}
	return next, more, err
}

// value writes the value that begins at i, and returns the index after it.
func (w *walker) value(i int, at valueAt) (end int, err error) {
	at.masked = at.masked || at.whole
	if c := w.At(i); c == '{' || c == '[' {
		if w.depth++; w.depth > limits.JSONDepth {
			return i, errTooDeep
		}
		if c == '{' {
			end, err = w.object(i, at)
		} else {
			end, err = w.array(i, at)
		}
		w.depth--
		return end, err
	}
	if end, err = w.Value(i, 0); err != nil {
		return end, err
	}
	if w.work -= end - i; w.work < 0 {
		return end, errTooMuchWork
	}
	switch c := w.Text[i]; {
	case c == '"':
		w.string(i, end, at)
	case !at.whole || c == 'n':
	case c == 't' || c == 'f': // which keeps its type, as a number does
		w.redacted++
		w.replace(i, end, "false")
	default:
		w.redacted++
		w.replace(i, end, "0")
	}
	return end, nil
}

func (w *walker) array(i int, at valueAt) (int, error) {
	item := valueAt{places: at.places, masked: at.masked, data: at.data, step: at.patch}
	for n := 0; ; n++ {
		next, more, err := w.next(i, n == 0, ']')
		if err != nil || !more {
			return next, err
		}
		if len(at.open) > 0 {
			item.places = w.patterns.next(at.places, strconv.Itoa(n))
		}
		if i, err = w.value(next, item); err != nil {
			return i, err
		}
	}
}

// member is a member that the others of its object may make a secret.
type member struct{ from, out, outEnd int }

// object writes an object. Whether a value is a secret may be known from a member behind it; it is then written again.
func (w *walker) object(i int, at valueAt) (int, error) {
	var s siblings
	for first := true; ; first = false {
		start, more, err := w.next(i, first, '}')
		if err != nil {
			return start, err
		}
		if !more {
			if !at.masked {
				err = w.afterwards(start, at, &s)
			}
			return start, err
		}
		nameEnd, from, err := w.Name(start)
		if err != nil {
			return from, err
		}
		if from > nameEnd+1 {
			w.replace(nameEnd, from, ":")
		}
		key := w.Text[start+1 : nameEnd-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = jsonscan.Unescape(key)
		}
		w.work -= nameEnd - start
		below := valueAt{masked: at.masked, data: at.data, places: places{whole: at.whole}, secret: isSecretName(key)}
		if len(at.open) > 0 {
			below.places = w.patterns.next(at.places, string(key))
		}
		below.inner = string(key) == "patch"
		m := member{from: from, out: w.place(from)}
		if i, err = w.value(from, below); err != nil {
			return i, err
		}
		m.outEnd = w.place(i)
		switch string(key) {
		case "data":
			s.data = m
		case "stringData":
			s.stringData = m
		case "value":
			s.value = m
		case "metadata":
			s.metadata = m
		case "kind":
			s.kind = w.Text[from:i]
		case "name", "key":
			s.name = w.Text[from:i]
		case "path":
			s.path = w.Text[from:i]
		}
	}
}

// siblings are the members of an object that make one another secrets.
type siblings struct {
	data, stringData, value, metadata member
	kind, name, path                  []byte // the texts of their values
}

// afterwards writes those values of an object, which ends at end, again that its other members make secrets. Those
// behind in out come first, so that the places of the others stay.
func (w *walker) afterwards(end int, at valueAt, s *siblings) error {
	type again struct {
		member

		at valueAt
	}
	var all []again
	if len(s.kind) > 0 && jsonscan.Equal(s.kind, "Secret") {
		all = append(all, again{s.data, valueAt{masked: true, data: true}}, again{s.stringData, valueAt{masked: true}})
		if s.metadata.from > 0 { // kubectl writes the whole Secret into an annotation
			all = append(all, again{s.metadata, valueAt{places: lastApplied.start()}})
		}
	}
	if s.value.from > 0 {
		switch {
		case isSecretText(s.name) || at.step && isSecretText(s.path):
			all = append(all, again{s.value, valueAt{masked: true}})
		case at.step && len(s.path) > 0:
			if to := w.along(s.path); to.whole || len(to.open) > 0 {
				all = append(all, again{s.value, valueAt{places: to}})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	w.copy(end)
	defer func() { w.copied = end }()
	slices.SortFunc(all, func(a, b again) int { return b.out - a.out })
	for _, a := range all {
		if a.from == 0 {
			continue
		}
		behind := slices.Clone(w.out[a.outEnd:])
		if w.work -= len(behind); w.work < 0 {
			return errTooMuchWork
		}
		w.out, w.copied = w.out[:a.out], a.from
		patterns := w.patterns
		if a.member == s.metadata && len(s.kind) > 0 {
			w.patterns = lastApplied
		}
		valueEnd, err := w.value(a.from, a.at)
		w.patterns = patterns
		if err != nil {
			return err
		}
		w.copy(valueEnd)
		w.out = append(w.out, behind...)
	}
	return nil
}

// lastApplied is where kubectl writes the object that a user has applied.
var lastApplied = Patterns{{"annotations", "kubectl.kubernetes.io/last-applied-configuration"}}

// along returns the places of the value that an operation of a patch sets.
func (w *walker) along(path []byte) places {
	at := w.patterns.anywhere()
	if pointer, ok := jsonscan.String(path); ok && pointer != "" && len(at.open) > 0 {
		for token := range strings.SplitSeq(pointer[1:], "/") {
			at = w.patterns.next(at, unescaped.Replace(token))
		}
	}
	return at
}

// string writes the string from i to end.
func (w *walker) string(i, end int, at valueAt) {
	inside := w.Text[i+1 : end-1]
	switch {
	case len(inside) == 0:
	case at.masked && at.data:
		w.redacted++
		w.replace(i+1, end-1, maskedData)
	case at.masked || at.secret:
		w.redacted++
		w.replace(i+1, end-1, masked)
	case at.inner || mayHide(inside):
		if bytes.IndexByte(inside, '\\') >= 0 {
			if inside, _ = jsonscan.Unescape(inside); !at.inner && !mayHide(inside) {
				return
			}
		}
		if clean, changed := w.text(string(inside), at.inner, w.nested); changed {
			w.redacted++
			w.copy(i)
			w.out, w.copied = jsonscan.AppendString(w.out, clean), end
		}
	}
}

// text returns a text without its secrets, and whether it had some.
func (w *walker) text(s string, patch bool, nested int) (clean string, changed bool) {
	if nested < maxNested {
		if begin := strings.TrimLeft(s, " \t\r\n"); begin != "" && (begin[0] == '{' || begin[0] == '[') {
			w.work -= len(s)
			json, n, err := appendRedacted(nil, []byte(s), w.patterns, w.within(patch), nested+1, patch)
			if err == nil { // it is JSON, which stays JSON
				return string(json), n > 0
			}
		} else if data, ok := decoded(s); ok {
			if inner, is := w.text(data, patch, nested+1); is {
				return base64.StdEncoding.EncodeToString([]byte(inner)), true
			}
			return s, false
		}
	}
	clean = s
	if strings.ContainsAny(s, "=: ") || strings.Contains(s, "eyJ") {
		clean = text.Mask(s)
	}
	if hasToken([]byte(s)) {
		clean = bootstrapToken.ReplaceAllString(clean, masked)
	}
	return clean, clean != s
}

// within returns the places of a JSON text in a string: of a patch, those of the object that it changes.
func (w *walker) within(patch bool) (at places) {
	if patch {
		at = w.patterns.anywhere()
	}
	return at
}

// bootstrapToken is the shape of the tokens with which kubeadm joins a Node.
var bootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// decoded returns the text that s is in base64, if it is one.
func decoded(s string) (string, bool) {
	if len(s)%4 != 0 || len(s) < 8 {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil || !utf8.Valid(data) {
		return "", false
	}
	return string(data), true
}

// least is the length of the shortest text in which there may be a secret.
const least = 8

// mayHide reports whether there may be a secret in a string, by what all of their shapes have.
func mayHide(s []byte) bool {
	if len(s) < least {
		return false
	}
	if c := s[0]; c == '{' || c == '[' || c <= ' ' {
		return true
	}
	return bytes.IndexByte(s, '\\') >= 0 || mayBeBase64(s) || hasToken(s) || text.MayMask(s)
}

func mayBeBase64(s []byte) bool {
	if len(s) < 3*least || len(s)%4 != 0 {
		return false
	}
	for _, c := range s {
		switch c {
		case '-', '_', '.', ':', ' ':
			return false
		}
	}
	return true
}

// The lengths of the parts of a bootstrap token.
const (
	tokenID     = 6
	tokenSecret = 16
)

// hasToken reports whether a part of s looks like a bootstrap token.
func hasToken(s []byte) bool {
	for len(s) > tokenID+tokenSecret {
		dot := bytes.IndexByte(s[tokenID:], '.')
		if dot < 0 || len(s)-dot <= tokenID+tokenSecret {
			return false
		}
		s = s[dot:]
		if isTokenPart(s[:tokenID]) && isTokenPart(s[tokenID+1:tokenID+1+tokenSecret]) {
			return true
		}
		s = s[1:]
	}
	return false
}

func isTokenPart(s []byte) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// secretNames are the ends of names of members whose texts are secrets, in lower case and without separators.
var secretNames = []string{
	"password", "passwd", "passphrase", "token", "secret", "apikey", "accesskey", "secretkey", "privatekey",
	"encryptionkey", "certificatekey",
}

// isSecretName reports whether a text is a secret because of the name of its member.
func isSecretName(name []byte) bool {
	if len(name) < len("token") {
		return false
	}
	switch before, last := name[len(name)-2]|0x20, name[len(name)-1]|0x20; { // in which they end
	case last == 'd' && (before == 'r' || before == 'w'), last == 'e' && before == 's':
	case before == 'e' && (last == 'n' || last == 't' || last == 'y'):
	case before < 'a' || before > 'z': // a separator, perhaps
	default:
		return false
	}
	var end [len("certificatekey")]byte // of the name, in lower case and without separators
	n := len(end)
	for i := len(name) - 1; i >= 0 && n > 0; i-- {
		if c := name[i]; c != '-' && c != '_' && c != '.' {
			n--
			end[n] = c | 0x20
		}
	}
	return slices.ContainsFunc(secretNames, func(s string) bool { return bytes.HasSuffix(end[n:], []byte(s)) })
}

// isSecretText reports whether a string in JSON names a secret: the name of a variable, or the path of a patch.
func isSecretText(literal []byte) bool {
	if len(literal) < 2 || literal[0] != '"' {
		return false
	}
	s := literal[1 : len(literal)-1]
	if i := bytes.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	return isSecretName(s)
}
