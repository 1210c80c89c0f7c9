// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/bulk"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// maskedData is Mask in base64, for the data of Secrets.
const maskedData = "Kioq"

// workPart is how often the bytes of a text may be read. It is more than once for those beside a name of a secret.
const workPart = 16

// errTooMuchWork means that a text has so many secrets within one another that redacting it would take too long.
var errTooMuchWork = errors.New("the text has too many secrets nested in one another")

var errTooDeep = fmt.Errorf("the text has values nested more than %d levels deep", limits.JSONDepth)

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
	c := newCleaner(len(json))
	c.patterns = r.patterns
	if h.Group == hook.InfrastructureGroup {
		c.patterns = r.infrastructure
	}
	return c.json(dst, json, 0, jsonForm{places: c.patterns.start()})
}

// jsonForm says how a JSON text is read and written.
type jsonForm struct {
	places

	patch  bool // it may be a patch
	yaml   bool // it stands for YAML, which people write
	spaces bool // its white space stays
}

// json appends a JSON text without its secrets, and returns how many values have changed.
func (c *cleaner) json(dst, json []byte, depth int, form jsonForm) (_ []byte, redacted int, err error) {
	w := walker{
		Scanner: jsonscan.Scanner{Text: json}, cleaner: c, form: form, out: dst, nested: depth,
		work: workPart * (len(json) + 1),
	}
	if w.copied = jsonscan.Space(json, 0); form.spaces {
		w.copied = 0
	}
	end, err := w.value(jsonscan.Space(json, 0), valueAt{places: form.places, patch: form.patch})
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
	*cleaner

	form     jsonForm
	out      []byte
	copied   int // where what is not in out yet begins in the text
	redacted int
	nested   int // how many texts are around this one
	work     int // how many bytes may still be read
	depth    int // how many objects and arrays are around a value
}

// valueAt is what is known of a value before it is read.
type valueAt struct {
	places

	secret bool // a text is a secret because of the name of its member
	auth   bool // a text is one if it is a name and a password in base64
	inner  bool // of a text that is base64 in a member named patch
	masked bool // all texts are secrets because of where they are
	data   bool // which are base64
	patch  bool // it may be a list of operations
	step   bool // it is an operation
	kind   bool // it is a Secret, whatever it says, or a list of them
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
	case err != nil || w.form.spaces || len(punctuation) == 1 || first && !more && len(punctuation) == 2: // no white space
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
	number := (at.masked || at.secret) && end-i >= leastNumber && w.Text[i] <= '9' // which is a secret
	switch c := w.Text[i]; {
	case c == '"':
		w.string(i, end, at)
	case c == 'n' || !at.whole && !number:
	case c == 't' || c == 'f': // which keeps its type, as a number does
		w.redacted++
		w.replace(i, end, "false")
	default:
		w.redacted++
		w.replace(i, end, "0")
	}
	return end, nil
}

// leastNumber is the length of a number that is a secret because of its name: shorter ones count something.
const leastNumber = 4

func (w *walker) array(i int, at valueAt) (int, error) {
	item := valueAt{
		places: at.places, masked: at.masked, data: at.data, step: at.patch, secret: at.secret, kind: at.kind,
	}
	var flag bool // the item before names a secret, as in the arguments of a command
	for n := 0; ; n++ {
		next, more, err := w.next(i, n == 0, ']')
		if err != nil || !more {
			return next, err
		}
		if len(at.open) > 0 {
			item.places = w.patterns.next(at.places, strconv.Itoa(n))
		}
		item.secret = at.secret || flag && w.At(next) == '"' && w.At(next+1) != '-'
		if i, err = w.value(next, item); err != nil {
			return i, err
		}
		flag = isFlag(w.Text[next:i])
	}
}

// isFlag reports whether a string in JSON is a flag whose value is a secret.
func isFlag(literal []byte) bool {
	return len(literal) > len(`"--"`) && literal[0] == '"' && literal[1] == '-' && isSecretName(literal[1:len(literal)-1])
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
		if from > nameEnd+1 && !w.form.spaces {
			w.replace(nameEnd, from, ":")
		}
		key := w.Text[start+1 : nameEnd-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = jsonscan.Unescape(key)
		}
		w.work -= nameEnd - start
		below := valueAt{masked: at.masked, data: at.data, places: places{whole: at.whole}, secret: isSecretName(key)}
		if string(key) == "stringData" || string(key) == "chpasswd" || at.kind && string(key) == "data" {
			below.masked, below.data = true, string(key) == "data"
		}
		if len(at.open) > 0 {
			below.places = w.patterns.next(at.places, string(key))
		}
		below.inner, below.auth = string(key) == "patch", isAuth(key)
		m := member{from: from, out: w.place(from)}
		if i, err = w.value(from, below); err != nil {
			return i, err
		}
		m.outEnd = w.place(i)
		switch string(key) {
		case "data":
			s.data = m
		case "items":
			s.items = m
		case "value", "content", "contents", "inline", "source", "default", "secretValue", "example":
			s.values = append(s.values, m)
		case "metadata":
			s.metadata = m
		case "kind":
			s.kind = w.Text[from:i]
		case "type":
			s.typed = w.Text[from:i]
		case "name", "key", "header", "variable", "field":
			s.name = w.Text[from:i]
		case "path", "filename", "file", "dest", "destination", "target":
			s.path = w.Text[from:i]
		}
	}
}

// siblings are the members of an object that make one another secrets.
type siblings struct {
	data, items, metadata   member
	values                  []member
	kind, typed, name, path []byte // the texts of their values
}

// again is a value that is written again.
type again struct {
	member

	at       valueAt
	patterns Patterns // other ones, for the annotations of a Secret
}

// isSecret reports whether an object is a Secret, or else has the type of one.
func (s *siblings) isSecret() bool {
	if len(s.kind) > 0 {
		return jsonscan.Equal(s.kind, "Secret") || jsonscan.Equal(s.kind, "secret")
	}
	typed, _ := jsonscan.String(s.typed)
	return s.data.from > 0 && secretType.MatchString(typed)
}

// secretType is the type of a Secret.
var secretType = regexp.MustCompile(`^(?:Opaque|[a-z0-9.-]+/[A-Za-z0-9._-]+|helm\.sh/release.*)$`)

// again returns the values of an object that its other members make secrets.
func (s *siblings) again(w *walker, at valueAt) (all []again) {
	if s.isSecret() {
		if !at.kind {
			all = append(all, again{s.data, valueAt{masked: true, data: true}, nil})
		}
		if s.metadata.from > 0 { // kubectl writes the whole Secret into an annotation
			all = append(all, again{s.metadata, valueAt{places: lastApplied.start()}, lastApplied})
		}
	}
	if len(s.kind) > 0 && jsonscan.Equal(s.kind, "SecretList") && s.items.from > 0 {
		all = append(all, again{s.items, valueAt{kind: true}, nil})
	}
	if len(s.values) == 0 {
		return all
	}
	name, _ := jsonscan.String(s.name)
	path, isPath := jsonscan.String(s.path)
	below := valueAt{masked: true}
	switch {
	case isSecretName(name) || path != "" && isSecretPath(path):
	case at.step && isPath && path != "":
		if to := w.along(path); to.whole || len(to.open) > 0 {
			below = valueAt{places: to}
			break
		}
		return all
	default:
		return all
	}
	for _, m := range s.values {
		all = append(all, again{m, below, nil})
	}
	return all
}

// afterwards writes those values of an object, which ends at end, again that its other members make secrets. Those
// behind in out come first, so that the places of the others stay.
func (w *walker) afterwards(end int, at valueAt, s *siblings) error {
	all := s.again(w, at)
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
		if a.patterns != nil {
			w.patterns = a.patterns
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
func (w *walker) along(path string) places {
	at := w.patterns.anywhere()
	if len(at.open) > 0 {
		for token := range strings.SplitSeq(path[1:], "/") {
			at = w.patterns.next(at, jsonpointer.Unescape(token))
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
	case at.masked || at.secret && w.isSecret(inside) || at.auth && isBasic(string(inside)):
		w.redacted++
		w.replace(i+1, end-1, Mask)
	case at.inner || mayHide(inside) || bytes.IndexByte(inside, '\\') >= 0:
		if bytes.IndexByte(inside, '\\') >= 0 {
			if inside, _ = jsonscan.Unescape(inside); !at.inner && !mayHide(inside) {
				return
			}
		}
		text := string(inside)
		if clean := w.text(text, w.nested+1, at.inner); clean != text {
			w.redacted++
			w.copy(i)
			w.out, w.copied = jsonscan.AppendString(w.out, clean), end
		}
	}
}

// isSecret reports whether the text of a member with the name of a secret is one.
func (w *walker) isSecret(text []byte) bool {
	s := string(text)
	return !placeholder.MatchString(s) && (!w.form.yaml || !isProse(s, false))
}
